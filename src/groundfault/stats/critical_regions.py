"""Critical regions: the error counts on a slice that pass a rule, and their probability.

Given the number of errors in all, a permutation p-value and a size of effect depend only on the
number of errors on the slice. Passing counts are tabulated once from exact null distributions.
Their probability is then a sum over two independent binomials, on and off the slice, without
simulation."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from groundfault.stats import null_distributions
from groundfault.stats.contingency import EFFECTS, ContingencyTables, score

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# sums leave out counts further from the mean than this many standard deviations: together less than
# 1e-11
_WIDTH = 7.5
_MARGIN = 12  # and so many whole errors, for tables where the deviation is below one
# beyond so many atoms, the bounds of only some totals are computed, and interpolated for the others
_MAX_CELLS = 3e6


@dataclass(frozen=True)
class CriticalRegion:
    """Error counts on the slice that pass: up to ``low[i]``, or ``high[i]`` and more.

    ``i`` counts the errors in all, from ``first``.
    """

    n: int
    on: int
    first: int
    low: Ints
    high: Ints

    @classmethod
    def of(
        cls,
        n: int,
        on: int,
        error_rate: float,
        *,
        level: float = 1.0,
        sides: Literal[1, 2] = 2,
        min_effect: float = 0.0,
        effect: str = "risk_difference",
        drift: float = 0.0,
    ) -> CriticalRegion:
        """Compute the region for all likely error totals.

        Parameters
        ----------
        n, on : int
            Units, and units on the slice, in 1..n-1.
        error_rate : float
            Expected share of errors, in [0, 1].
        level, sides, min_effect, effect
            As in `groundfault.stats.power.Stage`.
        drift : float
            Largest distance of the mean total from ``n * error_rate``.

        Notes
        -----
        Exact while error totals times slice counts stay under 3e6, which is some 10^5 units. Above,
        the bounds are computed for some totals and interpolated, which changed no probability by
        more than 0.001 in our checks."""
        deviation = sqrt(n * error_rate * (1 - error_rate))
        first, last = _window(n * error_rate, deviation, drift, n)
        # atoms of all tables together, estimated from their standard deviations
        cells = (last - first + 1) * (
            2 * _WIDTH * deviation * sqrt(on * (n - on)) / n + 2 * _MARGIN
        )
        knots = np.unique(np.append(np.arange(first, last, int(cells / _MAX_CELLS) + 1), last))
        if level < 1:
            same = np.ones(len(knots), dtype=np.int64)
            tables = ContingencyTables(same * n, same * on, knots, same * 0)
            down, up = _find_bounds(
                null_distributions.from_errors(tables, pooled=True), level, sides
            )
        else:  # no p-value is too large: all counts but the mean pass
            down, up = -(-on * knots // n) - 1, on * knots // n + 1
        bottom, top = np.maximum(0, on + knots - n), np.minimum(on, knots)
        which = EFFECTS.index(effect)
        margins = (np.full(len(knots), float(n)), np.full(len(knots), float(on)), knots * 1.0)
        bounds = (
            _find_first_counts(which, margins, down, bottom, -1, min_effect),
            _find_first_counts(which, margins, up, top, 1, min_effect),
        )
        totals = np.arange(first, last + 1)
        # bounds are nearly straight in the total, so that interpolating them is safe
        low, high = (np.rint(np.interp(totals, knots, bound)).astype(np.int64) for bound in bounds)
        return cls(n, on, first, low, high)

    def chances(self, on_rate: float, off_rate: float) -> tuple[float, float]:
        """Return probabilities of passing as the worse side, and as the better."""
        sides = []
        for count, rate in ((self.on, on_rate), (self.n - self.on, off_rate)):
            start, stop = _window(count * rate, sqrt(count * rate * (1 - rate)), 0.0, count)
            sides.append((start, _binomial(count, rate, start, stop)))
        (x, on), (y, off) = sides
        up = _sum_upper_tail(self.first, self.high, x, on, y, off)
        # seen from the off side, passing below is passing above
        totals = self.first + np.arange(len(self.low))
        return up, _sum_upper_tail(self.first, totals - self.low, y, off, x, on)


def _window(mean: float, deviation: float, drift: float, largest: int) -> tuple[int, int]:
    reach = _WIDTH * deviation + drift + _MARGIN
    return max(0, int(mean - reach)), min(largest, int(mean + reach) + 1)


def _find_first_counts(
    effect: int,
    margins: tuple[Floats, Floats, Floats],
    near: Ints,
    far: Ints,
    way: int,
    min_effect: float,
) -> Ints:
    """Return the first counts from ``near`` to ``far`` with enough effect; past ``far`` if all are
    too small."""

    def is_enough(counts: Ints) -> NDArray[np.bool_]:
        return score(effect, *margins, counts.astype(np.float64), 1.0) >= min_effect

    # by bisection: away from the mean the effect grows with the count
    enough, short = way * (far - near), np.full(len(near), -1)
    exists = (enough >= 0) & is_enough(far)
    while (going := exists & (enough - short > 1)).any():
        middle = (enough + short) // 2
        large = is_enough(near + way * middle)
        enough = np.where(going & large, middle, enough)
        short = np.where(going & ~large, middle, short)
    past = np.maximum(near, far + 1) if way > 0 else np.minimum(near, far - 1)
    return np.where(exists, near + way * enough, past)


def _find_bounds(
    null: null_distributions.NullDistributions, level: float, sides: int
) -> tuple[Ints, Ints]:
    """Return the last count with a small p-value below, and the first above; out of range if no
    count has one."""
    low, high = np.empty(len(null.n), dtype=np.int64), np.empty(len(null.n), dtype=np.int64)
    find_ends = _find_one_sided_ends if sides == 1 else _find_two_sided_ends
    for u, (start, stop) in enumerate(pairwise(null.offset.tolist())):
        first = int(null.start[u])
        # distances from the mean, in whole numbers
        shift = null.n[u] * (first + np.arange(stop - start)) - null.on[u] * null.total[u]
        below, above = find_ends(shift, null.pmf[start:stop], level)
        low[u], high[u] = first + below - 1, first + stop - start - above
    return low, high


def _find_one_sided_ends(shift: Floats, pmf: Floats, level: float) -> tuple[int, int]:
    """Return how many atoms below and how many above have a tail of at most the level, outermost
    first."""
    under, over = int(np.count_nonzero(shift < 0)), int(np.count_nonzero(shift > 0))
    below = np.searchsorted(np.cumsum(pmf[:under]), level, side="right")
    above = np.searchsorted(np.cumsum(pmf[::-1][:over]), level, side="right")
    return int(below), int(above)


def _find_two_sided_ends(shift: Floats, pmf: Floats, level: float) -> tuple[int, int]:
    """Return `_find_one_sided_ends` where both tails together have at most the level."""
    distance = np.abs(shift)
    order = np.argsort(-distance, kind="stable")
    # equal distances are in one tail together, as in the two-sided p-value
    ends = np.append(np.diff(distance[order]) != 0, True)
    passing = ends & (np.cumsum(pmf[order]) <= level) & (distance[order] > 0)
    count = int(np.flatnonzero(passing)[-1]) + 1 if passing.any() else 0
    below = int(np.count_nonzero(shift[order[:count]] < 0))
    return below, count - below


def _binomial(count: int, rate: float, start: int, stop: int) -> Floats:
    """Return binomial probabilities of start..stop, by ratios of neighbours outward from the
    mode."""
    pmf = np.zeros(stop - start + 1)
    if rate <= 0.0 or rate >= 1.0:
        pmf[(0 if rate <= 0.0 else count) - start] = 1.0
        return pmf
    # ratios of neighbours, outward from the mode: no factorial, no logarithm, no underflow
    odds = rate / (1.0 - rate)
    mode = min(max(int((count + 1) * rate), start), stop)
    above, below = np.arange(mode, stop), np.arange(mode, start, -1)
    pmf[mode - start] = 1.0
    pmf[mode - start + 1 :] = np.cumprod(odds * (count - above) / (above + 1))
    pmf[: mode - start] = np.cumprod(below / (odds * (count - below + 1)))[::-1]
    return np.asarray(pmf / pmf.sum())


def _sum_upper_tail(first: int, high: Ints, x: int, here: Floats, y: int, there: Floats) -> float:
    """Return P(X >= high[X + Y - first]) for independent counts X from x on and Y from y on."""
    ceiling = np.maximum.accumulate(high)
    counts = x + np.arange(len(here))
    # a bound that never falls with the total: each X passes with every Y up to some last one
    last = first + np.searchsorted(ceiling, counts, side="right") - 1 - counts - y
    up_to = np.cumsum(there)
    chances = np.where(last >= 0, up_to[np.clip(last, 0, len(there) - 1)], 0.0)
    probability = float(here @ chances)
    # where a two-sided bound does fall, add the counts that the ceiling left out
    for i in np.flatnonzero(ceiling > high):
        passing = np.arange(max(high[i], x), min(ceiling[i], x + len(here)))
        other = first + i - passing - y
        inside = (other >= 0) & (other < len(there))
        probability += float(here[passing[inside] - x] @ there[other[inside]])
    return probability
