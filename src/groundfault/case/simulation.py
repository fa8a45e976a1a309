"""Simulated labels of fresh rows: the result of a confirmation if rows fail at given rates."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from math import sqrt
from typing import Final

import numpy as np

from groundfault.auditing.preparation import join_copies
from groundfault.base.arrays import Bools, Floats
from groundfault.base.long_work import Progress, stream
from groundfault.case.case import Case
from groundfault.case.parts import group_modes, mark_units, select_answers
from groundfault.core.evidence import Evidence
from groundfault.core.plan import to_fraction
from groundfault.core.units import average_losses
from groundfault.errors import PlanError
from groundfault.judges.rule import has_support
from groundfault.modes.mode import Mode
from groundfault.sequential.slice_tests import GradedSlice, SliceTest, SliceTests, read_grades

_CELLS: Final = 100
"""Values of the mean loss in a simulated test; see `_thin`."""


@dataclass(frozen=True, eq=False)
class FreshRows:
    """Units that could be labelled, which modes of one outcome they match, and their failure rates.

    Attributes
    ----------
    numbers : tuple of int, length K
        Of the modes that have enough fresh units inside and outside.
    on : bool array, shape (K, N)
        Which units are inside each mode.
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
        """Return the run before the first label of chosen modes; None without labels of
        them.
        """
        rows = [k for k, number in enumerate(self.numbers) if number in chosen]
        if not rows:
            return None
        rng = stream(0, f"labels for mode {self.numbers[0]}", run)
        losses, grades = (rng.random(len(self.rates)) < self.rates).astype(np.float64), None
        if self.grades is not None:
            passed, failed = (rng.choice(grades, len(losses)) for grades in self.grades)
            grades = np.where(losses > 0, failed, passed)
        tests = SliceTests.begin(
            self.on[rows], np.ones(len(rows), dtype=np.int64), grades=grades, level=level
        )
        tests = replace(tests, tests=tuple(map(_thin, tests.tests)))
        return _Run(tuple(self.numbers[k] for k in rows), losses, rng, tests)


@dataclass(eq=False)
class _Run:
    """One simulated confirmation of some modes of one outcome."""

    numbers: tuple[int, ...]
    losses: Floats
    rng: np.random.Generator
    tests: SliceTests
    labelled: int = 0

    @property
    def is_finished(self) -> bool:
        return self.labelled == len(self.losses) or bool(self.tests.confirmed.all())

    def label(self) -> None:
        free = self.tests.find_units()
        unit = int(self.rng.choice(np.flatnonzero(free)))
        self.tests = self.tests.update(unit, float(self.losses[unit]), free)
        self.labelled += 1


def simulate(
    groups: Sequence[FreshRows], chosen: Collection[int], alpha: float, most: int, run: int
) -> tuple[int, dict[int, bool]]:
    """Return the number of labels of one confirmation of chosen modes, and the modes it confirmed.

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
    shares = [sum(number in chosen for number in group.numbers) / len(chosen) for group in groups]
    begun = (g.begin(chosen, alpha * share, run) for g, share in zip(groups, shares, strict=True))
    runs = [one for one in begun if one is not None]
    # in turns as `CaseConfirmation` has it
    while sum(one.labelled for one in runs) < most and (
        unfinished := [one for one in runs if not one.is_finished]
    ):
        min(unfinished, key=lambda one: one.labelled / len(one.numbers)).label()
    confirmed: dict[int, bool] = {}
    for one in runs:
        confirmed |= dict(zip(one.numbers, one.tests.confirmed.tolist(), strict=True))
    return sum(one.labelled for one in runs), confirmed


def _thin(test: SliceTest | GradedSlice) -> SliceTest | GradedSlice:
    """Return the test of fewer values of the mean loss: e-values a few percent too large, and
    sooner.

    Values of equal distance after the arc sine lie as many standard errors apart everywhere.
    """
    if isinstance(test, GradedSlice) or len(test.cells[0]) <= _CELLS:
        return test
    steps = np.sin(np.linspace(0.0, np.pi / 2, _CELLS)) ** 2
    places = np.unique(np.rint(steps * (len(test.cells[0]) - 1)).astype(np.intp))
    lower, upper = test.cells
    log_high, log_low = test.log_high[:, places], test.log_low[:, places]
    return replace(test, cells=(lower[places], upper[places]), log_high=log_high, log_low=log_low)


def imagine_rows(
    case: Case, find_rate: Callable[[Mode, float], float]
) -> tuple[list[FreshRows], dict[str, float]]:
    """Return fresh rows of each outcome of the audit's modes; and the rates at which units in none
    fail.

    Parameters
    ----------
    case : Case
        Units in no mode fail as often as the audit's.
    find_rate : callable
        Failure rate of units inside a mode, from the mode and the rate of units in no mode. Units
        of several modes fail like units of the first.
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
        inside = on.sum(axis=1)
        plan = case.settings.confirmation_plan
        rows = np.flatnonzero(has_support(inside, on.shape[1] - inside, plan))
        chosen = tuple(numbers[k] for k in rows)
        groups.append(FreshRows(chosen, on[rows], rates, _read_grades_by_loss(case, audited)))
    return groups, rates_elsewhere


