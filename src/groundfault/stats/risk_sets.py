"""Runs at risk: whether something that happens during runs goes with how they end."""

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
"""Runs with, and without, something below which it is not tested: no test of fewer finds much."""
_LAST = 50
"""Steps that are looked at: few runs go on, and each costs its draws."""
_CELLS = 1 << 22
"""Drawn outcomes in memory at once: 4 MB, and 16 MB as numbers."""
_ROUNDING = 1e-6
"""Standard deviation of sums of failures that is none."""
_MANY = 256
"""Runs of a stratum from which it is permuted alone, not run by run with all others."""
_ROUNDS, _CLOSE = 50, 1e-6
"""Of the fit of levels, which takes some ten rounds, and where it stops."""


@dataclass(frozen=True)
class RiskContrasts:
    """Associations of behaviours with failing, and how sure they are.

    Attributes
    ----------
    runs, failed, expected : float64 arrays, shape (1 + landmarks, L)
        First row: runs in which something happened before their last step, while runs of both
        outcomes of their stratum went on, those of them that failed, and that are expected to. Then
        for each landmark the same of runs that still went on, and in which it had happened by then.
    rest, rest_failed : float64 arrays, shape (1 + landmarks, L)
        Runs at the landmark in which it had not happened.
    at_risk, at_risk_failed : int64 arrays, shape (1 + landmarks,)
        Runs that still went on in strata of both outcomes; in the first row, after the first step.
    z : float64 array, shape (1 + landmarks, L)
        Excess of failures in standard deviations; NaN where not tested.
    p : float64 array, shape (1 + landmarks, L)
        Adjusted for everything tested; NaN likewise.
    bar : float
        The least absolute z that has an adjusted p-value of at most the level.
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
    """Test what happens during runs against how they end, among runs that go on equally long.

    Parameters
    ----------
    first : int32 array, shape (L, n)
        Step, from 1, at which each of L things first happens in each run; `NEVER`.
    length : int64 array, shape (n,)
        Steps of each run.
    failed : bool array, shape (n,)
    strata : int64 array, shape (n,)
        Runs that are compared: those of one task.
    levels : int64 array, shape (n,)
        Who ran; outcomes of one stratum are exchangeable but for each one's level.
    landmarks : tuple of int
        Steps after which runs that still go on are compared by what happened up to there.
    level : float
        Family-wise error level, in (0, 1).
    rng : numpy.random.Generator
    sums : bool
        Whether to test the sums over all steps, and not the landmarks alone.

    Notes
    -----
    Runs that succeed stop, so that whatever takes time happens more often in those that fail. At
    each step, only runs that go on after it are compared: the failures of those in which something
    happens with what the failures of their stratum at risk give. What happens in the last step of a
    run is not compared, because it may be the ending itself. Summed over steps, that
    is a log-rank test (Mantel 1966; Andersen and Gill 1982, doi:10.1214/aos/1176345976); at a
    landmark it is that of Anderson, Cain and Gelber 1983 (doi:10.1200/JCO.1983.1.11.710). Given the
    number of failures in a stratum at risk, they are dealt out anew with odds that are each one's
    level, fitted by conditional likelihood; what the levels explain is taken out of the statistic
    (the efficient score). Draws are kept from step to step until a run of the stratum ends. The
    adjusted p-values are of the largest statistic of all in the same draws (Westfall and Young
    1993), half of the level for sums and half for landmarks; with several `levels` they are
    asymptotic in the number of strata.
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
    # what all runs of a stratum share varies by rounding alone
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
        Strata that are not as they were a step before.
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
        """Fit odds of each level by conditional likelihood: failures of each are as many."""
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
        """Find the chance that a run fails, given how many failures are left from it on."""
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
        """Return weights of runs whose sum of failures does not depend on how levels are fitted."""
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
        """Return the runs of strata that changed, and outcomes dealt out among them."""
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
