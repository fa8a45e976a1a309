"""SWE-bench: reports of one instance, reports of a run, and the maps of SWE-bench Pro."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import head, json_file
from groundfault.readers.values import mapping, number

_INSTANCE = re.compile(
    r"(?:instance_)?(?P<org>[\w.-]+?)__(?P<repo>[\w.-]+?)-(?:[0-9a-f]{40}|\d+)(?P<version>-v\w*)?"
)
_FIRST = re.compile(rb'\s*\{\s*"([\w.-]+__[\w.-]+)"\s*:\s*(true|false|null|\{)')
_LISTS = {
    "resolved": (1.0, Status.SCORED),
    "unresolved": (0.0, Status.SCORED),
    "failed": (0.0, Status.SCORED),
    "infra_failure": (None, Status.ERROR),
    "error": (None, Status.ERROR),
    "empty_patch": (None, Status.UNPARSED),
    "no_generation": (None, Status.UNPARSED),
    "incomplete": (None, Status.MISSING),
    "pending": (None, Status.MISSING),
    "submitted": (None, Status.MISSING),
    "generated": (None, Status.MISSING),
}
"""Value and status of the instances in each list of a run report.

The lists are called ``resolved_ids`` and so on, and ``resolved`` before 2024.
"""
_RUN = re.compile(rb'"(resolved_ids|no_generation)"\s*:')


class SweBench:
    """Reads whether instances were resolved.

    A run without a patch is ``unparsed``: there was no answer to test. A failure of the harness or
    of its environment is ``error``, an instance that was not run ``missing``; none of them is a
    failure of the model. The version that SWE-bench Pro puts behind some ids (``-v<hash>``,
    ``-vnan``) is removed, so that agents can be compared.
    """

    def sniff(self, path: Path) -> bool:
        """Whether the first key is an instance with an outcome, or there is a resolved list."""
        start = head(path)
        run = _RUN.search(start) or (b'"total_instances"' in start and b'"completed_ids"' in start)
        return path.suffix == ".json" and bool(_FIRST.match(start) or run)

    def read(self, path: Path) -> Log:
        """Outcomes of the instances."""
        content = json_file(path, dict[str, Any])
        if lists := {
            _list(name): ids
            for name, ids in content.items()
            if _list(name) and isinstance(ids, list)
        }:
            return Log(list(_run(path, lists)), "swebench")
        return Log(list(_map(path, content)), "swebench")


def _list(name: str) -> str | None:
    short = name.removesuffix("_ids")
    return short if short in _LISTS else None


def _run(path: Path, lists: dict[str | None, list[Any]]) -> Iterator[Observation]:
    """Every id once: by the list of failures of the environment, else the first that has it."""
    # an instance may stand in several lists, such as submitted and resolved
    outcomes: dict[str, tuple[float | None, Status]] = {}
    for name in ("infra_failure", *_LISTS):
        for instance in lists.get(name, []):
            outcomes.setdefault(str(instance), _LISTS[name])
    model = path.stem.rpartition(".")[0] or path.stem
    for position, (instance, (value, status)) in enumerate(outcomes.items(), 1):
        yield _observation(instance, model, value, status, {"position": position})


def _map(path: Path, content: dict[str, Any]) -> Iterator[Observation]:
    """``{instance: true}``, or ``{instance: {"resolved": true, ...}}``."""
    model = (
        path.name.removesuffix(".json").removesuffix("eval_results").rstrip("._-")
        or path.parent.name
    )
    for position, (instance, verdict) in enumerate(content.items(), 1):
        if not isinstance(verdict, bool | dict | None):
            raise InputError(
                f"{path}: the outcome of {instance!r} is {type(verdict).__name__}, not true, false "
                "or a report"
            )
        if path.stem == "report" and path.parent.name == instance:
            model = path.parent.parent.name
        details = mapping(verdict)
        value = number(details.get("resolved") if details else verdict)
        status = Status.SCORED if value is not None else Status.MISSING
        if details.get("infra_failure"):
            value, status = None, Status.ERROR
        elif details.get("patch_is_None") or details.get("patch_exists") is False:
            value, status = None, Status.UNPARSED
        extra = {
            name: flag
            for name, flag in details.items()
            if isinstance(flag, bool) and name != "resolved"
        }
        yield _observation(instance, model, value, status, {"position": position, **extra})


def _observation(
    instance: str, model: str, value: float | None, status: Status, measurements: dict[str, Any]
) -> Observation:
    name_match = _INSTANCE.fullmatch(instance)
    attributes = {"repo": f"{name_match['org']}/{name_match['repo']}"} if name_match else {}
    version = name_match["version"] if name_match else None
    return Observation(
        instance.removesuffix(version or ""),
        value,
        status,
        scorer="resolved",
        model=model.replace("__", "/"),
        task="SWE-bench Pro" if instance.startswith("instance_") else "SWE-bench",
        attributes=attributes | ({"version": version[2:]} if version else {}),
        measured=measurements,
    )
