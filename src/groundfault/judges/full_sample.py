"""Holm, Benjamini-Hochberg and Benjamini-Yekutieli on exact permutation p-values of all units."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.random import Generator

from groundfault.base.arrays import Places
from groundfault.core.judge import Confirmation, ConfirmationBar, ErrorRate, Screening
from groundfault.core.plan import Plan, to_fraction
from groundfault.core.units import Units
from groundfault.judges.rule import compute_p_values, is_at_most, is_big_enough
from groundfault.stats import multiple

_ADJUST = {
    "holm": multiple.holm,
    "bh": multiple.benjamini_hochberg,
    "by": multiple.benjamini_yekutieli,
}


@dataclass(frozen=True)
class FullSample:
    """All units, exact two-sided permutation p-values, one of three corrections.

    Guarantee, when the library was fixed without a look at the outcomes and units are independent:
    ``holm`` keeps P(any false confirmation) <= alpha under any dependence of the candidates; ``bh``
    the false discovery rate <= q under positive dependence; ``by`` under any."""

    name: Literal["holm", "bh", "by"]
    confirmation: Confirmation = "none"
    lift_ranked: bool = False
    distinct: bool = True
    compares: bool = True

    @property
    def bounds(self) -> ErrorRate:
        """Return the bounded error rate: family-wise for Holm, else false discovery."""
        return "family-wise" if self.name == "holm" else "false discovery"

    @property
    def condition(self) -> str:
        """Return the condition of the guarantee, which cannot be tested."""
        return "if they depend positively" if self.name == "bh" else ""

    def screen(self, units: Units, hypotheses: Places, plan: Plan, rng: Generator) -> Screening:
        """Confirm hypotheses that are significant after correction and large enough."""
        p = compute_p_values(units, hypotheses, plan, rng)
        p_adjusted = _ADJUST[self.name](p)
        level = plan.alpha if self.bounds == "family-wise" else plan.q
        significant = is_at_most(p_adjusted, level)
        large = is_big_enough(units.tables[hypotheses], plan)
        return Screening(significant & large, p, p_adjusted, too_small=significant & ~large)

    def find_bar(
        self,
        units: Units,  # noqa: ARG002
        hypotheses: Places,
        plan: Plan,
        rng: Generator,  # noqa: ARG002
    ) -> ConfirmationBar:
        """Return the level of the correction's first step, or of a later one, at any support."""
        size = len(hypotheses)
        harmonic = float(np.sum(1 / np.arange(1, size + 1))) if self.name == "by" else 1.0
        alpha, q = float(to_fraction(plan.alpha)), float(to_fraction(plan.q))

        def find_level(on: int, beside: int) -> float:  # noqa: ARG001
            if self.name == "holm":
                return alpha / max(1, size - beside)
            return q * (beside + 1) / size / harmonic

        return ConfirmationBar(find_level)


Holm = partial(FullSample, "holm")
BenjaminiHochberg = partial(FullSample, "bh")
BenjaminiYekutieli = partial(FullSample, "by")
