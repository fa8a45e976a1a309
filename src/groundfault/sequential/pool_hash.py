"""Hashes of pools, which no order of rows or groups changes, and those of version 0.1.0, which did.

Version 0.1.0 hashed groups in the order in which they were given, and its ledgers, whose keys are
sorted, lost that order. Both kinds of record are read: the order is found again by its hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import permutations
from typing import Any

_MAX_COLUMNS = 6


def sort_groups(names: Iterable[str], first: str) -> list[str]:
    """Names of groups in the order in which they are hashed: ``first``, then by name."""
    return sorted(names, key=lambda name: (name != first, name))


def hash_content(content: Mapping[str, Any]) -> str:
    """SHA-256 of the content of a pool, its groups in the order in which they stand."""
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()


def find_order(content: Mapping[str, Any], stored_hash: str, first: str) -> list[str] | None:
    """The order of groups that gives the stored hash; None where no likely one does.

    Tried are the order by name, the order as it stands, and every order of the columns that the
    groups were made from, with their levels sorted.
    """
    groups = content["groups"]
    for order in _list_orders(list(groups), first):
        ordered = {**content, "groups": {name: groups[name] for name in order}}
        if hash_content(ordered) == stored_hash:
            return order
    return None


def _list_orders(names: list[str], first: str) -> Iterator[list[str]]:
    yield sort_groups(names, first)
    yield names
    columns: dict[tuple[str, ...], list[str]] = {}
    for name in sort_groups(names, first):
        # a combination of two columns is named "a=1, b=2"
        key = tuple(part.split("=")[0] for part in name.split(", "))
        columns.setdefault(key, []).append(name)
    fixed = columns.pop((first,), [])
    if len(columns) <= _MAX_COLUMNS:
        for blocks in permutations(columns.values()):
            yield [*fixed, *(name for block in blocks for name in block)]
