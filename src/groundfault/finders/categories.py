"""Labels: one candidate a level, such as "output_type is list", and one for each pattern of missing
values.
"""

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
    examples,
    flag_rule,
    matching,
    missing_candidates,
    profile,
)
from groundfault.core.evidence import Evidence
from groundfault.core.rules import literal, quote
from groundfault.errors import InputError

_FEW = 6
_SHOWN = 60


@dataclass(frozen=True)
class Categories:
    """Propose one "is" rule for each frequent level of an attribute that repeats a few words.

    Of two levels without missing values only the rarer is proposed, since the other is its
    complement. Whole numbers of at most six different values are levels too, but for the smallest
    and the largest, which are thresholds. An example without a value is off for the levels, and on
    for a candidate of its own, "is missing". Flags (true/false, 0/1) belong to the finder
    ``declared``, ids and free text to nobody here.

    Parameters
    ----------
    most_levels : int
        A column of more levels is not a category.
    least : int
        A level needs at least this many discovery examples.
    columns : tuple of str, optional
        Names or globs; without them every attribute that repeats a few words. A flag named here
        gives one candidate.

    Raises
    ------
    InputError
        If a named column is not there, or has more than ``most_levels`` levels.
    """

    most_levels: int = LEVELS
    least: int = 5
    columns: tuple[str, ...] | None = None
    name: str = "categories"

    def propose(self, discovery: Evidence) -> Iterator[Candidate]:
        """Candidates such as ``output_type = list``, column by column, then the patterns of missing
        values.
        """
        table = examples(discovery)
        if self.columns is not None:
            table = table.select(*matching(discovery, self.columns))
        columns = profile(table, self.most_levels)
        found = [c for column in columns for c in self._of(table[column.name], column)]
        yield from unique_names(found)
        numeric = [
            c
            for c in columns
            if table.schema[c.name].is_numeric() and c.kind in (Kind.NUMBER, Kind.CONSTANT)
        ]
        yield from missing_candidates(
            table, [c for c in columns if self.columns or c not in numeric], self.name
        )

    def _of(self, values: pl.Series, column: Column) -> list[Candidate]:
        if column.kind in (Kind.CONSTANT, Kind.OTHER):
            return []
        if column.kind is Kind.FLAG:
            rule = flag_rule(column.name, values.dtype)
            return (
                [Candidate(column.name, rule, column.name, self.name, "drop")]
                if self.columns
                else []
            )
        if self.columns is None:
            few = column.kind is Kind.NUMBER and column.distinct <= _FEW
            if not few and column.kind is not Kind.LABEL:
                return []
        elif column.distinct > self.most_levels:
            raise InputError(
                f"column {column.name!r} has {column.distinct} or more levels and is not a category: leave it out, or "
                f"raise most_levels (now {self.most_levels})"
            )
        return [self._candidate(column.name, level) for level in self._levels(values, column)]

    def _levels(self, values: pl.Series, column: Column) -> list[Any]:
        known = values.drop_nulls().alias("level")
        plain = (
            known.dtype
            if known.dtype.is_integer()
            else pl.Float64
            if known.dtype.is_numeric()
            else pl.String
        )
        counts = dict(known.cast(plain).value_counts().sort("level").iter_rows())
        levels = [
            level for level, n in counts.items() if self.least <= n <= len(values) - self.least
        ]
        if self.columns is None and column.kind is Kind.NUMBER:
            whole = all(float(level).is_integer() for level in counts)
            return [int(level) for level in levels if whole and min(counts) < level < max(counts)]
        if len(counts) == 2 and not column.missing:
            return sorted(levels, key=counts.__getitem__)[:1]
        return levels

    def _candidate(self, column: str, level: Any) -> Candidate:
        shown = _shown(str(level))
        rule = f"{quote(column)} = {literal(level)}"
        return Candidate(f"{column} = {shown}", rule, f"{column} is {shown}", self.name, "off")


def _shown(level: str) -> str:
    """A level fit for a heading: on one line, not blank, not endless."""
    line = " ".join(level.split())
    shown = line if len(line) <= _SHOWN else line[: _SHOWN - 3] + "..."
    return shown if line and line == level else f"'{shown}'"
