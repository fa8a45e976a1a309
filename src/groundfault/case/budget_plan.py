"""Plan for a budget: which modes so many labels can confirm, and with what power."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from groundfault.case.settings import ModeChoice
from groundfault.case.simulation import (
    FreshRows,
    find_rate_elsewhere,
    find_testable,
    read_grades_by_loss,
)
from groundfault.core.plan import exact
from groundfault.errors import PlanError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groundfault.base.progress import Progress
    from groundfault.case.case import Case

POWER: Final = 0.8
LIFT: Final = 0.15
RUNS: Final = 600
"""Simulated confirmations of what is chosen: a power of .8 is then known to within .04 or so."""
_BATCH: Final = 40


@dataclass(frozen=True)
class BudgetPlan:
    """What a number of labels can confirm.

    Attributes
    ----------
    budget : int
        Labels.
    lift : float
        Failure rate inside each mode less that of units in no mode, as it was simulated.
    rate : float
        Failure rate of units in no mode.
    runs : int
        Simulated confirmations of the modes to choose; fewer of those that plainly lack power.
    powers : dict of int to float
        By the number of each mode to choose: in which share of the runs it was confirmed.
    dropped : dict of int to float
        The same of each mode that is left out, when it was the last to be.
    """

    budget: int
    lift: float
    rate: float
    runs: int
    powers: dict[int, float]
    dropped: dict[int, float]

    def to_json(self) -> str:
        """All of it as JSON."""
        return json.dumps(asdict(self), indent=1)


def plan_budget(
    case: Case,
    budget: int,
    *,
    lift: float = LIFT,
    runs: int = RUNS,
    progress: Progress | None = None,
) -> BudgetPlan:
    """Simulate confirmations, and leave out the weakest mode until all others have power.

    Every mode of the audit fails more often by ``lift``, whether it is chosen or not, and units in
    no mode as the audit's outside of its modes. Each label serves all chosen modes, but what is
    confirmed is adjusted for their number, so fewer modes have more power each.

    Parameters
    ----------
    case : Case
        Audited; its modes to confirm are not chosen yet.
    budget : int
        Labels, 1 or more.
    lift : float
        In (0, 1], and no more than what makes every unit fail.
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
    numbers = np.array(case.check_modes(None))
    if ModeChoice.load(case.folder) is not None:
        raise PlanError("the modes to confirm and their budget were chosen already, and they stay")
    rows, rate = _imagine(case, lift)
    if budget < 1 or runs < 1:
        raise PlanError("a plan needs a budget of one label or more, and one simulated run or more")
    alpha = float(exact(case.settings.share_alpha("confirm")))
    modes = find_testable(case, rows.on)
    dropped = {int(number): 0.0 for number in np.delete(numbers, modes)}
    while len(modes):
        if progress is not None:
            progress(f"Simulating confirmations of {len(modes)} of the modes")
        shares = _simulate(rows, modes, alpha, budget, runs)
        if shares.min() >= POWER:
            powers = {int(numbers[k]): float(s) for k, s in zip(modes, shares, strict=True)}
            return BudgetPlan(budget, lift, rate, runs, powers, dropped)
        dropped[int(numbers[modes[shares.argmin()]])] = float(shares.min())
        modes = np.delete(modes, shares.argmin())
    return BudgetPlan(budget, lift, rate, runs, {}, dropped)


def _simulate(
    rows: FreshRows, modes: NDArray[np.intp], alpha: float, budget: int, runs: int
) -> NDArray[np.float64]:
    """In which share of the runs each mode was confirmed; ends early where one plainly lacks."""
    confirmed = np.zeros(len(modes))
    for run in range(1, runs + 1):
        confirmed += rows.simulate(modes, alpha, budget, run)[1]
        error = np.sqrt(POWER * (1 - POWER) / run)
        if run % _BATCH == 0 and confirmed.min() / run < POWER - 3 * error:
            break
    return confirmed / run


def _imagine(case: Case, lift: float) -> tuple[FreshRows, float]:
    """Fresh rows that fail by a lift more inside every mode, and the rate outside of all."""
    rate = find_rate_elsewhere(case)
    if not 0 < lift <= 1 - rate:
        raise PlanError(
            f"units in no mode fail at a rate of {rate:.3g}, so a lift is more than 0 and at most "
            f"{1 - rate:.3g}, not {lift:g}"
        )
    on = case.mark_fresh_units(case.report.modes if case.report else ())
    rates = np.where(on.any(axis=0), rate + lift, rate)
    return FreshRows(on, rates, read_grades_by_loss(case)), rate
