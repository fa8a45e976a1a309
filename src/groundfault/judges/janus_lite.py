"""Janus-lite: a fixed decoy floor, then the holdout gate (arXiv:2606.09046, section 3.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groundfault.judge import Confirmation, Screening
from groundfault.judges.janus import draw
from groundfault.plan import Plan
from groundfault.stats.decoys import Floor, levels
from groundfault.units import Units

LEVEL = 0.95


@dataclass(frozen=True)
class JanusLite:
    """The paper's ablation: lifts strictly above the 95th percentile of decoy lifts, then the holdout gate.

    The percentile is the smallest value that at least 95 % of decoys do not exceed, of the exact pooled mixture or,
    with ``plan.decoys``, of those drawn. Guarantee: none; a library of L null candidates passes about L/20 of them.
    """

    name: str = "janus-lite"
    confirmation: Confirmation = "gate"
    lift_ranked: bool = True
    distinct: bool = False

    def screen(self, units: Units, hypotheses: NDArray[np.intp], plan: Plan, rng: np.random.Generator) -> Screening:
        """Keep what lies above the percentile."""
        margins = units.margins[hypotheses]
        scores = margins.score(plan.effect)
        laws, which, counts = units.laws(hypotheses, pooled=True)
        if plan.decoys is None:
            threshold = laws.pooled_quantile(counts, LEVEL, plan.effect)
        else:
            drawn = np.sort(draw(units, hypotheses, plan.decoys, plan.effect, rng))
            threshold = float(drawn[int(np.ceil(LEVEL * len(drawn))) - 1])
        distinct, real = levels(scores)
        expected = laws.pooled_tail(counts, distinct[::-1].copy(), plan.effect)
        floor = Floor(threshold, None, False, distinct, real, expected[::-1].copy())
        own, which, _ = units.laws(hypotheses, pooled=False)
        return Screening(
            floor.survives(scores),
            p=own.two_sided(which, np.asarray(margins.on_sum, dtype=np.float64)),
            floor=floor,
            decoys=expected[np.searchsorted(distinct[::-1], scores)],
        )
