"""The conditions of a table, from which rules are made, and the units that each matches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from enum import IntEnum
from functools import cache, cached_property, lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars import selectors

from groundfault.base.arrays import Bools, Floats
from groundfault.core.columns import LEVELS, Column, Kind, flag_rule, profile, tell_number
from groundfault.core.rules import literal as constant, quote
from groundfault.modes.text_attributes import read_text_conditions
from groundfault.stats import bits as bitset
from groundfault.stats.bits import Bits

MIN_SUPPORT = 8
"""Fewest units that a rule must match."""
MOST = 0.8
"""Share of the units above which a condition is no mode by itself: it describes the usual unit."""
MAX_SET = 4
"""Most values of a set: readers skip more."""
MAX_WORDS = 2 * MAX_SET
"""Words of a set: a line of a page."""
TOP_VALUES = MAX_SET + 1
"""Values of a column, by excess, from which sets are made: 25 sets, instead of 6,175 for all values
of a column of twenty."""
REACH = 16
"""Steps of bounds of sets in 1 of a squared deviation: finer ones save little more."""
FEW = MIN_SUPPORT // 2
"""Fewest units of a value or a word in a set."""
_FEW_COLUMNS = 15
"""Columns up to which rules of three conditions have eight cuts of each, beyond four."""
_TAILS = (0.02, 0.04, 0.08)
"""Shares of a column's values beyond an end cut: below 2 % fewer than 40 of 2,000 are left."""
_HEAVY = 0.05
"""Share of a column's values from which one value is a condition by itself, and set apart from the
others: zeros, round numbers."""
_ENDS = 24
"""Ends of ranges a column has, about: 16ths, so that a range of an eighth has a Jaccard of .8, and
tails; 276 ranges."""
_RANGES = 10_000
"""Closed ranges over all columns, about: read and permuted in half a second."""
_GROUPS = (Kind.FLAG, Kind.LABEL)


class Tier(IntEnum):
    """Origin of a literal, ordered by how easily a reader understands it.

    ``PARTIAL`` literals name a value of a column whose gaps go with the outcome. These and your own
    rules are never joined, since they are tested on only some of the units.
    """

    ATTRIBUTE = 0
    TEXT = 1
    WORD = 2
    PARTIAL = 3
    OWN = 4


@dataclass(frozen=True, eq=False)
class UnitSet:
    """Some of the units, one bit a unit.

    Attributes
    ----------
    sides : one or two uint64 arrays, shape (words,)
        These units are in both: many ranges share an end, and are joined where they are read.
    total : int
        All units, of which these are some.
    """

    sides: tuple[Bits, ...]
    total: int

    @classmethod
    def of(cls, on: Bools) -> UnitSet:
        """Pack one value a unit."""
        return cls((bitset.pack(on[None])[0],), len(on))

    @property
    def bits(self) -> Bits:
        """Return one bit a unit: uint64, shape (words,)."""
        return np.asarray(self.sides[0] & self.sides[-1])

    def unpack(self) -> Bools:
        """Return one value a unit."""
        on: Bools = bitset.unpack(self.bits[None], self.total)[0]
        return on

    @cached_property
    def size(self) -> int:
        """Return the number of these units."""
        return int(np.bitwise_count(self.bits).sum(dtype=np.int64))

    @property
    def is_usable(self) -> bool:
        """Return whether enough units are in this set, and enough are outside."""
        return MIN_SUPPORT <= self.size <= self.total - MIN_SUPPORT


@dataclass(frozen=True)
class Condition:
    """A condition on one column, and the units it matches.

    Attributes
    ----------
    family : str
        Its topic. Two literals of one family are never joined.
    rule, meaning : str
        In SQL, and in English.
    cost : float
        Reading cost; 0 for plain equality.
    units : UnitSet
        Units without a value are off.
    tier : Tier
    value : str or None
        The value, for one value of a column of categories, so that values can join to a set.
    bounds : pair of float, or None
        Ends of a condition on a number, infinite where open, both inclusive.
    column : str
        The column that it reads.
    aliases : tuple of Condition
        Other conditions that match the same units; they cost more, or come later.
    tested : bool array, shape (units,), or None
        Units on which it is tested; None for all.
    source : str
        The proposer.
    lost : bool
        Whether a value may be missing because of the outcome, so that the worst is assumed.
    grain : {0, 1, 2}
        How finely it cuts: 0 joins with others to rules of any length, 1 with one other, 2 joins
        with no other.
    numbers : Numbers or None
        The numbers that it cuts, for other ends.
    """

    family: str
    rule: str
    meaning: str
    cost: float
    units: UnitSet
    tier: Tier = Tier.ATTRIBUTE
    value: str | None = None
    bounds: tuple[float, float] | None = None
    column: str = ""
    aliases: tuple[Condition, ...] = ()
    tested: Bools | None = None
    source: str = "modes"
    lost: bool = False
    grain: int = 0
    numbers: Numbers | None = None

    @property
    def on(self) -> Bools:
        """Return whether it holds, one value a unit."""
        return self.units.unpack()


