"""Cells: the numbers of every hypothesis on discovery, on the holdout and on all units."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from groundfault.auditing.results import AuditResults
from groundfault.core.finding import Cell
from groundfault.core.pairs import Pairs
from groundfault.core.plan import Plan, to_fraction
from groundfault.core.units import Units
from groundfault.stats import intervals, paired

Cells = dict[str, list[Cell] | None]


def make_cells(results: AuditResults) -> Cells:
    """The cells of every hypothesis by part, with the p-values that belong there."""
    size, plan = len(results.ruling.verdicts), results.audit.plan
    p = _p_values(results)
    discovery = _cells_of(results.discovery, plan, *p["discovery"])
    if results.holdout is None:
        return {"discovery": discovery, "holdout": None, "full": discovery}
    none = np.full(size, np.nan)
    return {
        "discovery": discovery,
        "holdout": _cells_of(results.holdout, plan, *p["holdout"]),
        "full": _cells_of(results.full, plan, none, none),
    }


def number_or_none(value: float) -> float | None:
    """A number for JSON, which has no NaN."""
    return None if np.isnan(value) else float(value)


def _p_values(
    results: AuditResults,
) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Plain and adjusted p-values of every hypothesis, NaN where there is none."""
    audit, ruling = results.audit, results.ruling
    p, adjusted_p, holdout_p, holdout_adjusted = (
        np.full(len(ruling.verdicts), np.nan) for _ in range(4)
    )
    for h, i in results.positions.items():
        # a candidate that was selected by the outcomes of these units has no valid p-value on them
        mined = audit.is_mined_here(audit.library[h // len(audit.outcomes)])
        screening = None if mined else ruling.screening
        if screening and screening.p is not None:
            p[h] = screening.p[i]
        if screening and screening.p_adjusted is not None:
            adjusted_p[h] = screening.p_adjusted[i]
        if ruling.holdout_result:
            holdout_p[h] = ruling.holdout_result.p[i]
            holdout_adjusted[h] = ruling.holdout_result.p_adjusted[i]
    return {"discovery": (p, adjusted_p), "holdout": (holdout_p, holdout_adjusted)}


def _cells_of(
    units: Units, plan: Plan, p: NDArray[np.float64], adjusted_p: NDArray[np.float64]
) -> list[Cell]:
    tables = units.tables
    low, high = _intervals(units, plan)
    on_sum, total = tables.on_sum / tables.unit, tables.total / tables.unit
    return [
        Cell(
            int(tables.on[h]),
            int(tables.off[h]),
            _round_whole(on_sum[h]),
            _round_whole(total[h] - on_sum[h]),
            number_or_none(tables.lift[h]),
            number_or_none(p[h]),
            number_or_none(adjusted_p[h]),
            None if np.isnan(low[h]) else (float(low[h]), float(high[h])),
        )
        for h in range(len(tables))
    ]


def _intervals(units: Units, plan: Plan) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper ends; NaN where a side is empty."""
    if isinstance(units, Pairs):
        return _change_intervals(units, plan)
    tables = units.tables
    level, effect = 1 - float(to_fraction(plan.alpha)), plan.effect
    defined = (tables.on > 0) & (tables.off > 0)
    low, high = np.full(len(tables), np.nan), np.full(len(tables), np.nan)
    on, off = tables.on[defined].astype(float), tables.off[defined].astype(float)
    on_sum = tables.on_sum[defined] / tables.unit
    off_sum = tables.total[defined] / tables.unit - on_sum
    if effect != "risk_difference":
        ends = intervals.log_ratio(effect, on_sum, on, off_sum, off, level)
    elif tables.denominator == 1:  # 0/1 losses
        ends = intervals.newcombe(on_sum, on, off_sum, off, level)
    else:
        on_squares, squares = (a[defined] for a in units.squares())
        ends = intervals.welch(
            (on, on_sum, on_squares), (off, off_sum, squares - on_squares), level
        )
    low[defined], high[defined] = ends
    return low, high


def _change_intervals(pairs: Pairs, plan: Plan) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Those of changes between two models; NaN where a slice is empty."""
    on = pairs.support[1]
    ends = paired.change(*pairs.change_sums(), on, 1 - float(to_fraction(plan.alpha)))
    low, high = (np.where(on > 0, end, np.nan) for end in ends)
    return low, high


def _round_whole(value: float) -> float:
    """The value, without the rounding error of a sum of 0/1 errors."""
    near = round(float(value))
    return float(near) if abs(value - near) < 1e-9 else float(value)
