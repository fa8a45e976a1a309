"""Failure modes as rows of the table that a gate's condition is asked of, beside findings."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundfault.auditing.messages import write_mode_sentence
from groundfault.auditing.report_schema import ReportData
from groundfault.modes.mode import Mode
from groundfault.stats import intervals


def list_mode_rows(report: ReportData) -> list[dict[str, Any]]:
    """A row for each failure mode, with the keys of a finding's.

    Parameters
    ----------
    report : ReportData

    Notes
    -----
    A mode stands beside confirmed findings: its lift is the failure rate inside its rule minus
    that outside, with Newcombe's interval, its p-values are the larger of its two, and nothing of
    it was repeated over splits (no frequency).
    """
    return [_row(report, mode) for mode in report.modes]


def list_rules(mode: Mode) -> set[str]:
    """The rules that a mode is known by: its own, and those that explain the same examples."""
    return {mode.rule, *(other.rule for other in mode.alternatives)}


def _row(report: ReportData, mode: Mode) -> dict[str, Any]:
    models = report.manifest.models or ()
    model = mode.outcome or (models[0] if len(models) == 1 else None)
    lift = mode.rate - mode.rate_outside if mode.n_outside else None
    low, high = _interval(report, mode)
    p = max(mode.p_marginal, mode.p_conditional)
    return {
        "name": mode.meaning,
        "rule": mode.rule,
        "meaning": mode.meaning,
        "source": mode.source,
        "outcome": mode.outcome,
        "model": model if model in models else None,
        "verdict": "confirmed",
        "confirmed": True,
        "reason": "",
        "representative": None,
        "n_on": mode.n,
        "n_off": mode.n_outside,
        "lift": lift,
        "p": p,
        "p_adjusted": p,
        "low": low,
        "high": high,
        "discovery_lift": lift,
        "frequency": None,
        "kind": "mode",
        "sentence": write_mode_sentence(mode),
    }


def _interval(report: ReportData, mode: Mode) -> tuple[float | None, float | None]:
    if not mode.n_outside:
        return None, None
    on_sum, on, off_sum, off = np.array(
        [[mode.errors], [mode.n], [mode.errors_outside], [mode.n_outside]], dtype=np.float64
    )
    low, high = intervals.newcombe(on_sum, on, off_sum, off, 1 - float(report.plan.alpha))
    return float(low[0]), float(high[0])
