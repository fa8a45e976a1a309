"""The report of an audit as a page, and in a terminal its first screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from groundfault.auditing.report import Report
from groundfault.core.finding import Finding
from groundfault.render import audit_tables as tables
from groundfault.render import audit_words, change_words, description_tables, mode_page, words
from groundfault.render.audit_figures import figures
from groundfault.render.audit_groups import FindingGroup, distinct, find_cut_column, main_cell
from groundfault.render.audit_words import Outline
from groundfault.render.cuts import draw_cuts
from groundfault.render.mode_words import ModeOutline
from groundfault.render.page import (
    Block,
    Bullets,
    Code,
    Columns,
    Entry,
    Figures,
    Fold,
    Line,
    Order,
    Page,
    Paragraph,
    Remarks,
    Section,
    Statement,
    Statements,
    Table,
    TableColumn,
)
from groundfault.render.scorer_words import describe_counting, describe_scorer

MAX_ROWS = 5000
MAX_NAMES = 12
MAX_CONFIRMED = 20  # rows of findings in a terminal
MAX_SCREENED = 10

# how the table of all candidates can be put in order; styles do it, without a script. Not by
# holdout lift: the largest of those, picked from all, would be no finding
_ORDERS: tuple[tuple[str, str, Callable[[Finding], Any]], ...] = (
    ("discovery", "discovery lift", lambda f: -abs(f.discovery.lift or 0.0)),
    ("p", "p of the screen", lambda f: 2.0 if f.discovery.p is None else f.discovery.p),
    ("size", "size of the slice", lambda f: -f.full.on),
    ("name", "name", lambda f: (f.name, f.outcome)),
)


def html(report: Report) -> str:
    """The report as one self-contained HTML page."""
    from groundfault.render.html import html as set_html

    return set_html(make_page(report))


def markdown(report: Report) -> str:
    """The report as Markdown."""
    from groundfault.render.markdown import markdown as set_markdown

    return set_markdown(make_page(report, with_figures=False))


def make_page(report: Report, *, with_figures: bool = True) -> Page:
    """All that the report says; ``with_figures`` draws, which takes a second."""
    outline = Outline(report)
    sections = [
        mode_page.make_section(ModeOutline(report), with_figures=with_figures)
        if report.modes
        else None,
        Section("Figures", figures=figures(report), anchor="figures") if with_figures else None,
        _confirmed(outline, with_figures),
        _strengths(outline, with_figures),
        description_tables.make_section(report),
        _too_small(outline),
        _screened(outline),
        _everything(report),
        _limits(outline),
        Section(
            "Manifest",
            ("What is needed to compute this report again.",),
            blocks=(Columns(tables.manifest(report)),),
            anchor="manifest",
        ),
    ]
    return Page(
        "audit",
        outline.title,
        outline.headline,
        outline.facts,
        tuple(section for section in sections if section is not None),
        bool(report.modes or outline.groups),
        tuple(_lead(outline)),
        f"Made by groundfault {report.groundfault_version}.",
    )


def make_summary(report: Report, report_path: str | Path | None = None) -> Page:
    """The first screen, for a terminal; ``report_path`` is where the whole report is."""
    outline = Outline(report)
    lead: list[Block] = list(_notices(outline))
    if report.mode_search is not None:
        lead += [Paragraph(("",)), *mode_page.list_lead(ModeOutline(report), terminal=True)]
    lead += _list_suspicions(outline)
    findings = _list_findings(outline)
    if findings:
        lead += [Paragraph(("",)), *findings]
    if report.modes:
        sentences = [f"Findings: {outline.tally}", outline.better, outline.footing]
    else:
        sentences = [outline.tally, outline.better, outline.conclusion, outline.footing]
    described = description_tables.describe_arms(report)
    sentences = [s for s in (*sentences, described, outline.unscored) if s]
    lead += [Paragraph(("",)), *(Paragraph((sentence,)) for sentence in sentences)]
    if report.hints:
        lead.append(Bullets(tuple((f"Hint: {hint}.",) for hint in report.hints)))
    footer = f"Report: {report_path}" if report_path is not None else ""
    good = bool(report.modes or outline.groups)
    return Page("audit", outline.title, outline.headline, (), (), good, tuple(lead), footer)


def _list_findings(outline: Outline) -> list[Block]:
    """The table of findings; below failure modes, of those that the caller asked for alone."""
    table = _summary_table(outline, own=bool(outline.report.modes))
    if not table.rows:
        return []
    if not tables.holds_out(outline.report):
        return [table]
    line = "* selected as among the largest, so too large on average"
    return [table, Paragraph((line,), "small")]


def _notices(outline: Outline) -> Iterator[Block]:
    """What nobody may overlook."""
    if scoring := describe_scorer(outline.report):
        yield Paragraph((scoring,))
    for sentence in describe_counting(outline.report):
        yield Paragraph((sentence,))
    if outline.selection:
        yield Paragraph((outline.selection,))
    for sentence in filter(
        None, (outline.overall, outline.alike, words.clean(outline.report.parts))
    ):
        yield Paragraph((sentence,))
    if outline.warning:
        yield Paragraph((outline.warning,), "notice")


def _list_suspicions(outline: Outline) -> list[Block]:
    """That the measurement may be at fault: below the modes, none of which is about answers."""
    return [Paragraph((outline.instrument,), "notice")] if outline.instrument else []


def _lead(outline: Outline) -> Iterator[Block]:
    report = outline.report
    yield from _notices(outline)
    if report.mode_search is not None:
        yield from mode_page.list_lead(ModeOutline(report))
    yield from _list_suspicions(outline)
    if outline.groups:
        items = tuple(_statement(outline, g, n) for n, g in enumerate(outline.groups, 1))
        statements = Statements(items, MAX_NAMES, "more groups")
        yield Fold((outline.findings_headline,), (statements,)) if report.modes else statements
    if outline.better:
        yield Paragraph((outline.better,))
    if described := description_tables.describe_arms(report):
        yield Paragraph((described,))
    yield Paragraph((outline.conclusion,))
    yield Paragraph((outline.footing,))
    if report.hints:
        yield Bullets(tuple((f"{words.capital(hint)}.",) for hint in report.hints))


def _statement(outline: Outline, group: FindingGroup, number: int) -> Statement:
    remarks: list[Line] = []
    lead = outline.face(group.lead)
    if lead.aliases:
        remarks.append(("Same units as ", Code(words.listing(lead.aliases)), "."))
    if group.distinct:
        remarks.append(_list_names(outline, "Not to be told apart from ", group.distinct))
    if group.cuts:
        column = find_cut_column(lead)
        remarks.append(_list_names(outline, f"Other cuts of {words.clean(column)}: ", group.cuts))
    return Statement(Code(words.label(lead)), lead.sentence, tuple(remarks), f"finding-{number}")


def _list_names(outline: Outline, start: str, findings: Sequence[Finding]) -> Line:
    """Names of findings, each with its lift."""
    line: list[str | Code] = [start]
    for place, finding in enumerate(map(outline.face, findings[:MAX_NAMES])):
        lift = words.signed(main_cell(finding).lift)
        line += [", " if place else "", Code(finding.name), f" ({lift})"]
    surplus = len(findings) - MAX_NAMES
    line.append(f" and {surplus} more." if surplus > 0 else ".")
    return tuple(line)


def _confirmed(outline: Outline, with_figures: bool) -> Section | None:
    if not outline.groups:
        return None
    blocks = _group_entries(outline, outline.groups, "finding", with_figures)
    if outline.report.modes:
        blocks = (Fold((f"Show {outline.findings_headline}",), blocks),)
    return Section("Confirmed findings", (outline.caution,), blocks=blocks, anchor="confirmed")


def _strengths(outline: Outline, with_figures: bool) -> Section | None:
    if not outline.strength_groups:
        return None
    blocks = _group_entries(outline, outline.strength_groups, "strength", with_figures)
    size = words.plural(len(outline.strengths), "finding")
    fold = Fold((f"Show {size} of fewer failures",), blocks)
    sentences = (outline.better,) if outline.better else ()
    return Section(outline.better_title, sentences, blocks=(fold,), anchor="strengths")


def _group_entries(
    outline: Outline, groups: Sequence[FindingGroup], anchor: str, with_figures: bool
) -> tuple[Block, ...]:
    """An entry for each lead, and under it those that belong to it, folded."""
    blocks: list[Block] = []
    for number, group in enumerate(groups, 1):
        blocks.append(_entry(outline, group.lead, f"{anchor}-{number}"))
        if group.cuts and with_figures:
            lead = outline.face(group.lead)
            figure = draw_cuts(outline.report.findings, lead, f"{anchor}-{number}-cuts")
            blocks += [Figures((figure,))] if figure else []
        name = Code(words.label(outline.face(group.lead)))
        place = 0
        for findings, relation in ((group.others, "not told apart from"), (group.cuts, "beside")):
            entries = tuple(
                _entry(outline, finding, f"{anchor}-{number}-{place + i}")
                for i, finding in enumerate(findings, 1)
            )
            place += len(entries)
            if entries:
                noun = "finding" if findings is group.others else "other cut"
                size = words.plural(len(entries), noun)
                blocks.append(Fold((f"{size} {relation} ", name), entries))
    return tuple(blocks)


def _entry(outline: Outline, finding: Finding, anchor: str) -> Entry:
    blocks: list[Block] = []
    if finding.representative:
        lead = outline.name_representative(finding)
        blocks.append(Paragraph(("Not told apart from ", Code(lead), f". {finding.sentence}")))
    face = outline.face(finding)
    name = words.label(face)
    blocks.append(replace(tables.numbers(outline.report, face), caption=name))
    blocks.append(Remarks(outline.remarks(finding)))
    return Entry(Code(name), tuple(blocks), anchor)


def _too_small(outline: Outline) -> Section | None:
    if not outline.too_small:
        return None
    table = tables.too_small(outline.report)
    return Section(table.caption, (audit_words.TOO_SMALL,), (), (table,), anchor="too-small")


def _screened(outline: Outline) -> Section | None:
    if not outline.screened:
        return None
    table = tables.screened(outline.report)
    return Section(table.caption, (audit_words.UNCONFIRMED,), (), (table,), anchor="screened")


def _everything(report: Report) -> Section:
    blocks: list[Block] = []
    if len(report.findings) > MAX_ROWS:
        size = words.count(len(report.findings))
        line = f"The first {MAX_ROWS:,} are shown here; all {size} are in the JSON report."
        blocks.append(Paragraph((line,)))
    blocks += [_sortable_table(report), tables.key(report)]
    fold = Fold((f"Show all {words.count(len(report.findings))}",), tuple(blocks), printed=False)
    return Section("All candidates", (Outline(report).tally,), blocks=(fold,), anchor="everything")


def _sortable_table(report: Report) -> Table:
    """The table of all candidates, with the orders that readers may put it in."""
    findings = report.findings[:MAX_ROWS]
    orders = []
    for key, label, by in _ORDERS:
        ranks = [0] * len(findings)
        by_rank = sorted(enumerate(findings), key=lambda pair: by(pair[1]))
        for rank, (row, _) in enumerate(by_rank, 1):
            ranks[row] = rank
        orders.append(Order(key, label, tuple(ranks)))
    return replace(
        tables.everything(report, MAX_ROWS),
        orders=tuple(orders),
        classes=tuple(str(finding.verdict) for finding in findings),
    )


def _limits(outline: Outline) -> Section:
    report = outline.report
    modes = ModeOutline(report) if report.mode_search is not None else None
    blocks: list[Block] = [] if modes is None else mode_page.list_search(modes)
    blocks += [
        Paragraph((report.conclusion,)),
        Paragraph((outline.association,)),
        *([tables.detectable(report)] if report.power.minimum_detectable_lift else []),
        tables.ineligible(report),
    ]
    if outline.unscored:
        blocks += [Paragraph((outline.unscored,)), tables.unscored(report)]
    if outline.repeats:
        blocks.append(Paragraph((outline.repeats,)))
    weaker = tables.baselines(report)
    if weaker:
        curse = (Paragraph((outline.curse,)),) if outline.curse else ()
        blocks.append(Entry(weaker.caption, (*curse, weaker)))
    title = "What this audit could not have seen"
    return Section(title, blocks=tuple(blocks), anchor="limits")


def _summary_table(outline: Outline, *, own: bool = False) -> Table:
    """Confirmed findings, then those that cleared the screen alone; or ``own`` ones."""
    report = outline.report
    has_holdout = tables.holds_out(report)
    head, write_interval = tables.interval_words(report)
    sides = change_words.name_sides(report)
    lift = "lift" if report.change is None else "change"
    heads = (
        *sides,
        *(("discovery*", "holdout") if has_holdout else (lift,)),
        head,
        "adj. p",
    )
    rows: list[tuple[str, ...]] = []
    classes: list[str] = []

    def add(candidate: Finding, style: str, indent: str = "") -> None:
        finding = outline.face(candidate)
        cell = main_cell(finding)
        lifts = [finding.discovery.lift, cell.lift] if has_holdout else [cell.lift]
        numbers = [words.rate(cell.on_rate), words.rate(cell.off_rate), *map(words.signed, lifts)]
        interval = write_interval(cell)
        if finding.estimate is not None:
            interval = tables.write_estimate(report, finding.estimate)[1]
        numbers += [interval, words.p_value(cell.p_adjusted)]
        rows.append((indent + words.label(finding), *numbers))
        classes.append(style)

    def add_words(text: str, style: str) -> None:
        rows.append((text, *("" for _ in heads)))
        classes.append(style)

    confirmed = [
        (finding, "  " if finding.representative else "")
        for group in outline.groups
        for finding in (group.lead, *group.distinct)
        if not own or finding.name in report.manifest.own_rules
    ]
    for finding, indent in confirmed[:MAX_CONFIRMED]:
        add(finding, "", indent)
    if len(confirmed) > MAX_CONFIRMED:
        add_words(f"and {words.count(len(confirmed) - MAX_CONFIRMED)} more", "more")
    unconfirmed = (
        (tables.too_small(report).caption, outline.too_small),
        (tables.screened(report).caption, outline.screened),
    )
    for caption, findings in () if own else unconfirmed:
        listed = distinct(findings)
        if listed:
            add_words(f"{caption}:", "")
        for finding in listed[:MAX_SCREENED]:
            add(finding, "screened")
        if len(listed) > MAX_SCREENED:
            add_words(f"and {words.count(len(listed) - MAX_SCREENED)} more", "more")
    columns = (TableColumn("Finding"), *(TableColumn(name, "number") for name in heads))
    # a caption that repeats the verdict is not set
    return Table(outline.headline, columns, tuple(rows), classes=tuple(classes))
