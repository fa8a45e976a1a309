"""The values of a column among some rows, each with the filter that keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from groundfault.core.rules import literal, quote
from groundfault.workbench.texts import write_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groundfault.workbench.row_index import RowIndex
    from groundfault.workbench.row_query import RowQuery

_MAX_VALUES, _BINS, _LONGEST = 20, 12, 80


@dataclass(frozen=True)
class ValueCount:
    """A value or a range of values.

    Attributes
    ----------
    text : str
    count : int
        Rows of the selection that have it.
    share : float
        Of the most frequent one, in [0, 1].
    where : str
        The filter, in SQL; empty where a rule cannot say it.
    """

    text: str
    count: int
    share: float
    where: str


@dataclass(frozen=True)
class ColumnSummary:
    """A column among some rows.

    Attributes
    ----------
    name : str
    values : tuple of ValueCount
    distinct : int
        Different values.
    missing : int
        Rows without a value.
    """

    name: str
    values: tuple[ValueCount, ...]
    distinct: int
    missing: int


def summarise_column(index: RowIndex, query: RowQuery, name: str) -> ColumnSummary:
    """The values of a column in a selection: ranges of many numbers, else the most frequent ones.

    Raises
    ------
    InputError
        If there is no such column.
    """
    index.require_columns((name,))
    column = index.rows.frame[name][index.select(query)]
    missing, distinct = column.null_count(), 0
    values: tuple[ValueCount, ...] = ()
    if not column.dtype.is_nested() and column.dtype != pl.Object:
        distinct = column.drop_nulls().n_unique()
        is_range = column.dtype.is_numeric() and distinct > _MAX_VALUES
        values = _count_ranges(name, column) if is_range else _count_values(name, column)
    return ColumnSummary(name, values, distinct, missing)


def describe_type(kind: pl.DataType) -> str:
    """What a column holds, in plain words.

    Examples
    --------
    >>> describe_type(pl.Int64()), describe_type(pl.List(pl.String()))
    ('whole numbers', 'lists or records')
    """
    if kind.is_integer():
        return "whole numbers"
    if kind.is_numeric():
        return "numbers"
    if kind.is_nested():
        return "lists or records"
    names = {
        pl.String: "text",
        pl.Boolean: "true or false",
        pl.Date: "dates",
        pl.Datetime: "dates and times",
    }
    return names.get(type(kind), str(kind).lower())


def _count_values(name: str, column: pl.Series) -> tuple[ValueCount, ...]:
    table = column.drop_nulls().value_counts(sort=True, name="_count").head(_MAX_VALUES)
    if column.dtype.is_numeric():
        table = table.sort(name)
    most = max(table["_count"], default=1)
    return tuple(
        ValueCount(_shorten(value), count, count / most, _equals(name, value))
        for value, count in table.iter_rows()
    )


def _count_ranges(name: str, column: pl.Series) -> tuple[ValueCount, ...]:
    """Equally wide ranges from the least to the largest value."""
    values: NDArray[np.float64] = column.drop_nulls().cast(pl.Float64).to_numpy()
    values = values[np.isfinite(values)]
    counts, edges = np.histogram(values, bins=_BINS)
    most, out = counts.max(), []
    is_whole = column.dtype.is_integer()
    for place, count in enumerate(counts.tolist()):
        low, high = float(edges[place]), float(edges[place + 1])
        is_last = place == _BINS - 1
        if is_whole:
            # whole numbers of a bin, both ends in it
            first, last = int(np.ceil(low)), int(np.floor(high)) - (high % 1 == 0 and not is_last)
            where, text = f"{quote(name)} BETWEEN {first} AND {last}", f"{first:,} to {last:,}"
        else:
            end = "<=" if is_last else "<"
            where = f"{quote(name)} >= {low!r} AND {quote(name)} {end} {high!r}"
            text = f"{low:.4g} to {high:.4g}"
        out.append(ValueCount(text, count, count / most, where))
    return tuple(out)


def _equals(name: str, value: object) -> str:
    if isinstance(value, bool | int | str):
        return f"{quote(name)} = {literal(value)}"
    if isinstance(value, float) and np.isfinite(value):
        return f"{quote(name)} = {literal(value)}"
    return ""


def _shorten(value: object) -> str:
    text = write_value(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
