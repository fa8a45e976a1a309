"""Multi-split e-values: many random splits averaged into one answer, so that no single split's luck
decides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groundfault.core.judge import Confirmation, Screening
from groundfault.core.plan import Plan
from groundfault.core.units import Units
from groundfault.judges.confirm import big_enough, p_values
from groundfault.stats import multiple

_PROMISING = 0.2
_ODDS_RATIOS = (1.5, 2.0, 3.0, 5.0, 8.0)


@dataclass(frozen=True)
class MultiSplit:
    """Compound e-values averaged over random splits, selected by e-BH at q.

    On each split a candidate gets a weight from its discovery p-value (p to the power -1/2 up to
    0.2, else none, scaled to sum to their number L) times a holdout e-value: a mixture of
    noncentral against central law likelihood ratios in the direction seen on discovery. Guarantee:
    the null e-values sum to at most L in expectation, hence the false discovery rate <= q under any
    dependence of the candidates, for independent units (Wang and Ramdas 2022,
    doi:10.1111/rssb.12489)."""

    name: str = "multisplit-e"
    confirmation: Confirmation = "none"
    lift_ranked: bool = False
    distinct: bool = True

    def screen(
        self, units: Units, hypotheses: NDArray[np.intp], plan: Plan, rng: np.random.Generator
    ) -> Screening:
        """Confirm what e-BH selects from the averaged e-values, and is big enough."""
        e = np.zeros(len(hypotheses))
        for _ in range(plan.splits):
            seen = np.zeros(len(units), dtype=np.bool_)
            seen[rng.permutation(len(units))[: len(units) // 2]] = True
            e += _split_e_values(units.only(seen), units.only(~seen), hypotheses) / plan.splits
        survives = multiple.e_benjamini_hochberg(e, float(plan.q)) & big_enough(
            units.margins[hypotheses], plan
        )
        return Screening(survives, p_values(units, hypotheses, plan, rng), multiple.e_adjusted(e))


def _split_e_values(seen: Units, held: Units, hypotheses: NDArray[np.intp]) -> NDArray[np.float64]:
    margins = seen.margins[hypotheses]
    laws, which, _ = seen.laws(hypotheses, pooled=False)
    p = laws.two_sided(which, np.asarray(margins.on_sum, dtype=np.float64))
    weight = np.where(p <= _PROMISING, np.maximum(p, 1e-300) ** -0.5, 0.0)
    weight *= (margins.on > 0) & (margins.off > 0)
    if weight.sum() == 0:
        return weight
    kept = np.flatnonzero(weight)
    on_sum = np.asarray(held.margins[hypotheses[kept]].on_sum, dtype=np.float64)
    laws, which, _ = held.laws(hypotheses[kept], pooled=False)
    e = np.zeros(len(hypotheses))
    e[kept] = laws.likelihood_ratio(which, on_sum, margins.sign[kept], np.log(_ODDS_RATIOS))
    return np.asarray(e * weight * (len(weight) / weight.sum()))
