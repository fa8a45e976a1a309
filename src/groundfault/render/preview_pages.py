"""Pages before an audit: the problems it could find, and the account of the logs that were read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from groundfault.auditing.column_timing import OPTIONS
from groundfault.auditing.report import Report
from groundfault.core.evidence import Evidence
from groundfault.core.finding import Cell, Finding
from groundfault.readers.account import compare_official
from groundfault.render import words
from groundfault.render.audit_page import make_summary
from groundfault.render.first_screen import describe_counted
from groundfault.render.html import frame
from groundfault.render.page import (
    Bullets,
    Content,
    Number,
    Page,
    Section,
    Table,
    Words,
    small,
    tabulate,
)

if TYPE_CHECKING:
    from groundfault.auditing.checking import Check, CheckSummary, Prospect
    from groundfault.auditing.column_timing import ColumnStage

# rows of each table: together they fill one screen of a terminal
MAX_PROSPECTS = 20
MAX_COLUMNS = 12  # names in a cell: two lines of a page
MAX_LOGS = 10  # rows before "and N more"
MAX_NAMES = 4
"""Candidates named beside a reason."""
_MAX_NAMES = 20
"""Columns or models named in one line of a notebook."""


def make_check_page(check: Check) -> Page:
    """Make the page of a check: candidates that an audit could confirm, before it tests any."""
    summary = check.summary
    title, units = _describe_parts(summary)
    fit = sorted(
        (p for p in check.prospects if not p.reason), key=lambda p: p.minimum_detectable_lift or 1.0
    )
    unfit = [p for p in check.prospects if p.reason]
    total = words.count(len(check.prospects))
    lifts = summary.power.minimum_detectable_lift.items()
    needs = "; ".join(
        f"{words.level(float(share))}, {words.bare(lift) if lift else 'never'}"
        for share, lift in lifts
    )
    power = words.level(summary.power.power)
    lead = (
        f"{units} {words.rate(summary.discovery_error_rate)}; judge {summary.judge}.",
        f"{power} of audits find a rule that matches this share of the {summary.unit}s, and whose "
        f"failure rate differs this much from that of the others: {needs or 'unknown'}.",
    )
    verdict = f"{words.count(len(fit))} of {total} simple rules can be tested"
    prospects = tabulate(
        "Can be tested",
        fit,
        Words("Rule", lambda p: words.name_candidate(p.name, p.outcome)),
        Number("Matches", lambda p: p.on),
        Number("Others", lambda p: p.off),
        Number("Least difference", lambda p: words.bare(p.minimum_detectable_lift)),
        most=MAX_PROSPECTS,
    )
    tables = (make_column_table(summary.columns), prospects, _tabulate_reasons(unfit))
    return Page("check", title, verdict, lead=lead, sections=map(Section.of, tables))


def _describe_parts(summary: CheckSummary) -> tuple[str, str]:
    """Describe when a check is made, and its units; a judge may need no holdout."""
    units = f"{words.count(summary.n)} {summary.unit}s"
    if not summary.n_holdout:
        return "before anything is tested", f"{units}, none held out; failure rate"
    discovery, holdout = words.count(summary.n_discovery), words.count(summary.n_holdout)
    units += f" ({discovery} discovery, {holdout} holdout)"
    return "before the holdout is opened", f"{units}; discovery failure rate"


def make_column_table(columns: Iterable[ColumnStage]) -> Table:
    """Make the table of column roles, those to ask about first, and how to overrule them."""
    groups: dict[tuple[str, str], list[str]] = {}
    for use in sorted(columns, key=lambda use: not use.suspect):
        why = f"{use.reason}: is that so?" if use.suspect else use.reason or "by default"
        groups.setdefault((str(use.stage), why), []).append(use.column)
    options = ", ".join(f"{option} COLUMN ({stage})" for stage, (_, option) in OPTIONS.items())
    return tabulate(
        "What each column is taken for",
        groups.items(),
        Words("Columns", lambda group: words.listing(group[1], MAX_COLUMNS)),
        Words("Taken for", lambda group: group[0][0]),
        Words("Why", lambda group: group[0][1]),
        note=f"To change it: {options}.",
    )


def _tabulate_reasons(unfit: list[Prospect]) -> Table:
    reasons: dict[str, list[str]] = {}
    for prospect in unfit:
        name = words.name_candidate(prospect.name, prospect.outcome)
        reasons.setdefault(prospect.reason, []).append(name)
    return tabulate(
        "Cannot be tested here",
        sorted(reasons.items(), key=lambda item: -len(item[1])),
        Words("Reason", lambda item: f"{item[0]} ({words.listing(item[1], MAX_NAMES)})"),
        Number("Rules", lambda item: len(item[1])),
    )


def make_import_page(evidence: Evidence, written: str | Path | None = None) -> Page:
    """Make the page of an import: the logs that were read, and the status of every row."""
    account = evidence.account
    assert account is not None  # only evidence from logs is shown this way
    scored = evidence.loss.drop_nulls()
    mean = scored.mean()
    rate = f"; failure rate {words.rate(float(mean))}" if isinstance(mean, float) else ""
    figures = [log.official for log in account.logs]
    asides = [
        *describe_counted(evidence.counted_as_failed),
        *(f"{line}." for line in compare_official(figures, evidence.roles.count_as_failed)),
    ]
    lines = account.to_lines()
    lead: Content = (
        tabulate(
            "Logs",
            account.logs,
            Words("Log", lambda log: words.tail(log.path)),
            Words("Reader", lambda log: log.reader),
            Words("Written by", lambda log: log.harness),
            Number("Rows", lambda log: log.observations),
            most=MAX_LOGS,
        ),
        f"Rows by status: {_count_statuses(evidence)}{rate}.",
        *asides,
        Bullets(tuple((f"{words.capital(line)}.",) for line in lines[1:])),
    )
    title = words.plural(len(account.logs), "log")
    command = f"Evidence: {written}; audit it with: groundfault audit {written}"
    footer = command if written is not None else ""
    return Page("import", title, lines[0], lead=lead, footer=footer)


def show_report(report: Report) -> str:
    """Show the first screen of a report in a frame."""
    return frame(make_summary(report, terminal=False))


def show_finding(finding: Finding) -> str:
    """Show a finding in a frame: its sentence, and the counts that it rests on."""
    parts: list[tuple[str, Cell]] = [("all", finding.full)]
    if finding.holdout is not None:
        parts = [("discovery", finding.discovery), ("held out", finding.holdout), *parts]
    table = tabulate(
        "Counts",
        parts,
        Words("Examples", lambda part: part[0]),
        Number("on it", lambda part: f"{words.rate(part[1].on_rate)} of {part[1].on:,}"),
        Number("off it", lambda part: f"{words.rate(part[1].off_rate)} of {part[1].off:,}"),
        Number("points", lambda part: words.points(part[1].lift)),
        Number("p", lambda part: words.p_value(part[1].p)),
        Number("adjusted p", lambda part: words.p_value(part[1].p_adjusted)),
    )
    why = finding.reason and not finding.confirmed
    lead = (finding.sentence, table, small(f"Why: {finding.reason}." if why else ""))
    title = f"{words.clean(finding.rule)} (from {words.clean(finding.source)})"
    verdict = f"{words.clean(finding.key)}: {words.VERDICTS[finding.verdict]}"
    return frame(Page("finding", title, verdict, lead=lead, good=finding.confirmed))


def _count_statuses(evidence: Evidence) -> str:
    counts = evidence.status_counts.items()
    return ", ".join(f"{words.count(n)} {status}" for status, n in counts if n)


def show_evidence(evidence: Evidence) -> str:
    """Show evidence in a frame: its size, and the columns that describe its examples."""
    lines: list[tuple[str, ...]] = [(f"Rows: {_count_statuses(evidence)}.",)]
    for what, names in (
        ("Models", evidence.models if evidence.roles.model else ()),
        ("Describes examples", evidence.attributes),
        ("Describes answers", evidence.roles.instrument),
    ):
        if names:
            lines.append((f"{what}: {words.listing(list(map(words.clean, names)), _MAX_NAMES)}.",))
    if evidence.account is not None:
        lines += [(f"{words.capital(line)}.",) for line in evidence.account.to_lines()]
    source = words.listing([words.clean(place) for place in evidence.provenance], 3)
    title = source if evidence.provenance else ""
    verdict = repr(evidence).strip("<>")
    return frame(Page("evidence", title, verdict, lead=Bullets(tuple(lines))))
