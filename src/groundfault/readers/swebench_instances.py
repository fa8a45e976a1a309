"""The instances that a SWE-bench leaderboard entry was run on, which its results do not list."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from groundfault.base.reading import read_bytes, readable
from groundfault.errors import InputError
from groundfault.readers.safely import json_file, json_lines
from groundfault.readers.values import mapping

LISTS = ("instances.txt", "instances.json", "instances.jsonl")
"""Names of a list of instances: ids by line, a JSON list, or the benchmark's own rows."""
PREDICTIONS = ("all_preds.jsonl", "all_preds.json", "preds.json")
"""Names of an agent's predictions, which have its instances."""
# <split>/<agent>/results/results.json: a list may stand beside the split
_LEVELS = 4


def find_instances(results: Path) -> tuple[list[str], str]:
    """All instances of a run, and the file that lists them.

    Parameters
    ----------
    results : path
        The results of an agent. A list is looked for in its folder and the three above it, the
        agent's predictions in its folder and the one above.

    Returns
    -------
    list of str, str
        The ids, in the order of the file; nothing, and no name, where there is no such file.

    Raises
    ------
    InputError
        If there is one and it cannot be read, or lists nothing.
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
