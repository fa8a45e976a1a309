"""Designs of one candidate that is judged on all units at once, or on two parts of them."""

from __future__ import annotations

from typing import Any

from groundfault.stats.power import Design, Stage


def full_sample(
    *, n: int, on: int, error_rate: float, variance: float | None = None, **rule: Any
) -> Design:
    """Return all units at once: a two-sided exact p-value, and an effect of at least some size.

    With ``level`` = alpha/L this is Holm's first step over L candidates, or max-T on the safe side.
    """
    return Design((Stage(n=n, on=on, **rule),), error_rate, variance)


def split_sample(
    *,
    n: int,
    on: int,
    error_rate: float,
    floor: float,
    holdout: float = 0.5,
    effect: str = "risk_difference",
    variance: float | None = None,
    **rule: Any,
) -> Design:
    """Clear a floor on discovery, then the rule on the holdout, of the same sign and one-sided."""
    # as a plan splits; a share worked out as held / n gives held again
    holdout_n = int(n * holdout + 1e-9)
    holdout_on = round(on * holdout_n / n) if n else 0
    screen = Stage(n=n - holdout_n, on=on - holdout_on, min_effect=floor, effect=effect)
    confirm = Stage(n=holdout_n, on=holdout_on, sides=1, effect=effect, **rule)
    return Design((screen, confirm), error_rate, variance)
