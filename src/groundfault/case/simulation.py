"""Simulated labels of fresh rows: what a confirmation comes to if rows fail at given rates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from groundfault.auditing.copies import join_copies
from groundfault.base.streams import stream
from groundfault.case.parts import mark_units
from groundfault.core.units import average_losses
from groundfault.sequential.graded_slices import GradedSlice, read_grades
from groundfault.sequential.slice_tests import SliceTest, SliceTests, find_units_to_label

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groundfault.case.case import Case

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]

_CELLS: Final = 100


@dataclass(frozen=True, eq=False)
class FreshRows:
    """Units that could be labelled, and how they would fail.

    Attributes
    ----------
    on : bool array, shape (K, N)
        Which units are inside each of K modes.
    rates : float64 array, shape (N,)
        Chance that a unit fails, in [0, 1].
    grades : pair of float64 arrays, optional
        A grader's losses of units that passed, and of units that failed, to draw from; None
        without a grader.
    """

    on: Bools
    rates: Floats
    grades: tuple[Floats, Floats] | None

    def simulate(
        self, modes: NDArray[np.intp], alpha: float, most: int, run: int
    ) -> tuple[int, Bools]:
        """Labels that one confirmation of some of the modes bought, and which it confirmed.

        Parameters
        ----------
        modes : int array, shape (M,)
            Rows of ``on``.
        alpha : float in (0, 1)
            Level of the confirmation.
        most : int
            The largest number of labels.
        run : int
            Names the draw: the same run has the same failures, whichever modes are confirmed.
        """
        rng = stream(0, "forecast", run)
        losses = (rng.random(len(self.rates)) < self.rates).astype(np.float64)
        tests = SliceTests.begin(
            self.on[modes],
            np.ones(len(modes), dtype=np.int64),
            grades=self._draw_grades(losses, rng),
            level=alpha,
        )
        tests = replace(tests, tests=tuple(map(_thin, tests.tests)))
        confirmed = np.zeros(len(modes), dtype=np.bool_)
        while tests.labelled.sum() < min(most, len(losses)) and not confirmed.all():
            free = find_units_to_label(tests, np.flatnonzero(~confirmed))
            unit = int(rng.choice(np.flatnonzero(free)))
            tests = tests.update(unit, float(losses[unit]), free)
            confirmed |= tests.reach(alpha)
        return int(tests.labelled.sum()), confirmed

    def _draw_grades(self, losses: Floats, rng: np.random.Generator) -> Floats | None:
        if self.grades is None:
            return None
        passed, failed = (rng.choice(grades, len(losses)) for grades in self.grades)
        return np.where(losses > 0, failed, passed)


def _thin(test: SliceTest | GradedSlice) -> SliceTest | GradedSlice:
    """The test of fewer values of the mean loss: e-values a few percent too large, and sooner.

    Values of equal distance after the arc sine lie as many standard errors apart everywhere.
    """
    if isinstance(test, GradedSlice) or len(test.cells[0]) <= _CELLS:
        return test
    steps = np.sin(np.linspace(0.0, np.pi / 2, _CELLS)) ** 2
    places = np.unique(np.rint(steps * (len(test.cells[0]) - 1)).astype(np.intp))
    lower, upper = test.cells
    return replace(
        test,
        cells=(lower[places], upper[places]),
        log_high=test.log_high[:, places],
        log_low=test.log_low[:, places],
    )


def find_testable(case: Case, on: Bools) -> NDArray[np.intp]:
    """Modes with enough fresh units inside and outside to be confirmed: rows of ``on``, (K, N)."""
    plan, inside = case.settings.confirmation_plan, on.sum(axis=1)
    is_large = inside >= (plan.hold_min_on or plan.min_on)
    rows: NDArray[np.intp] = np.flatnonzero(
        is_large & (on.shape[1] - inside >= (plan.hold_min_off or plan.min_off))
    )
    return rows


def find_rate_elsewhere(case: Case) -> float:
    """Failure rate of the audited units in no mode; 0 where there are none."""
    evidence = join_copies(case.audit_evidence)
    elsewhere = ~mark_units(evidence, case.report.modes if case.report else ()).any(axis=0)
    losses = average_losses(evidence)[0][elsewhere]
    return float(np.nanmean(losses)) if np.isfinite(losses).any() else 0.0


def read_grades_by_loss(case: Case) -> tuple[Floats, Floats] | None:
    """The grader's losses of audited units that passed and that failed; None without a grader."""
    if case.settings.grader is None:
        return None
    evidence = case.audit_evidence
    grades = read_grades(evidence, case.settings.grader)[evidence.unit_index]
    losses = evidence.loss.to_numpy()
    passed, failed = grades[losses == 0], grades[losses == 1]
    return (passed if len(passed) else grades), (failed if len(failed) else grades)
