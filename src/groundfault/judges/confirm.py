"""Confirmation: the p-values, the gate, and the only place that opens a holdout."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groundfault.core.plan import Number, Plan, exact
from groundfault.core.units import Units
from groundfault.stats import multiple
from groundfault.stats.contingency import Margins


@dataclass(frozen=True)
class Confirmed:
    """What the holdout says; arrays of shape (H,), a hypothesis each.

    Attributes
    ----------
    stands : bool array
        Survivors that are confirmed.
    p : float64 array
        One-sided permutation p-values in the discovery direction.
    p_adjusted : float64 array
        Their Holm adjustment among the survivors; NaN for the others.
    failed : tuple of str
        The first part of the rule that each survivor failed: "sign", "min_effect", "p"; else "".
    """

    stands: NDArray[np.bool_]
    p: NDArray[np.float64]
    p_adjusted: NDArray[np.float64]
    failed: tuple[str, ...]


def confirm(
    holdout: Units,
    hypotheses: NDArray[np.intp],
    survives: NDArray[np.bool_],
    direction: NDArray[np.int64],
    plan: Plan,
    *,
    exact_p: bool,
    rng: np.random.Generator,
) -> Confirmed:
    """Hold survivors against held-out units: the same sign, a big enough effect, and a small p
    where it is asked for.

    Whether there is enough support is each candidate's own question, not that of its duplicates and
    complements: see `supported`.

    Parameters
    ----------
    holdout : Units
    hypotheses : intp array, shape (H,)
    survives : bool array, shape (H,)
    direction : int64 array, shape (H,)
        Sign of each discovery lift.
    plan : Plan
    exact_p : bool
        Whether the exact p-value under Holm is asked for, beside the paper's gate.
    rng : numpy.random.Generator
        Used only where p-values are sampled.
    """
    margins = holdout.margins[hypotheses]
    p = p_values(holdout, hypotheses, plan, rng, direction=direction)
    adjusted = np.full(len(p), np.nan)
    adjusted[survives] = multiple.holm(p[survives])
    checks = [
        ("sign", (margins.sign == direction) & (direction != 0)),
        ("min_effect", big_enough(margins, plan)),
    ]
    if exact_p:
        checks.append(("p", at_most(np.nan_to_num(adjusted, nan=1.0), plan.alpha)))
    failed = tuple(
        next((name for name, passed in checks if not passed[i]), "") if survives[i] else ""
        for i in range(len(p))
    )
    stands = survives & np.array([not f for f in failed], dtype=np.bool_).reshape(len(p))
    return Confirmed(stands, p, adjusted, failed)


def supported(margins: Margins, plan: Plan) -> NDArray[np.bool_]:
    """Which candidates have enough held-out units on both sides."""
    return np.asarray(
        (margins.on >= (plan.hold_min_on or plan.min_on))
        & (margins.off >= (plan.hold_min_off or plan.min_off))
    )


def at_most(p: NDArray[np.float64], level: Number) -> NDArray[np.bool_]:
    """Which p-values are at most a level; one that equals it but for rounding is."""
    return p <= float(exact(level)) * (1 + 1e-12)


def big_enough(margins: Margins, plan: Plan) -> NDArray[np.bool_]:
    """Which effects reach the least one worth confirming."""
    if plan.effect == "risk_difference":
        return margins.reaches(exact(plan.min_lift or 0))
    ratio = margins.ratio(plan.effect)
    least = float(exact(plan.min_ratio))
    return (ratio >= least) | (ratio <= 1 / least)


def p_values(
    units: Units,
    hypotheses: NDArray[np.intp],
    plan: Plan,
    rng: np.random.Generator,
    *,
    direction: NDArray[np.int64] | None = None,
) -> NDArray[np.float64]:
    """Permutation p-values: exact where they can be counted, by random permutations with the +1
    inside where not.

    Groups of unequal size are permuted among those of like size only, at random too.

    Parameters
    ----------
    direction : int64 array, shape (H,), optional
        One-sided where given, in these directions; else two-sided.
    """
    on_sum = np.asarray(units.margins[hypotheses].on_sum, dtype=np.float64)
    if units.strata is None and units.countable(hypotheses):
        laws, which, _ = units.laws(hypotheses, pooled=False)
        return (
            laws.two_sided(which, on_sum)
            if direction is None
            else laws.one_sided(which, on_sum, direction)
        )
    draws = max(plan.permutations, int(10 * len(hypotheses) / float(exact(plan.alpha))))
    exceed = np.zeros(len(hypotheses), dtype=np.int64)
    for at, expected, sums in units.redraw(hypotheses, draws, rng):
        gap, drawn = on_sum[at] - expected, sums - expected
        slack = 1e-9 * np.maximum(
            np.abs(gap), 1e-12
        )  # sums of reals depend on the order of addition
        if direction is None:
            exceed[at] += (np.abs(drawn) >= np.abs(gap) - slack).sum(axis=0)
        else:
            side = np.where(direction[at] > 0, 1, -1)
            exceed[at] += (side * drawn >= side * gap - slack).sum(axis=0)
    return (1 + exceed) / (draws + 1)
