"""Slice tests: whether losses go with slices of finitely many units, label by label."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log
from typing import TypeVar

import numpy as np
import polars as pl

from groundfault.base.arrays import Bools, Floats, Ints, Places
from groundfault.core.evidence import Evidence
from groundfault.errors import InputError, PlanError, require_name
from groundfault.stats.betting import conditional_threshold, factor, is_refuted, log_mean
from groundfault.stats.multiple import e_holm
from groundfault.stats.prediction_powered import (
    GradedBets,
    GradedDifference,
    allow_chance,
    find_interval,
)

_Number = TypeVar("_Number", int, float)

_MAX_CELLS = 2000
"""Units up to which each possible failure rate has a wealth of its own: 2001 columns of floats."""
_EDGE = 0.01
"""No score is forecast nearer to 0 than this, so that none costs all."""
_LIFTS = np.array([[0.05], [0.1], [0.15], [0.2], [0.3], [0.4], [0.6]])
"""Lifts to bet on, each with an equal share."""
_ROUNDING = 1e-12
"""A lift or an e-value that equals its bound on paper may come out a few ulp below it."""


@dataclass(frozen=True, eq=False)
class GradedSlice:
    """Bets that units of a slice fail more than others, by more than chance gives.

    Two errors share the level. Labels of all units would reject a null that is true, by Fisher's
    exact test, with at most half of it; and the bets, from a few labels and the grades of all, say
    wrongly that all labels would reject with at most the other half. The bets are fair because
    units are drawn at random, whatever the grades are.

    Attributes
    ----------
    bets : GradedDifference
        Its means inside are those of the side that is held to fail more.
    labels : tuple of (loss, grade, high, fair)
        Of the labelled units, in order: which side they are of, and whether a bet was placed.
    """

    bets: GradedDifference
    labels: tuple[tuple[float, float, bool, bool], ...] = ()

    @classmethod
    def begin(cls, grades: Floats, high: Bools, level: float, tests: int) -> GradedSlice:
        """Begin the test, before the first label.

        Parameters
        ----------
        grades : (N,) array in [0, 1]
            Of all units for which the slice is defined; 1 is a failure.
        high : (N,) bool array
            Which of them are of the side that is held to fail more.
        level : float in (0, 1)
            Family-wise error of all tests.
        tests : int
            How many there are.
        """
        sizes = int(high.sum()), int((~high).sum())
        sums = float(grades[high].sum()), float(grades[~high].sum())
        edge = allow_chance(sizes, level / (2 * tests))
        return cls(GradedDifference.begin(sizes, sums, level / 2, edge))

    def update(self, loss: float, grade: float, *, high: bool, bet: bool = True) -> GradedSlice:
        """Return the test after one more label."""
        bets = self.bets.update(loss, grade, inside=high, bet=bet)
        return replace(self, bets=bets, labels=(*self.labels, (loss, grade, high, bet)))

    def find_rates(self, alpha: float) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return intervals of the failure rates of both sides, by labels and grades.

        Parameters
        ----------
        alpha : float in (0, 1)
            The chance, for each, that it ever lies beside the rate of all units of its side.
        """
        high, low = self.bets.inside, self.bets.outside
        return self._find_rate(high, alpha, high=True), self._find_rate(low, alpha, high=False)

    def _find_rate(self, bets: GradedBets, alpha: float, *, high: bool) -> tuple[float, float]:
        own = [(loss, grade, fair) for loss, grade, side, fair in self.labels if side == high]
        losses, grades, fair = zip(*own, strict=True) if own else ((), (), ())
        left = float(bets.grade_sum[0])
        # the bets on the low side are on labels and grades taken from 1
        total = sum(grades) + (left if high else bets.size - bets.label_count - left)
        lowest, highest = find_interval(losses, grades, bets.size, total, alpha, fair=fair)
        return float(lowest[0]), float(highest[0])

    @property
    def log_e(self) -> float:
        """Return the natural log of the e-value, halved for the half of the level that it has."""
        return float(self.bets.log_e[0]) - log(2.0)

    @property
    def counts(self) -> tuple[int, int]:
        """Return the labels of the high and the low side."""
        return self.bets.inside.label_count, self.bets.outside.label_count

    @property
    def bet_counts(self) -> tuple[int, int]:
        """Return the labels of either side that were bet on."""
        return self.bets.inside.bet_count, self.bets.outside.bet_count

    @property
    def gap(self) -> float:
        """Return the mean loss of the high side minus the low, by labels and grades; NaN without
        labels.
        """
        if not all(self.counts):
            return float("nan")
        inside, outside = self.bets.inside.estimate(), self.bets.outside.estimate()
        return float(inside[0] - (1.0 - outside[0]))


