"""Stacking: tables of logs one under the other, packed while there are more to come."""

from __future__ import annotations

import io
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar

import polars as pl

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)

# rows that are packed together: as many as a log gives at a time
_MAX_OPEN = 50_000


class PackedRows:
    """Tables that are stacked at the end, and take a tenth of their memory until then.

    Rows of all scorers repeat the texts of an answer, and few of their columns are ever read at
    once. So many rows are kept as Parquet files in memory, which polars reads by parts and columns.
    """

    def __init__(self) -> None:
        self._packed: list[tuple[pl.Schema, bytes]] = []
        self._open: list[pl.DataFrame] = []
        self._types: dict[str, set[Any]] = {}

    def add(self, frame: pl.DataFrame) -> None:
        """Put a table under those before it."""
        _note_types(self._types, frame)
        # only tables of the same columns become one: numbers are not to become text on the way
        if self._open and self._open[0].schema != frame.schema:
            self._pack()
        self._open.append(frame)
        if sum(table.height for table in self._open) >= _MAX_OPEN:
            self._pack()

    def stack(self) -> pl.LazyFrame:
        """Return all rows in the order in which they came; see `stack` for their types."""
        self._pack()
        # files of the same columns are read as one: any part of it is then found without the others
        groups = groupby(self._packed, itemgetter(0))
        scans = [pl.scan_parquet([file for _, file in group]) for _, group in groups]
        return _concatenate(scans, self._types)

    def _pack(self) -> None:
        if not self._open:
            return
        table, stream = pl.concat(self._open), io.BytesIO()
        self._open.clear()
        table.write_parquet(stream, compression_level=1)
        self._packed.append((table.schema, stream.getvalue()))

    def __bool__(self) -> bool:
        return bool(self._packed or self._open)


def stack(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """Return tables one under the other.

    A column of several types is numeric if all are, else text.

    The type of a column without a value says nothing.

    Notes
    -----
    Tables read in parts are those read whole but for one thing: where a column has words in a later
    part, numbers of an earlier one are written as the numbers of that part, a 2 beside fractions
    as 2.0 and a 0.00001 without an exponent.
    """
    types: dict[str, set[Any]] = {}
    for frame in frames:
        _note_types(types, frame)
    return _concatenate(frames, types)


def _note_types(types: dict[str, set[Any]], frame: pl.DataFrame) -> None:
    for column in frame:
        kinds = types.setdefault(column.name, set())
        if column.null_count() < len(column):
            kinds.add(column.dtype)


def _concatenate(frames: Iterable[Frame], types: dict[str, set[Any]]) -> Frame:
    common = {name: _find_common(kinds) for name, kinds in types.items() if kinds}
    alike = []
    for frame in frames:
        others = [n for n, t in frame.collect_schema().items() if common.get(n, t) != t]
        alike.append(frame.with_columns(pl.col(n).cast(common[n]) for n in others))
    return pl.concat(alike, how="diagonal_relaxed")


def _find_common(kinds: set[Any]) -> Any:
    if len(kinds) == 1:
        return next(iter(kinds))
    return pl.Float64 if all(kind.is_numeric() for kind in kinds) else pl.String
