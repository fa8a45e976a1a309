"""Multi-split e-values: many random splits averaged, so that no single split decides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groundfault.core.judge import Confirmation, ConfirmationBar, ErrorRate, Screening
from groundfault.core.plan import Plan
from groundfault.core.units import Units
from groundfault.judges.confirm import compute_p_values, is_big_enough
from groundfault.judges.multisplit_bar import SplitEvidence, make_find_level
from groundfault.judges.null_worlds import draw_null_worlds
from groundfault.stats import multiple

# discovery p-value above which a candidate gets no weight in that split
_PROMISING = 0.2
# alternatives that the likelihood ratio averages over: small effects to large ones
_ODDS_RATIOS = (1.5, 2.0, 3.0, 5.0, 8.0)


@dataclass(frozen=True)
class MultiSplit:
    """Compound e-values averaged over random splits, selected by e-BH at q.

    On each split a candidate gets a weight from its discovery p-value (p to the power -1/2 up to
    0.2, else none, scaled to sum to their number L) times a holdout e-value: a mixture of
    noncentral against central likelihood ratios in the direction seen on discovery. Guarantee:
    the null e-values sum to at most L in expectation, hence the false discovery rate <= q under any
    dependence of the candidates, for independent units (Wang and Ramdas 2022,
    doi:10.1111/rssb.12489)."""

    name: str = "multisplit-e"
    confirmation: Confirmation = "none"
    lift_ranked: bool = False
    distinct: bool = True
    bounds: ErrorRate = "false discovery"

    def screen(
        self, units: Units, hypotheses: NDArray[np.intp], plan: Plan, rng: np.random.Generator
    ) -> Screening:
        """Confirm what e-BH selects from the averaged e-values, and is big enough."""
        e = np.zeros(len(hypotheses))
        # an average of e-values is an e-value under any dependence, which p-values of splits lack
        for _ in range(plan.splits):
            in_discovery = np.zeros(len(units), dtype=np.bool_)
            # halves: discovery chooses the weights, the holdout supplies the evidence
            in_discovery[rng.permutation(len(units))[: len(units) // 2]] = True
            e += (
                _compute_split_e_values(
                    units.only(in_discovery), units.only(~in_discovery), hypotheses
                )
                / plan.splits
            )
        selected = multiple.e_benjamini_hochberg(e, float(plan.q))
        large = is_big_enough(units.tables[hypotheses], plan)
        p = compute_p_values(units, hypotheses, plan, rng)
        return Screening(selected & large, p, multiple.e_adjusted(e), too_small=selected & ~large)

    def find_bar(
        self, units: Units, hypotheses: NDArray[np.intp], plan: Plan, rng: np.random.Generator
    ) -> ConfirmationBar:
        """Simulated splits of errors, of graded losses as of errors that vary as much."""
        present = units.losses if units.scored is None else units.losses[units.scored]
        variance = float((present / (units.denominator or 1)).var())
        rate = float((present / (units.denominator or 1)).mean())
        if units.denominator != 1:
            rate = (1 - np.sqrt(max(0.0, 1 - 4 * variance))) / 2
        rivals = []
        for world in draw_null_worlds(units, hypotheses, rng):
            half = rng.permutation(len(units)) < len(units) // 2
            rivals.append(_weigh_all(world.only(half), hypotheses).sum())
        evidence = SplitEvidence(
            len(units),
            round(rate * len(units)),
            len(hypotheses),
            plan.splits,
            np.array(rivals),
            _weigh,
            np.log(_ODDS_RATIOS),
            rng,
        )
        return ConfirmationBar(make_find_level(evidence, float(plan.q)))


def _weigh(p: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(p <= _PROMISING, np.maximum(p, 1e-300) ** -0.5, 0.0)


def _weigh_all(discovery: Units, hypotheses: NDArray[np.intp]) -> NDArray[np.float64]:
    """The weight of each hypothesis, from discovery alone."""
    tables = discovery.tables[hypotheses]
    distributions, which, _ = discovery.null_distributions(hypotheses, pooled=False)
    p = distributions.two_sided(which, np.asarray(tables.on_sum, dtype=np.float64))
    return np.asarray(_weigh(p) * ((tables.on > 0) & (tables.off > 0)))


def _compute_split_e_values(
    discovery: Units, holdout: Units, hypotheses: NDArray[np.intp]
) -> NDArray[np.float64]:
    tables = discovery.tables[hypotheses]
    # weights depend on discovery alone, so that a weight times a holdout e-value is an e-value
    weight = _weigh_all(discovery, hypotheses)
    if weight.sum() == 0:
        return weight
    positions = np.flatnonzero(weight)
    on_sum = np.asarray(holdout.tables[hypotheses[positions]].on_sum, dtype=np.float64)
    distributions, which, _ = holdout.null_distributions(hypotheses[positions], pooled=False)
    e = np.zeros(len(hypotheses))
    e[positions] = distributions.likelihood_ratio(
        which, on_sum, tables.sign[positions], np.log(_ODDS_RATIOS)
    )
    # scaled to sum to L: compound e-values, as e-BH allows (Wang and Ramdas 2022)
    return np.asarray(e * weight * (len(weight) / weight.sum()))
