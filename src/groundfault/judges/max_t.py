"""Max-T: Westfall-Young on all units, outcomes permuted and candidates kept correlated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groundfault.core.judge import Confirmation, Screening
from groundfault.core.plan import Plan
from groundfault.core.units import Units
from groundfault.judges.confirm import compute_p_values, is_at_most, is_big_enough
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
        # a candidate's marks are packed once for all outcomes
        candidates, position = np.unique(hypotheses // outcomes, return_inverse=True)
        marks = units.marks.select(candidates)
        pairs = np.zeros((len(candidates), outcomes), dtype=np.bool_)
        pairs[position, hypotheses % outcomes] = True
        p_adjusted = permutation.max_t(
            marks.on,
            units.losses,
            plan.permutations,
            rng,
            valid=marks.valid,
            has_loss=units.scored,
            blocks=units.strata,
            hypotheses=pairs,
        )[position, hypotheses % outcomes]
        survives = is_at_most(p_adjusted, plan.alpha) & is_big_enough(
            units.tables[hypotheses], plan
        )
        return Screening(survives, compute_p_values(units, hypotheses, plan, rng), p_adjusted)
