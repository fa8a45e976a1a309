"""Confidence: examples of low largest probability, the baseline of all slice finders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl
from polars import selectors as cs

from groundfault.core.candidate import Candidate
from groundfault.core.columns import check_quantiles, select_named
from groundfault.core.evidence import Evidence
from groundfault.core.rules import quote
from groundfault.finders import Parameters
from groundfault_lab.slicing.replays import PROBABILITY


@dataclass(frozen=True)
class Confidence(Parameters):
    """Propose examples whose largest class probability is below a discovery quantile.

    Parameters
    ----------
    quantiles : tuple of float
        In (0, 1).
    probability : str
        Glob of columns, one for each class.

    Raises
    ------
    InputError
        If the columns are not there or hold no numbers, or a quantile is not between 0 and 1.
    """

    quantiles: tuple[float, ...] = (0.05, 0.1, 0.25, 0.5)
    probability: str = PROBABILITY
    name: str = "confidence"

    def __post_init__(self) -> None:
        check_quantiles(self.quantiles)

    def propose(self, discovery: Evidence) -> Iterator[Candidate]:
        """Propose one candidate a quantile, the lowest first."""
        reason = "; a rule needs a column of numbers for each class"
        table = select_named(discovery, [self.probability], cs.numeric(), reason)
        names = table.columns
        largest = table.select(pl.max_horizontal(pl.all().cast(pl.Float64))).to_series()
        # "higher" gives a value that occurs; below the smallest there is nothing
        cuts = {largest.quantile(q, "higher") for q in self.quantiles} - {None, largest.min()}
        # six digits: readable, and the same on machines that differ in the last bits
        for cut in sorted(float(f"{c:.6g}") for c in cuts if c is not None):
            rule = " AND ".join(f"{quote(name)} < {cut}" for name in names)
            meaning = f"no class has a probability of {cut}"
            yield Candidate(f"confidence < {cut}", rule, meaning, self.name, "drop")
