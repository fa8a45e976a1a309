"""Intervals for effects: what the holdout says a lift may be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def newcombe(
    on_sum: Floats, on: Floats, off_sum: Floats, off: Floats, level: float
) -> tuple[Floats, Floats]:
    """Intervals for differences of two proportions, from Wilson score intervals of each.

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
    p_low, p_high = wilson(p, on, level)
    q_low, q_high = wilson(q, off, level)
    low = p - q - np.sqrt((p - p_low) ** 2 + (q_high - q) ** 2)
    high = p - q + np.sqrt((p_high - p) ** 2 + (q - q_low) ** 2)
    return low, high


def wilson(p: Floats, n: Floats, level: float) -> tuple[Floats, Floats]:
    """Wilson's interval of a proportion ``p`` of ``n``: its ends."""
    z = _normal(level)
    # the ends solve (p - x)^2 = z^2 x (1 - x) / n for x (Wilson 1927,
    # doi:10.1080/01621459.1927.10502953)
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return centre - half, centre + half


def welch(
    on: tuple[Floats, Floats, Floats], off: tuple[Floats, Floats, Floats], level: float
) -> tuple[Floats, Floats]:
    """Intervals for differences of two mean losses, unequal variances; clipped to [-1, 1].

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
    """Intervals for risk or odds ratios on the log scale, with one half added to each cell.

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
