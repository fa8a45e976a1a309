"""Forecast: how many labels a confirmation would take, if fresh rows failed as the audit's did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from groundfault.case.simulation import (
    FreshRows,
    find_rate_elsewhere,
    find_testable,
    read_grades_by_loss,
)
from groundfault.core.plan import exact

if TYPE_CHECKING:
    from groundfault.case.case import Case

RUNS = 9
_MOST_LABELS = 400


@dataclass(frozen=True)
class Forecast:
    """What simulated confirmations came to.

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
    modes = [mode for mode in summary.modes if mode.standing in ("open", "not chosen")]
    if summary.chosen:
        modes = [mode for mode in modes if mode.standing == "open"]
    limit = min(summary.budget or case.settings.fresh_units, case.settings.fresh_units)
    if not modes or summary.labelled >= limit or case.report is None:
        return None
    on = case.mark_fresh_units([case.report.modes[mode.number - 1] for mode in modes])
    rates = np.full(on.shape[1], find_rate_elsewhere(case))
    for mode, row in reversed(list(zip(modes, on, strict=True))):
        rates[row] = mode.rate
    alpha = float(exact(case.settings.share_alpha("confirm")))
    most = min(limit, _MOST_LABELS)
    rows = FreshRows(on, rates, read_grades_by_loss(case))
    testable = find_testable(case, on)
    runs = [rows.simulate(testable, alpha, most, run) for run in range(RUNS)]
    shares = dict.fromkeys((mode.number for mode in modes), 0.0)
    for k, share in zip(testable, np.mean([run[1] for run in runs], axis=0), strict=True):
        shares[modes[k].number] = float(share)
    return Forecast(RUNS, limit, int(np.median([run[0] for run in runs])), shares)
