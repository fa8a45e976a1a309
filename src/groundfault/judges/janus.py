"""Janus and its ablations: a floor of decoys, then the holdout (arXiv:2606.09046)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from groundfault.base.arrays import Floats, Places
from groundfault.core.judge import Confirmation, ConfirmationBar, ErrorRate, Screening
from groundfault.core.plan import Plan, to_fraction
from groundfault.core.units import Units
from groundfault.judges.rule import compute_p_values, draw_null_worlds
from groundfault.stats import decoys
from groundfault.stats.contingency import ContingencyTables
from groundfault.stats.decoys import Floor, count_levels
from groundfault.stats.power import lone_floor

_LITE_LEVEL = 0.95  # of the paper's ablation, section 3.4


@dataclass(frozen=True)
class JanusA:
    """The paper's rule: Procedure A with the exact decoy floor, then the holdout gate.

    The procedure counts every eligible candidate, including duplicates and complements. With
    ``plan.decoys`` it draws the decoys, as in the paper. Without, it computes their expected number
    exactly, which is the limit of infinitely many.

    There is no guarantee in finite samples. With the exact floor P(any survivor | global null) was
    0.06-0.12 at q = 0.10; with K drawn decoys and K < L/q it is far above (see the theory page).
    """

    name: str = "janus-a"
    confirmation: Confirmation = "gate"
    lift_ranked: bool = True
    distinct: bool = False
    bounds: ErrorRate = "none"

    def screen(self, units: Units, hypotheses: Places, plan: Plan, rng: Generator) -> Screening:
        """Keep hypotheses at or above the floor of Procedure A."""
        tables = units.tables[hypotheses]
        scores = tables.score(plan.effect)
        # the floor is one of the scores: between them the counts of real candidates do not change
        levels = np.unique(scores)
        decoy_counts = count_expected_decoys(units, hypotheses, levels, plan, rng)
        floor = decoys.procedure_a(scores, decoy_counts, float(to_fraction(plan.q)))
        p = compute_p_values(units, hypotheses, plan, rng)
        above = decoy_counts[np.searchsorted(levels, scores)]
        return Screening(floor.survives(scores), p=p, floor=floor, decoys=above)

    def find_bar(
        self, units: Units, hypotheses: Places, plan: Plan, rng: Generator
    ) -> ConfirmationBar:
        """Return the floor for one true hypothesis among null ones, and the null ones above it."""
        distributions, _, counts = units.null_distributions(hypotheses, pooled=True)
        q = float(to_fraction(plan.q))
        scores = [
            np.sort(world.tables[hypotheses].score(plan.effect))[::-1]
            for world in draw_null_worlds(units, hypotheses, rng)
        ]
        floors = np.full(len(scores), lone_floor(distributions, counts, q, plan.effect))
        # with k null hypotheses at or above it, q (k + 1) decoys are few enough for a floor; each
        # step is rarer than the one before
        for k in range(1, len(hypotheses) + 1):
            step = lone_floor(distributions, counts, q * (k + 1), plan.effect)
            reached = np.array([each[k - 1] >= step for each in scores])
            if not reached.any():
                break
            floors[reached] = np.minimum(floors[reached], step)
        pairs = zip(scores, floors, strict=True)
        rivals = np.array([int((each >= floor).sum()) for each, floor in pairs])
        return ConfirmationBar(floors=floors, rivals=rivals)


@dataclass(frozen=True)
class Janus(JanusA):
    """Procedure A and the gate of the paper, then exact holdout p-values under Holm.

    Duplicates and complements count once. Guarantee: P(any false confirmation) <= alpha when units
    are independent and held-out outcomes are exchangeable given the candidates. The screen on
    discovery may do anything."""

    name: str = "janus"
    confirmation: Confirmation = "exact"
    distinct: bool = True
    bounds: ErrorRate = "family-wise"


def count_expected_decoys(
    units: Units, hypotheses: Places, levels: Floats, plan: Plan, rng: Generator
) -> Floats:
    """Return expected decoys at or above each ascending level, exact or from a sample."""
    if plan.decoys is not None:
        scores = draw_scores(units, hypotheses, plan.decoys, plan.effect, rng)
        return decoys.scale_counts(scores, levels, len(hypotheses), plan.correction)
    # units of different size classes are not exchangeable, and the exact distribution has no strata
    if units.strata is not None:
        scores = redraw_scores(units, hypotheses, plan, rng)
        # "inside" is valid for any number of draws, the paper's plain ratio only for many
        return decoys.scale_counts(scores, levels, len(hypotheses), "inside")
    distributions, _, counts = units.null_distributions(hypotheses, pooled=True)
    return distributions.pool_tail(counts, levels, plan.effect)


def redraw_scores(units: Units, hypotheses: Places, plan: Plan, rng: Generator) -> Floats:
    """Return sizes of effect of decoys permuted among groups of one size, equally many for each
    hypothesis."""
    # at least ten expected decoys at a floor of q, or the estimated proportion would be mostly
    # noise
    wanted = max(plan.permutations, 10 * len(hypotheses) / float(to_fraction(plan.q)))
    draws = int(np.ceil(wanted / len(hypotheses)))
    tables = units.tables[hypotheses]
    scores = [
        replace(tables[np.tile(at, len(sums))], on_sum=sums.reshape(-1)).score(plan.effect)
        for at, _, sums in units.redraw(hypotheses, draws, rng)
    ]
    return np.concatenate(scores)


def draw_scores(
    units: Units, hypotheses: Places, count: int, effect: str, rng: Generator
) -> Floats:
    """Return sizes of effect of ``count`` decoys, drawn from each hypothesis in turn."""
    # every descriptor is a source equally often, as far as the count allows
    sources = hypotheses[rng.permutation(len(hypotheses))[np.arange(count) % len(hypotheses)]]
    tables = units.tables[sources]
    sums: Any = np.empty(count, dtype=units.losses.dtype)
    for i, hypothesis in enumerate(sources):
        # hypothesis (j, o) is number j * M + o
        losses = units.losses[hypothesis % len(units.losses)][units.population(int(hypothesis))]
        # permuting a descriptor is choosing as many random units
        sums[i] = losses[rng.permutation(len(losses))[: tables.on[i]]].sum()
    return ContingencyTables(tables.n, tables.on, tables.total, sums, tables.denominator).score(
        effect
    )


@dataclass(frozen=True)
class JanusLite(JanusA):
    """The paper's ablation: lifts above the 95th percentile of decoys, then the holdout gate.

    The percentile is the smallest value that at least 95 % of decoys do not exceed, in the exact
    pooled mixture or, with ``plan.decoys``, among the drawn decoys. There is no guarantee: of L
    null candidates about L/20 pass."""

    name: str = "janus-lite"

    def screen(self, units: Units, hypotheses: Places, plan: Plan, rng: Generator) -> Screening:
        """Keep hypotheses above the percentile."""
        tables = units.tables[hypotheses]
        scores = tables.score(plan.effect)
        distinct, real = count_levels(scores)
        # the floor's curve for the report only; the threshold below does not use it
        decoy_counts = count_expected_decoys(units, hypotheses, distinct[::-1].copy(), plan, rng)
        if plan.decoys is None and units.strata is None:
            distributions, _, counts = units.null_distributions(hypotheses, pooled=True)
            threshold = distributions.pool_quantile(counts, _LITE_LEVEL, plan.effect)
        else:
            decoy_scores = np.sort(
                redraw_scores(units, hypotheses, plan, rng)
                if plan.decoys is None
                else draw_scores(units, hypotheses, plan.decoys, plan.effect, rng)
            )
            # the smallest decoy score that 95 % of them do not exceed, as `pool_quantile` defines
            # it
            threshold = float(decoy_scores[int(np.ceil(_LITE_LEVEL * len(decoy_scores))) - 1])
        floor = Floor(threshold, None, False, distinct, real, decoy_counts[::-1].copy())
        p = compute_p_values(units, hypotheses, plan, rng)
        above = decoy_counts[np.searchsorted(distinct[::-1], scores)]
        return Screening(floor.survives(scores), p=p, floor=floor, decoys=above)

    def find_bar(
        self,
        units: Units,
        hypotheses: Places,
        plan: Plan,
        rng: Generator,  # noqa: ARG002
    ) -> ConfirmationBar:
        """Return the percentile, which an effect has to exceed."""
        distributions, _, counts = units.null_distributions(hypotheses, pooled=True)
        floor = distributions.pool_quantile(counts, _LITE_LEVEL, plan.effect)
        return ConfirmationBar(floors=np.array([np.nextafter(floor, np.inf)]))
