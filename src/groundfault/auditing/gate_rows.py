"""Rows that a gate's condition tests: findings, failure modes, and an overall change."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import get_args

import numpy as np
import polars as pl
from msgspec import Struct, structs

from groundfault.auditing.messages import (
    compare_models,
    equal_p,
    format_points,
    write_mode_sentence,
)
from groundfault.auditing.report import parse_report, read_report
from groundfault.auditing.report_schema import OverallChange, ReportData
from groundfault.core.finding import Finding
from groundfault.core.rules import Rule
from groundfault.errors import InputError, RuleError, first_line
from groundfault.modes.mode import Mode
from groundfault.stats import intervals

GateKey = tuple[str, str, bool, str]
"""Rule, outcome under its common name, whether failures are fewer, and kind."""


class GateRow(Struct, frozen=True, kw_only=True):
    """A finding, a failure mode or an overall change as a row for a condition.

    Attributes
    ----------
    sentence : str
        Not read by conditions, like ``subject``, the finding, mode or change of the row.
    """

    name: str
    rule: str
    meaning: str
    source: str
    outcome: str
    model: str | None = None
    verdict: str = "confirmed"
    confirmed: bool = True
    reason: str = ""
    representative: str | None = None
    n_on: int
    n_off: int
    lift: float | None
    p: float | None
    p_adjusted: float | None
    low: float | None
    high: float | None
    discovery_lift: float | None
    frequency: float | None = None
    kind: str
    sentence: str
    subject: Finding | Mode | OverallChange


COLUMNS: dict[str, type] = {
    f.name: (get_args(f.type) or (f.type,))[0]
    for f in structs.fields(GateRow)
    if f.name not in ("sentence", "subject")
}
"""Columns of a finding, a failure mode or an overall change in an expression, and their types."""


class GateRows:
    """A report's findings and modes on which a rule is true, by keys that other reports share.

    Attributes
    ----------
    report : ReportData
    verdicts : dict
        Verdicts of all findings, also where the rule is false.
    rows : dict of GateKey to GateRow
        Rows on which the rule is true.
    aliases : dict
        All keys of each of these rows.
    notes : tuple of str
        Rows that were not tested.
    """

    def __init__(self, report: ReportData, rule: Rule, *, modes: bool = True) -> None:
        # a condition on a direction of a comparison, as in earlier reports, is never true now
        if report.change is not None and " fails where " in rule.sql:
            raise RuleError(
                "a comparison has one outcome, the change from the first model to the second: ask "
                "'lift > 0' for more failures, without a condition on the outcome"
            )
        self.report = report
        search = report.mode_search
        # modes of a change and the overall one are one test at the plan's level, findings another
        joint = search is not None and search.overall is not None
        findings = () if joint else report.findings
        rows = [_make_finding_row(report, finding) for finding in findings]
        if report.change is not None:
            rows.append(make_overall_row(report, report.change))
        keys = [_key(report, row) for row in rows]
        self.verdicts = {key[:2]: row.verdict for key, row in zip(keys, rows, strict=True)}
        self.rows = {keys[i]: rows[i] for i in _list_true(rule, rows)}
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
        rows = [make_mode_row(self.report, mode) for mode in self.report.modes]
        places, self.notes = list_true_modes(rule, rows)
        for place in places:
            key = _key(self.report, rows[place])
            self.rows[key] = rows[place]
            rules = list_rules(self.report.modes[place])
            self.aliases[key] = {(name, *key[1:]) for name in rules}

    def knows(self, aliases: set[GateKey]) -> bool:
        """Return whether this report has a row with one of these keys."""
        return any(aliases & others for others in self.aliases.values())


def list_true_modes(rule: Rule, rows: Sequence[GateRow]) -> tuple[list[int], tuple[str, ...]]:
    """Return the places of modes on which a rule is true, and a note on undecided modes.

    Parameters
    ----------
    rule : Rule
    rows : sequence of GateRow
    """
    if not rows:
        return [], ()
    truth = rule.evaluate(_tabulate(rows))
    undecided = int(truth.null_count())
    notes: tuple[str, ...] = ()
    if undecided:
        empty = ", ".join(name for name in rule.columns if getattr(rows[0], name) is None)
        notes = (
            f"the rule cannot be asked of {undecided} of {len(rows)} failure modes, which have "
            f"no {empty}",
        )
    return truth.fill_null(False).arg_true().to_list(), notes


def read_gated(report: ReportData | str | Path | Mapping[str, object]) -> ReportData:
    """Return the content of a report, its file, or its JSON.

    Parameters
    ----------
    report : ReportData, path or mapping

    Raises
    ------
    InputError
        If the report cannot be read, or holds a number that is not finite.
    """
    if isinstance(report, ReportData):
        return report
    content = parse_report(report) if isinstance(report, Mapping) else read_report(report)
    least = content.data.minimum_detectable_lift
    if least is not None and not math.isfinite(least):
        raise InputError(
            f"report.json: 'minimum_detectable_lift' is {least}; the file was edited or damaged: "
            "run the audit again"
        )
    return content.data


def parse_condition(text: str) -> Rule:
    """Return a gate's condition.

    Parameters
    ----------
    text : str

    Raises
    ------
    RuleError
        If the condition is malformed, or reads an unknown column.
    """
    rule = Rule.parse(text)
    unknown = [name for name in rule.columns if name not in COLUMNS]
    if unknown:
        raise RuleError(f"findings have no column {unknown[0]!r}; there are {', '.join(COLUMNS)}")
    return rule


def _key(report: ReportData, row: GateRow) -> GateKey:
    # by the candidate, on either side, and by the sign: a slice that was better and is now worse is
    # another finding
    candidate = row.subject if isinstance(row.subject, Finding) else None
    rule = row.rule if candidate is None else candidate.rule
    less = (row.lift or 0) < 0 if candidate is None else candidate.is_less_frequent
    outcome = row.outcome
    # in an earlier comparison the outcome is its direction, for any names of models
    if report.manifest.compare and report.change is None and outcome in report.outcomes:
        outcome = f"direction {report.outcomes.index(outcome)}"
    return rule, outcome, less, row.kind


def _name_model(report: ReportData, outcome: str) -> str | None:
    models = report.manifest.models or ()
    return outcome or (models[0] if len(models) == 1 else None)


def _make_finding_row(report: ReportData, candidate: Finding) -> GateRow:
    """Return the row of a finding, described on the side with more failures."""
    finding = candidate.face_failures(report.plan.effect)
    cell = finding.holdout or finding.full
    # for a confirmed finding, the interval corrected for selection
    corrected = finding.estimate
    low, high = (corrected.interval if corrected else cell.interval) or (None, None)
    words = "name rule meaning source outcome confirmed reason representative frequency sentence"
    return GateRow(
        **{name: getattr(finding, name) for name in words.split()},
        **{name: getattr(cell, name) for name in ("lift", "p", "p_adjusted")},
        model=None if report.manifest.compare else _name_model(report, finding.outcome),
        verdict=str(finding.verdict),
        n_on=cell.on,
        n_off=cell.off,
        low=low,
        high=high,
        discovery_lift=finding.discovery.lift,
        kind="finding",
        subject=candidate,
    )


def make_overall_row(report: ReportData, change: OverallChange, outcome: str = "") -> GateRow:
    """Return the row of the overall change of a comparison, or since a baseline.

    Parameters
    ----------
    report : ReportData
    change : OverallChange
    outcome : str
    """
    compare = report.manifest.compare or ("the baseline", "the report")
    told = compare_models(*compare, change.change, is_graded=report.is_graded)
    write = "{} {:.2f}" if report.is_graded else "{} {:.1%}"
    rates = [write.format(*one) for one in zip(compare, change.error_rates, strict=True)]
    return GateRow(
        name="all examples",
        rule="all examples",
        meaning="all examples",
        source="comparison",
        outcome=outcome,
        verdict="confirmed" if change.confirmed else "below_floor",
        confirmed=change.confirmed,
        n_on=change.n,
        n_off=change.n,
        lift=change.change,
        p=change.p,
        p_adjusted=change.p,
        discovery_lift=change.change,
        low=change.interval[0],
        high=change.interval[1],
        kind="overall",
        sentence=(
            f"Overall, {told} ({', '.join(rates)}; "
            f"{format_points(change.change)} points; {equal_p(change.p)})."
        ),
        subject=change,
    )


def make_mode_row(report: ReportData, mode: Mode) -> GateRow:
    """Return the row of a failure mode, in the form of a confirmed finding.

    Its lift is the failure rate inside its rule minus the rate outside, with Newcombe's interval;
    for a change, the mean change inside. Its p-values are the larger of its two. It has no
    frequency, since it was not repeated over splits.

    Parameters
    ----------
    report : ReportData
    mode : Mode
    """
    model = _name_model(report, mode.outcome)
    lift = low = high = None
    if mode.change is not None:
        lift, (low, high) = mode.change.difference, mode.change.interval
    elif mode.n_outside:
        lift = mode.rate - mode.rate_outside
        counts = mode.errors, mode.n, mode.errors_outside, mode.n_outside
        on_sum, on, off_sum, off = np.array(counts, dtype=np.float64)[:, None]
        ends = intervals.newcombe(on_sum, on, off_sum, off, 1 - float(report.plan.alpha))
        low, high = (float(end[0]) for end in ends)
    p = max(mode.p_marginal, mode.p_conditional)
    return GateRow(
        **{word: getattr(mode, word) for word in ("rule", "meaning", "source", "outcome")},
        name=mode.meaning,
        model=model if model in (report.manifest.models or ()) else None,
        n_on=mode.n,
        n_off=mode.n_outside if mode.change is None else mode.change.n_before or mode.n,
        lift=lift,
        p=p,
        p_adjusted=p,
        discovery_lift=lift,
        low=low,
        high=high,
        kind="mode",
        sentence=write_mode_sentence(mode),
        subject=mode,
    )


def list_rules(mode: Mode) -> set[str]:
    """Return the rules that identify a mode: its own, and others on the same examples."""
    return {mode.rule, *(other.rule for other in mode.alternatives)}


def _tabulate(rows: Sequence[GateRow]) -> pl.DataFrame:
    # no rule reads a sentence, but text that cannot be written is also refused there
    schema = COLUMNS | {"sentence": str}
    try:
        cells = [{name: getattr(row, name) for name in schema} for row in rows]
        table = pl.DataFrame(cells, schema=schema)
    except (pl.exceptions.PolarsError, UnicodeEncodeError) as error:
        raise InputError(
            f"report.json cannot be read: {first_line(error)}; the file was edited or damaged: run "
            "the audit again"
        ) from None
    for column in table.select(pl.col(pl.Float64)):
        if not column.is_finite().all():
            name = table["name"].filter(~column.is_finite().fill_null(True)).first()
            raise InputError(
                f"report.json: {column.name!r} of finding {name!r} is not a finite number; the "
                "file was edited or damaged: run the audit again"
            )
    return table


def _list_true(rule: Rule, rows: Sequence[GateRow]) -> list[int]:
    """Return the places of rows on which a rule is true."""
    # NULL for a confirmed finding is an error, not false: the gate would pass without a decision
    table = _tabulate(rows)
    truth = rule.evaluate(table)
    undecided = table.filter(truth.is_null() & table["confirmed"])
    if undecided.height:
        row = undecided.row(0, named=True)
        empty = ", ".join(name for name in rule.columns if row[name] is None)
        raise RuleError(
            f"{rule.sql!r} cannot be decided of the confirmed finding {row['name']!r}: it has "
            f"no {empty}"
        )
    return truth.fill_null(False).arg_true().to_list()
