"""Forecast: how many labels a confirmation would take, if fresh rows failed as the audit's did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from groundfault.case.simulation import imagine_rows, simulate
from groundfault.core.plan import to_fraction

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
    limit = min(summary.budget or case.settings.fresh_answers, case.settings.fresh_answers)
    if not modes or summary.labelled >= limit:
        return None
    numbers = [mode.number for mode in modes]
    alpha = float(to_fraction(case.settings.share_alpha("confirm")))
    groups, _ = imagine_rows(case, lambda mode, _: mode.rate)
    runs = [simulate(groups, numbers, alpha, min(limit, _MOST_LABELS), run) for run in range(RUNS)]
    shares = {
        number: float(np.mean([confirmed.get(number, False) for _, confirmed in runs]))
        for number in numbers
    }
    return Forecast(RUNS, limit, int(np.median([labels for labels, _ in runs])), shares)