def _find_rate_elsewhere(evidence: Evidence, modes: Sequence[Mode]) -> float:
    """Return the failure rate of the units in no mode; 0 without such units."""
    losses = average_losses(evidence)[0][~mark_units(evidence, modes).any(axis=0)]
    return float(np.nanmean(losses)) if np.isfinite(losses).any() else 0.0


def _read_grades_by_loss(case: Case, evidence: Evidence) -> tuple[Floats, Floats] | None:
    """Return the grader's losses of units that passed and that failed; None without a grader."""
    if case.settings.grader is None:
        return None
    grades = read_grades(evidence, case.settings.grader)[evidence.unit_index]
    losses = evidence.loss.to_numpy()
    passed, failed = grades[losses == 0], grades[losses == 1]
    return (passed if len(passed) else grades), (failed if len(failed) else grades)


POWER: Final = 0.8
"""The power that is customary in planning studies (Cohen 1988)."""
RUNS: Final = 600
"""Simulated confirmations of what is chosen: a power of .8 is then known to within .04 or so."""
_BATCH: Final = 40
"""Runs after which a mode that plainly lacks power is noticed."""


@dataclass(frozen=True)
class BudgetPlan:
    """The modes that a number of labels can confirm.

    Attributes
    ----------
    budget : int
        Labels.
    lift : float or None
        Failure rate inside each mode less that of units in no mode, as it was simulated; None where
        it was the lower end of each mode's interval in the audit.
    rates : dict of str to float
        Failure rate of units in no mode; by model where modes are of several.
    runs : int
        Simulated confirmations of the modes to choose; fewer for modes that plainly lack power.
    powers : dict of int to float
        By the number of each mode to choose: in which share of the runs it was confirmed.
    dropped : dict of int to float
        The same of each mode that is left out, when it was the last to be.
    """

    budget: int
    lift: float | None
    rates: dict[str, float]
    runs: int
    powers: dict[int, float]
    dropped: dict[int, float]

    def to_json(self) -> str:
        """Return the whole forecast as JSON."""
        return json.dumps(asdict(self), indent=1)


