"""Runs at risk: test whether events during runs are associated with how the runs end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groundfault.stats.multiple import Joint

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

NEVER = np.iinfo(np.int32).max
"""Step of something that does not happen."""
DRAWS = 999
"""The least adjusted p-value is 0.001; p near 0.1 is known to 0.01."""
MIN_RUNS = 10
"""Fewest runs with and without a behaviour to test it: tests of fewer find little."""
_LAST = 50
"""Steps to test: few runs last longer, and each step costs draws."""
_CELLS = 1 << 22
"""Drawn outcomes in memory at once: 4 MB, and 16 MB as numbers."""
_ROUNDING = 1e-6
"""Standard deviation of sums of failures that counts as 0."""
_MANY = 256
"""Fewest runs of a stratum to permute it alone, not run by run with all others."""
_ROUNDS, _CLOSE = 50, 1e-6
"""Of the fit of levels, which takes some ten rounds, and where it stops."""


@dataclass(frozen=True)
class RiskContrasts:
    """Associations of behaviours with failing, with their p-values.

    Attributes
    ----------
    runs, failed, expected : float64 arrays, shape (1 + landmarks, L)
        First row: runs in which a behaviour happened before the last step, while runs of both
        outcomes of the stratum went on; the number of these that failed; and the expected number.
        Then the same for each landmark: runs that still went on, with the behaviour by then.
    rest, rest_failed : float64 arrays, shape (1 + landmarks, L)
        Runs at the landmark without the behaviour so far.
    at_risk, at_risk_failed : int64 arrays, shape (1 + landmarks,)
        Runs that still went on in strata with both outcomes; in the first row, after the first
        step.
    z : float64 array, shape (1 + landmarks, L)
        Excess of failures in standard deviations; NaN where not tested.
    p : float64 array, shape (1 + landmarks, L)
        Adjusted for all tests; NaN where not tested.
    bar : float
        The least absolute z with an adjusted p-value of at most the level.
    spread : float64 array, shape (1 + landmarks,)
        Sum of the variances of the outcomes of runs at risk.
    """

    runs: Floats
    failed: Floats
    expected: Floats
    rest: Floats
    rest_failed: Floats
    at_risk: Ints
    at_risk_failed: Ints
    z: Floats
    p: Floats
    bar: float
    spread: Floats


def contrast_runs(
    first: NDArray[np.int32],
    length: Ints,
    failed: Bools,
    strata: Ints,
    levels: Ints,
    landmarks: tuple[int, ...],
    level: float,
    rng: np.random.Generator,
    *,
    sums: bool = True,
) -> RiskContrasts:
    """Test whether behaviours during runs go with failing, among runs that go on equally long.

    Parameters
    ----------
    first : int32 array, shape (L, n)
        Step, from 1, at which each of L behaviours first happens in each run, or `NEVER`.
    length : int64 array, shape (n,)
        Steps of each run.
    failed : bool array, shape (n,)
    strata : int64 array, shape (n,)
        Runs of the same task, which are compared with each other.
    levels : int64 array, shape (n,)
        The agent of each run; outcomes in a stratum are exchangeable except for the agents' levels.
    landmarks : tuple of int
        Steps after which runs that still go on are compared by their behaviour so far.
    level : float
        Family-wise error level, in (0, 1).
    rng : numpy.random.Generator
    sums : bool
        Whether to test the sums over all steps in addition to the landmarks.

    Notes
    -----
    Runs that succeed stop, so any behaviour that takes time happens more often in failing runs.
    Each step therefore compares only runs that go on after it: the failures of runs with the
    behaviour, against the expected failures of their stratum at risk. Behaviour in the last step of
    a run is not compared, because it may be the ending itself. Summed over steps, this is a
    log-rank test (Mantel 1966; Andersen and Gill 1982, doi:10.1214/aos/1176345976); at a landmark
    it is the test of Anderson, Cain and Gelber 1983 (doi:10.1200/JCO.1983.1.11.710). Given the
    number of failures in a stratum at risk, failures are dealt out anew. Their odds are the agents'
    levels, fitted by conditional likelihood. The statistic leaves out the part that the levels
    explain (the efficient score). Draws are kept from step to step until a run of the stratum ends.
    The adjusted p-values compare with the largest statistic of all in the same draws (Westfall and
    Young 1993), with half of the level for sums and half for landmarks; with several `levels` they
    are asymptotic in the number of strata.
    """
    last = min(_LAST, int(length.max(initial=0)))
    steps = [k for k in range(2, last + 1) if sums or k - 1 in landmarks]
    sets = _list_sets(length, failed, strata, levels, steps)
    shape = 1 + len(landmarks), len(first)
    counts = {
        name: np.zeros(shape) for name in ("runs", "failed", "expected", "rest", "rest_failed")
    }
    at_risk = np.zeros((3, 1 + len(landmarks)))
    weights: list[list[tuple[int, Floats]]] = []
    for step, one in zip(steps, sets, strict=True):
        inside = [(0, first[:, one.rows] == step - 1)] if sums else []
        if step - 1 in landmarks:
            inside.append((1 + landmarks.index(step - 1), first[:, one.rows] < step))
        for place, on in inside:
            counts["runs"][place] += on.sum(axis=1)
            counts["failed"][place] += on @ one.failed
            counts["expected"][place] += on @ one.expected
            if place or step == steps[0]:
                at_risk[:, place] = len(one.rows), one.failed.sum(), one.variance.sum()
            if place:
                counts["rest"][place] = (~on).sum(axis=1)
                counts["rest_failed"][place] = (~on) @ one.failed
        weights.append([(place, one.take_out_levels(on.astype(float))) for place, on in inside])
    is_tested = counts["runs"] >= MIN_RUNS
    is_tested[1:] &= counts["rest"][1:] >= MIN_RUNS
    statistics = _draw_statistics(sets, weights, shape, len(length), rng)
    spread = statistics[1:].std(axis=0)
    # a behaviour that all runs of a stratum share varies only by rounding
    is_tested &= spread > _ROUNDING
    z = np.where(is_tested, statistics / np.where(is_tested, spread, 1.0), 0.0)
    p, bar = _adjust(z, is_tested, level)
    return RiskContrasts(
        **counts,
        at_risk=at_risk[0].astype(np.int64),
        at_risk_failed=at_risk[1].astype(np.int64),
        z=np.where(is_tested, z[0], np.nan),
        p=p,
        bar=bar,
        spread=at_risk[2],
    )


def _adjust(z: Floats, is_tested: Bools, level: float) -> tuple[Floats, float]:
    """Return p-values adjusted over sums and landmarks, and the least absolute z that passes."""
    parts = [part for part in (slice(0, 1), slice(1, None)) if is_tested[part].any()]
    p = np.full(is_tested.shape, np.nan)
    if not parts:
        return p, float("inf")
    least = np.stack([-np.abs(z[:, part]).max(axis=(1, 2)) for part in parts], axis=1)
    joint = Joint(least, np.full(len(parts), 1 / len(parts)))
    for c, part in enumerate(parts):
        values = -np.abs(z[0, part][is_tested[part]])
        # a new array: the slice of p is a view
        adjusted = p[part]
        adjusted[is_tested[part]] = joint.adjust(values, np.full(len(values), c))
    return p, -joint.bar(len(parts) - 1, level)


class _RiskSet:
    """Runs that are at risk at a step, in strata of both outcomes, and chances of their outcomes.

    Attributes
    ----------
    rows : int64 array, shape (m,)
        Sorted by stratum.
    failed, expected, variance : float64 arrays, shape (m,)
    changed : bool array, shape (strata,)
        Strata that differ from the step before.
    """

    def __init__(self, rows: Ints, strata: Ints, failed: Bools, levels: Ints, odds: Floats) -> None:
        self.rows, self.levels, self.odds = rows, levels, odds
        self.failed = failed.astype(float)
        _, self.home, size = np.unique(strata, return_inverse=True, return_counts=True)
        self.size = size
        self.start = np.cumsum(size) - size
        self.total = np.bincount(self.home, self.failed, minlength=len(size)).astype(np.int64)
        self.place = np.arange(len(rows)) - self.start[self.home] if len(rows) else rows
        self.chances: Floats | None = None
        self.changed = np.ones(len(size), dtype=np.bool_)
        self.expected = (self.total / np.maximum(size, 1))[self.home]
        if len(np.unique(levels)) > 1:
            self._fit_levels()
        self.variance = self.expected * (1 - self.expected)

    def _fit_levels(self) -> None:
        """Fit odds of each level by conditional likelihood, to match the level's failures."""
        count = len(self.odds)
        seen = np.bincount(self.levels, self.failed, minlength=count)
        for _ in range(_ROUNDS):
            self._find_chances()
            hoped = np.bincount(self.levels, self.expected, minlength=count)
            # half a failure more on both sides: one that always fails has finite odds
            change = (seen + 0.5) / (hoped + 0.5)
            self.odds = self.odds * change
            if np.abs(np.log(change)).max(initial=0) < _CLOSE:
                break

    def _find_chances(self) -> None:
        """Find the chance that a run fails, given the number of failures from this run on."""
        width, most = int(self.size.max(initial=0)), int(self.total.max(initial=0))
        odds = np.zeros((len(self.size), width))
        odds[self.home, self.place] = self.odds[self.levels]
        ways = np.zeros((len(self.size), most + 1))
        ways[:, 0] = 1.0
        chances = np.zeros((len(self.size), width, most + 1))
        for i in range(width - 1, -1, -1):
            hit = np.zeros_like(ways)
            hit[:, 1:] = odds[:, [i]] * ways[:, :-1]
            both = ways + hit
            np.divide(hit, both, out=chances[:, i], where=both > 0)
            ways = both / both.max(axis=1, keepdims=True)
        left = np.zeros_like(ways)
        left[np.arange(len(left)), self.total] = 1.0
        expected = np.zeros_like(odds)
        for i in range(width):
            hit = left * chances[:, i]
            expected[:, i] = hit.sum(axis=1)
            left = left - hit
            left[:, :-1] += hit[:, 1:]
        self.chances, self.expected = chances, expected[self.home, self.place]

    def take_out_levels(self, on: Floats) -> Floats:
        """Return weights of runs whose sum of failures does not depend on the fitted levels."""
        if self.chances is None or not len(self.rows):
            return on
        dummies = (self.levels[None] == np.unique(self.levels)[:, None]).astype(float)
        levels, about = self._centre(dummies), self._centre(on)
        information = (levels * self.variance) @ levels.T
        slopes = np.linalg.pinv(information) @ (levels * self.variance) @ about.T
        return np.asarray(on - slopes.T @ dummies)

    def _centre(self, values: Floats) -> Floats:
        """Subtract from each row the means of the strata, weighted by variances."""
        total = np.add.reduceat(self.variance, self.start)
        sums = np.add.reduceat(values * self.variance, self.start, axis=1)
        means = sums / np.where(total > 0, total, 1.0)
        return np.asarray(values - means[:, self.home])

    def draw(self, draws: int, rng: np.random.Generator) -> tuple[Ints, Bools]:
        """Return the runs of changed strata, and outcomes dealt out among these runs."""
        strata = np.flatnonzero(self.changed)
        if self.chances is None and self.size.max() > _MANY:
            # long strata are few
            parts = [slice(s, s + n) for s, n in zip(self.start, self.size, strict=True)]
            tables = (np.repeat(self.failed[part, None] > 0, draws, axis=1) for part in parts)
            dealt = np.concatenate([rng.permuted(table, axis=0) for table in tables])
            mine = self.changed[self.home]
            return self.rows[mine], dealt[mine]
        size, left = self.size[strata], np.repeat(self.total[strata, None], draws, axis=1)
        dealt = np.zeros((len(strata), int(size.max(initial=0)), draws), dtype=np.bool_)
        for i in range(dealt.shape[1]):
            chance = (
                left / np.maximum(size - i, 1)[:, None]
                if self.chances is None
                else self.chances[strata[:, None], i, left]
            )
            dealt[:, i] = rng.random(left.shape) < chance
            left = left - dealt[:, i]
        mine = self.changed[self.home]
        number = np.cumsum(self.changed) - 1
        return self.rows[mine], dealt[number[self.home[mine]], self.place[mine]]


