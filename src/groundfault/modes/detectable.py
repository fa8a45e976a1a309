"""Power of a search for modes: which failure rate a single condition needs to be named."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from groundfault.modes.language import RuleLanguage
from groundfault.modes.literal import MIN_SUPPORT
from groundfault.modes.single_conditions import JointTest
from groundfault.stats.stratified_tail import log_tail

Floats = NDArray[np.float64]

POWER = 0.8
_SHARES = (0.02, 0.05, 0.10, 0.30)


def compute_detectable(
    language: RuleLanguage, losses: Floats, level: float, together: JointTest | None
) -> dict[str, float | None]:
    """The failure rate inside that a single condition needs to be named, by its share of units.

    ``together`` is the joint test of single conditions, where they were searched for.
    """
    y = losses[~np.isnan(losses)]
    if not language.literals or len(y) == 0:
        return {}
    kind = next(kind for kind in ("single", "word", "partial", "own") if language.counts[kind])
    bar = math.log(level) - language.log_cost(kind)
    rate, n = float(y.mean()), len(y)

    def stands(inside: int, errors: int, total: int) -> bool:
        one = np.array([[inside], [total], [n]], dtype=np.int64)
        if log_tail(errors, *one) <= bar:
            return True
        if together is None or kind != "single":
            return False
        return together.log_p_of(inside, errors, total) <= math.log(level)

    return {f"{share:g}": _find_rate(round(share * n), n, rate, stands) for share in _SHARES}


def _find_rate(
    inside: int, n: int, rate: float, stands: Callable[[int, int, int], bool]
) -> float | None:
    """The least rate at which errors inside are named with `POWER`, by bisection."""

    def is_named(p: float) -> bool:
        errors = _find_quantile(1 - POWER, inside, p)
        total = min(n, errors + round(rate * (n - inside)))
        return stands(inside, errors, total)

    if inside < MIN_SUPPORT or not is_named(1.0):
        return None
    low, high = rate, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if is_named(middle) else (middle, high)
    return high


def _find_quantile(share: float, n: int, p: float) -> int:
    """The least count whose binomial distribution function reaches a share in (0, 1)."""
    # scipy.stats has it, and takes half a second to import
    from scipy.special import bdtr, bdtrik

    if p >= 1:
        return n
    count = math.ceil(float(bdtrik(share, n, p)))
    # the inverse of a step function may end just above the step
    reaches_below = count > 0 and float(bdtr(count - 1, n, p)) >= share
    return count - 1 if reaches_below else count
