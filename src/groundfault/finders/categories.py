"""Labels: one candidate a level, and one for each pattern of missing values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from groundfault.core.candidate import Candidate, unique_names
from groundfault.core.columns import (
    LEVELS,
    Column,
    Kind,
    flag_rule,
    list_examples,
    match_attributes,
    profile,
    propose_missing,
    shorten_value,
)
from groundfault.core.evidence import Evidence
from groundfault.core.rules import literal, quote
from groundfault.errors import InputError
from groundfault.slicing.parameters import Parameters

# distinct values up to which numbers are proposed as levels too
_FEW = 6


@dataclass(frozen=True)
class Categories(Parameters):
    """Propose one "is" rule for each frequent level of an attribute that repeats a few words.

    Of two levels without missing values only the rarer is proposed, since the other is its
    complement. Whole numbers with at most six distinct values are also levels, except the smallest
    and the largest, which are thresholds. An example without a value is off for the levels, and on
    for a separate candidate, "is missing". The finder ``declared`` proposes flags (true/false,
    0/1); ids and free text get no rules here.

    Parameters
    ----------
    max_levels : int
        A column with more levels is not a category.
    min_size : int
        A level needs at least this many discovery examples.
    columns : tuple of str, optional
        Names or globs; by default every attribute that repeats a few words. A flag named here gives
        one candidate.

    Raises
    ------
    InputError
        If a named column is not there, or has more than ``max_levels`` levels.
    """

    max_levels: int = LEVELS
    min_size: int = 5
    columns: tuple[str, ...] | None = None
    name: str = "categories"

    def propose(self, discovery: Evidence) -> Iterator[Candidate]:
        """Propose candidates such as ``output_type = list``, then patterns of missing values."""
        table = list_examples(discovery)
        if self.columns is not None:
            table = table.select(*match_attributes(discovery, self.columns))
        columns = profile(table, self.max_levels)
        candidates = [
            c for column in columns for c in self._propose_column(table[column.name], column)
        ]
        yield from unique_names(candidates)
        schema = table.schema
        numbers = [c for c in columns if c.kind in (Kind.NUMBER, Kind.CONSTANT)]
        numeric = [c for c in numbers if not self.columns and schema[c.name].is_numeric()]
        yield from propose_missing(table, [c for c in columns if c not in numeric], self.name)

    def _propose_column(self, values: pl.Series, column: Column) -> list[Candidate]:
        if column.kind in (Kind.CONSTANT, Kind.OTHER):
            return []
        if column.kind is Kind.FLAG:
            if not self.columns:
                return []
            rule = flag_rule(column.name, values.dtype)
            return [Candidate(column.name, rule, column.name, self.name, "drop")]
        if self.columns is None:
            few = column.kind is Kind.NUMBER and column.distinct <= _FEW
            if not few and column.kind is not Kind.LABEL:
                return []
        elif column.distinct > self.max_levels:
            raise InputError(
                f"column {column.name!r} has {column.distinct} or more levels and is "
                f"not a category: leave it out, or raise max_levels (now {self.max_levels})"
            )
        name, candidates = column.name, []
        for level in self._levels(values, column):
            text, rule = shorten_value(level), f"{quote(name)} = {literal(level)}"
            # "off": a missing value is not this level, and is a candidate of its own
            candidates.append(
                Candidate(f"{name} = {text}", rule, f"{name} is {text}", self.name, "off")
            )
        return candidates

    def _levels(self, values: pl.Series, column: Column) -> list[Any]:
        values_present = values.drop_nulls().alias("level")
        plain = values_present.dtype
        if not plain.is_integer():
            plain = pl.Float64() if plain.is_numeric() else pl.String()
        counts = dict(values_present.cast(plain).value_counts().sort("level").iter_rows())
        levels = [
            level
            for level, n in counts.items()
            # a level of too few examples, or without too few others, could not be tested
            if self.min_size <= n <= len(values) - self.min_size
        ]
        if self.columns is None and column.kind is Kind.NUMBER:
            whole = all(float(level).is_integer() for level in counts)
            # the finder of thresholds already proposes the smallest and the largest
            return [int(level) for level in levels if whole and min(counts) < level < max(counts)]
        if len(counts) == 2 and not column.missing:
            # one of two levels is enough: the other is its complement
            return sorted(levels, key=counts.__getitem__)[:1]
        return levels
