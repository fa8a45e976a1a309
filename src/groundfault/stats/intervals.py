"""Intervals of proportions, their differences and ratios, and means; McNemar's exact test; how
often members of a finite population fail, from draws of known chances, adaptive or not; prevalence
by an imperfect grader, and the chance of a kind not seen yet."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

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
    """Return Wilson's score intervals of proportions: two arrays; NaN without trials.

    Assumes independent trials with one chance. Wilson 1927, doi:10.1080/01621459.1927.10502953.
    """
    x, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    # NaN trials carry NaN through both ends, without a warning of a division by 0
    safe = np.where(n > 0, n, np.nan)
    low, high = _score_interval(x / safe, safe, level)
    return np.maximum(low, 0.0), np.where(x == safe, 1.0, high)  # rounding may miss the ends


def clopper_pearson(
    successes: ArrayLike, trials: ArrayLike, level: float = 0.95
) -> tuple[Floats, Floats]:
    """Return exact intervals of proportions: two arrays; 0 to 1 without trials.

    Quantiles of beta distributions, doi:10.1093/biomet/26.4.404.
    """
    from scipy.special import betaincinv

    x, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    tail = (1 - level) / 2
    # at the ends the beta distribution is not defined, and the interval ends there
    low = np.where(x > 0, betaincinv(np.maximum(x, 1e-9), n - x + 1, tail), 0.0)
    high = np.where(x < n, betaincinv(x + 1, np.maximum(n - x, 1e-9), 1 - tail), 1.0)
    return low, high


def rogan_gladen(
    flagged: int,
    graded: int,
    hits: tuple[float, float],
    rejections: tuple[float, float],
    level: float = 0.95,
) -> tuple[float | None, float, float]:
    """Estimate a prevalence from an imperfect grader: the share, and its interval.

    Parameters
    ----------
    flagged, graded : int
        Members that the grader flags, and all graded members.
    hits, rejections : pair of float
        Labelled members with the property: flagged ones, and all. Labelled members without it: ones
        not flagged, and all.
    level : float
        Coverage, in (0, 1); approximate.

    Returns
    -------
    value, low, high : float
        In [0, 1]. None, 0 and 1 if the grader is no better than a coin on the labelled members, or
        these lack one of the two kinds.

    References
    ----------
    Rogan and Gladen 1978, doi:10.1093/oxfordjournals.aje.a112510; Lang and Reiczigel 2014,
    doi:10.1016/j.prevetmed.2013.09.015, for the interval.

    Examples
    --------
    >>> value, low, high = rogan_gladen(40, 100, (18, 20), (24, 30))
    >>> round(value, 3), 0 < low < value < high < 1
    (0.286, True)
    """
    if not (hits[1] and rejections[1] and graded):
        return None, 0.0, 1.0
    youden = hits[0] / hits[1] + rejections[0] / rejections[1] - 1
    if youden <= 0:
        return None, 0.0, 1.0
    share = (flagged / graded + rejections[0] / rejections[1] - 1) / youden
    z = _normal(level)
    # a success and a failure are added to each, as Agresti and Coull add them to a proportion
    n, yes, no = graded + z**2, hits[1] + 2, rejections[1] + 2
    p, tpr, tnr = (flagged + z**2 / 2) / n, (hits[0] + 1) / yes, (rejections[0] + 1) / no
    slope = tpr + tnr - 1
    if slope <= 0:
        return min(max(share, 0.0), 1.0), 0.0, 1.0
    centre = (p + tnr - 1) / slope
    first, second = tpr * (1 - tpr) / yes, tnr * (1 - tnr) / no
    shift = 2 * z**2 * (centre * first - (1 - centre) * second)
    spread = p * (1 - p) / n + centre**2 * first + (1 - centre) ** 2 * second
    half = z * math.sqrt(spread) / slope
    ends = (share, centre + shift - half, centre + shift + half)
    value, low, high = (min(max(end, 0.0), 1.0) for end in ends)
    return value, low, high


class Unseen(NamedTuple):
    """The chance that the next member shows a kind that no earlier member shows.

    Attributes
    ----------
    members, once : int
        Members read, and kinds that exactly one member shows.
    value, high : float
        The estimate, and its upper limit.
    """

    members: int
    once: int
    value: float
    high: float


def estimate_unseen(members: Sequence[Collection[str]], level: float = 0.95) -> Unseen:
    """Estimate the chance that the next member shows a kind that was not seen yet.

    Parameters
    ----------
    members : sequence of collections of str
        The kinds that each member shows, in the order of their draws, which is random.
    level : float
        Coverage of the upper limit, in (0, 1).

    Guarantee
    ---------
    The chance is above ``high`` with probability ``1 - level`` at most, if the order is random and
    the number of members was fixed beforehand. Each member of the second half has the same chance
    to show a kind that the first half lacks, so Clopper and Pearson's limit for this chance is
    exact. The chance after all members is not larger.

    References
    ----------
    Good 1953, doi:10.1093/biomet/40.3-4.237, for the estimate.

    Examples
    --------
    >>> estimate_unseen([["a"], ["b"], ["a"], ["a", "b"]]).value
    0.0
    """
    half = len(members) // 2
    early = {kind for kinds in members[:half] for kind in kinds}
    late = [bool(set(kinds) - early) for kinds in members[half:]]
    counts = Counter(kind for kinds in members for kind in set(kinds))
    once = sum(count == 1 for count in counts.values())
    _, high = clopper_pearson(sum(late), len(late), 2 * level - 1)
    value = min(1.0, once / len(members)) if members else 1.0
    return Unseen(len(members), once, value, float(high))