@dataclass(frozen=True, eq=False)
class Numbers:
    """A column of numbers.

    Attributes
    ----------
    values : float64 array, shape (units,)
        NaN where a unit has none.
    levels : float64 array
        The different finite values, ascending.
    make : callable
        Of units and two ends, the condition.
    """

    values: Floats
    levels: Floats
    make: Callable[[UnitSet, float, float], Condition]

    def cut(self, low: float, high: float) -> Condition:
        """Return the condition of a range, both ends inclusive."""
        units = UnitSet.of((self.values >= low) & (self.values <= high))
        return replace(self.make(units, low, high), numbers=self)


def read_number(values: pl.Series, columns: int) -> Iterator[Condition]:
    """Yield conditions on a column of numbers, given the number of columns.

    Conditions of one grain are in the order of preference: "is 0" comes before "is 0 or less",
    which may match the same units.
    """
    x = values.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    ordered = np.sort(x)
    finite = ordered[np.searchsorted(ordered, -np.inf, "right") : np.searchsorted(ordered, np.inf)]
    levels = finite[np.append(True, finite[1:] != finite[:-1])[: len(finite)]]
    if len(levels) < 2:
        return
    parts = levels[:_ENDS], levels  # a few tell most columns
    whole = all(np.all(one == np.round(one)) for one in parts) and np.abs(levels).max() < 2**53
    make = (
        _WholeNumbers(values.name, float(levels[0])) if whole else _RealNumbers(values.name, levels)
    )
    column = Numbers(x, levels, make)
    # each is at one of so many places
    heavy = np.unique(finite[:: max(1, int(_HEAVY * len(finite)))])
    counts = np.searchsorted(finite, heavy, "right") - np.searchsorted(finite, heavy)
    heavy = heavy[counts >= _HEAVY * len(finite)]
    coarse = _choose_points(finite, levels, 8 if columns <= _FEW_COLUMNS else 4)
    # of few values each is a condition, and of whole ones an end that joins with others
    few = len(levels) <= 2 * _ENDS // 3
    ends = levels if whole and few else coarse
    fine = _choose_ends(finite, levels, heavy, columns)
    alone = levels if few else heavy
    ranges = (
        [*_list_values(alone), *_list_open(ends), *_list_closed(coarse)],
        [*_list_values(fine if len(fine) == len(levels) else heavy), *_list_open(fine)],
        _list_closed(fine),
    )

    @cache
    def compare(side: Callable[..., Bools], end: float) -> Bits:
        """Pack one side of an end, which many ranges share."""
        return np.asarray(bitset.pack(side(x, end)[None])[0])

    seen: set[tuple[float, float]] = set()
    for grain, some in enumerate(ranges):
        for low, high in some:
            if (low, high) not in seen:
                seen.add((low, high))
                sides = compare(np.greater_equal, low), compare(np.less_equal, high)
                one = make(UnitSet(sides, len(x)), low, high)
                yield replace(one, grain=grain, numbers=column)


def _choose_points(values: NDArray[Any], levels: NDArray[Any], max_cuts: int) -> NDArray[Any]:
    """Return values at which a column is cut: all of few, quantiles of many."""
    if len(levels) <= max_cuts + 2:
        return levels
    return np.unique(_pick(values, np.linspace(0, 1, max_cuts + 2)))


def _pick(values: NDArray[Any], shares: NDArray[np.float64]) -> NDArray[Any]:
    """Return the nearest quantiles of values in ascending order."""
    return values[np.rint(shares * (len(values) - 1)).astype(np.intp)]


