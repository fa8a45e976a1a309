"""Forecast: how many labels a confirmation would take, if fresh rows failed as the audit's did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from groundfault.base.streams import stream
from groundfault.core.plan import exact
from groundfault.sequential.slice_tests import SliceTests, find_lagging_side

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    first of them has it, and the others as the audit's outside of all. The grader is not used, and
    a run ends after 400 labels: the numbers are for planning, and no result rests on them.

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
    rates = np.full(on.shape[1], min(mode.rate_outside for mode in modes))
    for mode, row in reversed(list(zip(modes, on, strict=True))):
        rates[row] = mode.rate
    alpha = float(exact(case.settings.share_alpha("confirm")))
    most = min(limit, _MOST_LABELS)
    runs = [_simulate(on, rates, alpha, most, run) for run in range(RUNS)]
    labels, confirmed = [run[0] for run in runs], np.mean([run[1] for run in runs], axis=0)
    shares = {mode.number: float(share) for mode, share in zip(modes, confirmed, strict=True)}
    return Forecast(RUNS, limit, int(np.median(labels)), shares)


def _simulate(
    on: NDArray[np.bool_], rates: NDArray[np.float64], alpha: float, most: int, run: int
) -> tuple[int, NDArray[np.bool_]]:
    """Labels of one simulated confirmation, and which modes it confirmed."""
    rng = stream(0, "forecast", run)
    losses = (rng.random(len(rates)) < rates).astype(np.float64)
    tests = SliceTests.begin(on, np.ones(len(on), dtype=np.int64), level=alpha)
    confirmed = np.zeros(len(on), dtype=np.bool_)
    labels = 0
    while labels < most and not confirmed.all():
        open_ones = np.flatnonzero(~confirmed)
        one = len(open_ones) == 1
        free = find_lagging_side(tests, int(open_ones[0])) if one else ~tests.labelled
        unit = int(rng.choice(np.flatnonzero(free)))
        tests = tests.update(unit, float(losses[unit]), free)
        confirmed |= tests.reach(alpha)
        labels += 1
    return labels, confirmed
