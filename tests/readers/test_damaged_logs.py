"""Damaged logs: every reader returns a log or one line of error, and soon."""

from __future__ import annotations

import json
import time
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from profiles import count_examples

from groundfault import readers
from groundfault.errors import InputError

ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    3,
    2**70,
    0.5,
    1e400,
    "",
    "x",
    "\ud800",
    "0.5",
    "2026",
    [],
    {},
    [1],
    [[]],
    ["a", None],
    [{}],
    {"a": 1},
]


def overwrite_or_cut(data: st.DataObject, content: bytes) -> bytes:
    """Bytes overwritten, cut off or doubled."""
    kind = data.draw(st.sampled_from(["overwrite", "truncate", "double", "drop"]))
    start = data.draw(st.integers(0, len(content)))
    size = data.draw(st.integers(1, 200))
    if kind == "truncate":
        return content[:start]
    if kind == "double":
        return content[:start] + content[start : start + size] + content[start:]
    if kind == "drop":
        return content[:start] + content[start + size :]
    return content[:start] + data.draw(st.binary(min_size=1, max_size=8)) + content[start + 8 :]


def change_types(data: st.DataObject, content: bytes) -> bytes:
    """A value of a JSON document in another type, or a key left out."""
    tree = json.loads(content)
    for _ in range(data.draw(st.integers(1, 3))):
        node = tree
        while isinstance(node, dict | list) and node:
            where = data.draw(
                st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node)))
            )
            if (
                not isinstance(node[where], dict | list)
                or not node[where]
                or data.draw(st.integers(0, 3)) == 0
            ):
                if isinstance(node, dict) and data.draw(st.booleans()):
                    del node[where]
                else:
                    node[where] = deepcopy(data.draw(st.sampled_from(ODD)))
                break
            node = node[where]
    return json.dumps(tree).encode()


def damage_content(data: st.DataObject, content: bytes, suffix: str) -> bytes:
    if suffix not in (".json", ".jsonl") or data.draw(st.integers(0, 3)) == 0:
        return overwrite_or_cut(data, content)
    lines = content.splitlines()
    if suffix == ".json" and len(lines) == 1:
        return change_types(data, content)
    try:
        which = data.draw(st.integers(0, len(lines) - 1))
        lines[which] = change_types(data, lines[which])
        return b"\n".join(lines)
    except ValueError:  # a document over several lines
        return change_types(data, content)


def outcome(name: str, path: Path) -> int:
    """Count the observations that are read and fit into a table; -1 for one line of error."""
    readers.get(name).sniff(path)
    try:
        log = readers.read(path, name)
        return sum(table.height for table, _ in log.tables())
    except InputError as error:
        return -1 if "\n" not in str(error) else pytest.fail(f"more than one line: {error}")


@given(data=st.data())
@settings(
    max_examples=count_examples(40),
    derandomize=True,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)
def test_a_damaged_log_is_a_log_or_one_line(
    sample: tuple[str, list[Path]], data: st.DataObject
) -> None:
    """No other error, and never more rows than a log of that size can hold."""
    name, paths = sample
    whole = data.draw(st.sampled_from(paths))
    path = whole
    if whole.is_dir():
        path = data.draw(st.sampled_from(sorted(whole.iterdir())))
    content = path.read_bytes()
    began = time.process_time()
    try:
        path.write_bytes(damage_content(data, content, path.suffix))
        assert outcome(name, whole) < 2_000
        assert time.process_time() - began < 5
    finally:
        path.write_bytes(content)


def test_the_samples_themselves_are_read(sample: tuple[str, list[Path]]) -> None:
    """Else the test above would damage nothing."""
    name, paths = sample
    for path in paths:
        assert readers.sniff(path) == name
        assert outcome(name, path) > 0
