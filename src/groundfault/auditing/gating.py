"""Gates: does a report hold a new finding that should stop a release?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groundfault.auditing.mode_rows import list_mode_rows, list_rules
from groundfault.auditing.report_schema import ReportData
from groundfault.auditing.report_versions import parse_report, read_report
from groundfault.base.deprecation import warn_renamed
from groundfault.core.finding import Finding
from groundfault.core.rules import Rule
from groundfault.errors import InputError, PlanError, RuleError, first_line

if TYPE_CHECKING:
    import polars as pl

FAIL_ON = "confirmed"

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
"""What an expression may read of a finding or a failure mode, and its type."""

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


@dataclass(frozen=True)
class GateMatch:
    """A finding, or a failure mode, for which the expression is true.

    Attributes
    ----------
    kind : {"finding", "mode"}
    name, outcome, source, verdict, sentence : str
        As in the report.
    lift, low, high : float or None
        On the holdout where there is one, else on all units, with the interval of the report.
    before : str or None
        Its verdict in the baseline; None where there is no baseline, or the candidate was not
        judged there. Of a failure mode that is new it is None.
    """

    name: str
    outcome: str
    source: str
    verdict: str
    sentence: str
    lift: float | None
    low: float | None
    high: float | None
    before: str | None
    kind: str = "finding"


@dataclass(frozen=True)
class Gate:
    """Whether a report passes, and why not.

    Attributes
    ----------
    passed : bool
    fail_on : str
        The expression.
    new : tuple of GateMatch
        Findings for which it is true now and was not in the baseline; all of them, where there is
        no baseline.
    known : tuple of GateMatch
        Findings for which it was true in the baseline too. They do not fail the gate.
    gone : tuple of str
        Names of findings for which it was true in the baseline and no longer is.
    compared : bool
        Whether there was a baseline.
    detectable : float or None
        The least lift that the audit could have found.
    blind : bool
        ``detectable`` is larger than ``must_detect`` allows: an audit that confirms nothing then
        says too little, so the gate fails.
    notes : tuple of str
        What makes report and baseline hard to compare.
    """

    passed: bool
    fail_on: str
    new: tuple[GateMatch, ...]
    known: tuple[GateMatch, ...]
    gone: tuple[str, ...]
    compared: bool
    detectable: float | None
    blind: bool
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain words and numbers; of a match the kind where it is a failure mode."""
        content = asdict(self)
        # as before there were modes, for scripts that compare
        for match in (*content["new"], *content["known"]):
            if match["kind"] == "finding":
                del match["kind"]
        return content


def gate(
    report: ReportData | str | Path | Mapping[str, Any],
    fail_on: str = FAIL_ON,
    *,
    baseline: ReportData | str | Path | Mapping[str, Any] | None = None,
    must_detect: float | None = None,
) -> Gate:
    """Test a report's findings and failure modes by a rule, and against an earlier report.

    Parameters
    ----------
    report : Report, path, or the report as a dict
        A JSON report, or the folder that one was written to.
    fail_on : str
        A SQL expression over `COLUMNS`, such as ``confirmed and lift > 0 and source !=
        'instrument'``.
    baseline : as report, optional
        The report with the known findings. A finding is the same if its rule, its outcome and the
        sign of its lift are; the two directions of a comparison are matched by their order,
        whatever the models are called. A failure mode is known if its rule, or one of its
        alternatives, is among those of a known one. Where the baseline did not look for modes,
        those of the report are left out.
    must_detect : float, optional
        The gate fails, too, if the audit could not have found a lift of this size: a small test set
        confirms nothing.

    Raises
    ------
    InputError
        If a report cannot be read, or one compares two models and the other does not.
    RuleError
        If the expression is malformed, reads an unknown column, or is neither true nor false of a
        confirmed finding.
    PlanError
        If ``must_detect`` is not in (0, 1].
    """
    if must_detect is not None and not 0 < must_detect <= 1:
        raise PlanError(f"must_detect is {must_detect}; a lift lies in (0, 1]")
    rule = _parse_rule(fail_on)
    reports = [_read(each) for each in (report, baseline) if each is not None]
    modes = all(each.mode_search is not None for each in reports)
    now, *earlier = (_Matches(each, rule, modes=modes) for each in reports)
    then = earlier[0] if earlier else None
    if then and bool(now.report.manifest.compare) != bool(then.report.manifest.compare):
        raise InputError(
            "one of report and baseline compares two models, the other does not; make both alike"
        )
    matches = {
        key: _match(row, then.verdicts.get(key[:2]) if then else None)
        for key, row in now.rows.items()
    }
    known_keys = {key for key in matches if then and then.knows(now.aliases[key])}
    new = tuple(match for key, match in matches.items() if key not in known_keys)
    detectable = now.report.minimum_detectable_lift
    blind = must_detect is not None and (detectable is None or detectable > must_detect)
    return Gate(
        passed=not new and not blind,
        fail_on=fail_on,
        new=new,
        known=tuple(match for key, match in matches.items() if key in known_keys),
        gone=tuple(
            row["name"] for key, row in then.rows.items() if not now.knows(then.aliases[key])
        )
        if then
        else (),
        compared=then is not None,
        detectable=detectable,
        blind=blind,
        notes=(*now.notes, *(_notes(now.report, then.report) if then else ())),
    )


