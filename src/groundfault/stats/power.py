"""Power: the lift that an audit of this size would find, computed from its decision rules.

A candidate passes one stage (all units) or two (discovery, then holdout). For 0/1 errors the power
is a sum over two independent binomials, on and off the slice, of the error counts that pass: the
critical region, which exact null distributions tabulate once for each number of errors in all. So
it is exact, as in Casagrande, Pike and Smith 1978 (Applied Statistics 27, 176-180), and needs no
simulation. Other losses use the normal approximation with their variance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from math import ceil, floor, inf, log10, sqrt
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from groundfault.stats import null_distributions
from groundfault.stats.contingency import EFFECTS, ContingencyTables, score
from groundfault.stats.null_distributions import NullDistributions

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


@dataclass(frozen=True, kw_only=True)
class Stage:
    """The conditions that a candidate has to pass on one set of units.

    Attributes
    ----------
    n, on : int
        Units, and units on the slice.
    level : float
        Largest permutation p-value that passes, such as alpha/L; 1 for no limit.
    sides : {1, 2}
        Sides of the p-value: one-sided in a direction fixed before, or two-sided.
    min_effect : float
        Smallest size of effect that passes, on the scale of
        `groundfault.stats.contingency.ContingencyTables.score`: a |lift|, or the |logarithm| of a
        ratio.
    effect : {"risk_difference", "risk_ratio", "odds_ratio"}
    """

    n: int
    on: int
    level: float = 1.0
    sides: Literal[1, 2] = 2
    min_effect: float = 0.0
    effect: str = "risk_difference"


@dataclass(frozen=True)
class Design:
    """The decision on one candidate, which passes if it passes every stage with the same sign.

    Parameters
    ----------
    stages : tuple of Stage
        Stages on disjoint sets of independent units.
    error_rate : float
        Mean loss over all units, on and off the slice together, in (0, 1). A lift d at prevalence v
        means a mean of ``error_rate + d (1 - v)`` on the slice and ``error_rate - d v`` off it, so
        that the mean over all units stays the same.
    variance : float, optional
        Variance of the losses over all units, for losses that are not 0/1; the power is then a
        normal approximation.

    Notes
    -----
    For 0/1 errors exact to 1e-9 up to some 10^5 units, and to about 0.001 beyond. For other losses
    the normal approximation takes the variance within the slice and off it to be the same.

    Examples
    --------
    >>> design = Design((Stage(n=160, on=48, level=0.10 / 34),), 0.36)
    >>> minimum_detectable_lift(design)
    0.323
    """

    stages: tuple[Stage, ...]
    error_rate: float
    variance: float | None = None

    @property
    def units(self) -> int:
        """Return units of all stages."""
        return sum(s.n for s in self.stages)

    @property
    def prevalence(self) -> float:
        """Return share of units on the slice."""
        return sum(s.on for s in self.stages) / max(1, self.units)

    @property
    def largest(self) -> float:
        """Return the largest lift at this failure rate and prevalence; 0 if no slice can differ."""
        share = self.prevalence
        if any(s.on in (0, s.n) for s in self.stages):
            return 0.0
        bound = min((1 - self.error_rate) / (1 - share), self.error_rate / share)
        return (
            bound
            if self.variance is None
            else min(bound, sqrt(self.variance / (share * (1 - share))))
        )

    def rates(self, lift: float) -> tuple[float, float]:
        """Return mean loss on and off the slice at a lift."""
        return self.error_rate + lift * (
            1 - self.prevalence
        ), self.error_rate - lift * self.prevalence

    def power(self, lift: float) -> float:
        """Return probability that a candidate with this lift is confirmed; NaN for an impossible
        lift.

        Parameters
        ----------
        lift : float
            Lift of either sign. At 0 the result is the probability of falsely confirming this one
            candidate.
        """
        if any(s.on in (0, s.n) for s in self.stages):
            return 0.0
        on_rate, off_rate = self.rates(lift)
        slack = 1e-12
        if not (-slack <= min(on_rate, off_rate) and max(on_rate, off_rate) <= 1 + slack):
            return float("nan")
        # given the rates, the stages' units are different units: their chances multiply
        up = down = 1.0
        for index in range(len(self.stages)):
            if self.variance is None:
                high, low = self._regions[index].chances(
                    min(max(on_rate, 0), 1), min(max(off_rate, 0), 1)
                )
            else:
                high, low = _normal_chances(self.stages[index], self, lift)
            up, down = up * high, down * low
        return min(up + down, 1.0)

    @cached_property
    def _regions(self) -> tuple[CriticalRegion, ...]:
        # a stage's support is not exactly its share of the whole, which moves its mean total a
        # little with the lift
        return tuple(
            _find_region(s, self.error_rate, self.largest * abs(s.on - s.n * self.prevalence))
            for s in self.stages
        )


@lru_cache(maxsize=64)
def _find_region(stage: Stage, error_rate: float, drift: float) -> CriticalRegion:
    # the designs of a mixture have stages in common
    return CriticalRegion.of(**vars(stage), error_rate=error_rate, drift=drift)


class HasPower(Protocol):
    """A design, or several designs of which one applies."""

    @property
    def units(self) -> int: ...  # noqa: D102
    @property
    def largest(self) -> float: ...  # noqa: D102
    def power(self, lift: float) -> float: ...  # noqa: D102


def minimum_detectable_lift(design: HasPower, power: float = 0.8) -> float | None:
    """Return the smallest lift found with this power, rounded up to three digits, or None.

    The slice counts as the worse side.
    """
    if design.largest == 0 or design.power(design.largest) < power:
        return None
    if design.power(0.0) >= power:
        return 0.0
    return find_least(lambda lift: design.power(lift) >= power, design.largest, 4000)


def find_least(is_found: Callable[[float], bool], largest: float, parts: int) -> float:
    """Find the least detectable lift up to 1/``parts`` of it, and round up to three digits."""
    low, high = 0.0, largest
    # power grows with the lift, so bisection finds where it crosses
    while high - low > high / parts:
        middle = (low + high) / 2
        low, high = (low, middle) if is_found(middle) else (middle, high)
    digits = int(2 - floor(log10(high)))
    return min(float(round(ceil(high * 10**digits) / 10**digits, digits)), largest)


def minimum_detectable_lifts(
    on: Ints, design_of: Callable[[int], HasPower], *, power: float = 0.8, points: int = 24
) -> Floats:
    """Return `minimum_detectable_lift` for each of many supports; NaN if no lift is found.

    Supports within 100 units of 0 or of all units are each computed. Up to ``points`` other
    supports are computed, and the rest interpolated linearly on the logit scale, with errors up to
    0.005 in our checks.

    Parameters
    ----------
    on : int64 array, shape (L,)
    design_of : callable
        The design for one support.
    """
    distinct, which = np.unique(on, return_inverse=True)
    n = design_of(int(distinct[0])).units if len(distinct) else 0
    # on the logit scale of prevalence the lifts are nearly straight
    scale = np.log((distinct + 0.5) / (n - distinct + 0.5))

    def solve(index: NDArray[np.intp]) -> Floats:
        lifts = (minimum_detectable_lift(design_of(int(distinct[i])), power) for i in index)
        return np.array([np.nan if lift is None else lift for lift in lifts], dtype=np.float64)

    smooth = np.flatnonzero(np.minimum(distinct, n - distinct) > 100)
    if len(smooth) <= points:
        return np.asarray(solve(np.arange(len(distinct)))[which])
    grid = np.linspace(scale[smooth[0]], scale[smooth[-1]], points)
    nearest = np.abs(scale[:, None] - grid).argmin(axis=0)
    knots = np.union1d(np.setdiff1d(np.arange(len(distinct)), smooth), nearest)
    lifts = solve(knots)
    out = np.interp(scale, scale[knots], lifts)
    # between a support that can be found and one that cannot, only its own sum tells
    unsure = np.flatnonzero(np.isnan(out) & ~_between_nans(knots, lifts, len(distinct)))
    out[unsure] = solve(unsure)
    return np.asarray(out[which])


def _between_nans(knots: NDArray[np.intp], lifts: Floats, count: int) -> NDArray[np.bool_]:
    after = np.searchsorted(knots, np.arange(count), side="left")
    before = np.searchsorted(knots, np.arange(count), side="right") - 1
    return np.isnan(lifts[before]) & np.isnan(lifts[after])


def lone_floor(
    distributions: NullDistributions, counts: Floats, q: float, effect: str = "risk_difference"
) -> float:
    """Return the decoy floor for a single survivor: the effect with at most ``q`` expected decoys.

    Procedure A divides by the number of survivors, which is 1 for a single one. The floor is
    infinite if no effect is large enough.

    Parameters
    ----------
    distributions : NullDistributions
        Distributions of the library on the discovery units, pooled or not.
    counts : float64 array, shape (U,)
        Number of candidates with each distribution.
    q : float

    Returns
    -------
    float
        Floor on the scale of `ContingencyTables.score`, at most 1e-8 (relative) above the exact
        floor and never below it.
    """
    q *= 1 + 1e-12  # a tail that equals q but for rounding counts as at most q, as in Procedure A
    low, high = (
        0.0,
        1.0
        if effect == "risk_difference"
        else 2 * float(np.log(2 * distributions.n.max(initial=1) + 2)),
    )
    if distributions.pool_tail(counts, np.array([high]), effect)[0] > q:
        return inf
    # each round narrows the interval 256-fold: 2^-32 of the range in the end
    for _ in range(4):
        grid = np.linspace(low, high, 257)
        at = int(np.argmax(distributions.pool_tail(counts, grid, effect) <= q))
        if at == 0:
            return float(grid[0])
        low, high = float(grid[at - 1]), float(grid[at])
    return high


def decoy_floor(
    on: Ints, *, n: int, errors: int, q: float, effect: str = "risk_difference"
) -> float:
    """Return `lone_floor` from the supports of a library and the number of errors on the discovery
    units.

    Parameters
    ----------
    on : int64 array, shape (L,)
        Support of each eligible candidate, in 1..n-1.
    """
    ones = np.ones(len(on), dtype=np.int64)
    tables, _, counts = null_distributions.find_distinct(
        ContingencyTables(ones * n, np.asarray(on, dtype=np.int64), ones * errors, ones * 0)
    )
    return lone_floor(null_distributions.from_errors(tables, pooled=True), counts, q, effect)


# ------------------------------------------------------------------------------------- other losses


def _normal_chances(stage: Stage, design: Design, lift: float) -> tuple[float, float]:
    from scipy.special import ndtr, ndtri

    variance, share = float(design.variance or 0.0), design.prevalence
    # 1/on + 1/off
    precision = stage.n / (stage.on * (stage.n - stage.on))
    # variance of a difference of means under permutation of all units
    null = sqrt(variance * precision * stage.n / max(stage.n - 1, 1))
    # variance that the slice explains is not left within it
    real = sqrt(max(variance - share * (1 - share) * lift**2, 1e-300) * precision)
    by_level = -float(ndtri(stage.level / stage.sides)) * null if stage.level < 1 else 0.0
    up, down = (max(by_level, 0.0, _lift_at(stage, design.error_rate, sign)) for sign in (1, -1))
    return float(ndtr((lift - up) / real)), float(ndtr((-lift - down) / real))


def _lift_at(stage: Stage, rate: float, sign: int) -> float:
    """Return the least |lift| on the side of ``sign`` whose effect passes, or infinity."""
    if stage.effect == "risk_difference":
        return stage.min_effect
    n, on, total = float(stage.n), float(stage.on), stage.n * rate
    middle = on * total / n
    end = min(on, total) if sign > 0 else max(0.0, on + total - n)
    sums = np.linspace(middle, end, 1 << 14)
    reached = score(EFFECTS.index(stage.effect), n, on, total, sums, 1.0) >= stage.min_effect
    # with one half added to each cell an effect is not quite 0 where the lift is, so the last that
    # fails decides
    at = len(reached) - int(np.argmin(reached[::-1]))
    return abs(float(n * sums[at] - on * total)) / (on * (n - on)) if at < len(sums) else inf


@dataclass(frozen=True)
class DesignMixture:
    """Designs of one candidate, of which one applies.

    Attributes
    ----------
    designs : tuple of Design
        Designs with equal sizes and failure rate.
    weights : tuple of float
        Probabilities with sum 1.
    tested : float
        Probability that the candidate is tested at all.
    """

    designs: tuple[Design, ...]
    weights: tuple[float, ...]
    tested: float = 1.0

    @property
    def units(self) -> int:
        """Return units of all stages."""
        return self.designs[0].units

    @property
    def largest(self) -> float:
        """Return the largest lift that failure rate and prevalence allow."""
        return self.designs[0].largest

    def power(self, lift: float) -> float:
        """Return probability that a candidate of this lift is confirmed; NaN for a lift that cannot
        be."""
        pairs = zip(self.weights, self.designs, strict=True)
        return self.tested * sum(weight * design.power(lift) for weight, design in pairs)


def chance_of_support(
    n: int, on: int, part: int, window: Sequence[int], other: Sequence[int]
) -> float:
    """Return probability that the supports in a random part of the units and in the rest are in
    windows.

    Parameters
    ----------
    n, on : int
        Units, and units on the slice.
    part : int
        Units of the part, in 0..n.
    window, other : pair of int
        Least and largest support, both allowed, in the part and in the rest.

    Examples
    --------
    >>> chance_of_support(4, 2, 2, (1, 1), (0, 2))
    0.6666...
    """
    if not 0 < on < n or not 0 < part < n:
        # the support is not random
        here = on if part == n else 0 if part == 0 else on * part // n
        return float(window[0] <= here <= window[1] and other[0] <= on - here <= other[1])
    one = np.ones(1, dtype=np.int64)
    law = null_distributions.from_errors(
        ContingencyTables(one * n, one * part, one * on, one * 0), pooled=False
    )
    here = law.start[0] + np.arange(len(law.pmf))
    there = on - here
    inside = (window[0] <= here) & (here <= window[1]) & (other[0] <= there) & (there <= other[1])
    return float(law.pmf[inside].sum() / law.pmf.sum())


def raise_rate(design: Design, lift: float) -> Design:
    """Return the design of units whose slice fails more often by ``lift``, while the rest does not
    change.

    A design fixes the failure rate of all units, so a slice that fails more makes the rest fail
    less. If errors are rare, no large lift is then possible. Here the slice gets additional errors.

    Parameters
    ----------
    design : Design
    lift : float
        At least 0.
    """
    share = design.prevalence
    variance = design.variance
    return replace(
        design,
        error_rate=design.error_rate + share * lift,
        variance=None if variance is None else variance + share * (1 - share) * lift**2,
    )


def minimum_detectable_rise(
    designs: Sequence[Design], weights: Sequence[float], power: float = 0.8
) -> float | None:
    """Return the smallest lift by additional errors that is found with this power, to three digits,
    or None.

    Parameters
    ----------
    designs : sequence of Design
        Designs with equal failure rate and sizes, of which one applies.
    weights : sequence of float
        Probabilities of the designs; a sum below 1 is the chance that the candidate is tested.
    power : float

    Returns
    -------
    float or None
        None if not even a slice with only errors would be found.
    """
    high = 1 - designs[0].error_rate
    if high <= 0:
        return None

    def is_found(lift: float) -> bool:
        pairs = zip(weights, designs, strict=True)
        chances = (weight * raise_rate(design, lift).power(lift) for weight, design in pairs)
        return sum(chances) >= power

    return find_least(is_found, high, 1000) if is_found(high) else None
