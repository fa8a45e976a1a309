"""Audits by every scorer as one page: what each says, and where they differ."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from groundfault.auditing.report import Report
from groundfault.auditing.scorers import ScorerAudits
from groundfault.core.finding import Verdict
from groundfault.render import words
from groundfault.render.audit_words import Outline
from groundfault.render.page import Block, Bullets, Page, Section, Table, TableColumn

_MAX_ROWS = 20


def make_scorer_page(audits: ScorerAudits, out: str | Path | None = None) -> Page:
    """The first screen of all audits; ``out`` is the folder that holds the reports."""
    lead: tuple[Block, ...] = (_list_scorers(audits), Bullets(tuple(_remark(audits))))
    sections = (
        Section("Where the scorers differ", tables=(_list_agreements(audits),)),
        Section("Confirmed by some scorers and not by others", tables=(_list_disputed(audits),)),
    )
    footer = f"Reports: {out}" if out is not None else ""
    verdict = f"{words.plural(len(audits.reports), 'scorer')} of the same answers, each audited"
    shown = tuple(section for section in sections if section.tables[0].rows)
    return Page("audit", "", verdict, (), shown, False, lead, footer)


def _list_scorers(audits: ScorerAudits) -> Table:
    rows = tuple(
        (words.clean(name), words.rate(report.error_rate), _tell(report))
        for name, report in audits.reports.items()
    )
    columns = (
        TableColumn("Scorer"),
        TableColumn("error rate", "number"),
        TableColumn("what its audit says"),
    )
    return Table("Scorers", columns, rows)


def _tell(report: Report) -> str:
    """The headline, and the rules of the failure modes."""
    headline = Outline(report).headline
    rules = [mode.meaning for mode in report.modes]
    return words.clean(f"{headline}: {words.listing(rules, 3)}" if rules else headline)


def _remark(audits: ScorerAudits) -> Iterator[tuple[str, ...]]:
    parts = len(audits.reports)
    yield (
        f"Each audit has the error level {words.level(audits.level)}, a share of the plan's, so "
        f"that the plan's holds for all {parts} together.",
    )
    for name, why in audits.refusals.items():
        yield (f"Not audited: {words.clean(name)}, {words.clean(why)}.",)


def _list_agreements(audits: ScorerAudits) -> Table:
    rows = tuple(
        (
            words.clean(each.first),
            words.clean(each.second),
            words.count(each.apart),
            words.count(each.n),
            words.rate(each.apart / each.n),
        )
        for each in sorted(audits.agreements, key=lambda each: -each.apart / each.n)[:_MAX_ROWS]
    )
    columns = (
        TableColumn("Scorer"),
        TableColumn("and scorer"),
        *(TableColumn(head, "number") for head in ("differ on", "of answers", "share")),
    )
    note = "Audit the answers on which two differ: --disagreement A B."
    return Table("Where the scorers differ", columns, rows, note=note)


def _list_disputed(audits: ScorerAudits) -> Table:
    rows = tuple(
        (words.clean(key), *(_name_verdict(each.get(name)) for name in audits.reports))
        for key, each in list(audits.disputed.items())[:_MAX_ROWS]
    )
    columns = (TableColumn("Finding"), *(TableColumn(words.clean(n)) for n in audits.reports))
    return Table("Confirmed by some scorers and not by others", columns, rows)


def _name_verdict(verdict: str | None) -> str:
    """A verdict in words; a scorer whose audit had no such candidate says nothing."""
    return "" if verdict is None else words.VERDICTS[Verdict(verdict)]