def _choose_ends(
    values: NDArray[Any], levels: NDArray[Any], heavy: NDArray[Any], columns: int
) -> NDArray[Any]:
    """Return the ends of ranges: all values of few; else quantiles, tails, and around heavy
    values."""
    most = min(_ENDS, int(math.sqrt(2 * _RANGES / columns)))
    if len(levels) <= most:
        return levels
    tails = np.array(_TAILS)
    shares = np.concatenate([np.linspace(0, 1, 2 * most // 3 + 1), tails, 1 - tails])
    points = [_pick(values, shares), heavy]
    light = values[~np.isin(values, heavy)] if len(heavy) else heavy
    if len(light):
        points.append(_pick(light, np.linspace(0, 1, most // 2 + 1)))
        at = np.searchsorted(levels, heavy)
        points += [levels[np.maximum(at - 1, 0)], levels[np.minimum(at + 1, len(levels) - 1)]]
    return np.unique(np.concatenate(points))


def _list_values(points: NDArray[Any]) -> Iterator[tuple[float, float]]:
    yield from ((float(v), float(v)) for v in points)


def _list_open(points: NDArray[Any]) -> Iterator[tuple[float, float]]:
    yield from ((float(v), math.inf) for v in points[1:])
    yield from ((-math.inf, float(v)) for v in points[:-1])


def _list_closed(points: NDArray[Any]) -> Iterator[tuple[float, float]]:
    inner = [float(v) for v in points[1:-1]]
    yield from combinations(inner, 2)


@dataclass(frozen=True)
class _WholeNumbers:
    """Conditions on a column of whole numbers."""

    name: str
    lowest: float

    def __call__(self, units: UnitSet, low: float, high: float) -> Condition:
        column, name, more, less = quote(self.name), self.name, "more", "less"
        least, most = (tell_number(name, end) for end in (low, high))
        if "-" in f"{least[1:]}{most[1:]}":
            name, more, less = name.removesuffix(".day"), "later", "earlier"
        if low == high:
            cost = 0.0 if low == self.lowest else 0.5
            rule, words = f"{column} = {low:.0f}", f"is {least}"
        elif math.isinf(high):
            rule, words, cost = f"{column} >= {low:.0f}", f"is {least} or {more}", 0.0
        elif math.isinf(low):
            rule, words, cost = f"{column} <= {high:.0f}", f"is {most} or {less}", 0.0
        else:
            rule = f"{column} BETWEEN {low:.0f} AND {high:.0f}"
            words, cost = f"is {least} to {most}", 1.0
        bounds, meaning = (low, high), f"{name} {words}"
        return Condition(self.name, rule, meaning, cost, units, bounds=bounds, column=self.name)


@dataclass(frozen=True)
class _RealNumbers:
    """Conditions on a column of numbers with decimals, cut between neighbouring values."""

    name: str
    levels: NDArray[Any]

    def __call__(self, units: UnitSet, low: float, high: float) -> Condition:
        column, parts, words = quote(self.name), [], []
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
            words.append(f"at most {cut}" if words else f"{cut} or less")
        meaning, cost = f"{self.name} is {' and '.join(words)}", 0.5 * len(parts)
        rule, bounds = " AND ".join(parts), (low, high)
        return Condition(self.name, rule, meaning, cost, units, bounds=bounds, column=self.name)


@lru_cache(4096)
def _shorten(low: float, high: float) -> str:
    """Return the shortest decimal that is at least ``low`` and below ``high``."""
    for digits in range(1, 18):
        cut = float(Context(prec=digits).create_decimal(Decimal(low / 2 + high / 2)))
        if low <= cut < high:
            return str(int(cut)) if cut.is_integer() and abs(cut) < 2**53 else repr(cut)
    return repr(low)


def list_conditions(
    table: pl.DataFrame, *, max_words: int = 300, gaps: Sequence[str] = ()
) -> list[Condition]:
    """Return all literals of a table; literals that match the same units are merged.

    Parameters
    ----------
    table : polars.DataFrame
        One row a unit.
    max_words : int
        Largest number of words and structures of texts.
    gaps : sequence of str
        Columns whose gaps go with the outcome: their values are tested on the units that have one,
        and texts are not read.

    Returns
    -------
    list of Condition
        Attributes first, then texts, then words; each by reading cost. All match at least
        `MIN_SUPPORT` units and leave out as many.
    """
    # NaN is not a value: SQL would order it as the largest
    table = table.with_columns(selectors.float().fill_nan(None))
    columns = profile(table)
    literals: list[Condition] = []
    for column in columns:
        conditions = _read_column(table, column, len(columns), max_words)
        if column.name in gaps:
            present = table[column.name].is_not_null()
            whole = [c.name for c in columns if c.kind in _GROUPS and c.name not in gaps]
            lost = not any(_follows(present, table[name]) for name in whole)
            conditions = _leave_alone(conditions, present.to_numpy(), lost=lost)
        literals += conditions
    literals.sort(key=lambda one: (one.tier, one.cost))
    return _merge_equal(one for one in literals if one.units.is_usable)


def _follows(present: pl.Series, groups: pl.Series) -> bool:
    """Return whether each group has values for all or no units, like a column of one benchmark in a
    table of several: then the gaps do not depend on outcomes."""
    shares = pl.DataFrame({"on": present, "group": groups}).group_by("group").agg(pl.mean("on"))
    return bool(shares["on"].is_in([0.0, 1.0]).all())


def _leave_alone(
    conditions: Iterable[Condition], present: Bools, *, lost: bool
) -> Iterator[Condition]:
    """Yield conditions of a column whose gaps go with the outcome, to be tested on units with a
    value.

    "Is missing" is an ordinary condition.
    """
    most = min(present.sum() - MIN_SUPPORT, MOST * present.sum())
    for one in conditions:
        if not (one.on & present).any():
            yield one
        elif one.tier is Tier.ATTRIBUTE and one.units.size <= most:
            yield replace(one, tier=Tier.PARTIAL, tested=present, lost=lost)


def _merge_equal(literals: Iterable[Condition]) -> list[Condition]:
    # equal units have an equal sum of words; others with this sum take the next number
    first: dict[tuple[int, int], Condition] = {}
    for one in literals:
        key = (int(one.units.bits.sum()), 0)
        while key in first and not np.array_equal(first[key].units.bits, one.units.bits):
            key = (key[0], key[1] + 1)
        if key in first:
            kept, grain = first[key], min(first[key].grain, one.grain)
            one = replace(kept, aliases=(*kept.aliases, one), grain=grain)
        first[key] = one
    return list(first.values())


def _read_column(
    table: pl.DataFrame, column: Column, columns: int, max_words: int
) -> Iterator[Condition]:
    values, name = table[column.name], column.name
    missing = values.is_null().to_numpy() if values.has_nulls() else np.zeros(len(values), np.bool_)
    if column.kind is Kind.FLAG:
        yield from _read_flag(values, ~missing)
    elif column.kind is Kind.NUMBER:
        yield from read_number(values, columns)
    elif column.kind in (Kind.LABEL, Kind.CODE) and not values.dtype.is_numeric():
        yield from _read_values(values)
    elif column.kind is Kind.TEXT:
        for one in read_text_conditions(values, max_words=max_words):
            tier = Tier.WORD if one.cost >= 2 else Tier.TEXT
            yield Condition(
                one.family, one.rule, one.meaning, one.cost, UnitSet.of(one.on), tier, column=name
            )
    if missing.sum() >= MIN_SUPPORT and column.kind is not Kind.OTHER:
        sql, meaning = f"{quote(name)} IS NULL", f"{name} is missing"
        yield Condition(name, sql, meaning, 1.0, UnitSet.of(missing), column=name)


def _pack(values: pl.Series) -> UnitSet:
    return UnitSet.of((values.fill_null(False) if values.has_nulls() else values).to_numpy())


def _read_flag(values: pl.Series, present: Bools) -> Iterator[Condition]:
    name, rule = values.name, flag_rule(values.name, values.dtype)
    is_true = values.dtype == pl.Boolean
    on = _pack(values if is_true else values == 1)
    off = UnitSet((UnitSet.of(present).bits ^ on.bits,), on.total)
    yield Condition(name, rule, name if is_true else f"{name} is 1", 0.0, on, column=name)
    opposite = f"NOT {rule}" if is_true else f"{quote(name)} = 0"
    meaning = f"not {name}" if is_true else f"{name} is 0"
    yield Condition(name, opposite, meaning, 0.5, off, column=name)


def _read_values(values: pl.Series) -> Iterator[Condition]:
    name, words = values.name, values.cast(pl.String)
    counts = words.drop_nulls().rename("word").value_counts()
    # a million ids, each of few rows, would take seconds as objects
    common = counts.filter(pl.col("count") >= MIN_SUPPORT).rows()
    # in the order of how common they are, and of their names where that is equal
    for value, _ in sorted(common, key=lambda row: (-row[1], row[0]))[:LEVELS]:
        sql, meaning = f"{quote(name)} = {constant(value)}", f"{name} is {value}"
        yield Condition(name, sql, meaning, 0.0, _pack(words == value), value=value, column=name)
