"""Numbers, cut at quantiles: "n_words is above 400"."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal

import polars as pl
from polars import selectors as cs

from groundfault.core.candidate import Candidate
from groundfault.core.columns import (
    Column,
    Kind,
    check_quantiles,
    list_examples,
    profile,
    propose_missing,
    select_named,
)
from groundfault.core.evidence import Evidence
from groundfault.core.rules import quote
from groundfault.slicing.parameters import Parameters


@dataclass(frozen=True)
class Thresholds(Parameters):
    """Propose "above" rules that split numeric attributes at discovery quantiles.

    Only "above" is proposed, since "at most" is its complement and has the same lift with the other
    sign: a second candidate would count the same test twice. If failures are more frequent below
    the cut, the report says "at most" (`groundfault.core.finding.Finding.opposite`).

    If a quantile is the largest value, the cut is put just below it. Cuts are the shortest decimals
    that split discovery as the quantile does, and integers for columns of whole numbers. Examples
    without a value are left out of these candidates and get a separate candidate, "is missing".

    Parameters
    ----------
    quantiles : tuple of float
        In (0, 1).
    columns : tuple of str, optional
        Names or globs; by default every attribute that is a number, except 0/1 columns and ids.

    Raises
    ------
    InputError
        If a named column is missing or holds no numbers.
    """

    quantiles: tuple[float, ...] = (0.25, 0.5, 0.75, 0.9)
    columns: tuple[str, ...] | None = None
    name: str = "thresholds"

    def __post_init__(self) -> None:
        check_quantiles(self.quantiles)

    def propose(self, discovery: Evidence) -> Iterator[Candidate]:
        """Propose candidates such as ``n_words > 400``, then the patterns of missing values."""
        table, columns = self._numbers(discovery)
        for column, column_cuts in choose_cuts(
            table, [c.name for c in columns if c.distinct > 1], self.quantiles
        ).items():
            for cut in column_cuts:
                name, meaning = f"{column} > {cut}", f"{column} is above {cut}"
                yield Candidate(name, f"{quote(column)} > {cut}", meaning, self.name, "drop")
        yield from propose_missing(table, columns, self.name)

    def _numbers(self, discovery: Evidence) -> tuple[pl.DataFrame, list[Column]]:
        if self.columns is None:
            # numbers only: levels of words belong to the finder of categories
            table = list_examples(discovery).select(cs.numeric())
            return table, [c for c in profile(table) if c.kind in (Kind.NUMBER, Kind.CONSTANT)]
        reason = ", not numbers, so it has no thresholds"
        table = select_named(discovery, self.columns, cs.numeric(), reason)
        return table, list(profile(table))


def choose_cuts(
    table: pl.DataFrame, columns: Sequence[str], quantiles: Sequence[float]
) -> dict[str, list[str]]:
    """Return ascending cuts of columns as SQL numbers; empty for fewer than two values.

    Parameters
    ----------
    table : polars.DataFrame
    columns : sequence of str
        Numbers.
    quantiles : sequence of float
        In (0, 1).
    """
    # floats, since SQL compares all numbers in the same way
    values = table.select(pl.col(c).cast(pl.Float64) for c in columns)
    expressions = []
    for c in columns:
        # a cut at the largest value has no values above it
        top = pl.col(c).filter(pl.col(c) < pl.col(c).max()).max()
        at = [pl.min_horizontal(pl.col(c).quantile(q, "lower"), top) for q in quantiles]
        expressions.append(pl.concat_list(at).list.drop_nulls().list.unique().list.sort().alias(c))
    rows = values.select(expressions).row(0, named=True) if columns else {}
    cut_values = {c: list(filter(math.isfinite, below)) for c, below in rows.items()}
    above = values.select(
        pl.concat_list(pl.col(c).filter(pl.col(c) > v).min() for v in values_below).alias(c)
        for c, values_below in cut_values.items()
        if values_below
    )
    pairs = {c: zip(cut_values[c], above[c][0], strict=True) for c in above.columns}
    return {
        c: [_shorten_cut(v, u) for v, u in values_below if u is not None]
        for c, values_below in pairs.items()
    }


def _shorten_cut(value: float, above: float) -> str:
    """Return the shortest decimal of at least ``value`` that is nearer to it than to ``above``."""
    middle = value / 2 + above / 2
    for digits in range(1, 18):
        for rounding in (ROUND_HALF_EVEN, ROUND_CEILING):
            cut = float(Context(prec=digits, rounding=rounding).create_decimal(Decimal(value)))
            if cut == value or value < cut < middle:
                return str(int(cut)) if cut.is_integer() and abs(cut) < 2**53 else repr(cut)
    return repr(value)