def _list_sets(
    length: Ints, failed: Bools, strata: Ints, levels: Ints, steps: list[int]
) -> list[_RiskSet]:
    """Return the runs at risk at some steps."""
    sets: list[_RiskSet] = []
    order, count = np.argsort(strata, kind="stable"), int(strata.max(initial=-1)) + 1
    odds, sizes = np.ones(int(levels.max(initial=0)) + 1), np.zeros(count, dtype=np.int64)
    for step in steps:
        going = order[length[order] >= step]
        size = np.bincount(strata[going], minlength=count)
        fails = np.bincount(strata[going], failed[going], minlength=count)
        rows = going[((fails > 0) & (fails < size))[strata[going]]]
        one = _RiskSet(rows, strata[rows], failed[rows], levels[rows], odds)
        one.changed = (size != sizes)[strata[rows[one.start]]] if len(rows) else one.changed
        odds, sizes = one.odds, size
        sets.append(one)
    return sets


def _draw_statistics(
    sets: list[_RiskSet],
    weights: list[list[tuple[int, Floats]]],
    shape: tuple[int, int],
    runs: int,
    rng: np.random.Generator,
) -> Floats:
    """Return the weighted failures beyond expectation: of the data, then of each draw."""
    statistics = np.zeros((DRAWS + 1, *shape))
    for one, parts in zip(sets, weights, strict=True):
        for place, weight in parts:
            statistics[0, place] += weight @ (one.failed - one.expected)
    batch = max(1, _CELLS // max(runs, 1))
    for start in range(1, DRAWS + 1, batch):
        part = statistics[start : start + batch]
        outcomes = np.zeros((runs, len(part)), dtype=np.bool_)
        for one, parts in zip(sets, weights, strict=True):
            if not len(one.rows):
                continue
            rows, dealt = one.draw(len(part), rng)
            outcomes[rows] = dealt
            excess = outcomes[one.rows] - one.expected[:, None]
            for place, weight in parts:
                part[:, place] += (weight @ excess).T
    return statistics
