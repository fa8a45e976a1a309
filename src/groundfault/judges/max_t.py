"""Max-T: Westfall-Young on all units, outcomes permuted jointly so that the candidates keep their
correlation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groundfault.core.judge import Confirmation, Screening
from groundfault.core.plan import Plan
from groundfault.core.units import Units
from groundfault.judges.confirm import at_most, big_enough, p_values
from groundfault.stats import permutation


@dataclass(frozen=True)
class MaxT:
    """All units, step-down max-T over candidates and outcomes together.

    Guarantee, when the library was fixed without a look at the outcomes: P(any false confirmation)
    <= alpha for exchangeable units; strong control assumes subset pivotality (outcomes independent
    of the null candidates jointly). Several models on the same examples keep their dependence."""

    name: str = "max-t"
    confirmation: Confirmation = "none"
    lift_ranked: bool = False
    distinct: bool = True

    def screen(
        self, units: Units, hypotheses: NDArray[np.intp], plan: Plan, rng: np.random.Generator
    ) -> Screening:
        """Confirm what the largest of all permuted statistics seldom reaches, and is big enough."""
        outcomes = len(units.losses)
        candidates, position = np.unique(hypotheses // outcomes, return_inverse=True)
        marks = units.marks.select(candidates)
        wanted = np.zeros((len(candidates), outcomes), dtype=np.bool_)
        wanted[position, hypotheses % outcomes] = True
        adjusted = permutation.max_t(
            marks.on,
            units.losses,
            plan.permutations,
            rng,
            valid=marks.valid,
            scored=units.scored,
            blocks=units.strata,
            among=wanted,
        )[position, hypotheses % outcomes]
        survives = at_most(adjusted, plan.alpha) & big_enough(units.margins[hypotheses], plan)
        return Screening(survives, p_values(units, hypotheses, plan, rng), adjusted)
