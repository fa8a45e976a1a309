"""Janus: the decoy floor of Procedure A on discovery, then the holdout (arXiv:2606.09046, sections
2.1-2.3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundfault.core.judge import Confirmation, Screening
from groundfault.core.plan import Plan, exact
from groundfault.core.units import Units
from groundfault.judges.confirm import p_values
from groundfault.stats import decoys
from groundfault.stats.contingency import Margins


@dataclass(frozen=True)
class JanusA:
    """The paper's rule: Procedure A with the exact decoy floor, then the holdout gate.

    Every eligible candidate named is counted, duplicates and complements too. With ``plan.decoys``
    the decoys are drawn, as in the paper; without, their expected number is computed exactly, which
    is the limit of infinitely many.

    Guarantee: none in finite samples. With the exact floor P(any survivor | global null) was
    0.06-0.12 at q = 0.10; with K drawn decoys and K < L/q it is far above (see the theory page).
    """

    name: str = "janus-a"
    confirmation: Confirmation = "gate"
    lift_ranked: bool = True
    distinct: bool = False

    def screen(
        self, units: Units, hypotheses: NDArray[np.intp], plan: Plan, rng: np.random.Generator
    ) -> Screening:
        """Keep what clears the floor of Procedure A."""
        margins = units.margins[hypotheses]
        scores = margins.score(plan.effect)
        levels = np.unique(scores)
        expected = expected_decoys(units, hypotheses, levels, plan, rng)
        floor = decoys.procedure_a(scores, expected, float(exact(plan.q)))
        return Screening(
            floor.survives(scores),
            p=p_values(units, hypotheses, plan, rng),
            floor=floor,
            decoys=expected[np.searchsorted(levels, scores)],
        )


@dataclass(frozen=True)
class Janus(JanusA):
    """The default: the exact Procedure A and the paper's gate, and an exact one-sided holdout
    p-value under Holm.

    Duplicates and complements count once. Guarantee: P(any false confirmation) <= alpha when units
    are independent and held-out outcomes are exchangeable given the candidates, whatever the screen
    did on discovery."""

    name: str = "janus"
    confirmation: Confirmation = "exact"
    distinct: bool = True


def expected_decoys(
    units: Units,
    hypotheses: NDArray[np.intp],
    levels: NDArray[np.float64],
    plan: Plan,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Decoys expected at or above each ascending level: exactly, or as drawn where the plan or the
    units ask for it.
    """
    if plan.decoys is not None:
        drawn = draw(units, hypotheses, plan.decoys, plan.effect, rng)
        return decoys.scaled_counts(drawn, levels, len(hypotheses), plan.correction)
    if units.strata is not None:
        return decoys.scaled_counts(
            redraw(units, hypotheses, plan, rng), levels, len(hypotheses), "inside"
        )
    laws, _, counts = units.laws(hypotheses, pooled=True)
    return laws.pooled_tail(counts, levels, plan.effect)


def redraw(
    units: Units, hypotheses: NDArray[np.intp], plan: Plan, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Sizes of effect of decoys permuted among groups of like size; every hypothesis the source of
    as many.
    """
    draws = int(
        np.ceil(
            max(plan.permutations, 10 * len(hypotheses) / float(exact(plan.q))) / len(hypotheses)
        )
    )
    margins = units.margins[hypotheses]
    return np.concatenate(
        [
            replace(margins[np.tile(at, len(sums))], on_sum=sums.reshape(-1)).score(plan.effect)
            for at, _, sums in units.redraw(hypotheses, draws, rng)
        ]
    )


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
