"""What an audit could find: its power, from the plan, the discovery units and the library."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import log

import numpy as np
from numpy.typing import NDArray

from groundfault.core.judge import Judge
from groundfault.core.plan import Plan, exact
from groundfault.core.units import Units
from groundfault.judges.janus_lite import LEVEL as LITE_LEVEL
from groundfault.stats import power
from groundfault.stats.power import Design

POWER = 0.8
PREVALENCES = (0.1, 0.3, 0.5)
USUAL_PREVALENCE = 0.3


def make_designs(
    judge: Judge, plan: Plan, discovery: Units, n_holdout: int, hypotheses: NDArray[np.intp]
) -> Callable[[int], Design]:
    """The test that a single true candidate would have to pass, as a function of its support.

    Parameters
    ----------
    judge : Judge
    plan : Plan
        Resolved.
    discovery : Units
        Discovery units, or all for a judge that holds nothing out; error rate and floor come from
        these alone.
    n_holdout : int
        Units held out.
    hypotheses : intp array
        What competes: the library's eligible hypotheses.
    """
    losses = discovery.losses / (discovery.denominator or 1)
    present = losses if discovery.scored is None else losses[discovery.scored]
    rate = float(present.mean())
    variance = None if discovery.denominator == 1 else float(present.var())
    lifted = plan.effect == "risk_difference"
    min_effect = float(exact(plan.min_lift or 0)) if lifted else log(exact(plan.min_ratio))
    n, size = len(discovery) + n_holdout, max(1, len(hypotheses))
    if n_holdout == 0:
        level = _first_level(judge.name, plan, size)
        return lambda on: Design.full_sample(
            n=n,
            on=on,
            error_rate=rate,
            level=level,
            min_effect=min_effect,
            effect=plan.effect,
            variance=variance,
        )
    floor = min_effect
    if judge.lift_ranked and len(hypotheses):
        floor = _lone_floor(judge, plan, discovery, hypotheses)
    return lambda on: Design.split(
        n=n,
        on=on,
        error_rate=rate,
        floor=floor,
        level=float(exact(plan.alpha)) if judge.confirmation == "exact" else 1.0,
        min_effect=min_effect,
        holdout=n_holdout / n,
        effect=plan.effect,
        variance=variance,
    )


def minimum_detectable_lifts(
    design_at: Callable[[int], Design], units: int, prevalences: Iterable[float] = PREVALENCES
) -> dict[float, float | None]:
    """The least lift found with 80 % power at each prevalence; None where no possible lift is."""
    return {
        v: power.minimum_detectable_lift(design_at(round(v * units)), POWER) for v in prevalences
    }


def _lone_floor(judge: Judge, plan: Plan, discovery: Units, hypotheses: NDArray[np.intp]) -> float:
    """The floor that a single survivor has to exceed: the most that power has to overcome."""
    laws, _, counts = discovery.null_distributions(hypotheses, pooled=True)
    if judge.name == "janus-lite":
        return float(np.nextafter(laws.pool_quantile(counts, LITE_LEVEL, plan.effect), np.inf))
    return power.lone_floor(laws, counts, float(exact(plan.q)), plan.effect)


def _first_level(name: str, plan: Plan, size: int) -> float:
    """The p-value at which a single true candidate is confirmed among null ones."""
    if name == "by":
        return float(exact(plan.q)) / size / float(np.sum(1 / np.arange(1, size + 1)))
    # multi-split e-values have no p-value threshold; that of bh is what they are measured against
    return float(exact(plan.q if name in ("bh", "multisplit-e") else plan.alpha)) / size