_Key = tuple[str, str, bool, str]


class _Matches:
    """A report's findings and modes for which a rule is true, by keys that other reports share.

    Attributes
    ----------
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
        self.report = report
        rows = [_row(report, finding) for finding in report.findings]
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
            self.rows[key] = row
            self.aliases[key] = {(name, *key[1:]) for name in list_rules(mode)}

    def knows(self, aliases: set[_Key]) -> bool:
        """Whether a row that is known by these keys is one of this report's."""
        return any(aliases & others for others in self.aliases.values())


def _key(report: ReportData, row: Mapping[str, Any]) -> _Key:
    # the sign is part of the key: a slice that was better and is now worse is a new finding
    name = _common_name(report, row["outcome"])
    return row["rule"], name, (row["lift"] or 0) < 0, row["kind"]


def _common_name(report: ReportData, outcome: str) -> str:
    """What an outcome is called in every report.

    Of a comparison it is its direction, whatever the models' names.
    """
    if report.manifest.compare and outcome in report.outcomes:
        return f"direction {report.outcomes.index(outcome)}"
    return outcome


def _row(report: ReportData, finding: Finding) -> dict[str, Any]:
    """A finding as `COLUMNS`, and its sentence."""
    cell, models = finding.holdout or finding.full, report.manifest.models or ()
    low, high = cell.interval or (None, None)
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
    }


def _read(report: ReportData | str | Path | Mapping[str, Any]) -> ReportData:
    if isinstance(report, ReportData):
        return report
    content = parse_report(report) if isinstance(report, Mapping) else read_report(report)
    min_lift = content.data.minimum_detectable_lift
    if min_lift is not None and not math.isfinite(min_lift):
        raise InputError("a report holds a number that is not finite; no audit writes such")
    return content.data


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


def _parse_rule(text: str) -> Rule:
    rule = Rule.parse(text)
    if "lead" in rule.columns:
        warn_renamed("the column lead", "representative", stacklevel=4)
    unknown = [name for name in rule.columns if name not in (*COLUMNS, "lead")]
    if unknown:
        raise RuleError(f"findings have no column {unknown[0]!r}; there are {', '.join(COLUMNS)}")
    return rule


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
    """A rule's value for each row: Boolean, null where it is neither true nor false."""
    import polars as pl

    try:
        truth = table.select(rule.to_polars().alias("truth")).to_series()
    except pl.exceptions.PolarsError as error:
        raise RuleError(f"cannot evaluate {rule.sql!r} on findings: {first_line(error)}") from None
    if truth.dtype not in (pl.Boolean, pl.Null):
        raise RuleError(f"{rule.sql!r} is {truth.dtype}, neither true nor false")
    return truth.cast(pl.Boolean)


def _match(row: Mapping[str, Any], before: str | None) -> GateMatch:
    fields = ("name", "outcome", "source", "verdict", "sentence", "lift", "low", "high", "kind")
    # what was said before of the rule as a finding is not what is said of it as a mode
    return GateMatch(
        **{name: row[name] for name in fields}, before=before if row["kind"] == "finding" else None
    )


def _notes(now: ReportData, then: ReportData) -> tuple[str, ...]:
    notes = []
    if now.judge != then.judge:
        notes.append(f"the baseline was judged by {then.judge}, this report by {now.judge}")
    if not now.manifest.compare and not set(now.outcomes) & set(then.outcomes):
        about = [
            ", ".join(filter(None, each)) or "one model" for each in (then.outcomes, now.outcomes)
        ]
        notes.append(
            f"the baseline is about {about[0]}, this report about {about[1]}: no finding can be "
            "known"
        )
    return tuple(notes)
