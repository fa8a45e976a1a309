"""Many hypotheses at once: adjusted p-values, bars of classes, and e-value selection."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_TIE = 1e-9
"""Log p-values of equal tests may differ in the last digits; a tie counts against."""
_ROUNDING = 1 - 1e-12
"""Times this, a statistic is reached by an equal one that was summed in another order."""


def holm(p: Floats) -> Floats:
    """Return Holm-adjusted p-values: family-wise error under any dependence
    (doi:10.2307/4615733)."""
    order, rank = _order(p)
    # step down: an adjusted p is at least that of every smaller p
    stepped = np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p))))
    return np.minimum(stepped, 1.0)[rank]


def step_down(statistics: Floats, null: Iterable[Floats], draws: int) -> Floats:
    """Return step-down max-T adjusted p-values, larger statistics being rarer.

    Parameters
    ----------
    statistics : float64 array, shape (H,)
        Of the data.
    null : iterable of float64 array, shape (b, H)
        Of the draws of the null, in batches.
    draws : int
        How many there are; p-values are (1 + exceedances) / (draws + 1).

    Notes
    -----
    From the largest statistic on, each is compared with the maximum over itself and those below it:
    Ge, Dudoit and Speed 2003, doi:10.1007/BF02595811, algorithm 4.1.
    """
    order = np.argsort(-statistics, kind="stable")
    bar = statistics[order] * _ROUNDING
    exceed = np.zeros(len(statistics), dtype=np.int64)
    for batch in null:
        drawn = batch[:, order]
        exceed += (np.maximum.accumulate(drawn[:, ::-1], axis=1)[:, ::-1] >= bar).sum(axis=0)
    p = np.empty(len(statistics))
    # 1 + because the data are one of their own draws; without it p could be 0
    p[order] = np.maximum.accumulate((1 + exceed) / (draws + 1))
    return p


def benjamini_hochberg(p: Floats) -> Floats:
    """Return Benjamini-Hochberg adjusted p-values: false discovery rate under positive dependence.

    doi:10.1111/j.2517-6161.1995.tb02031.x
    """
    order, rank = _order(p)
    # step up: an adjusted p is at most that of every larger p
    stepped = p[order] * len(p) / np.arange(1, len(p) + 1)
    return np.minimum(np.minimum.accumulate(stepped[::-1])[::-1], 1.0)[rank]


def benjamini_yekutieli(p: Floats) -> Floats:
    """Return Benjamini-Yekutieli adjusted p-values: the false discovery rate under any dependence.

    doi:10.1214/aos/1013699998
    """
    # what arbitrary dependence costs: the sum of 1/i, about log of the number of tests
    harmonic = float(np.sum(1.0 / np.arange(1, len(p) + 1)))
    return np.minimum(benjamini_hochberg(p) * harmonic, 1.0) if len(p) else p


def e_benjamini_hochberg(e: Floats, q: float) -> NDArray[np.bool_]:
    """Return which e-values e-BH selects at level ``q``: the false discovery rate under any
    dependence.

    Wang and Ramdas 2022, doi:10.1111/rssb.12489. Valid for compound e-values too, whose null
    expectations sum to at most their number."""
    order = np.argsort(-e, kind="stable")
    k = np.arange(1, len(e) + 1)
    enough = np.flatnonzero(e[order] * k * q >= len(e))
    selection = np.zeros(len(e), dtype=np.bool_)
    if len(enough):
        selection[order[: enough[-1] + 1]] = True
        selection |= e >= e[selection].min()  # ties stand or fall together
    return selection


def e_adjusted(e: Floats) -> Floats:
    """Return the smallest level at which e-BH would select each: an analogue of an adjusted
    p-value."""
    order, rank = _order(-e)
    with np.errstate(divide="ignore", over="ignore"):
        level = len(e) / (np.arange(1, len(e) + 1) * e[order])
    return np.minimum(np.minimum.accumulate(level[::-1])[::-1], 1.0)[rank]


def e_holm(e: Floats) -> Floats:
    """Return adjusted e-values: rejecting those of at least 1/alpha keeps the family-wise error.

    The closed test of averages (Vovk and Wang 2021, doi:10.1214/20-AOS2020, Algorithm 1): each
    becomes the smallest mean of any set of e-values that it belongs to. Adjusted at every step,
    e-processes keep the error at all times."""
    order, rank = _order(e)
    sums = np.concatenate([[0.0], np.cumsum(e[order])])
    smallest = np.empty_like(e)
    for i in range(len(e)):
        # with itself, the j smallest of the others: those before it first
        with_smaller = (sums[: i + 1] + e[order[i]]) / np.arange(1, i + 2)
        with_larger = sums[i + 1 :] / np.arange(i + 1, len(e) + 1)
        smallest[i] = min(with_smaller.min(), with_larger.min())
    return smallest[rank]


def count_effective_tests(rows: NDArray[np.bool_]) -> float:
    """Return how many independent tests correlated descriptors amount to: between one and their
    number.

    The squared sum of the roots of the correlation matrix' eigenvalues over their sum (Galwey 2009,
    doi:10.1002/gepi.20408). Descriptive: no verdict rests on it.

    Parameters
    ----------
    rows : bool array, shape (L, n)
        Constant rows are passed over.
    """
    varied = rows[rows.any(axis=1) & ~rows.all(axis=1)].astype(np.float64)
    if len(varied) < 2:
        return float(len(varied))
    # rounding leaves eigenvalues that should be 0 slightly below it, where they have no root
    values = np.maximum(np.linalg.eigvalsh(np.corrcoef(varied)), 0.0)
    return float(np.sqrt(values).sum() ** 2 / values.sum())


def _order(p: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    order = np.argsort(p, kind="stable")
    # the inverse permutation, which puts sorted results back in place
    return order, np.argsort(order, kind="stable")


class Joint:
    """Single-step adjustment by the smallest p-value of each class in draws of the null.

    Parameters
    ----------
    least : float64 array, shape (draws + 1, classes)
        Least log p of each class; the first row is that of the data. It has to be computed like the
        others: under the null all rows are then exchangeable, which makes the level exact.
    shares : float64 array, shape (classes,)
        Of the level; their sum is 1.

    Notes
    -----
    Ranks are taken among all rows, the data too (Westfall and Young 1993).
    """

    def __init__(self, least: Floats, shares: Floats) -> None:
        self._sorted, self._shares, self._rows = np.sort(least, axis=0), shares, len(least)
        ranks = [self._rank(least[:, c], c) for c in range(len(shares))]
        self._best = np.sort(np.min(ranks, axis=0))

    def _rank(self, log_p: Floats, c: int) -> Floats:
        """Return the share of rows whose class is as surprising, over the class's share."""
        places = np.searchsorted(self._sorted[:, c], log_p + _TIE, side="right")
        return np.asarray(np.maximum(places, 1) / self._rows / self._shares[c])

    def adjust(self, log_p: Floats, kind: Ints) -> Floats:
        """Return adjusted p-values of tests of some classes."""
        rank = np.empty(len(log_p))
        for c in range(len(self._shares)):
            rank[kind == c] = self._rank(log_p[kind == c], c)
        places = np.searchsorted(self._best, rank * (1 + _TIE), side="right")
        return np.asarray(np.maximum(places, 1) / self._rows)

    def bar(self, c: int, level: float) -> float:
        """Return the log p of a class below which adjusted p-values are at most a level."""
        values = self._sorted[:, c]
        above = values[self.adjust(values, np.full(len(values), c)) > level]
        return float(above.min(initial=0.0)) if len(above) < len(values) else -math.inf


class SummedBars:
    """Adjustment by the number of tests of each class: weighted Bonferroni.

    Parameters
    ----------
    counts : int64 array, shape (classes,)
    shares : float64 array, shape (classes,)
        Of the level; their sum is 1.
    """

    def __init__(self, counts: Ints, shares: Floats) -> None:
        self._costs = np.log(np.maximum(counts, 1) / shares)

    def adjust(self, log_p: Floats, kind: Ints) -> Floats:
        """Return adjusted p-values of tests of some classes."""
        return np.asarray(np.exp(np.minimum(0.0, log_p + self._costs[kind])))

    def bar(self, c: int, level: float) -> float:
        """Return the largest log p of a class whose adjusted p-value is at most a level."""
        return math.log(level) - float(self._costs[c])
