"""Proportions and pairs of them: Wilson's and Newcombe's intervals, McNemar's exact test."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from groundfault.stats.intervals import wilson as score_interval

Floats = NDArray[np.float64]


def wilson(successes: ArrayLike, trials: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
    """Wilson's score intervals of proportions: two arrays; NaN where nothing was tried.

    Assumes independent tries of one chance. Wilson 1927, doi:10.1080/01621459.1927.10502953.
    """
    x, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    # NaN trials carry NaN through both ends, without a warning of a division by 0
    safe = np.where(n > 0, n, np.nan)
    low, high = score_interval(x / safe, safe, level)
    return np.maximum(low, 0.0), np.where(x == safe, 1.0, high)  # which rounding may miss


def mcnemar(first_only: int, second_only: int) -> float:
    """Exact two-sided p-value that neither of two ways succeeds more often on the same cases.

    Parameters
    ----------
    first_only, second_only : int
        Cases on which one way alone succeeds.

    Notes
    -----
    Twice the smaller binomial tail, at most 1. Assumes independent cases. McNemar 1947,
    doi:10.1007/BF02295996.

    Examples
    --------
    >>> mcnemar(0, 9)
    0.00390625
    """
    from scipy.special import bdtr

    total = first_only + second_only
    # bdtr sums the binomial tail exactly; a normal tail is too small for the few pairs there are
    return min(1.0, 2 * float(bdtr(min(first_only, second_only), total, 0.5))) if total else 1.0


def newcombe_pairs(
    both: int, first_only: int, second_only: int, neither: int, level: float = 0.95
) -> tuple[float, float]:
    """Interval of the difference of two proportions of the same cases.

    Newcombe's method 10 for pairs: Wilson's intervals of both, put together with their correlation,
    which is corrected for continuity where positive. Assumes independent cases. Newcombe 1998,
    doi:10.1002/(SICI)1097-0258(19981130)17:22<2635::AID-SIM954>3.0.CO;2-C.

    Parameters
    ----------
    both, first_only, second_only, neither : int
        Cases on which both ways succeed, one alone, and none; one case at least.
    level : float
        Coverage, in (0, 1).
    """
    a, b, c, d = both, first_only, second_only, neither
    n = a + b + c + d
    p, q = (a + b) / n, (a + c) / n
    (p_low, q_low), (p_high, q_high) = wilson([a + b, a + c], [n, n], level)
    product = (a + b) * (c + d) * (a + c) * (b + d)
    # a positive correlation is lowered by n/2 for continuity, a negative one is not (Newcombe 1998)
    cross = a * d - b * c
    phi = (max(cross - n / 2, 0.0) if cross > 0 else cross) / math.sqrt(product) if product else 0.0
    down, up = p - p_low, q_high - q
    # rounding alone can make the sum of squares negative
    below = math.sqrt(max(down**2 - 2 * phi * down * up + up**2, 0.0))
    down, up = p_high - p, q - q_low
    above = math.sqrt(max(down**2 - 2 * phi * down * up + up**2, 0.0))
    return float(max(p - q - below, -1.0)), float(min(p - q + above, 1.0))
