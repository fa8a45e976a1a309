"""Literals: the single conditions that rules of failure modes are made of.

They are read off the examples alone, never off outcomes: that is what lets the rules be tested on
all units.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from enum import IntEnum
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars import selectors

from groundfault.core.columns import Column, Kind, flag_rule, profile
from groundfault.core.rules import literal as constant
from groundfault.core.rules import quote
from groundfault.modes.text_attributes import read_text_literals

Bools = NDArray[np.bool_]

MIN_SUPPORT = 8
"""Units that a rule has to hold for, at least."""

_MAX_VALUES = 60
_MAX_SINGLE_NUMBERS = 12
_MAX_ENDS = 16
_SAMPLE = 20_000


class Tier(IntEnum):
    """Where a literal comes from: what a reader understands best comes first."""

    ATTRIBUTE = 0
    TEXT = 1
    WORD = 2
    OWN = 3


@dataclass(frozen=True)
class Literal:
    """A condition on one column, and the units it holds for.

    Attributes
    ----------
    family : str
        What it is about. Two literals of one family are never joined.
    rule, meaning : str
        In SQL, and in English.
    cost : float
        What it costs a reader; plain equality costs nothing.
    on : bool array, shape (units,)
        Units without a value are off.
    tier : Tier
    value : str or None
        For one value of a column of categories: the value, so that values join to a set.
    bounds : pair of float, or None
        For a condition on a number: its ends, infinite where open, both inclusive as read.
    column : str
        The column that is read.
    aliases : tuple of Literal
        Others that hold for the same units; they cost more, or come later.
    tested : bool array, shape (units,), or None
        Units that it is tested on; None for all.
    source : str
        Who proposed it.
    """

    family: str
    rule: str
    meaning: str
    cost: float
    on: Bools
    tier: Tier = Tier.ATTRIBUTE
    value: str | None = None
    bounds: tuple[float, float] | None = None
    column: str = ""
    aliases: tuple[Literal, ...] = ()
    tested: Bools | None = None
    source: str = "modes"


def list_literals(table: pl.DataFrame, *, max_words: int = 300) -> list[Literal]:
    """All literals of a table, those that hold for the same units merged.

    Parameters
    ----------
    table : polars.DataFrame
        One row a unit.
    max_words : int
        Words and structures of texts, at most.

    Returns
    -------
    list of Literal
        Attributes first, then texts, then words; each by reading cost. All hold for at least
        `MIN_SUPPORT` units and leave out as many.
    """
    # NaN is no value: SQL would take it for the largest
    table = table.with_columns(selectors.float().fill_nan(None))
    columns = profile(table)
    cuts = 8 if len(columns) <= 15 else 4
    literals = [one for column in columns for one in _read_column(table, column, cuts, max_words)]
    literals.sort(key=lambda one: (one.tier, one.cost))
    return _merge_equal(
        one for one in literals if MIN_SUPPORT <= one.on.sum() <= table.height - MIN_SUPPORT
    )


def _merge_equal(literals: Iterable[Literal]) -> list[Literal]:
    first: dict[bytes, Literal] = {}
    for one in literals:
        key = np.packbits(one.on).tobytes()
        first[key] = (
            replace(first[key], aliases=(*first[key].aliases, one)) if key in first else one
        )
    return list(first.values())


def _read_column(
    table: pl.DataFrame, column: Column, cuts: int, max_words: int
) -> Iterator[Literal]:
    values, name = table[column.name], column.name
    if column.kind is Kind.FLAG:
        yield from _read_flag(values)
    elif column.kind is Kind.NUMBER:
        yield from _read_number(values, cuts)
    elif column.kind in (Kind.LABEL, Kind.CODE) and not values.dtype.is_numeric():
        yield from _read_values(values)
    elif column.kind is Kind.TEXT:
        for one in read_text_literals(values, max_words=max_words):
            tier = Tier.WORD if one.cost >= 2 else Tier.TEXT
            yield Literal(one.family, one.rule, one.meaning, one.cost, one.on, tier, column=name)
    missing = values.is_null().to_numpy()
    if missing.sum() >= MIN_SUPPORT and column.kind is not Kind.OTHER:
        sql, meaning = f"{quote(name)} IS NULL", f"{name} is missing"
        yield Literal(name, sql, meaning, 1.0, missing, column=name)


def _mask(values: pl.Series) -> Bools:
    return np.asarray(values.fill_null(False).to_numpy(), dtype=np.bool_)


def _read_flag(values: pl.Series) -> Iterator[Literal]:
    name, rule = values.name, flag_rule(values.name, values.dtype)
    on = _mask(values if values.dtype == pl.Boolean else values == 1)
    off = _mask(~values if values.dtype == pl.Boolean else values == 0)
    is_true = values.dtype == pl.Boolean
    yield Literal(name, rule, name if is_true else f"{name} is 1", 0.0, on, column=name)
    opposite = f"NOT {rule}" if is_true else f"{quote(name)} = 0"
    meaning = f"not {name}" if is_true else f"{name} is 0"
    yield Literal(name, opposite, meaning, 0.5, off, column=name)


def _read_values(values: pl.Series) -> Iterator[Literal]:
    name, words = values.name, values.cast(pl.String)
    counts = words.drop_nulls().value_counts().rows()
    # in the order of how common they are, and of their names where that is equal
    for value, count in sorted(counts, key=lambda row: (-row[1], row[0]))[:_MAX_VALUES]:
        if count >= MIN_SUPPORT:
            sql = f"{quote(name)} = {constant(value)}"
            meaning = f"{name} is {value}"
            yield Literal(name, sql, meaning, 0.0, _mask(words == value), value=value, column=name)


def _read_number(values: pl.Series, max_cuts: int) -> Iterator[Literal]:
    numbers = values.cast(pl.Float64)
    finite = numbers.filter(numbers.is_finite())
    levels = finite.unique().sort().to_numpy()
    if len(levels) < 2:
        return
    x = numbers.fill_null(float("nan")).to_numpy()
    whole = bool(np.all(levels == np.round(levels)) and np.abs(levels).max() < 2**53)
    points = _choose_points(finite.to_numpy(), levels, max_cuts)
    ends = levels if whole and len(levels) <= _MAX_ENDS else points
    make = _WholeNumbers(values.name) if whole else _RealNumbers(values.name, levels)
    for low, high in _list_ranges(ends, points, levels):
        yield make(x, low, high)


def _choose_points(values: NDArray[Any], levels: NDArray[Any], max_cuts: int) -> NDArray[Any]:
    """Values at which a column is cut: all of few, quantiles of many."""
    if len(levels) <= max_cuts + 2:
        return levels
    shares = np.linspace(0, 1, max_cuts + 2)
    return np.unique(np.quantile(values, shares, method="nearest"))


def _list_ranges(
    ends: NDArray[Any], points: NDArray[Any], levels: NDArray[Any]
) -> Iterator[tuple[float, float]]:
    """Ends of the ranges that conditions name, both inclusive: open ones, values, and closed."""
    inf = math.inf
    yield from ((float(v), inf) for v in ends[1:])
    yield from ((-inf, float(v)) for v in ends[:-1])
    if len(levels) <= _MAX_SINGLE_NUMBERS:
        yield from ((float(v), float(v)) for v in levels)
    inner = points[1:-1]
    for i, low in enumerate(inner):
        yield from ((float(low), float(high)) for high in inner[i + 1 :])


@dataclass(frozen=True)
class _WholeNumbers:
    """Conditions on a column of whole numbers."""

    name: str

    def __call__(self, x: NDArray[Any], low: float, high: float) -> Literal:
        column = quote(self.name)
        with np.errstate(invalid="ignore"):
            on = (x >= low) & (x <= high)
        if low == high:
            rule, words, cost = f"{column} = {low:.0f}", f"is {low:.0f}", 0.5
        elif math.isinf(high):
            rule, words, cost = f"{column} >= {low:.0f}", f"is {low:.0f} or more", 0.0
        elif math.isinf(low):
            rule, words, cost = f"{column} <= {high:.0f}", f"is at most {high:.0f}", 0.0
        else:
            rule = f"{column} BETWEEN {low:.0f} AND {high:.0f}"
            words, cost = f"is {low:.0f} to {high:.0f}", 1.0
        bounds, meaning = (low, high), f"{self.name} {words}"
        return Literal(self.name, rule, meaning, cost, on, bounds=bounds, column=self.name)


@dataclass(frozen=True)
class _RealNumbers:
    """Conditions on a column of numbers with decimals, cut between neighbouring values."""

    name: str
    levels: NDArray[Any]

    def __call__(self, x: NDArray[Any], low: float, high: float) -> Literal:
        column, parts, words = quote(self.name), [], []
        with np.errstate(invalid="ignore"):
            on = (x >= low) & (x <= high)
        if math.isfinite(low):
            at = int(np.searchsorted(self.levels, low))
            cut = _shorten(float(self.levels[at - 1]), low) if at else repr(low)
            parts.append(f"{column} {'>' if at else '>='} {cut}")
            words.append(f"above {cut}" if at else f"{cut} or more")
        if math.isfinite(high):
            at = int(np.searchsorted(self.levels, high))
            last = at == len(self.levels) - 1
            cut = repr(high) if last else _shorten(high, float(self.levels[at + 1]))
            parts.append(f"{column} <= {cut}")
            words.append(f"at most {cut}")
        meaning, cost = f"{self.name} is {' and '.join(words)}", 0.5 * len(parts)
        rule, bounds = " AND ".join(parts), (low, high)
        return Literal(self.name, rule, meaning, cost, on, bounds=bounds, column=self.name)


def _shorten(low: float, high: float) -> str:
    """The shortest decimal that is at least ``low`` and below ``high``."""
    for digits in range(1, 18):
        cut = float(Context(prec=digits).create_decimal(Decimal(low / 2 + high / 2)))
        if low <= cut < high:
            return str(int(cut)) if cut.is_integer() and abs(cut) < 2**53 else repr(cut)
    return repr(low)
