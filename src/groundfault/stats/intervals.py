"""Intervals of proportions, their differences and ratios, and means; McNemar's exact test."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def newcombe(
    on_sum: Floats, on: Floats, off_sum: Floats, off: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return intervals for differences of two proportions, from Wilson score intervals of each.

    Newcombe 1998, method 10, doi:10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I.
    Assumes independent 0/1 units.

    Parameters
    ----------
    on_sum, on, off_sum, off : arrays, shape (H,)
        Errors and units on and off the slice; every side has a unit.
    level : float
        Coverage, such as 0.9.

    Returns
    -------
    low, high : float64 arrays, shape (H,)
    """
    # each end joins the Wilson ends that are farthest apart in its direction
    p, q = on_sum / on, off_sum / off
    p_low, p_high = _score_interval(p, on, level)
    q_low, q_high = _score_interval(q, off, level)
    low = p - q - np.sqrt((p - p_low) ** 2 + (q_high - q) ** 2)
    high = p - q + np.sqrt((p_high - p) ** 2 + (q - q_low) ** 2)
    return low, high


def _score_interval(p: Floats, n: Floats, level: float) -> tuple[Floats, Floats]:
    """Return Wilson's interval of a proportion ``p`` of ``n``: its ends."""
    z = _normal(level)
    # the ends solve (p - x)^2 = z^2 x (1 - x) / n for x (Wilson 1927,
    # doi:10.1080/01621459.1927.10502953)
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return centre - half, centre + half


def welch(
    on: tuple[Floats, Floats, Floats], off: tuple[Floats, Floats, Floats], level: float
) -> tuple[Floats, Floats]:
    """Return intervals for differences of two mean losses, unequal variances; clipped to [-1, 1].

    Parameters
    ----------
    on, off : tuples of arrays, each shape (H,)
        Units, sum of losses and sum of squared losses on and off the slice.
    level : float
        Coverage. Approximate for losses far from normal on few units.
    """
    from scipy.special import stdtrit

    means, errors, spare = [], [], []
    for n, total, squares in (on, off):
        mean = total / n
        variance = np.maximum(squares - n * mean**2, 0) / np.maximum(n - 1, 1)
        means.append(mean)
        errors.append(variance / n)
        spare.append(np.maximum(n - 1, 1))
    error = errors[0] + errors[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        # Welch and Satterthwaite's degrees of freedom, doi:10.1093/biomet/34.1-2.28
        freedom = error**2 / (errors[0] ** 2 / spare[0] + errors[1] ** 2 / spare[1])
    # stdtrit has no answer for NaN: without variance on both sides the width is 0 anyway
    half = np.where(
        error > 0, stdtrit(np.nan_to_num(freedom, nan=1.0, posinf=1e9), (1 + level) / 2), 0
    ) * np.sqrt(error)
    gap = means[0] - means[1]
    return np.maximum(gap - half, -1.0), np.minimum(gap + half, 1.0)


def log_ratio(
    effect: str, on_sum: Floats, on: Floats, off_sum: Floats, off: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return intervals for risk or odds ratios on the log scale, with one half added to each cell.

    Parameters
    ----------
    effect : {"risk_ratio", "odds_ratio"}
    """
    # one half in each cell keeps the logarithm finite (Haldane 1956, Anscombe 1956)
    a, b = on_sum + 0.5, off_sum + 0.5
    c, d = on - on_sum + 0.5, off - off_sum + 0.5
    if effect == "odds_ratio":
        log = np.log(a * d / (b * c))
        error = np.sqrt(1 / a + 1 / b + 1 / c + 1 / d)
    else:
        log = np.log(a / (on + 1) / (b / (off + 1)))
        error = np.sqrt(np.maximum(1 / a - 1 / (on + 1) + 1 / b - 1 / (off + 1), 0))
    z = _normal(level)
    return np.exp(log - z * error), np.exp(log + z * error)


def _normal(level: float) -> float:
    from scipy.special import ndtri

    return float(ndtri((1 + level) / 2))


def wilson(successes: ArrayLike, trials: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
    """Return Wilson's score intervals of proportions: two arrays; NaN where nothing was tried.

    Assumes independent tries of one chance. Wilson 1927, doi:10.1080/01621459.1927.10502953.
    """
    x, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    # NaN trials carry NaN through both ends, without a warning of a division by 0
    safe = np.where(n > 0, n, np.nan)
    low, high = _score_interval(x / safe, safe, level)
    return np.maximum(low, 0.0), np.where(x == safe, 1.0, high)  # which rounding may miss


def mcnemar(first_only: int, second_only: int) -> float:
    """Return exact two-sided p-value that neither of two ways succeeds more often on the same
    cases.

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
    """Return interval of the difference of two proportions of the same cases.

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
