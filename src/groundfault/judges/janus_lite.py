"""Janus-lite: a fixed decoy floor, then the holdout gate (arXiv:2606.09046, section 3.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groundfault.core.judge import Confirmation, Screening
from groundfault.core.plan import Plan
from groundfault.core.units import Units
from groundfault.judges.confirm import p_values
from groundfault.judges.janus import draw, expected_decoys, redraw
from groundfault.stats.decoys import Floor, levels

LEVEL = 0.95


@dataclass(frozen=True)
class JanusLite:
    """The paper's ablation: lifts strictly above the 95th percentile of decoy lifts, then the
    holdout gate.

    The percentile is the smallest value that at least 95 % of decoys do not exceed, of the exact
    pooled mixture or, with ``plan.decoys``, of those drawn. Guarantee: none; a library of L null
    candidates passes about L/20 of them."""

    name: str = "janus-lite"
    confirmation: Confirmation = "gate"
    lift_ranked: bool = True
    distinct: bool = False

    def screen(
        self, units: Units, hypotheses: NDArray[np.intp], plan: Plan, rng: np.random.Generator
    ) -> Screening:
        """Keep what lies above the percentile."""
        margins = units.margins[hypotheses]
        scores = margins.score(plan.effect)
        distinct, real = levels(scores)
        expected = expected_decoys(units, hypotheses, distinct[::-1].copy(), plan, rng)
        if plan.decoys is None and units.strata is None:
            laws, _, counts = units.laws(hypotheses, pooled=True)
            threshold = laws.pooled_quantile(counts, LEVEL, plan.effect)
        else:
            drawn = np.sort(
                redraw(units, hypotheses, plan, rng)
                if plan.decoys is None
                else draw(units, hypotheses, plan.decoys, plan.effect, rng)
            )
            threshold = float(drawn[int(np.ceil(LEVEL * len(drawn))) - 1])
        floor = Floor(threshold, None, False, distinct, real, expected[::-1].copy())
        return Screening(
            floor.survives(scores),
            p=p_values(units, hypotheses, plan, rng),
            floor=floor,
            decoys=expected[np.searchsorted(distinct[::-1], scores)],
        )
