"""Simulated labels of fresh rows: what a confirmation comes to if rows fail at given rates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from groundfault.auditing.copies import join_copies
from groundfault.base.streams import stream
from groundfault.case.model_answers import group_modes, select_answers
from groundfault.case.parts import mark_units
from groundfault.core.units import average_losses
from groundfault.sequential.graded_slices import GradedSlice, read_grades
from groundfault.sequential.slice_tests import SliceTest, SliceTests, find_units_to_label

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from numpy.typing import NDArray

    from groundfault.case.case import Case
    from groundfault.core.evidence import Evidence
    from groundfault.modes.mode import Mode

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]

_CELLS: Final = 100


@dataclass(frozen=True, eq=False)
class FreshRows:
    """Units that could be labelled, what modes of one outcome hold for, and how they would fail.

    Attributes
    ----------
    numbers : tuple of int, length K
        Of the modes that have enough fresh units inside and outside.
    on : bool array, shape (K, N)
        Which units are inside each of them.
    rates : float64 array, shape (N,)
        Chance that a unit fails, in [0, 1].
    grades : pair of float64 arrays, optional
        A grader's losses of units that passed, and of units that failed, to draw from; None
        without a grader.
    """

    numbers: tuple[int, ...]
    on: Bools
    rates: Floats
    grades: tuple[Floats, Floats] | None

    def begin(self, chosen: Collection[int], level: float, run: int) -> _Run | None:
        """Before the first label of chosen modes; None where there are none of them."""
        rows = [k for k, number in enumerate(self.numbers) if number in chosen]
        if not rows:
            return None
        rng = stream(0, f"labels for mode {self.numbers[0]}", run)
        losses = (rng.random(len(self.rates)) < self.rates).astype(np.float64)
        grades = None
        if self.grades is not None:
            passed, failed = (rng.choice(grades, len(losses)) for grades in self.grades)
            grades = np.where(losses > 0, failed, passed)
        tests = SliceTests.begin(
            self.on[rows], np.ones(len(rows), dtype=np.int64), grades=grades, level=level
        )
        tests = replace(tests, tests=tuple(map(_thin, tests.tests)))
        numbers = tuple(self.numbers[k] for k in rows)
        return _Run(numbers, losses, level, rng, tests, np.zeros(len(rows), dtype=np.bool_))


@dataclass(eq=False)
class _Run:
    """One simulated confirmation of some modes of one outcome."""

    numbers: tuple[int, ...]
    losses: Floats
    level: float
    rng: np.random.Generator
    tests: SliceTests
    confirmed: Bools
    labelled: int = 0

    @property
    def is_finished(self) -> bool:
        return self.labelled == len(self.losses) or bool(self.confirmed.all())

    def label(self) -> None:
        free = find_units_to_label(self.tests, np.flatnonzero(~self.confirmed))
        unit = int(self.rng.choice(np.flatnonzero(free)))
        self.tests = self.tests.update(unit, float(self.losses[unit]), free)
        self.confirmed |= self.tests.reach(self.level)
        self.labelled += 1


def simulate(
    groups: Sequence[FreshRows], chosen: Collection[int], alpha: float, most: int, run: int
) -> tuple[int, dict[int, bool]]:
    """Labels that one confirmation of chosen modes bought, and which of them it confirmed.

    Parameters
    ----------
    groups : sequence of FreshRows
        A model each, or one.
    chosen : collection of int
        Numbers of modes.
    alpha : float in (0, 1)
        Level of the confirmation.
    most : int
        The largest number of labels.
    run : int
        Names the draw: the same run has the same failures, whichever modes are confirmed.
    """
    runs = []
    for group in groups:
        share = sum(number in chosen for number in group.numbers) / len(chosen)
        if (one := group.begin(chosen, alpha * share, run)) is not None:
            runs.append(one)
    # in turns as `CaseConfirmation` has it
    while sum(one.labelled for one in runs) < most and (
        unfinished := [one for one in runs if not one.is_finished]
    ):
        min(unfinished, key=lambda one: one.labelled / len(one.numbers)).label()
    confirmed = {
        number: bool(is_confirmed)
        for one in runs
        for number, is_confirmed in zip(one.numbers, one.confirmed, strict=True)
    }
    return sum(one.labelled for one in runs), confirmed


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


def imagine_rows(
    case: Case, find_rate: Callable[[Mode, float], float]
) -> tuple[list[FreshRows], dict[str, float]]:
    """Fresh rows of each outcome of the audit's modes; and the rates at which units in none fail.

    Parameters
    ----------
    case : Case
        Units in no mode fail as often as the audit's.
    find_rate : callable
        The rate at which units inside a mode fail, of the mode and the rate of those in none. Units
        of several modes fail as those of the first.
    """
    report = case.report
    assert report is not None
    groups, rates_elsewhere = [], {}
    for outcome, numbers in group_modes(report).items():
        modes = [report.modes[number - 1] for number in numbers]
        audited = join_copies(select_answers(case.audit_evidence, outcome, case.settings.seed))
        on = case.mark_fresh_units(numbers)
        rates_elsewhere[outcome] = base = _find_rate_elsewhere(audited, modes)
        rates = np.full(on.shape[1], base)
        for mode, row in reversed(list(zip(modes, on, strict=True))):
            rates[row] = find_rate(mode, base)
        rows = _find_testable(case, on)
        chosen = tuple(numbers[k] for k in rows)
        groups.append(FreshRows(chosen, on[rows], rates, _read_grades_by_loss(case, audited)))
    return groups, rates_elsewhere


def _find_testable(case: Case, on: Bools) -> NDArray[np.intp]:
    """Modes with enough fresh units inside and outside to be confirmed: rows of ``on``, (K, N)."""
    plan, inside = case.settings.confirmation_plan, on.sum(axis=1)
    is_large = inside >= (plan.hold_min_on or plan.min_on)
    rows: NDArray[np.intp] = np.flatnonzero(
        is_large & (on.shape[1] - inside >= (plan.hold_min_off or plan.min_off))
    )
    return rows


def _find_rate_elsewhere(evidence: Evidence, modes: Sequence[Mode]) -> float:
    """Failure rate of the units in no mode; 0 where there are none."""
    losses = average_losses(evidence)[0][~mark_units(evidence, modes).any(axis=0)]
    return float(np.nanmean(losses)) if np.isfinite(losses).any() else 0.0


def _read_grades_by_loss(case: Case, evidence: Evidence) -> tuple[Floats, Floats] | None:
    """The grader's losses of units that passed and that failed; None without a grader."""
    if case.settings.grader is None:
        return None
    grades = read_grades(evidence, case.settings.grader)[evidence.unit_index]
    losses = evidence.loss.to_numpy()
    passed, failed = grades[losses == 0], grades[losses == 1]
    return (passed if len(passed) else grades), (failed if len(failed) else grades)
