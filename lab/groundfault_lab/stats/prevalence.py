"""The share of failures in a population, from draws with chances that are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from groundfault.stats.intervals import wilson

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Prevalence:
    """A share of a population, and an interval for it.

    Attributes
    ----------
    value : float
        The estimate; an unbiased one may lie slightly outside [0, 1].
    error : float
        Standard error; 0 if every member was drawn.
    low, high : float
        Wilson's interval for a sample of ``effective`` independent draws, cut to the values that
        the draws leave possible.
    effective : float
        Equivalent number of independent draws with repeats: the smaller of the numbers from the
        observed variance and from the variance of the weights.

    Notes
    -----
    One member is drawn at each place, with chances that may depend on all earlier draws and values.
    Let y be the value drawn at place m, p its chance at this place, and s the sum of the values
    drawn before. Given the past, ``s + y / p`` has the population's total as its mean: a drawn
    member is in s, and every other member comes with its own p and then counts 1/p (Horvitz and
    Thompson's weight, for one draw). So the differences from the total are uncorrelated, a mean of
    them with fixed weights is unbiased, and the sum of their squares estimates its variance. With
    repeats, s stays empty. Members that cannot be drawn are not covered: every member not yet drawn
    must have a chance above 0.
    """

    value: float
    error: float
    low: float
    high: float
    effective: float


def estimate_without_repeats(
    values: ArrayLike, chances: ArrayLike, size: int, level: float = 0.95
) -> Prevalence:
    """Return the share of failures in a population, from draws without repeats.

    Parameters
    ----------
    values : array, shape (n,)
        Values in [0, 1] of the members in the order of their draws.
    chances : float array, shape (n,)
        Chance of each draw given earlier draws; at each place they sum to 1 over the members left.
    size : int
        Members of the population.
    level : float
        Coverage of the interval, in (0, 1).

    Returns
    -------
    Prevalence
        Unbiased, if n was fixed beforehand and at each place every member left had a chance above
        0. The interval's coverage is approximate. With equal chances the value is the plain mean.

    Notes
    -----
    Des Raj's estimator with the weights of Farquhar et al., size (size - n) / (n (size - m) (size -
    m + 1)) at place m, which make the variances of all places count alike under equal chances. The
    estimated variance is then unbiased under equal chances, and nearly so otherwise while a good
    part of the members is left.

    References
    ----------
    Des Raj 1956, doi:10.1080/01621459.1956.10501326; Farquhar, Gal and Rainforth 2021,
    arXiv:2101.11665; Korn and Graubard 1998, Survey Methodology 24(2), for the interval.

    Examples
    --------
    >>> round(estimate_without_repeats([1, 0, 0, 1], [1 / 8, 1 / 7, 1 / 6, 1 / 5], 8).value, 12)
    0.5
    """
    y, p = np.asarray(values, dtype=np.float64), np.asarray(chances, dtype=np.float64)
    n = len(y)
    if n == size:
        mean = float(y.mean())
        return Prevalence(mean, 0.0, mean, mean, np.inf)
    remaining = size - np.arange(n, dtype=np.float64)
    weights = size * (size - n) / (n * (remaining - 1) * remaining)
    each = (np.cumsum(y) - y + y / p) / size
    possible = float(y.sum()) / size, 1 - float((1 - y).sum()) / size
    return _average(each, weights, weights / p, n / size, possible, level)


def estimate_with_repeats(
    values: ArrayLike, chances: ArrayLike, size: int, level: float = 0.95
) -> Prevalence:
    """Return the share of failures in a population, from draws with repeats.

    Parameters
    ----------
    values, chances, size, level
        As for `estimate_without_repeats`, with chances that sum to 1 over all members.

    Returns
    -------
    Prevalence
        Unbiased, if n was fixed beforehand and every member had a chance above 0 at every place.
        The interval's coverage is approximate.

    References
    ----------
    Hansen and Hurwitz 1943, doi:10.1214/aoms/1177731356.

    Examples
    --------
    >>> estimate_with_repeats([1.0, 0.0], [0.5, 0.25], 4).value
    0.25
    """
    y, p = np.asarray(values, dtype=np.float64), np.asarray(chances, dtype=np.float64)
    weights = np.full(len(y), 1 / len(y))
    return _average(y / p / size, weights, weights / p, 0.0, (0.0, 1.0), level)


def _average(
    each: Floats,
    weights: Floats,
    load: Floats,
    share: float,
    possible: tuple[float, float],
    level: float,
) -> Prevalence:
    """Return the weighted mean of uncorrelated estimates of the same share."""
    value, squares = float(weights @ each), float(weights @ weights)
    variance = float(weights**2 @ (each - value) ** 2) / (1 - squares) if squares < 1 else 0.0
    design = float(load.sum() ** 2 / (load @ load)) / (1 - share)
    inside = min(max(value, possible[0]), possible[1])
    by_variance = inside * (1 - inside) / variance if variance > 0 and 0 < inside < 1 else design
    effective = min(by_variance, design)
    low, high = (float(end) for end in wilson(inside * effective, effective, level))
    low, high = max(low, possible[0]), min(high, possible[1])
    return Prevalence(value, variance**0.5, low, high, effective)
