"""What is printed before an audit: what it could find, and what was read from logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from groundfault.auditing.column_timing import OPTIONS
from groundfault.auditing.report import Report
from groundfault.core.evidence import Evidence
from groundfault.core.finding import Cell, Finding
from groundfault.readers.account import compare_official
from groundfault.render import words
from groundfault.render.audit_page import make_summary
from groundfault.render.audit_words import describe_counted
from groundfault.render.html import frame
from groundfault.render.page import Block, Bullets, Page, Paragraph, Section, Table, TableColumn

if TYPE_CHECKING:
    from groundfault.auditing.checking import Check, Prospect
    from groundfault.auditing.column_timing import ColumnStage
    from groundfault.auditing.preview_schema import CheckSummary, ColumnUse
    from groundfault.readers.account import Account

MAX_PROSPECTS = 20
MAX_NAMES = 4
MAX_COLUMNS = 12
MAX_LOGS = 10


def make_check_page(check: Check) -> Page:
    """What an audit could find, before it tests anything."""
    summary = check.summary
    title, units = _describe_parts(summary)
    fit = sorted(
        (p for p in check.prospects if not p.reason), key=lambda p: p.minimum_detectable_lift or 1.0
    )
    unfit = [p for p in check.prospects if p.reason]
    total = words.count(len(check.prospects))
    lifts = summary.power.minimum_detectable_lift.items()
    by_prevalence = ", ".join(
        f"{words.bare(lift)} at prevalence {words.level(float(share))}" for share, lift in lifts
    )
    power = words.level(summary.power.power)
    lead: tuple[Block, ...] = (
        Paragraph((f"{units} {words.rate(summary.discovery_error_rate)}; judge {summary.judge}.",)),
        Paragraph((f"Least lift found with {power} power: {by_prevalence or 'cannot be said'}.",)),
    )
    verdict = f"{words.count(len(fit))} of {total} candidates could be confirmed"
    tables = (make_column_table(summary.columns), _prospects(fit), _unfit(unfit))
    sections = tuple(Section(t.caption, tables=(t,)) for t in tables if t.rows)
    return Page("check", title, verdict, (), sections, False, lead)


def _describe_parts(summary: CheckSummary) -> tuple[str, str]:
    """When a check is made, and what it says of its units; a judge may need no holdout."""
    units = f"{words.count(summary.n)} units"
    if not summary.n_holdout:
        return "before anything is tested", f"{units}, nothing held out; error rate"
    discovery, holdout = words.count(summary.n_discovery), words.count(summary.n_holdout)
    units += f" ({discovery} discovery, {holdout} holdout)"
    return "before the holdout is opened", f"{units}; discovery error rate"


def make_column_table(columns: Iterable[ColumnUse | ColumnStage]) -> Table:
    """What each column is taken for, those to ask about first, and how to overrule it."""
    groups: dict[tuple[str, str], list[str]] = {}
    for use in sorted(columns, key=lambda use: not use.suspect):
        why = f"{use.reason}: is that so?" if use.suspect else use.reason or "by default"
        groups.setdefault((str(use.stage), why), []).append(use.column)
    rows = tuple(
        (words.listing(names, MAX_COLUMNS), stage, why) for (stage, why), names in groups.items()
    )
    heads = tuple(TableColumn(head) for head in ("Columns", "Taken for", "Why"))
    options = ", ".join(f"{option} says {stage}" for stage, (_, option) in OPTIONS.items())
    return Table("What each column is taken for", heads, rows, note=f"{options}.")


def _prospects(fit: list[Prospect]) -> Table:
    rows = [
        (
            words.name_candidate(p.name, p.outcome),
            words.count(p.on),
            words.count(p.off),
            words.bare(p.minimum_detectable_lift),
        )
        for p in fit[:MAX_PROSPECTS]
    ]
    if len(fit) > MAX_PROSPECTS:
        rows.append((f"and {words.count(len(fit) - MAX_PROSPECTS)} more", "", "", ""))
    heads = ("On", "Off", "Least lift")
    columns = (TableColumn("Candidate"), *(TableColumn(head, "number") for head in heads))
    return Table("Could be confirmed", columns, tuple(rows))


def _unfit(unfit: list[Prospect]) -> Table:
    reasons: dict[str, list[str]] = {}
    for prospect in unfit:
        name = words.name_candidate(prospect.name, prospect.outcome)
        reasons.setdefault(prospect.reason, []).append(name)
    rows = tuple(
        (f"{reason} ({words.listing(names, MAX_NAMES)})", words.count(len(names)))
        for reason, names in sorted(reasons.items(), key=lambda item: -len(item[1]))
    )
    columns = (TableColumn("Reason"), TableColumn("Candidates", "number"))
    return Table("Can never be confirmed here", columns, rows)


def make_import_page(evidence: Evidence, written: str | Path | None = None) -> Page:
    """What was read from logs, and what became of every row."""
    account = evidence.account
    assert account is not None  # only evidence from logs is shown this way
    scored = evidence.loss.drop_nulls()
    counts = ", ".join(
        f"{words.count(n)} {status}" for status, n in evidence.status_counts.items() if n
    )
    mean = scored.mean()
    rate = f"; error rate {words.rate(float(mean))}" if isinstance(mean, float) else ""
    figures = [log.official for log in account.logs]
    asides = [
        *describe_counted(evidence.counted_as_failed),
        *(f"{line}." for line in compare_official(figures, evidence.roles.count_as_failed)),
    ]
    lines = account.to_lines()
    lead: tuple[Block, ...] = (
        _logs(account),
        Paragraph((f"Rows by status: {counts}{rate}.",)),
        *(Paragraph((sentence,)) for sentence in asides),
        Bullets(tuple((f"{words.capital(line)}.",) for line in lines[1:])),
    )
    title = words.plural(len(account.logs), "log")
    command = f"Evidence: {written}; audit it with: groundfault audit {written}"
    footer = command if written is not None else ""
    return Page("import", title, lines[0], (), (), False, lead, footer)


def _logs(account: Account) -> Table:
    def rows() -> Iterator[tuple[str, ...]]:
        for log in account.logs[:MAX_LOGS]:
            path, size = words.tail(log.path), words.count(log.observations)
            yield path, log.reader, log.harness, size
        if len(account.logs) > MAX_LOGS:
            yield f"and {words.count(len(account.logs) - MAX_LOGS)} more", "", "", ""

    columns = (TableColumn("Log"), TableColumn("Reader"), TableColumn("Written by"))
    table = Table("Logs", (*columns, TableColumn("Rows", "number")), tuple(rows()))
    return table


_MAX_NAMES = 20


def show_report(report: Report) -> str:
    """The first screen of a report in a frame."""
    return frame(make_summary(report))


def show_finding(finding: Finding) -> str:
    """A finding in a frame: its sentence, and the counts that it rests on."""
    parts: list[tuple[str, Cell]] = [("all", finding.full)]
    if finding.holdout is not None:
        parts = [("discovery", finding.discovery), ("held out", finding.holdout), *parts]
    rows = tuple(_list_counts(name, cell) for name, cell in parts)
    heads = ("on it", "off it", "lift", "p", "adjusted p")
    columns = (TableColumn("Examples"), *(TableColumn(head, "number") for head in heads))
    lead: list[Block] = [Paragraph((finding.sentence,)), Table("Counts", columns, rows)]
    if finding.reason and not finding.confirmed:
        lead.append(Paragraph((f"Why: {finding.reason}.",), "small"))
    title = f"{words.clean(finding.rule)} (from {words.clean(finding.source)})"
    verdict = f"{words.clean(finding.key)}: {words.VERDICTS[finding.verdict]}"
    return frame(Page("finding", title, verdict, (), (), finding.confirmed, tuple(lead)))


def _list_counts(name: str, cell: Cell) -> tuple[str, ...]:
    sides = (
        f"{words.rate(rate)} of {words.count(size)}"
        for rate, size in ((cell.on_rate, cell.on), (cell.off_rate, cell.off))
    )
    return (name, *sides, words.signed(cell.lift), *map(words.p_value, (cell.p, cell.p_adjusted)))


def show_evidence(evidence: Evidence) -> str:
    """Evidence in a frame: how much there is, and what describes its examples."""
    counts = [f"{words.count(n)} {status}" for status, n in evidence.status_counts.items() if n]
    lines: list[tuple[str, ...]] = [(f"Rows: {', '.join(counts)}.",)]
    if evidence.roles.model:
        names = words.listing([words.clean(name) for name in evidence.models], _MAX_NAMES)
        lines.append((f"Models: {names}.",))
    for what, columns in (
        ("Describes examples", evidence.attributes),
        ("Describes answers", evidence.roles.instrument),
    ):
        if columns:
            named = words.listing([words.clean(column) for column in columns], _MAX_NAMES)
            lines.append((f"{what}: {named}.",))
    if evidence.account is not None:
        lines += [(f"{words.capital(line)}.",) for line in evidence.account.to_lines()]
    source = words.listing([words.clean(place) for place in evidence.provenance], 3)
    title = source if evidence.provenance else ""
    verdict = repr(evidence).strip("<>")
    return frame(Page("evidence", title, verdict, (), (), False, (Bullets(tuple(lines)),)))