def read_grades(evidence: Evidence, column: str) -> Floats:
    """Return a grader's loss of every unit: (N,) array in [0, 1], where 1 is a failure.

    A unit without a grade has the mean of the others.

    Raises
    ------
    InputError
        If there is no such column, or no grade in it.
    PlanError
        If it holds other numbers than those from 0 to 1.
    """
    require_name("column", column, evidence.frame.columns, InputError, "grader")
    values = evidence.frame[column]
    if not (values.dtype.is_numeric() or values.dtype == pl.Boolean):
        raise PlanError(f"the grader's scores in {column!r} are no numbers")
    scores = values.cast(pl.Float64).to_numpy()
    has_grade = np.isfinite(scores)
    if not has_grade.any():
        raise InputError(f"{column!r} has no grade in it")
    if ((scores < 0) | (scores > 1))[has_grade].any():
        raise PlanError(f"the grader's scores in {column!r} must be from 0 to 1")
    losses = 1.0 - scores if evidence.roles.positive_is_good else scores
    losses = np.where(has_grade, losses, losses[has_grade].mean())
    size = np.bincount(evidence.unit_index, minlength=evidence.unit_count)
    mean: Floats = np.bincount(evidence.unit_index, losses, evidence.unit_count) / size
    return mean


@dataclass(frozen=True, eq=False)
class SliceTest:
    """An e-process against the null that, given the losses, any units may be on the slice.

    Under that null the next loss is as likely any of those that are left, whichever side its unit
    is of. What is left is known but for the mean of all losses. For every value of it, and each of
    a few lifts, either side's wealth is the likelihood ratio of losses that lie, as that lift has
    it, above or below the mean of the rest. The wealths of both sides are multiplied, once lift by
    lift and once after averaging each over the lifts; the mean of the two is an e-process if the
    value is the true one, and the e-value is the smallest of these means.

    Attributes
    ----------
    units : int
    share : float
        Of the units, on the high side.
    sums, counts : pair of float, pair of int
        Losses and labels of the high and the low side.
    bet_sums, bet_counts : pair of float, pair of int
        The same of labels that were bet on: a random sample of either side.
    cells : pair of float64 arrays, shape (C,)
        Lower and upper ends of the values that the mean of all losses may have.
    log_high, log_low : float64 arrays, shape (A, C)
        Log wealth of either side, one row a lift.
    log_e : float
        Natural log of the e-value.

    Notes
    -----
    Losses lie in [0, 1]. If they are 0 or 1 the mean of all is a multiple of 1/N; for others, and
    for many units, it lies between two such numbers and either side takes the worse end."""

    units: int
    share: float
    cells: tuple[Floats, Floats]
    log_high: Floats
    log_low: Floats
    sums: tuple[float, float] = (0.0, 0.0)
    counts: tuple[int, int] = (0, 0)
    bet_sums: tuple[float, float] = (0.0, 0.0)
    bet_counts: tuple[int, int] = (0, 0)
    log_e: float = 0.0

    @classmethod
    def begin(cls, units: int, high: int, *, errors: bool = True) -> SliceTest:
        """Begin before the first label of so many units, ``high`` of them on that side; ``errors``:
        losses are 0 or 1.
        """
        if errors and units < _MAX_CELLS:
            values = np.arange(units + 1) / units
            # the rate of all units is unknown: the null is refuted only if it is at every possible
            # rate, so wealth is kept for each and the smallest counts; errors of N units have N + 1
            # rates
            cells = (values, values)
        else:
            ends = np.linspace(0, 1, 401)
            cells = (ends[:-1], ends[1:])
        nothing = np.zeros((len(_LIFTS), len(cells[0])))
        return cls(units, high / units, cells, nothing, nothing)

    def update(
        self,
        loss: float,
        grade: float = 0.0,  # noqa: ARG002  (of the same signature as GradedSlice.update)
        *,
        high: bool,
        bet: bool = True,
    ) -> SliceTest:
        """Return the test after one more label.

        Parameters
        ----------
        loss : float in [0, 1]
        grade : float in [0, 1]
            A grader's loss of the unit, which this test does not use; `GradedSlice` does.
        high : bool
            Whether the unit is of the side that is held to fail more.
        bet : bool
            False where the unit was not drawn uniformly from all unlabelled ones of its side: it is
            counted, not bet on.
        """
        log_high, log_low = self.log_high, self.log_low
        if bet:
            steps = np.log(self._compute_factors(loss, high))
            steps = np.where(is_refuted(self._find_threshold(high)), np.inf, steps)
            log_high, log_low = (log_high + steps, log_low) if high else (log_high, log_low + steps)
        # one stake carried over both sides, or a stake on each: both are martingales at the true
        # rate, and their average too
        together = _log_average(log_high + log_low)
        apart = _log_average(log_high) + _log_average(log_low)
        return replace(
            self,
            log_high=log_high,
            log_low=log_low,
            sums=_add(self.sums, loss, high),
            counts=_add(self.counts, 1, high),
            bet_sums=_add(self.bet_sums, loss * bet, high),
            bet_counts=_add(self.bet_counts, int(bet), high),
            log_e=float(_log_average(np.stack([together, apart])).min()),
        )

    @property
    def labelled(self) -> int:
        """Return the number of labels."""
        return sum(self.counts)

    def _find_threshold(self, high: bool) -> Floats:
        """Return the least mean of a side's next score under the null: passes if high, losses if
        low.
        """
        (lower, upper), total = self.cells, sum(self.sums)
        if high:
            lower, total = 1.0 - upper, self.labelled - total
        return conditional_threshold(lower, self.units, self.labelled, total)

    def _compute_factors(self, loss: float, high: bool) -> Floats:
        """Return the wealth that one unit staked on each lift becomes, for each cell: (A, C)."""
        threshold = self._find_threshold(high)
        gap = _LIFTS * (1.0 - self.share if high else self.share)
        score = np.full(len(threshold), 1.0 - loss if high else loss)
        return factor(score, np.maximum(threshold - gap, _EDGE), threshold)

    @property
    def gap(self) -> float:
        """Return the mean loss of units that were bet on, high side minus low; NaN where a side has
        none.

        Labels that were drawn for another slice give no estimate of the mean of a whole side.
        """
        if not all(self.bet_counts):
            return float("nan")
        (up, down), (n_up, n_down) = self.bet_sums, self.bet_counts
        return up / n_up - down / n_down


