"""Estimates of confirmed effects: what they had to pass to be confirmed is accounted for.

The lift of a confirmed finding is one that passed a bar, on a holdout as on all units: of slices
whose true lift is .05, those are confirmed that looked like .12. An estimate that is honest asks
how likely such a lift is among those that pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from groundfault.auditing.results import AuditResults
from groundfault.core.finding import Cell, Estimate, Verdict
from groundfault.core.plan import Plan, to_fraction
from groundfault.judges.confirm import is_at_most, least_score
from groundfault.judges.null_worlds import standardise
from groundfault.stats.lifts import condition_on_passing


def make_estimates(results: AuditResults, cells: Sequence[Cell]) -> dict[int, Estimate]:
    """The effect of each confirmed hypothesis, given that it passed; by its number.

    Parameters
    ----------
    results : AuditResults
    cells : sequence of Cell
        Of every hypothesis, on the units that decide.

    Returns
    -------
    dict of int to Estimate
        Empty where the judge does not say what it asks for.

    Notes
    -----
    The interval covers the true effect with at least 1 - alpha, given that the finding is confirmed
    and that its direction is right, which is what was confirmed; so it does not cross zero, or 1
    for ratios, where a p-value was asked for. The bar is that of the last step of the correction,
    with what else was confirmed taken as given. Of losses that are not 0/1, and of units within
    strata, it is a normal approximation. See `groundfault.stats.lifts`.
    """
    plan, units = results.audit.plan, results.holdout or results.discovery
    confirmed = [
        h
        for h, verdict in enumerate(results.ruling.verdicts)
        if verdict is Verdict.CONFIRMED and cells[h].lift and cells[h].interval is not None
    ]
    if not confirmed:
        return {}
    levels = [_find_level(results, cells[h]) for h in confirmed]
    numbers = np.array(confirmed, dtype=np.intp)
    scores = standardise(units, numbers)
    if units.denominator == 1 and units.strata is None:
        # exact p-values know how skewed few errors are; sampled ones end at 1 / (1 + draws)
        exact_scores = [_score(_one_sided(cells[h].p, results.holdout is None)) for h in confirmed]
        scores = np.minimum(scores, exact_scores)
    pairs = zip(confirmed, levels, scores, strict=True)
    return {
        h: _estimate(cells[h], plan, _score(level), float(score))
        for h, level, score in pairs
        if level is not None
    }


def _find_level(results: AuditResults, cell: Cell) -> float | None:
    """The largest one-sided p-value that would have been confirmed; 1 where none is asked for."""
    judge, plan = results.audit.judge, results.audit.plan
    if results.holdout is not None and results.ruling.holdout_result is not None:
        if judge.confirmation != "exact":
            return 1.0
        p = results.ruling.holdout_result.p_adjusted
        survivors = int((~np.isnan(p)).sum())
        passed = int(is_at_most(np.nan_to_num(p, nan=1.0), plan.alpha).sum())
        # the step of Holm's procedure at which the last of them passed
        return float(to_fraction(plan.alpha)) / max(1, survivors - passed + 1)
    screening = results.ruling.screening
    if results.bar is None or results.bar.level is None or screening is None:
        return None
    passed = int(screening.survives.sum())
    if screening.too_small is not None:
        passed += int(screening.too_small.sum())
    return results.bar.level(cell.on, max(0, passed - 1)) / 2


def _estimate(cell: Cell, plan: Plan, bar_score: float, score: float) -> Estimate:
    """Of one effect that is ``score`` deviations from none, where ``bar_score`` were asked for."""
    assert cell.interval is not None
    sign = 1 if (cell.lift or 0) > 0 else -1
    ratio = plan.effect != "risk_difference"
    low, high = np.log(np.maximum(cell.interval, 1e-300)) if ratio else np.array(cell.interval)
    # an interval of a ratio is symmetric about it, on the scale of logarithms
    observed = sign * float((low + high) / 2 if ratio else cell.lift or 0.0)
    near, far = (low, high) if sign > 0 else (-high, -low)
    share = max(0.0, bar_score) / score if score > 0 else 1.0
    bar = max(observed * min(share, 1.0), least_score(plan))
    level = 1 - float(to_fraction(plan.alpha))
    centers, lows = condition_on_passing(
        np.array([observed]), np.array([near]), np.array([bar]), level
    )
    center, end = float(centers[0]), float(lows[0])
    # a p-value was asked for, so that the direction is what was confirmed
    end = max(end, 0.0 if np.isfinite(bar_score) else -np.inf if ratio else -1.0)
    center = min(max(center, 0.0), observed)
    ends = (end, max(float(far), center))
    value, ends = (center, ends) if sign > 0 else (-center, (-ends[1], -ends[0]))
    if ratio:
        return Estimate(float(np.exp(value)), (float(np.exp(ends[0])), float(np.exp(ends[1]))))
    return Estimate(value, ends)


def _one_sided(p: float | None, two_sided: bool) -> float:
    # without a p-value what is known is how much the lift varies
    return 0.0 if p is None else p / 2 if two_sided else p


def _score(p: float | None) -> float:
    """How many deviations a one-sided p-value is from none: minus infinity for 1."""
    from scipy.special import ndtri

    return -np.inf if p is None or p >= 1 else -float(ndtri(max(p, 1e-300)))
