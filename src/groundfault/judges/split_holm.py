"""Split-Holm: screen leniently on discovery, confirm rigorously on the holdout."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from groundfault.base.arrays import Places
from groundfault.core.judge import Confirmation, ConfirmationBar, ErrorRate, Screening
from groundfault.core.plan import Plan
from groundfault.core.units import Units
from groundfault.judges.rule import (
    compute_p_values,
    draw_null_worlds,
    is_big_enough,
    least_score,
)


@dataclass(frozen=True)
class SplitHolm:
    """Candidates with a large enough discovery effect get exact holdout p-values under Holm.

    Guarantee: P(any false confirmation) <= alpha when units are independent and held-out outcomes
    are exchangeable given the candidates. This includes candidates mined on discovery, because only
    the holdout decides."""

    name: str = "split-holm"
    confirmation: Confirmation = "exact"
    lift_ranked: bool = False
    distinct: bool = True
    compares: bool = True
    bounds: ErrorRate = "family-wise"

    def screen(self, units: Units, hypotheses: Places, plan: Plan, rng: Generator) -> Screening:
        """Keep hypotheses that reach the least effect worth confirming."""
        survives = is_big_enough(units.tables[hypotheses], plan)
        return Screening(survives, p=compute_p_values(units, hypotheses, plan, rng))

    def find_bar(
        self, units: Units, hypotheses: Places, plan: Plan, rng: Generator
    ) -> ConfirmationBar:
        """Return the least effect, and the null hypotheses that reach it by chance and share the
        level."""
        rivals = [
            int(is_big_enough(world.tables[hypotheses], plan).sum())
            for world in draw_null_worlds(units, hypotheses, rng)
        ]
        return ConfirmationBar(
            floors=np.full(len(rivals), least_score(plan)), rivals=np.array(rivals)
        )
