"""Rows that a gate's condition is asked of: findings, failure modes, and an overall change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from groundfault.auditing.messages import write_mode_sentence
from groundfault.auditing.report import parse_report, read_report
from groundfault.auditing.report_schema import OverallChange, ReportData
from groundfault.base.deprecation import warn_renamed
from groundfault.core.finding import Finding
from groundfault.core.rules import Rule
from groundfault.errors import InputError, RuleError, first_line
from groundfault.modes.mode import Mode
from groundfault.stats import intervals

if TYPE_CHECKING:
    import polars as pl

COLUMNS = {
    "name": str,
    "rule": str,
    "meaning": str,
    "source": str,
    "outcome": str,
    "model": str,
    "verdict": str,
    "confirmed": bool,
    "reason": str,
    "representative": str,
    "n_on": int,
    "n_off": int,
    "lift": float,
    "p": float,
    "p_adjusted": float,
    "low": float,
    "high": float,
    "discovery_lift": float,
    "frequency": float,
    "kind": str,
}
"""What an expression may read of a finding, a failure mode or an overall change, and its type."""

_WORDS = (
    "name",
    "rule",
    "meaning",
    "source",
    "outcome",
    "verdict",
    "reason",
    "representative",
    "sentence",
)

GateKey = tuple[str, str, bool, str]
"""Rule, outcome as every report calls it, whether failures are fewer, and kind."""


class GateRows:
    """A report's findings and modes for which a rule is true, by keys that other reports share.

    Attributes
    ----------
    report : ReportData
    verdicts : dict
        Of every finding, whether or not the rule is true of it.
    rows : dict
        Those for which the rule is true.
    aliases : dict
        For each of these the keys that it is known by.
    notes : tuple of str
        What was not asked.
    """

    def __init__(self, report: ReportData, rule: Rule, *, modes: bool = True) -> None:
        _refuse_directions(report, rule)
        self.report = report
        rows = [_row(report, finding) for finding in report.findings]
        if report.change is not None:
            rows.append(_overall_row(report, report.change))
        keys = [_key(report, row) for row in rows]
        self.verdicts = {key[:2]: row["verdict"] for key, row in zip(keys, rows, strict=True)}
        self.rows = {keys[i]: rows[i] for i in _true_of(rule, _table(rows))}
        self.aliases = {key: {key} for key in self.rows}
        self.notes: tuple[str, ...] = ()
        if report.modes and modes:
            self._add_modes(rule)
        elif report.modes:
            self.notes = (
                "the baseline names no failure modes, so those of the report are not held"
                " against it",
            )

    def _add_modes(self, rule: Rule) -> None:
        rows = list_mode_rows(self.report)
        truth = _evaluate(rule, _table(rows))
        undecided = int(truth.null_count())
        if undecided:
            empty = ", ".join(name for name in rule.columns if rows[0][name] is None)
            self.notes = (
                f"the rule cannot be asked of {undecided} of {len(rows)} failure modes, which have "
                f"no {empty}",
            )
        for place in truth.fill_null(False).arg_true():
            row, mode = rows[int(place)], self.report.modes[int(place)]
            key = _key(self.report, row)
            self.rows[key] = row | {"mode": mode}
            self.aliases[key] = {(name, *key[1:]) for name in list_rules(mode)}

    def knows(self, aliases: set[GateKey]) -> bool:
        """Return whether a row that is known by these keys is one of this report's."""
        return any(aliases & others for others in self.aliases.values())


def read_gated(report: ReportData | str | Path | Mapping[str, Any]) -> ReportData:
    """Return the content of a report, its file, or its JSON.

    Parameters
    ----------
    report : ReportData, path or mapping

    Raises
    ------
    InputError
        If it cannot be read, or holds a number that is not finite.
    """
    if isinstance(report, ReportData):
        return report
    content = parse_report(report) if isinstance(report, Mapping) else read_report(report)
    least = content.data.minimum_detectable_lift
    if least is not None and not math.isfinite(least):
        raise InputError("a report holds a number that is not finite; no audit writes such")
    return content.data


def parse_condition(text: str) -> Rule:
    """Return a gate's condition.

    Parameters
    ----------
    text : str

    Raises
    ------
    RuleError
        If it is malformed, or reads an unknown column.
    """
    rule = Rule.parse(text)
    if "lead" in rule.columns:
        warn_renamed("the column lead", "representative", stacklevel=4)
    unknown = [name for name in rule.columns if name not in (*COLUMNS, "lead")]
    if unknown:
        raise RuleError(f"findings have no column {unknown[0]!r}; there are {', '.join(COLUMNS)}")
    return rule


def _refuse_directions(report: ReportData, rule: Rule) -> None:
    """A condition on a direction of a comparison, as reports had them once, is never true now."""
    if report.change is not None and " fails where " in rule.sql:
        raise RuleError(
            "a comparison has one outcome, the change from the first model to the second: ask "
            "'lift > 0' for more failures, and nothing of the outcome"
        )


def _key(report: ReportData, row: Mapping[str, Any]) -> GateKey:
    # the sign is part of the key: a slice that was better and is now worse is another finding
    name, candidate = _common_name(report, row["outcome"]), row.get("finding")
    if candidate is None:
        return row["rule"], name, (row["lift"] or 0) < 0, row["kind"]
    # by the candidate, whichever side it is told of
    lift = (candidate.holdout or candidate.full).lift
    return candidate.rule, name, (lift or 0) < 0, row["kind"]


