"""Plan for a budget: which modes so many labels can confirm, and with what power."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from math import sqrt
from typing import TYPE_CHECKING, Final

from groundfault.case.simulation import FreshRows, imagine_rows, simulate
from groundfault.core.plan import to_fraction
from groundfault.errors import PlanError

if TYPE_CHECKING:
    from groundfault.base.progress import Progress
    from groundfault.case.case import Case

POWER: Final = 0.8
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
    lift : float or None
        Failure rate inside each mode less that of units in no mode, as it was simulated; None where
        it was the lower end of each mode's interval in the audit.
    rates : dict of str to float
        Failure rate of units in no mode; by model where modes are of several.
    runs : int
        Simulated confirmations of the modes to choose; fewer of those that plainly lack power.
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
        """All of it as JSON."""
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
        Labels, 1 or more.
    lift : float, optional
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
            f"units in no mode fail at a rate of {top:.3g}, so a lift is more than 0 and at most "
            f"{1 - top:.3g}, not {lift:g}"
        )
    alpha = float(to_fraction(case.settings.share_alpha("confirm")))
    modes = [number for group in groups for number in group.numbers]
    assert case.report is not None
    p = {number: case.report.modes[number - 1].p_marginal for number in modes}
    dropped = {number: 0.0 for number in numbers if number not in modes}
    while modes:
        if progress is not None:
            progress(f"Simulating confirmations of {len(modes)} of the modes")
        powers = _measure_powers(groups, modes, alpha, budget, runs)
        # of several that are never confirmed together, the one that the audit is least sure of
        weakest = min(powers, key=lambda number: (powers[number], -p[number], -number))
        if powers[weakest] >= POWER:
            return BudgetPlan(budget, lift, rates, runs, powers, dropped)
        dropped[weakest] = powers[weakest]
        modes.remove(weakest)
    return BudgetPlan(budget, lift, rates, runs, {}, dropped)


def _measure_powers(
    groups: list[FreshRows], modes: list[int], alpha: float, budget: int, runs: int
) -> dict[int, float]:
    """In which share of the runs each mode was confirmed; ends early where one plainly lacks."""
    counts = dict.fromkeys(modes, 0)
    for run in range(1, runs + 1):
        for number, is_confirmed in simulate(groups, modes, alpha, budget, run)[1].items():
            counts[number] += is_confirmed
        error = sqrt(POWER * (1 - POWER) / run)
        if run % _BATCH == 0 and min(counts.values()) / run < POWER - 3 * error:
            break
    return {number: count / run for number, count in counts.items()}
