"""Damage done to real logs: bytes that changed, and values of any kind where another was meant."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from groundfault import readers
from groundfault.errors import InputError

BYTES = st.tuples(
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=8),
    st.floats(0, 2),
)
"""Where to put which byte, and how much to keep."""

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)


def damage_bytes(content: bytes, how: tuple[list[tuple[float, int]], float]) -> bytes:
    """Bytes with some of them changed, and perhaps cut short."""
    edits, share = how
    copy_ = bytearray(content)
    for where, byte in edits:
        copy_[int(where * len(copy_))] = byte
    return bytes(copy_[: int(share * len(copy_))])


def odd(document: Any, data: st.DataObject) -> Any:
    """A copy of a document with something else at one place of it."""
    variant = copy.deepcopy(document)
    at, key = data.draw(st.sampled_from(list(places(variant))))
    at[key] = data.draw(VALUES)
    return variant


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a document where a value stands."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


def read_or_refused(path: Path, reader: str) -> None:
    """Reads to the end, into tables; one line of error is as good."""
    try:
        list(readers.read(path, reader).tables())
    except InputError as error:
        message = str(error)
        assert "\n" not in message
        assert "Traceback" not in message
