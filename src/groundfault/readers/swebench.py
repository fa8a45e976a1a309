"""SWE-bench: reports of one instance, reports of a run, and the maps of SWE-bench Pro."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from groundfault.base.reading import read_bytes, readable
from groundfault.core.column_meaning import open_conversation
from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.readers.account import OfficialFigure
from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import JsonObject, head, json_file, json_lines
from groundfault.readers.values import list_names, mapping, number, settle

_INSTANCE = re.compile(
    r"(?:instance_)?(?P<org>[\w.-]+?)__(?P<repo>[\w.-]+?)-(?:[0-9a-f]{40}|\d+)(?P<version>-v\w*)?"
)
_FIRST = re.compile(rb'\s*\{\s*"([\w.-]+__[\w.-]+)"\s*:\s*(true\b|false\b|null\b|\{)')
_VERDICT = re.compile(rb'"(resolved|patch_\w+|infra_failure)"\s*:')
_LISTS: dict[str, tuple[float | None, Status]] = {
    name: (row.get("value"), Status(row["status"]))
    for name, row in list_names("swebench")["lists"].items()
}
"""Value and status of the instances in each list of a run report.

The lists are called ``resolved_ids`` and so on, and ``resolved`` on leaderboards.
"""
_GENERATED = "generated"
"""The list of all instances with a patch: in leaderboard results until the summer of 2024."""
_RUN = re.compile(rb'"(resolved_ids|no_generation)"\s*:')
# a dot between two digits is part of a version, such as gpt-5.1, and no mark before a run's name
_RUN_NAME = re.compile(r"(.+)(?<!\d)\.[^.]+|(.+)\.\D[^.]*")
_GENERIC = {"results", "report", ""}


LISTS = ("instances.txt", "instances.json", "instances.jsonl")
"""Names of a list of instances: ids by line, a JSON list, or the benchmark's own rows."""
PREDICTIONS = ("all_preds.jsonl", "all_preds.json", "preds.json")
"""Names of an agent's predictions, which have its instances."""
# <split>/<agent>/results/results.json: a list may stand beside the split
_LEVELS = 4
_Lists = dict[str, list[object]]


class SweBench:
    """Reads whether instances were resolved.

    A run without a patch is ``unparsed``: there was no answer to test. A failure of the harness or
    its environment is ``error``, an instance that was not run is ``missing``; these are not
    failures of the model. The results of a leaderboard entry (``results.json``) list only resolved
    instances. All instances are then read from ``instances.txt``, or the agent's predictions, in
    its folder or above; without these files the results are refused. The version that SWE-bench Pro
    puts behind some ids (``-v<hash>``, ``-vnan``) is removed, so that agents can be compared.
    """

    companions = (*LISTS, *PREDICTIONS, "metadata.yaml")
    undated = ()

    def sniff(self, path: Path) -> bool:
        """Return whether the first key is an instance with an outcome, or a list is there."""
        start = head(path)
        first = _FIRST.match(start)
        if first and first[2] == b"{":
            return path.suffix == ".json" and _VERDICT.search(start) is not None
        run = _RUN.search(start) or (b'"total_instances"' in start and b'"completed_ids"' in start)
        return path.suffix == ".json" and bool(first or run)

    def read(self, path: Path) -> Log:
        """Read outcomes of the instances."""
        content = json_file(path, dict[str, Any])
        named = {n.removesuffix("_ids"): ids for n, ids in content.items() if isinstance(ids, list)}
        lists = {name: ids for name, ids in named.items() if name in (*_LISTS, _GENERATED)}
        if not lists:
            return Log(list(_read_map(path, content)), "swebench")
        notes: list[str] = []
        rows = list(_read_run(path, lists, notes))
        for position, row in enumerate(rows, 1):
            row.transcript = position if _find_trajectory(path, row.example_id) else None
        return Log(rows, "swebench", notes, official=_read_figure(content, lists, rows))

    def read_conversations(self, path: Path) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """Yield the turns of SWE-agent for each instance of a run with a trajectory beside it."""
        for row in self.read(path).observations:
            place = _find_trajectory(path, row.example_id)
            if place and row.transcript:
                yield (
                    row.transcript,
                    open_conversation(read_bytes(place).decode("utf-8", "replace")),
                )


def _find_trajectory(path: Path, instance: str) -> Path | None:
    """Return the trajectory of an instance from the folder of the results or the one above."""
    if "/" in instance or "\\" in instance:
        return None  # the id of a log is no path to read
    folders = [f / name for f in path.absolute().parents[:2] for name in (".", "trajs", instance)]
    places = (folder / f"{instance}.traj" for folder in folders)
    return next((place for place in places if place.is_file()), None)


def _read_figure(
    content: JsonObject, lists: _Lists, rows: list[Observation]
) -> OfficialFigure | None:
    """Return the numbers of resolved and of all instances."""
    if not rows or "resolved" not in lists:
        return None
    total = number(content.get("total_instances"))
    counts = len(set(map(str, lists["resolved"]))), len(rows) if total is None else int(total)
    return OfficialFigure("SWE-bench", rows[0].model, *counts)


