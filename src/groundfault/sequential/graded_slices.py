"""Slice tests with a cheap grade of every unit: which labels a grader saves, and what it cannot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from groundfault.errors import InputError, PlanError
from groundfault.stats.prediction_powered import (
    GradedBets,
    GradedDifference,
    allow_chance,
    find_interval,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groundfault.core.evidence import Evidence

    Floats = NDArray[np.float64]


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
    def begin(
        cls, grades: Floats, high: NDArray[np.bool_], level: float, tests: int
    ) -> GradedSlice:
        """Before the first label.

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
        """After one more label; see `SliceTest.update`."""
        bets = self.bets.update(loss, grade, inside=high, bet=bet)
        return replace(self, bets=bets, labels=(*self.labels, (loss, grade, high, bet)))

    def find_rates(self, alpha: float) -> tuple[tuple[float, float], tuple[float, float]]:
        """Intervals of the failure rates of the high and the low side, by labels and grades.

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
        """Natural log of the e-value, halved for the half of the level that it has."""
        return float(self.bets.log_e[0]) - log(2.0)

    @property
    def counts(self) -> tuple[int, int]:
        """Labels of the high and the low side."""
        return self.bets.inside.label_count, self.bets.outside.label_count

    @property
    def bet_counts(self) -> tuple[int, int]:
        """Those of them that were bet on."""
        return self.bets.inside.bet_count, self.bets.outside.bet_count

    @property
    def gap(self) -> float:
        """Mean loss of the high side minus the low, by labels and grades; NaN without labels."""
        if not all(self.counts):
            return float("nan")
        inside, outside = self.bets.inside.estimate(), self.bets.outside.estimate()
        return float(inside[0] - (1.0 - outside[0]))


def read_grades(evidence: Evidence, column: str) -> Floats:
    """A grader's loss of every unit: (N,) array in [0, 1], where 1 is a failure.

    A unit without a grade has the mean of the others.

    Raises
    ------
    InputError
        If there is no such column, or no grade in it.
    PlanError
        If it holds other numbers than those from 0 to 1.
    """
    if column not in evidence.frame.columns:
        raise InputError(f"there is no column {column!r}, which should hold the grader's scores")
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
