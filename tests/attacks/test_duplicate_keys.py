"""A key that stands twice in a log: a reader takes the last value, as the tool that wrote it, or
refuses the log; none takes the first.

In files of our own it is an error: see `test_types.py`.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from groundfault import InputError, readers
from groundfault.readers.log import Log


def alter(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return f"{value}x" if isinstance(value, str) else value


def spell_twice(value: Any) -> str:
    """JSON in which each key of an object stands twice, first with another value."""
    if isinstance(value, dict):
        pairs = [
            f"{json.dumps(key)}: {json.dumps(alter(each))}, {json.dumps(key)}: {spell_twice(each)}"
            for key, each in value.items()
        ]
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(spell_twice, value)) + "]"
    return json.dumps(value)


def double(path: Path) -> bool:
    """Double the keys of a file, if it is JSON."""
    if path.suffix not in (".json", ".jsonl"):
        return False
    text = path.read_text(encoding="utf-8")
    # some tools write lines into a file of this name
    is_one = path.suffix == ".json" and text.count("\n{") == 0
    parts = [text] if is_one else text.splitlines()
    doubled = [spell_twice(json.loads(part)) for part in parts if part.strip()]
    path.write_text("".join(f"{part}\n" for part in doubled), encoding="utf-8")
    return True


def read(name: str, path: Path) -> list[Any]:
    log: Log = readers.get(name).read(path)
    return [row for table, _ in log.tables() for row in table.rows()]


def test_a_reader_takes_the_last(sample: tuple[str, list[Path]]) -> None:
    name, paths = sample
    for path in paths:
        before = read(name, path)
        files = [path] if path.is_file() else sorted(path.rglob("*"))
        if not sum(map(double, files)):
            pytest.skip("not JSON")
        with suppress(InputError):
            assert read(name, path) == before