def _add(pair: tuple[_Number, _Number], value: _Number, first: bool) -> tuple[_Number, _Number]:
    return (pair[0] + value, pair[1]) if first else (pair[0], pair[1] + value)


def _log_average(log_values: Floats) -> Floats:
    return log_mean(log_values, np.full((1, 1), -log(len(log_values))))


@dataclass(frozen=True, eq=False)
class SliceTests:
    """Tests of K slices of the same N units, each label serving all of them; combined by e-Holm.

    Attributes
    ----------
    on, defined : bool arrays, shape (K, N)
        Which units are on each slice, and for which it is defined; the others are not its business.
    direction : int array, shape (K,)
        1 where the slice is held to have the higher losses, -1 where the lower.
    labelled : bool array, shape (N,)
    tests : tuple of SliceTest or of GradedSlice, length K
    adjusted, best : float64 arrays, shape (K,)
        e-values after e-Holm, and the largest so far.
    confirmed : bool array, shape (K,)
        Whose e-value has reached 1 / level, with a lift of at least `least_lift` then.
        ``P(any null that is true is ever confirmed) <= level``, under any dependence.
    level : float
    least_lift : float, optional
        Counted in the direction of the slice; None asks for none.
    grades : float64 array, shape (N,), optional
        A grader's loss of every unit, where the tests use it.
    """

    on: Bools
    defined: Bools
    direction: Ints
    labelled: Bools
    tests: tuple[SliceTest | GradedSlice, ...]
    adjusted: Floats
    best: Floats
    confirmed: Bools
    level: float
    least_lift: float | None
    grades: Floats | None

    @classmethod
    def begin(
        cls,
        on: Bools,
        direction: Ints,
        *,
        defined: Bools | None = None,
        errors: bool = True,
        grades: Floats | None = None,
        level: float = 0.1,
        least_lift: float | None = None,
    ) -> SliceTests:
        """Begin before the first label; ``level`` is the family-wise error."""
        covered = np.ones_like(on) if defined is None else defined
        high = on == (direction > 0)[:, None]
        tests: tuple[SliceTest | GradedSlice, ...]
        if grades is None:
            tests = tuple(
                SliceTest.begin(int(row.sum()), int((side & row).sum()), errors=errors)
                for row, side in zip(covered, high, strict=True)
            )
        else:
            tests = tuple(
                GradedSlice.begin(grades[row], side[row], level, len(on))
                for row, side in zip(covered, high, strict=True)
            )
        labelled, confirmed = np.zeros(on.shape[1], np.bool_), np.zeros(len(on), np.bool_)
        e = np.ones(len(on))
        return cls(
            on, covered, direction, labelled, tests, e, e, confirmed, level, least_lift, grades
        )

    def update(self, unit: int, loss: float | None, eligible: Bools) -> SliceTests:
        """Return the test after one more label.

        Parameters
        ----------
        unit : int
        loss : float in [0, 1], or None
            None, for a unit that cannot be scored, helps no slice: it is a pass on the side that is
            held to fail more, and a failure on the other.
        eligible : bool array, shape (N,)
            The unlabelled units from which it was drawn uniformly, chosen before its loss was
            known. A slice bets where these include all unlabelled units of the unit's own side.
        """
        tests = list(self.tests)
        grade = 0.0 if self.grades is None else float(self.grades[unit])
        for k, (on, defined, sign) in enumerate(
            zip(self.on, self.defined, self.direction, strict=True)
        ):
            if defined[unit]:
                # the unit is uniform among its side only if that whole side was on offer; else its
                # loss is counted in the totals but no bet on it would be fair
                fair = bool(eligible[(on == on[unit]) & defined & ~self.labelled].all())
                high = bool(on[unit]) == (sign > 0)
                own = float(not high) if loss is None else loss
                tests[k] = tests[k].update(own, grade, high=high, bet=fair)
        labelled = self.labelled.copy()
        labelled[unit] = True
        # exp overflows at 709; beyond 700 every plausible alpha has been passed long ago
        e = e_holm(np.exp(np.minimum([test.log_e for test in tests], 700.0)))
        # the running maximum may be used: Ville's inequality bounds the largest e-value ever
        # reached
        best = np.maximum(self.best, e)
        after = replace(self, labelled=labelled, tests=tuple(tests), adjusted=e, best=best)
        reached = best >= (1 - _ROUNDING) / self.level
        if self.least_lift is not None:
            lifts = self.direction * np.nan_to_num(after.lifts)
            reached &= lifts >= self.least_lift - _ROUNDING
        return replace(after, confirmed=self.confirmed | reached)

    @property
    def lifts(self) -> Floats:
        """Return the mean loss on minus off each slice, by its own labels: shape (K,); NaN without
        a
        side.
        """
        return np.array(
            [int(sign) * test.gap for test, sign in zip(self.tests, self.direction, strict=True)]
        )

    def find_units(self) -> Bools:
        """Return units from which to draw the next label, of all units alike: bool, shape (N,).

        Without grades these are all unlabelled ones; for the last slice that is not confirmed,
        those of the side that has fewer labels. With grades a label inside a slice serves that
        slice, and one drawn from all is fair for every slice.
        """
        undecided = np.flatnonzero(~self.confirmed | self.confirmed.all())
        if self.grades is not None:
            return self._find_units_with_grades(undecided)
        return self._find_lagging_side(undecided[0]) if len(undecided) == 1 else ~self.labelled

    def _find_units_with_grades(self, undecided: Places) -> Bools:
        """Return the units to label where a label inside of a slice serves that slice alone.

        The slice that has fewest of either is served, and one that has evidence already before
        others: it is nearest to its end.
        """
        free = ~self.labelled
        needs = [
            (min(test.bet_counts) / (1.0 + max(test.log_e, 0.0)), int(k), test.bet_counts)
            for k in undecided
            for test in (self.tests[k],)
        ]
        _, k, (high_count, low_count) = min(needs)
        inside = free & self.defined[k] & (self.on[k] == (self.direction[k] > 0))
        return free if high_count > low_count or not inside.any() else inside

    def _find_lagging_side(self, k: np.intp) -> Bools:
        """Return unlabelled units of the side with fewer labels; of the other, where it has none
        left.
        """
        free, labelled = self.defined[k] & ~self.labelled, self.labelled & self.defined[k]
        on, off = free & self.on[k], free & ~self.on[k]
        fewer = on if (labelled & self.on[k]).sum() <= (labelled & ~self.on[k]).sum() else off
        return fewer if fewer.any() else free if free.any() else ~self.labelled
