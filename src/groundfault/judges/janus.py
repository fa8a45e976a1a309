"""Janus: the decoy floor of Procedure A on discovery, then the holdout (arXiv:2606.09046, sections 2.1-2.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundfault.judge import Confirmation, Screening
from groundfault.plan import Plan
from groundfault.stats import decoys
from groundfault.stats.margins import Margins
from groundfault.units import Units


@dataclass(frozen=True)
class JanusA:
    """The paper's rule: Procedure A with the exact decoy floor, then the holdout gate.

    Every eligible candidate named is counted, duplicates and complements too. With ``plan.decoys`` the decoys are
    drawn, as in the paper; without, their expected number is computed exactly, which is the limit of infinitely many.

    Guarantee: none in finite samples. With the exact floor P(any survivor | global null) was 0.06-0.12 at q = 0.10;
    with K drawn decoys and K < L/q it is far above (see the theory page).
    """

    name: str = "janus-a"
    confirmation: Confirmation = "gate"
    lift_ranked: bool = True
    distinct: bool = False

    def screen(self, units: Units, hypotheses: NDArray[np.intp], plan: Plan, rng: np.random.Generator) -> Screening:
        """Keep what clears the floor of Procedure A."""
        margins = units.margins[hypotheses]
        scores = margins.score(plan.effect)
        levels = np.unique(scores)
        laws, which, counts = units.laws(hypotheses, pooled=True)
        if plan.decoys is None:
            expected = laws.pooled_tail(counts, levels, plan.effect)
        else:
            drawn = draw(units, hypotheses, plan.decoys, plan.effect, rng)
            expected = decoys.scaled_counts(drawn, levels, len(scores), plan.correction)
        floor = decoys.procedure_a(scores, expected, float(plan.q))
        own, which, _ = units.laws(hypotheses, pooled=False)
        return Screening(
            floor.survives(scores),
            p=own.two_sided(which, np.asarray(margins.on_sum, dtype=np.float64)),
            floor=floor,
            decoys=expected[np.searchsorted(levels, scores)],
        )


@dataclass(frozen=True)
class Janus(JanusA):
    """The default: the exact Procedure A and the paper's gate, and an exact one-sided holdout p-value under Holm.

    Duplicates and complements count once. Guarantee: P(any false confirmation) <= alpha when units are independent
    and held-out outcomes are exchangeable given the candidates, whatever the screen did on discovery.
    """

    name: str = "janus"
    confirmation: Confirmation = "exact"
    distinct: bool = True


def draw(
    units: Units, hypotheses: NDArray[np.intp], count: int, effect: str, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Sizes of effect of ``count`` drawn decoys, each hypothesis the source in turn."""
    sources = hypotheses[rng.permutation(len(hypotheses))[np.arange(count) % len(hypotheses)]]
    margins = units.margins[sources]
    sums: Any = np.empty(count, dtype=units.losses.dtype)
    for i, hypothesis in enumerate(sources):
        losses = units.losses[hypothesis % len(units.losses)][units.population(int(hypothesis))]
        sums[i] = losses[rng.permutation(len(losses))[: margins.on[i]]].sum()
    return Margins(margins.n, margins.on, margins.total, sums, margins.denominator).score(effect)
