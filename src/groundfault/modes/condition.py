"""A condition of a rule and the units it holds for; conditions on a column of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Context, Decimal
from enum import IntEnum
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.core.rules import quote

Bools = NDArray[np.bool_]

MIN_SUPPORT = 8
"""Units that a rule has to hold for, at least."""

MOST = 0.8
"""Share of the units above which a condition is no mode by itself: it is what is usual."""
_MAX_SINGLE_NUMBERS = 12
_MAX_ENDS = 16


class Tier(IntEnum):
    """Where a literal comes from: what a reader understands best comes first.

    Those of ``PARTIAL`` name a value of a column whose gaps go with the outcome. They and those of
    one's own are never joined, since they are tested on some of the units only.
    """

    ATTRIBUTE = 0
    TEXT = 1
    WORD = 2
    PARTIAL = 3
    OWN = 4


@dataclass(frozen=True)
class Condition:
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
    aliases : tuple of Condition
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
    aliases: tuple[Condition, ...] = ()
    tested: Bools | None = None
    source: str = "modes"


def read_number(values: pl.Series, max_cuts: int) -> Iterator[Condition]:
    """Yield conditions on a column of numbers; ``max_cuts`` is of how many, where values are
    many."""
    numbers = values.cast(pl.Float64)
    finite = numbers.filter(numbers.is_finite())
    levels = finite.unique().sort().to_numpy()
    if len(levels) < 2:
        return
    x = numbers.fill_null(float("nan")).to_numpy()
    whole = bool(np.all(levels == np.round(levels)) and np.abs(levels).max() < 2**53)
    points = _choose_points(finite.to_numpy(), levels, max_cuts)
    ends = levels if whole and len(levels) <= _MAX_ENDS else points
    make = (
        _WholeNumbers(values.name, float(levels[0])) if whole else _RealNumbers(values.name, levels)
    )
    for low, high in _list_ranges(ends, points, levels):
        yield make(x, low, high)


def _choose_points(values: NDArray[Any], levels: NDArray[Any], max_cuts: int) -> NDArray[Any]:
    """Return values at which a column is cut: all of few, quantiles of many."""
    if len(levels) <= max_cuts + 2:
        return levels
    shares = np.linspace(0, 1, max_cuts + 2)
    return np.unique(np.quantile(values, shares, method="nearest"))


def _list_ranges(
    ends: NDArray[Any], points: NDArray[Any], levels: NDArray[Any]
) -> Iterator[tuple[float, float]]:
    """Yield ends of the ranges that conditions name, both inclusive: open ones, values, and
    closed."""
    inf = math.inf
    # values first: "is 0" is better said than "is at most 0", which holds for the same
    if len(levels) <= _MAX_SINGLE_NUMBERS:
        yield from ((float(v), float(v)) for v in levels)
    yield from ((float(v), inf) for v in ends[1:])
    yield from ((-inf, float(v)) for v in ends[:-1])
    inner = points[1:-1]
    for i, low in enumerate(inner):
        yield from ((float(low), float(high)) for high in inner[i + 1 :])


@dataclass(frozen=True)
class _WholeNumbers:
    """Conditions on a column of whole numbers."""

    name: str
    lowest: float

    def __call__(self, x: NDArray[Any], low: float, high: float) -> Condition:
        column = quote(self.name)
        with np.errstate(invalid="ignore"):
            on = (x >= low) & (x <= high)
        if low == high:
            cost = 0.0 if low == self.lowest else 0.5
            rule, words = f"{column} = {low:.0f}", f"is {low:.0f}"
        elif math.isinf(high):
            rule, words, cost = f"{column} >= {low:.0f}", f"is {low:.0f} or more", 0.0
        elif math.isinf(low):
            rule, words, cost = f"{column} <= {high:.0f}", f"is at most {high:.0f}", 0.0
        else:
            rule = f"{column} BETWEEN {low:.0f} AND {high:.0f}"
            words, cost = f"is {low:.0f} to {high:.0f}", 1.0
        bounds, meaning = (low, high), f"{self.name} {words}"
        return Condition(self.name, rule, meaning, cost, on, bounds=bounds, column=self.name)


@dataclass(frozen=True)
class _RealNumbers:
    """Conditions on a column of numbers with decimals, cut between neighbouring values."""

    name: str
    levels: NDArray[Any]

    def __call__(self, x: NDArray[Any], low: float, high: float) -> Condition:
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
        return Condition(self.name, rule, meaning, cost, on, bounds=bounds, column=self.name)


def _shorten(low: float, high: float) -> str:
    """Return the shortest decimal that is at least ``low`` and below ``high``."""
    for digits in range(1, 18):
        cut = float(Context(prec=digits).create_decimal(Decimal(low / 2 + high / 2)))
        if low <= cut < high:
            return str(int(cut)) if cut.is_integer() and abs(cut) < 2**53 else repr(cut)
    return repr(low)
