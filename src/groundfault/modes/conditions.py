"""Conditions: the single conditions in rules of failure modes.

They are made from the examples without outcomes, so the rules may be tested on all units.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars import selectors

from groundfault.core.columns import LEVELS, Column, Kind, flag_rule, profile
from groundfault.core.rules import literal as constant, quote
from groundfault.modes.condition import MIN_SUPPORT, MOST, Condition, Tier, UnitSet, read_number
from groundfault.modes.text_attributes import read_text_conditions

Bools = NDArray[np.bool_]

_GROUPS = (Kind.FLAG, Kind.LABEL)


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
    first: dict[bytes, Condition] = {}
    for one in literals:
        key = blake2b(one.units.bits.data).digest()
        if key in first:
            kept, grain = first[key], min(first[key].grain, one.grain)
            one = replace(kept, aliases=(*kept.aliases, one), grain=grain)
        first[key] = one
    return list(first.values())


def _read_column(
    table: pl.DataFrame, column: Column, columns: int, max_words: int
) -> Iterator[Condition]:
    values, name = table[column.name], column.name
    if column.kind is Kind.FLAG:
        yield from _read_flag(values)
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
    missing = values.is_null().to_numpy()
    if missing.sum() >= MIN_SUPPORT and column.kind is not Kind.OTHER:
        sql, meaning = f"{quote(name)} IS NULL", f"{name} is missing"
        yield Condition(name, sql, meaning, 1.0, UnitSet.of(missing), column=name)


def _pack(values: pl.Series) -> UnitSet:
    return UnitSet.of(np.asarray(values.fill_null(False).to_numpy(), dtype=np.bool_))


def _read_flag(values: pl.Series) -> Iterator[Condition]:
    name, rule = values.name, flag_rule(values.name, values.dtype)
    on = _pack(values if values.dtype == pl.Boolean else values == 1)
    off = _pack(~values if values.dtype == pl.Boolean else values == 0)
    is_true = values.dtype == pl.Boolean
    yield Condition(name, rule, name if is_true else f"{name} is 1", 0.0, on, column=name)
    opposite = f"NOT {rule}" if is_true else f"{quote(name)} = 0"
    meaning = f"not {name}" if is_true else f"{name} is 0"
    yield Condition(name, opposite, meaning, 0.5, off, column=name)


def _read_values(values: pl.Series) -> Iterator[Condition]:
    name, words = values.name, values.cast(pl.String)
    counts = words.drop_nulls().rename("word").value_counts().rows()
    # in the order of how common they are, and of their names where that is equal
    for value, count in sorted(counts, key=lambda row: (-row[1], row[0]))[:LEVELS]:
        if count >= MIN_SUPPORT:
            sql = f"{quote(name)} = {constant(value)}"
            meaning = f"{name} is {value}"
            yield Condition(
                name, sql, meaning, 0.0, _pack(words == value), value=value, column=name
            )