def plan_budget(
    case: Case,
    budget: int,
    *,
    lift: float | None = None,
    runs: int = RUNS,
    progress: Progress | None = None,
) -> BudgetPlan:
    """Simulate confirmations, and leave out the weakest mode until all others have power.

    Units inside every mode of the audit, whether it is chosen or not, fail at the lower end of the
    interval that the audit has for it, which is chosen for looking bad; or, with ``lift``, more
    often by that than units in no mode, which fail as the audit's do. Each label serves all chosen
    modes, but what is confirmed is adjusted for their number, so fewer modes have more power each.

    Parameters
    ----------
    case : Case
        Audited; its modes to confirm are not chosen yet.
    budget : int
        Number of labels to spend.
    lift : float, optional
        Failure rate inside each mode less that of units in no mode; by default the lower end of the
        audit's interval for the mode is its rate. In (0, 1], and no more than what makes every unit
        fail.
    runs : int
        Most simulated confirmations of each choice of modes.
    progress : callable, optional
        Called with a message before each choice is simulated.

    Returns
    -------
    BudgetPlan
        ``powers`` is empty where no mode has a power of .8.

    Raises
    ------
    PlanError
        If there was no audit, it found no mode, the modes were chosen, or a number is out of range.
    """
    numbers = case.check_modes(None)
    if case.choice is not None:
        raise PlanError("the modes to confirm and their budget were chosen already, and they stay")
    if budget < 1 or runs < 1:
        raise PlanError("a plan needs a budget of one label or more, and one simulated run or more")
    groups, rates = imagine_rows(
        case, lambda mode, rate: max(rate, mode.interval[0]) if lift is None else rate + lift
    )
    top = max(rates.values())
    if lift is not None and not 0 < lift <= 1 - top:
        raise PlanError(
            f"units in no mode fail at a rate of {top:.3g}, so a difference is more than 0 and at "
            f"most {1 - top:.3g}, not {lift:g}"
        )
    alpha = float(to_fraction(case.settings.share_alpha("confirm")))
    modes = [number for group in groups for number in group.numbers]
    assert case.report is not None
    p = {number: case.report.modes[number - 1].p_marginal for number in modes}
    dropped = {number: 0.0 for number in numbers if number not in modes}
    while modes:
        if progress is not None:
            progress(f"Simulating confirmations of {len(modes)} of the modes")
        _, powers = _measure_powers(groups, modes, alpha, budget, range(1, runs + 1), POWER)
        # of several that are never confirmed together, the one that the audit is least sure of
        weakest = min(powers, key=lambda number: (powers[number], -p[number], -number))
        if powers[weakest] >= POWER:
            return BudgetPlan(budget, lift, rates, runs, powers, dropped)
        dropped[weakest] = powers[weakest]
        modes.remove(weakest)
    return BudgetPlan(budget, lift, rates, runs, {}, dropped)


def _measure_powers(
    groups: Sequence[FreshRows],
    modes: Collection[int],
    alpha: float,
    most: int,
    runs: Iterable[int],
    least: float = 0.0,
) -> tuple[list[int], dict[int, float]]:
    """Return the labels of each run, and in which share of the runs each mode was confirmed.

    End early where a mode plainly lacks the least power.
    """
    labels, counts = [], dict.fromkeys(modes, 0)
    for run in runs:
        bought, confirmed = simulate(groups, modes, alpha, most, run)
        labels.append(bought)
        for number, is_confirmed in confirmed.items():
            counts[number] += is_confirmed
        done = len(labels)
        error = sqrt(least * (1 - least) / done)
        if done % _BATCH == 0 and min(counts.values()) / done < least - 3 * error:
            break
    return labels, {number: count / len(labels) for number, count in counts.items()}


FORECAST_RUNS = 9
"""Odd, so that the median is a run; few, since a page waits for them."""
_MOST_LABELS = 400
"""Labels after which a simulated run ends: who needs more is told so."""


@dataclass(frozen=True)
class Forecast:
    """Results of simulated confirmations.

    Attributes
    ----------
    runs : int
    limit : int
        The largest number of labels that can be bought.
    median : int
        Labels until all modes are confirmed, or no more are bought.
    shares : dict of int to float
        By the number of each mode: in which share of the runs it was confirmed.
    """

    runs: int
    limit: int
    median: int
    shares: dict[int, float]


def forecast_confirmation(case: Case) -> Forecast | None:
    """Simulate confirmations of a case's modes; None where no label can be of use.

    Fresh units inside a mode fail as often as the audit's inside it, those of several modes as the
    first of them has it, and the others as the audit's outside of all. A run ends after 400 labels:
    the numbers are for planning, and no result rests on them.

    Parameters
    ----------
    case : Case
    """
    summary = case.summarize()
    undecided = ("open",) if summary.chosen else ("open", "not chosen")
    numbers = [mode.number for mode in summary.modes if mode.standing in undecided]
    limit = min(summary.budget or case.settings.fresh_answers, case.settings.fresh_answers)
    if not numbers or summary.labelled >= limit:
        return None
    alpha = float(to_fraction(case.settings.share_alpha("confirm")))
    groups, _ = imagine_rows(case, lambda mode, _: mode.rate)
    most = min(limit, _MOST_LABELS)
    labels, shares = _measure_powers(groups, numbers, alpha, most, range(FORECAST_RUNS))
    return Forecast(FORECAST_RUNS, limit, int(np.median(labels)), shares)
