"""Levels: a table of any columns as small whole numbers, and each level in SQL and in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.base.arrays import Ints
from groundfault.core.candidate import Candidate, Missing
from groundfault.core.columns import (
    Kind,
    list_examples,
    match_attributes,
    profile,
    select_example_rows,
    shorten_value,
)
from groundfault.core.evidence import Evidence
from groundfault.core.rules import literal, quote
from groundfault.errors import InputError

# rows transposed at a time, which stay in cache
_BLOCK = 4096
_WORDS = (pl.String, pl.Categorical, pl.Enum)


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to below ``high``; None where there is no such end.

    Attributes
    ----------
    low, high : number or None
    """

    low: float | None
    high: float | None

    def __str__(self) -> str:
        if self.low is None:
            return f"< {self.high}"
        return f">= {self.low}" if self.high is None else f"{self.low} to below {self.high}"


@dataclass(frozen=True)
class Levels:
    """Columns coded as levels.

    Attributes
    ----------
    names : sequence
        Of the columns, length m.
    codes : unsigned array, shape (m, n)
        Level of each row; the number of levels where a missing value matches none.
    counts : int64 array, shape (m,)
        Levels of each column.
    values : sequence of sequences
        What each level stands for: a value, a `Range`, or None for "is missing".
    """

    names: Sequence[Any]
    codes: NDArray[Any]
    counts: Ints
    values: Sequence[Sequence[Any]]

    @classmethod
    def of(cls, table: Any, bins: int, missing: str) -> Levels:
        """Code a table.

        Parameters
        ----------
        table : frame, or array of shape (n, m)
        bins : int
            Numbers of more than ``2 * bins`` different values are cut at quantiles into at most so
            many ranges.
        missing : {"value", "unmatched"}

        Raises
        ------
        InputError
            If it is no table, has no rows or columns, or a column holds neither words, numbers nor
            true/false.
        """
        if isinstance(table, np.ndarray):
            if table.ndim != 2 or 0 in table.shape:
                raise InputError(
                    f"X must be a table of rows and columns, not an array of shape {table.shape}"
                )
            if table.dtype.kind in "iub":
                return _of_whole_numbers(table)
            if table.dtype.kind != "f":
                raise InputError(
                    f"X is an array of {table.dtype}: give whole numbers or floats, or a frame"
                )
            coded = cls.of(pl.DataFrame(table, orient="row"), bins, missing)
            return cls(range(table.shape[1]), coded.codes, coded.counts, coded.values)
        frame = _as_frame(table)
        if 0 in frame.shape:
            raise InputError(
                f"X has {frame.height} rows and {frame.width} columns: there is nothing to search"
            )
        return cls.join(frame.columns, [_code(frame[c], bins, missing) for c in frame.columns])

    @classmethod
    def join(
        cls, names: Sequence[Any], columns: Sequence[tuple[NDArray[Any], Sequence[Any]]]
    ) -> Levels:
        """Return columns, each with the level of its rows and what its levels stand for."""
        counts = np.array([len(values) for _, values in columns], dtype=np.int64)
        smallest = np.min_scalar_type(int(counts.max()))
        codes = np.stack([codes.astype(smallest, copy=False) for codes, _ in columns])
        return cls(names, codes, counts, [values for _, values in columns])

    def name_values(self, columns: NDArray[Any], levels: NDArray[Any]) -> dict[Any, Any]:
        """Return values of some columns, by name."""
        return {
            self.names[f]: self.values[f][v]
            for f, v in zip(columns.tolist(), levels.tolist(), strict=True)
        }


def select_searchable(discovery: Evidence, columns: tuple[str, ...] | None) -> pl.DataFrame:
    """Return attributes with levels.

    The named ones, or flags, numbers and labels, not ids or prose.

    Where examples form groups, none that differs within one either: a group is on a slice as a
    whole, or not at all.

    Raises
    ------
    InputError
        If a name or glob stands for no attribute.
    """
    table = list_examples(discovery)
    if columns is not None:
        return table.select(*match_attributes(discovery, columns))
    names = [c.name for c in profile(table) if c.kind in (Kind.FLAG, Kind.NUMBER, Kind.LABEL)]
    group = discovery.roles.group
    if group:
        within = select_example_rows(discovery).group_by(group).agg(pl.col(names).n_unique())
        # what differs within a group cannot be tested on it
        names = [name for name in names if within[name].max() == 1]
    return table.select(names)


def _as_frame(table: Any) -> pl.DataFrame:
    if isinstance(table, pl.LazyFrame | pl.DataFrame):
        return table.lazy().collect()
    try:
        if hasattr(table, "__arrow_c_stream__") or isinstance(table, Mapping):
            return pl.DataFrame(table)
    except Exception as error:
        raise InputError(f"cannot read the {type(table).__name__} as a table: {error}") from None
    raise InputError(
        f"X is a {type(table).__name__}: give a polars, pandas or Arrow table, or an array"
    )


