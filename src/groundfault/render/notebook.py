"""Reports, findings and evidence as notebooks show them: compact, framed, and without a script."""

from __future__ import annotations

from groundfault.auditing.report import Report
from groundfault.core.evidence import Evidence
from groundfault.core.finding import Cell, Finding
from groundfault.render import words
from groundfault.render.audit_page import make_summary
from groundfault.render.html import frame
from groundfault.render.page import Block, Bullets, Page, Paragraph, Table, TableColumn

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