def _common_name(report: ReportData, outcome: str) -> str:
    """What an outcome is called in every report.

    Of a comparison of before it is its direction, whatever the models' names.
    """
    if report.manifest.compare and report.change is None and outcome in report.outcomes:
        return f"direction {report.outcomes.index(outcome)}"
    return outcome


def _row(report: ReportData, candidate: Finding) -> dict[str, Any]:
    """A finding as `COLUMNS`, told of the side with more failures, its sentence and itself."""
    finding = candidate.face_failures(report.plan.effect)
    cell, models = finding.holdout or finding.full, report.manifest.models or ()
    # of what is confirmed, the interval that accounts for having been selected
    corrected = finding.estimate
    low, high = (corrected.interval if corrected else cell.interval) or (None, None)
    model = finding.outcome or (models[0] if len(models) == 1 else None)
    return {
        **{name: getattr(finding, name) for name in _WORDS},
        **{name: getattr(cell, name) for name in ("lift", "p", "p_adjusted")},
        "verdict": str(finding.verdict),
        "model": None if report.manifest.compare else model,
        "confirmed": finding.confirmed,
        "n_on": cell.on,
        "n_off": cell.off,
        "low": low,
        "high": high,
        "discovery_lift": finding.discovery.lift,
        "frequency": finding.frequency,
        "kind": "finding",
        "finding": candidate,
    }


def _overall_row(report: ReportData, change: OverallChange) -> dict[str, Any]:
    """Return the overall change of a comparison, beside findings."""
    compare = report.manifest.compare or ("", "")
    more = "more" if change.change > 0 else "less"
    names = dict.fromkeys(("name", "rule", "meaning"), "all examples")
    rates = [f"{name} {rate:.1%}" for name, rate in zip(compare, change.error_rates, strict=True)]
    return {
        **names,
        "source": "comparison",
        "outcome": "",
        "model": None,
        "verdict": "confirmed" if change.confirmed else "below_floor",
        "confirmed": change.confirmed,
        "reason": "",
        "representative": None,
        "sentence": (
            f"Overall, {compare[1]} fails {more} often than {compare[0]} ({', '.join(rates)}; "
            f"change {change.change:+.3f}; p = {change.p:.2g})."
        ),
        "n_on": change.n,
        "n_off": change.n,
        "lift": change.change,
        "p": change.p,
        "p_adjusted": change.p,
        "low": change.interval[0],
        "high": change.interval[1],
        "discovery_lift": change.change,
        "frequency": None,
        "kind": "overall",
    }


def _table(rows: list[dict[str, Any]]) -> pl.DataFrame:
    import polars as pl

    types = {str: pl.String, int: pl.Int64, float: pl.Float64, bool: pl.Boolean}
    schema = {name: types[kind] for name, kind in COLUMNS.items()} | {"sentence": pl.String}
    try:
        table = pl.DataFrame([{name: row[name] for name in schema} for row in rows], schema=schema)
        # the name of version 0.1.0, which rules may use until the next minor release
        table = table.with_columns(pl.col("representative").alias("lead"))
    except (pl.exceptions.PolarsError, UnicodeEncodeError) as error:
        raise InputError(f"a report holds what no audit writes: {first_line(error)}") from None
    if not table.select(pl.all_horizontal(pl.col(pl.Float64).is_finite().all())).item():
        raise InputError("a report holds a number that is not finite; no audit writes such")
    return table


def _true_of(rule: Rule, table: pl.DataFrame) -> list[int]:
    """Indices of rows for which a rule is true."""
    # null for a confirmed finding is an error and no false: the gate would pass what nobody decided
    truth = _evaluate(rule, table)
    undecided = table.filter(truth.is_null() & table["confirmed"])
    if undecided.height:
        row = undecided.row(0, named=True)
        empty = ", ".join(name for name in rule.columns if row[name] is None)
        raise RuleError(
            f"{rule.sql!r} cannot be decided of the confirmed finding {row['name']!r}: it has "
            f"no {empty}"
        )
    return [int(i) for i in truth.fill_null(False).arg_true()]


def _evaluate(rule: Rule, table: pl.DataFrame) -> pl.Series:
    """Return a rule's value for each row: Boolean, null where it is neither true nor false."""
    import polars as pl

    try:
        truth = table.select(rule.to_polars().alias("truth")).to_series()
    except pl.exceptions.PolarsError as error:
        raise RuleError(f"cannot evaluate {rule.sql!r} on findings: {first_line(error)}") from None
    if truth.dtype not in (pl.Boolean, pl.Null):
        raise RuleError(f"{rule.sql!r} is {truth.dtype}, neither true nor false")
    return truth.cast(pl.Boolean)


def list_mode_rows(report: ReportData) -> list[dict[str, Any]]:
    """Return a row for each failure mode, with the keys of a finding's.

    Parameters
    ----------
    report : ReportData

    Notes
    -----
    A mode stands beside confirmed findings: its lift is the failure rate inside its rule minus
    that outside, with Newcombe's interval, its p-values are the larger of its two, and nothing of
    it was repeated over splits (no frequency).
    """
    return [_mode_row(report, mode) for mode in report.modes]


def list_rules(mode: Mode) -> set[str]:
    """The rules that a mode is known by: its own, and those that explain the same examples."""
    return {mode.rule, *(other.rule for other in mode.alternatives)}


def _mode_row(report: ReportData, mode: Mode) -> dict[str, Any]:
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