def _of_whole_numbers(table: NDArray[Any]) -> Levels:
    ends = [(block.min(axis=1), block.max(axis=1)) for _, block in _transpose(table)]
    low, high = np.min([a for a, _ in ends], axis=0), np.max([b for _, b in ends], axis=0)
    span = [int(h) - int(v) + 1 for v, h in zip(low, high, strict=True)]
    if max(span) > max(1000, 2 * len(table)):  # far apart: number those that occur
        columns = [np.unique(column, return_inverse=True) for column in table.T]
        coded = [(inverse, values.tolist()) for values, inverse in columns]
        return Levels.join(range(table.shape[1]), coded)
    counts = np.array(span, dtype=np.int64)
    codes = np.empty(table.T.shape, dtype=np.min_scalar_type(int(counts.max())))
    unsigned = np.dtype(f"u{table.dtype.itemsize}")
    for rows, block in _transpose(table):
        # differences wrap round to what they are, even where they do not fit the signed type
        codes[:, rows] = block.view(unsigned) - low.view(unsigned)[:, None]
    if table.dtype == bool:
        return Levels(range(len(low)), codes, counts, [[False, True][int(v) :] for v in low])
    values = [range(int(v), int(h) + 1) for v, h in zip(low, high, strict=True)]
    return Levels(range(len(low)), codes, counts, values)


def _transpose(table: NDArray[Any]) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Return columns as rows, in blocks that stay in cache."""
    for start in range(0, len(table), _BLOCK):
        rows = slice(start, min(start + _BLOCK, len(table)))
        yield rows, np.ascontiguousarray(table[rows].T)


def _code(column: pl.Series, bins: int, missing: str) -> tuple[NDArray[Any], list[Any]]:
    """Return the level of each row, and what the levels stand for."""
    if column.dtype in _WORDS:
        column = column.cast(pl.String)
    elif column.dtype.is_numeric():
        column = (column if column.dtype.is_integer() else column.cast(pl.Float64)).fill_nan(None)
    elif column.dtype not in (pl.Boolean, pl.Null):
        raise InputError(
            f"column {column.name!r} holds {column.dtype}; only words, numbers and true/false have "
            "levels: leave it out, or derive a number or a word from it"
        )
    present = column.drop_nulls()
    values: list[Any] = present.unique().sort().to_list()
    if column.dtype.is_numeric() and (
        # few distinct values are levels themselves: ranges would only blur them
        len(values) > 2 * bins or any(abs(v) == np.inf for v in values)
    ):
        cuts = _choose_cuts(present, values, bins)
        codes = np.searchsorted(np.array(cuts), present.to_numpy(), side="right")
        ends = [None, *cuts, None]
        values = [Range(low, high) for low, high in pairwise(ends)]
    else:
        codes = present.replace_strict(values, range(len(values)), return_dtype=pl.Int64).to_numpy()
    out = np.full(len(column), len(values), dtype=np.min_scalar_type(len(values)))
    out[column.is_not_null().to_numpy()] = codes
    if len(present) < len(column) and missing == "value":
        values = [*values, None]
    return out, values


def _choose_cuts(present: pl.Series, values: Sequence[Any], bins: int) -> list[Any]:
    """Return ascending cuts into ranges of about equal numbers of rows.

    None at the smallest value.
    """
    ranked = present.sort()
    # values that occur, not interpolated ones: a cut is then true of some row
    quantiles = {ranked[min(len(ranked) - 1, len(ranked) * b // bins)] for b in range(1, bins)}
    # where one value has more rows than a range should, what is above it is a range still
    places = sorted({max(1, int(np.searchsorted(values, v))) for v in quantiles})
    pairs = [(values[i - 1], values[i]) for i in places if i < len(values)]
    return [_round(before, v) for before, v in pairs if abs(v) != np.inf]


def _round(before: Any, value: Any) -> Any:
    """Return the shortest number at most ``value`` that is nearer to it than to ``before``."""
    # a float could not hold it
    if isinstance(value, int) and abs(value) >= 2**53:
        return value
    # halves first, as the sum may overflow
    middle = before / 2 + value / 2
    for digits in range(1, 17):
        short = float(f"{value:.{digits}g}")
        if middle < short <= value:
            return int(short) if short.is_integer() and abs(short) < 2**53 else short
    return value


def make_conjunction(
    predicates: Mapping[Any, Any], source: str, missing: Missing = "off"
) -> Candidate:
    """Return levels of some columns, all of them at once, as a candidate."""
    return Candidate(*spell_levels(predicates), source, missing)


def spell_levels(predicates: Mapping[Any, Any]) -> tuple[str, str, str]:
    """Return a conjunction of levels as a heading, as SQL and in plain English."""
    each = [_spell_level(str(column), value) for column, value in predicates.items()]
    names, rules, meanings = zip(*each, strict=True)
    return " AND ".join(names), " AND ".join(rules), " and ".join(meanings)


def _spell_level(column: str, value: Any) -> tuple[str, str, str]:
    name = quote(column)
    if value is None:
        return f"{column} is missing", f"{name} IS NULL", f"{column} is missing"
    if isinstance(value, bool):
        if value:
            return column, name, f"{column} holds"
        return f"NOT {column}", f"NOT {name}", f"{column} does not hold"
    if not isinstance(value, Range):
        short = shorten_value(value)
        return f"{column} = {short}", f"{name} = {literal(value)}", f"{column} is {short}"
    low, high = value.low, value.high
    if low is None:
        return f"{column} < {high}", f"{name} < {literal(high)}", f"{column} is below {high}"
    rule, meaning = f"{name} >= {literal(low)}", f"{column} is at least {low}"
    if high is None:
        return f"{column} >= {low}", rule, meaning
    heading = f"{low} <= {column} < {high}"
    return heading, f"{rule} AND {name} < {literal(high)}", f"{meaning} and below {high}"
