"""Janus-lite: a fixed decoy floor, then the holdout gate (arXiv:2606.09046, section 3.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groundfault.core.judge import Confirmation, ConfirmationBar, ErrorRate, Screening
from groundfault.core.plan import Plan
from groundfault.core.units import Units
from groundfault.judges.confirm import compute_p_values
from groundfault.judges.janus import count_expected_decoys, draw_scores, redraw_scores
from groundfault.stats.decoys import Floor, count_levels

LEVEL = 0.95  # of the paper's ablation, section 3.4


@dataclass(frozen=True)
class JanusLite:
    """The paper's ablation: lifts above the 95th percentile of decoys, then the holdout gate.

    The percentile is the smallest value that at least 95 % of decoys do not exceed, of the exact
    pooled mixture or, with ``plan.decoys``, of those drawn. Guarantee: none; a library of L null
    candidates passes about L/20 of them."""

    name: str = "janus-lite"
    confirmation: Confirmation = "gate"
    lift_ranked: bool = True
    distinct: bool = False
    bounds: ErrorRate = "none"

    def screen(
        self, units: Units, hypotheses: NDArray[np.intp], plan: Plan, rng: np.random.Generator
    ) -> Screening:
        """Keep what lies above the percentile."""
        tables = units.tables[hypotheses]
        scores = tables.score(plan.effect)
        distinct, real = count_levels(scores)
        # the floor's curve for the report only; the threshold below does not use it
        decoy_counts = count_expected_decoys(units, hypotheses, distinct[::-1].copy(), plan, rng)
        if plan.decoys is None and units.strata is None:
            distributions, _, counts = units.null_distributions(hypotheses, pooled=True)
            threshold = distributions.pool_quantile(counts, LEVEL, plan.effect)
        else:
            decoy_scores = np.sort(
                redraw_scores(units, hypotheses, plan, rng)
                if plan.decoys is None
                else draw_scores(units, hypotheses, plan.decoys, plan.effect, rng)
            )
            # the smallest decoy score that 95 % of them do not exceed, as `pool_quantile` defines
            # it
            threshold = float(decoy_scores[int(np.ceil(LEVEL * len(decoy_scores))) - 1])
        floor = Floor(threshold, None, False, distinct, real, decoy_counts[::-1].copy())
        return Screening(
            floor.survives(scores),
            p=compute_p_values(units, hypotheses, plan, rng),
            floor=floor,
            decoys=decoy_counts[np.searchsorted(distinct[::-1], scores)],
        )

    def find_bar(
        self,
        units: Units,
        hypotheses: NDArray[np.intp],
        plan: Plan,
        rng: np.random.Generator,  # noqa: ARG002
    ) -> ConfirmationBar:
        """The percentile, which an effect has to exceed."""
        distributions, _, counts = units.null_distributions(hypotheses, pooled=True)
        floor = distributions.pool_quantile(counts, LEVEL, plan.effect)
        return ConfirmationBar(floors=np.array([np.nextafter(floor, np.inf)]))
