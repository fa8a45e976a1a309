"""Forging stored results: one edit, and whatever covers its traces in the same folder."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from groundfault.auditing.report import write_sums

KeyPath = tuple[str | int, ...]

DELETED = Ellipsis
"""As a value: the field goes away."""


def edit(content: Any, path: str | KeyPath, value: Any) -> Any:
    """A copy of some JSON with another value at a path such as ``ledger.reasons.0``."""
    edited = copy.deepcopy(content)
    if isinstance(path, str):
        path = tuple(int(key) if key.isdigit() else key for key in path.split("."))
    *parents, last = path
    place = edited
    for key in parents:
        place = place[key]
    if value is DELETED:
        del place[last]
    elif isinstance(place, list) and last == len(place):
        place.append(value)
    else:
        place[last] = value
    return edited


def list_leaves(content: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Every value that holds no others, with its path; empty lists and objects too."""
    items = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in items:
        where = (*path, key)
        if isinstance(value, dict | list) and value:
            yield from list_leaves(value, where)
        else:
            yield where, value


def change(value: Any) -> Any:
    """Another value of the same type; of what is empty, one that is not."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        # small p-values stay small: only a relative comparison notices
        return value * 1.0001 if value else 0.25
    if isinstance(value, str):
        return value + "x"
    # what is empty: nothing, a list or an object
    return 1 if value is None else ["x"] if value == [] else {"x": 1}


def write_report(folder: Path, content: Any) -> None:
    """Put a forged report.json into a folder, with digests that fit it."""
    text = json.dumps(content, indent=1, ensure_ascii=False)
    (folder / "report.json").write_text(text, encoding="utf-8")
    write_sums(folder)