def _read_run(path: Path, lists: _Lists, notes: list[str]) -> Iterator[Observation]:
    """Read every id once: from the list of environment failures, else from its first list."""
    # an instance may stand in several lists, such as submitted and resolved
    outcomes: dict[str, tuple[float | None, Status]] = {}
    for name in ("infra_failure", *_LISTS):
        for instance in lists.get(name, []):
            outcomes.setdefault(str(instance), _LISTS[name])
    for instance in _list_failed(path, lists, outcomes, notes):
        outcomes.setdefault(instance, _LISTS["unresolved"])
    # <model>.<run>.json, or the folder that is the agent's own
    run = _RUN_NAME.fullmatch(path.stem)
    model = _name_folder(path) if path.stem in _GENERIC else path.stem
    if run and path.stem not in _GENERIC:
        model = run[1] or run[2]
    # the order follows the lists, and so the outcomes: it is not a position
    for instance, outcome in outcomes.items():
        yield _make_observation(instance, model, outcome, {})


def _list_failed(
    path: Path, lists: _Lists, outcomes: Mapping[str, object], notes: list[str]
) -> list[str]:
    """Return all instances of a run that does not list its failures.

    Raise if they are not found.
    """
    if _GENERATED in lists:
        return [str(instance) for instance in lists[_GENERATED]]
    if "unresolved" in lists or "failed" in lists or "resolved" not in lists:
        return []
    instances, source = find_instances(path)
    if not instances:
        raise InputError(
            f"{path} lists only resolved instances ({len(lists['resolved']):,}), not failed ones: "
            "put the ids of all instances, one a line, into instances.txt beside it or in a folder "
            "above (SWE-bench Verified has 500, Lite 300, the whole test set 2,294)"
        )
    strange = outcomes.keys() - set(instances)
    if strange:
        raise InputError(
            f"{path}: {len(strange):,} of its instances, such as {min(strange)!r}, are not in "
            f"{source}; is that the list of this benchmark?"
        )
    notes.append(f"failures are taken from {source}, which lists {len(instances):,} instances")
    return instances


def _name_folder(path: Path) -> str:
    names = (folder.name for folder in path.absolute().parents)
    return next((name for name in names if name not in _GENERIC), path.stem)


def _read_map(path: Path, content: JsonObject) -> Iterator[Observation]:
    """Read ``{instance: true}``, or ``{instance: {"resolved": true, ...}}``."""
    short = path.name.removesuffix(".json").removesuffix("eval_results").rstrip("._-")
    model = _name_folder(path) if short in _GENERIC else short
    for position, (instance, verdict) in enumerate(content.items(), 1):
        if not isinstance(verdict, bool | dict | None):
            what = f"{type(verdict).__name__}, not true, false or a report"
            raise InputError(f"{path}: the outcome of {instance!r} is {what}")
        if path.stem == "report" and path.parent.name == instance:
            model = path.parent.parent.name
        details = mapping(verdict)
        is_empty = details.get("patch_is_None") or details.get("patch_exists") is False
        reason = Status.UNPARSED if is_empty else None
        reason = Status.ERROR if details.get("infra_failure") else reason
        score = settle(details.get("resolved") if details else verdict, reason)
        flags = {name: flag for name, flag in details.items() if isinstance(flag, bool)}
        flags.pop("resolved", None)
        yield _make_observation(instance, model, score, {"position": position, **flags})


def _make_observation(
    instance: str, model: str, score: tuple[float | None, str], measurements: JsonObject
) -> Observation:
    match, attributes, version = _INSTANCE.fullmatch(instance), {}, ""
    if match:
        attributes, version = {"repo": f"{match['org']}/{match['repo']}"}, match["version"] or ""
    return Observation(
        instance.removesuffix(version),
        *score,
        scorer="resolved",
        model=model.replace("__", "/"),
        task="SWE-bench Pro" if instance.startswith("instance_") else "SWE-bench",
        attributes=attributes | ({"version": version[2:]} if version else {}),
        measured=measurements,
    )


def find_instances(results: Path) -> tuple[list[str], str]:
    """Return all instances of a run, and the file that lists them.

    Parameters
    ----------
    results : path
        The results of an agent. A list is searched in its folder and the three above it, the
        agent's predictions in its folder and the one above.

    Returns
    -------
    list of str, str
        The ids in the order of the file, and its name; both empty if no file is found.

    Raises
    ------
    InputError
        If the file cannot be read, or is empty.
    """
    folders = results.absolute().parents[:_LEVELS]
    places = [folder / name for folder in folders for name in LISTS]
    places += [folder / name for folder in folders[:2] for name in PREDICTIONS]
    for place in places:
        if place.is_file():
            instances = list(dict.fromkeys(_read(place)))
            if not instances:
                raise InputError(f"{place} lists no instance")
            return instances, place.name
    return [], ""


def _read(path: Path) -> Iterator[str]:
    if path.suffix == ".txt":
        with readable(path):
            lines = read_bytes(path).decode("utf-8-sig", "replace").splitlines()
        yield from (line.strip() for line in lines if line.strip())
        return
    rows: Any = json_lines(path, object) if path.suffix == ".jsonl" else json_file(path, object)
    # predictions may be a mapping by instance
    for row in rows:
        instance = row if isinstance(row, str) else mapping(row).get("instance_id")
        if not isinstance(instance, str):
            raise InputError(f"{path}: {str(row)[:80]!r} is no instance: it has no instance_id")
        yield instance
