"""Max-T: Westfall-Young on all units, outcomes permuted and candidates kept correlated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from groundfault.base.arrays import Floats, Places
from groundfault.core.counted_units import CountedUnits
from groundfault.core.judge import Confirmation, ConfirmationBar, ErrorRate, Screening
from groundfault.core.pairs import Pairs
from groundfault.core.plan import Plan, to_fraction
from groundfault.core.units import Units
from groundfault.judges.rule import (
    compute_p_values,
    draw_null_worlds,
    is_at_most,
    is_big_enough,
    standardise,
)
from groundfault.stats import flips, loss_counts, multiple


@dataclass(frozen=True)
class MaxT:
    """All units, step-down max-T over candidates and outcomes together.

    Guarantee, when the library was fixed without a look at the outcomes: P(any false confirmation)
    <= alpha for exchangeable units; strong control assumes subset pivotality (outcomes independent
    of the null candidates jointly). Several models on the same examples keep their dependence. In a
    comparison, the two models are swapped within units instead, see `groundfault.stats.flips`."""

    name: str = "max-t"
    confirmation: Confirmation = "none"
    lift_ranked: bool = False
    distinct: bool = True
    compares: bool = True
    bounds: ErrorRate = "family-wise"

    def screen(self, units: Units, hypotheses: Places, plan: Plan, rng: Generator) -> Screening:
        """Confirm large enough effects that the largest permuted statistic rarely reaches."""
        p_adjusted = (
            flips.max_t(units.marks.on[hypotheses], units.changes, plan.permutations, rng)
            if isinstance(units, Pairs)
            else _permute(units, hypotheses, plan, rng)
        )
        significant = is_at_most(p_adjusted, plan.alpha)
        large = is_big_enough(units.tables[hypotheses], plan)
        p = compute_p_values(units, hypotheses, plan, rng)
        return Screening(significant & large, p, p_adjusted, too_small=significant & ~large)

    def find_bar(
        self, units: Units, hypotheses: Places, plan: Plan, rng: Generator
    ) -> ConfirmationBar:
        """Return the p-value that the largest null statistic rarely reaches, at any support.

        The smallest p-values of null worlds are fitted by a number of independent hypotheses, which
        takes fewer worlds than a percentile of their statistics."""
        from scipy.special import ndtr

        worlds = draw_null_worlds(units, hypotheses, rng)
        largest = np.array([standardise(world, hypotheses).max() for world in worlds])
        smallest = np.minimum(2 * ndtr(-largest), 1 - 1e-9)
        independent = min(len(largest) / -np.log1p(-smallest).sum(), len(hypotheses))
        alpha = float(to_fraction(plan.alpha))

        def find_level(on: int, beside: int) -> float:  # noqa: ARG001
            others = independent * (1 - beside / len(hypotheses))
            return float(-np.expm1(np.log1p(-alpha) / max(1.0, others)))

        return ConfirmationBar(find_level)


def _permute(units: Units, hypotheses: Places, plan: Plan, rng: Generator) -> Floats:
    """Return adjusted p-values from permuting units."""
    if isinstance(units, CountedUnits):
        joint = units.joint
        assert joint is not None, "an audit by counts counts the candidates of max-t jointly"
        on, defined = joint.on[hypotheses], joint.defined[hypotheses]
        return loss_counts.max_t(on, defined, joint.scored, joint.errors, plan.permutations, rng)
    outcomes = len(units.losses)
    # a candidate's marks are packed once for all outcomes
    candidates, position = np.unique(hypotheses // outcomes, return_inverse=True)
    marks = units.marks.select(candidates)
    pairs = np.zeros((len(candidates), outcomes), dtype=np.bool_)
    pairs[position, hypotheses % outcomes] = True
    return multiple.max_t(
        marks.on,
        units.losses,
        plan.permutations,
        rng,
        valid=marks.valid,
        has_loss=units.scored,
        blocks=units.strata,
        hypotheses=pairs,
    )[position, hypotheses % outcomes]
