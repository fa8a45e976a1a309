"""Rows that a tool's server exports: a JSON list, JSON lines, or CSV."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from groundfault.errors import InputError
from groundfault.readers.safely import head, json_file, json_lines
from groundfault.readers.table import read_table
from groundfault.readers.values import listing, mapping, text

_KEY = re.compile(rb'"((?:[^"\\]|\\.){1,80})"\s*:')
# only words that cannot mean anything else: "good" or "yes" depend on the question
_VERDICTS = {"correct": 1.0, "right": 1.0, "pass": 1.0, "passed": 1.0}
_VERDICTS |= {"incorrect": 0.0, "wrong": 0.0, "fail": 0.0, "failed": 0.0}


def keys(path: Path) -> frozenset[str]:
    """The columns of a CSV file, else the keys of its first JSON objects."""
    return _keys(head(path), path.suffix)


@lru_cache(maxsize=8)
def _keys(start: bytes, suffix: str) -> frozenset[str]:
    if suffix in (".csv", ".tsv"):
        first = start.partition(b"\n")[0].decode("utf-8", "replace").rstrip("\r")
        try:
            return frozenset(
                next(csv.reader([first], delimiter="\t" if suffix == ".tsv" else ","), [])
            )
        except csv.Error:
            return frozenset()
    if suffix not in (".json", ".jsonl", ".ndjson") or start.lstrip()[:1] not in (b"{", b"["):
        return frozenset()
    return frozenset(name.decode("utf-8", "replace") for name in _KEY.findall(start))


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of an export; of a JSON object its ``data``, else the object as the only row.

    Raises
    ------
    InputError
        If the file cannot be read, or a row is no mapping.
    """
    if path.suffix in (".csv", ".tsv"):
        yield from read_table(path)[0].iter_rows(named=True)
    elif path.suffix == ".json":
        content: Any = json_file(path, object)
        for row in listing(mapping(content).get("data")) or listing(content) or [content]:
            if not isinstance(row, dict):
                raise InputError(
                    f"{path} holds {type(row).__name__} where a row of the export should be"
                )
            yield row
    else:
        yield from json_lines(path, dict[str, Any])


def parse_cell(value: Any) -> Any:
    """A value that a CSV cell holds as JSON."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            return value
    return value


def plain(value: Any) -> str | None:
    """Text; of a mapping with one entry, such as ``{"question": ...}``, that entry."""
    value = parse_cell(value)
    if isinstance(value, dict) and len(value) == 1:
        value = next(iter(value.values()))
    return text(value)


def verdict(label: Any) -> float | None:
    """1 or 0 for a label that can only mean right or wrong; None for any other."""
    return _VERDICTS.get(label.strip().lower()) if isinstance(label, str) else None
