"""The report of an audit as a page, and in a terminal its first screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from groundfault.auditing.report import Report
from groundfault.auditing.scorers import ScorerAudits
from groundfault.core.finding import Finding, Verdict
from groundfault.render import audit_tables as tables
from groundfault.render import (
    audit_words,
    description_tables,
    mode_page,
    transcript_page,
    words,
)
from groundfault.render.audit_figures import draw_cuts, draw_safely, figures
from groundfault.render.audit_groups import (
    CHANGE_ASSOCIATION,
    FindingGroup,
    distinct,
    find_cut_column,
    main_cell,
    name_sides,
)
from groundfault.render.audit_words import ASSOCIATION, Outline, describe_counting, describe_scorer
from groundfault.render.mode_words import ModeOutline
from groundfault.render.page import (
    Block,
    Bullets,
    Code,
    Columns,
    Content,
    Entry,
    Fold,
    Line,
    Number,
    Order,
    Page,
    Paragraph,
    Remarks,
    Section,
    Statement,
    Statements,
    Table,
    Words,
    list_blocks,
    make_table,
    notice,
    small,
    tabulate,
)

MAX_ROWS = 5000
"""Candidates in the table of all: a browser sorts as many at once."""
MAX_NAMES = 12
"""Names in one line of remarks."""
MAX_CONFIRMED, MAX_SCREENED = 20, 10
"""Rows of findings on the first screen of a terminal."""
_MAX_BEHAVIOURS = 5
"""Rows of each table about transcripts on the first screen of a terminal."""
_MAX_ROWS = 20
"""Rows of each table on a screen about scorers."""

# how the table of all candidates can be put in order; styles do it, without a script. Not by
# holdout lift: the largest of those, picked from all, would be no finding
_ORDERS: tuple[tuple[str, str, Callable[[Finding], Any]], ...] = (
    ("discovery", "discovery lift", lambda f: -abs(f.discovery.lift or 0.0)),
    ("p", "p of the screen", lambda f: 2.0 if f.discovery.p is None else f.discovery.p),
    ("size", "size of the slice", lambda f: -f.full.on),
    ("name", "name", lambda f: (f.name, f.outcome)),
)


def make_page(report: Report) -> Page:
    """Make the page of an audit: all that the report says."""
    outline = Outline(report)
    modes = ModeOutline(report) if report.mode_search is not None else None
    sections = (
        mode_page.make_section(modes) if modes is not None and report.modes else None,
        *transcript_page.list_sections(report),
        Section("Figures", draw_safely("the figures", partial(figures, report)), anchor="figures"),
        _make_confirmed_section(outline),
        _make_strength_section(outline),
        description_tables.make_section(report),
        Section.of(tables.too_small(report), audit_words.TOO_SMALL, anchor="too-small"),
        Section.of(tables.screened(report), audit_words.UNCONFIRMED, anchor="screened"),
        _make_full_section(outline),
        Section(
            "What this audit could not have seen", _list_limits(outline, modes), anchor="limits"
        ),
        Section(
            "Manifest",
            "What is needed to compute this report again.",
            Columns(tables.manifest(report)),
            anchor="manifest",
        ),
    )
    return Page(
        "audit",
        outline.title,
        outline.headline,
        facts=outline.facts,
        lead=_list_lead(outline),
        sections=sections,
        good=bool(report.deciding or report.modes or outline.groups),
        footer=f"Made by groundfault {report.groundfault_version}.",
    )


def make_summary(report: Report, path: object = None) -> Page:
    """Make the first screen of a report, for a terminal; the last line is where all of it is."""
    outline = Outline(report)
    return Page(
        "audit",
        outline.title,
        outline.headline,
        lead=_list_lead(outline, terminal=True),
        sections=transcript_page.list_sections(report, _MAX_BEHAVIOURS),
        good=bool(report.deciding or report.modes or outline.groups),
        footer=f"Report: {path}" if path else "",
    )


def _list_lead(outline: Outline, *, terminal: bool = False) -> Iterator[Content]:
    """Yield what stands first: notices, failure modes, findings, and how to take them.

    A terminal gets a table in the place of statements, and counts of what a page has in sections.
    """
    report = outline.report
    gap = Paragraph(("",)) if terminal else None
    yield describe_scorer(report)
    yield describe_counting(report)
    yield outline.selection, outline.overall, outline.alike, words.clean(report.parts)
    yield notice(outline.warning)
    yield notice(words.name_failures(report.left_out))
    if report.deciding:
        yield gap, Statements(mode_page.list_deciding(report))
    if report.mode_search is not None:
        yield gap, mode_page.list_lead(ModeOutline(report), terminal=terminal)
    # below the modes, none of which is about answers
    yield notice(outline.instrument)
    if terminal:
        # below failure modes, of those findings alone that the caller asked for
        table = _make_summary_table(outline, own=bool(report.modes))
        if table.rows:
            yield gap, table
        if table.rows and report.n_holdout:
            yield small("* selected as among the largest, so too large on average")
    elif outline.groups:
        items = tuple(_state(outline, g, n) for n, g in enumerate(outline.groups, 1))
        statements = Statements(items, MAX_NAMES, "more groups")
        yield Fold((outline.findings_headline,), (statements,)) if report.modes else statements
    yield gap
    if terminal:
        yield f"Findings: {outline.tally}" if report.modes else outline.tally
    yield outline.better, description_tables.describe_arms(report)
    if not (terminal and report.modes):
        yield outline.conclusion
    yield outline.footing, outline.unscored if terminal else None
    if report.hints:
        head = "Hint: {}." if terminal else "{}."
        hints = report.hints if terminal else map(words.capital, report.hints)
        yield Bullets(tuple((head.format(hint),) for hint in hints))


def _state(outline: Outline, group: FindingGroup, number: int) -> Statement:
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
    """List names of findings, each with its lift."""
    line: list[str | Code] = [start]
    for place, finding in enumerate(map(outline.face, findings[:MAX_NAMES])):
        lift = words.signed(main_cell(finding).lift)
        line += [", " if place else "", Code(finding.name), f" ({lift})"]
    surplus = len(findings) - MAX_NAMES
    line.append(f" and {surplus} more." if surplus > 0 else ".")
    return tuple(line)


def _make_confirmed_section(outline: Outline) -> Section | None:
    if not outline.groups:
        return None
    blocks = _list_entries(outline, outline.groups, "finding")
    if outline.report.modes:
        blocks = (Fold((f"Show {outline.findings_headline}",), blocks),)
    return Section("Confirmed findings", outline.caution, blocks, anchor="confirmed")


def _make_strength_section(outline: Outline) -> Section | None:
    if not outline.strength_groups:
        return None
    blocks = _list_entries(outline, outline.strength_groups, "strength")
    size = words.plural(len(outline.strengths), "finding")
    fold = Fold((f"Show {size} of fewer failures",), blocks)
    return Section(outline.better_title, outline.better, fold, anchor="strengths")


def _list_entries(
    outline: Outline, groups: Sequence[FindingGroup], anchor: str
) -> tuple[Block, ...]:
    """Return an entry for each lead, and under it those that belong to it, folded."""
    blocks: list[Block] = []
    for number, group in enumerate(groups, 1):
        blocks.append(_entry(outline, group.lead, f"{anchor}-{number}"))
        if group.cuts:
            lead = outline.face(group.lead)
            draw = partial(draw_cuts, outline.report.findings, lead, f"{anchor}-{number}-cuts")
            blocks += list_blocks(draw_safely("the figure of the cuts", draw))
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
    blocks.append(Remarks(tuple(outline.list_remarks(finding))))
    return Entry(Code(name), tuple(blocks), anchor)


def _make_full_section(outline: Outline) -> Section:
    report = outline.report
    size = words.count(len(report.findings))
    line = f"The first {MAX_ROWS:,} are shown here; all {size} are in the JSON report."
    many = line if len(report.findings) > MAX_ROWS else None
    blocks = list_blocks(many, _make_sortable_table(report), tables.key(report))
    fold = Fold((f"Show all {size}",), blocks, printed=False)
    return Section("All candidates", outline.tally, fold, anchor="everything")


def _make_sortable_table(report: Report) -> Table:
    """Return the table of all candidates, with the orders that readers may put it in."""
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


def _list_limits(outline: Outline, modes: ModeOutline | None) -> Iterator[Content]:
    report = outline.report
    yield mode_page.list_search(modes) if modes is not None else None
    yield (
        words.clean(report.conclusion),
        ASSOCIATION if report.change is None else CHANGE_ASSOCIATION,
    )
    yield tables.detectable(report), tables.ineligible(report)
    if outline.unscored:
        yield outline.unscored, tables.unscored(report)
    yield outline.repeats
    weaker = tables.baselines(report)
    if weaker:
        yield Entry(weaker.caption, list_blocks(outline.curse, weaker))


def _make_summary_table(outline: Outline, *, own: bool) -> Table:
    """Return confirmed findings, then those that cleared the screen alone; or ``own`` ones."""
    report = outline.report
    confirmed = [
        (finding, "  " if finding.representative else "")
        for group in outline.groups
        for finding in (group.lead, *group.distinct)
        if not own or finding.name in report.manifest.own_rules
    ]
    rows = [(_list_numbers(outline, f, indent), "") for f, indent in confirmed[:MAX_CONFIRMED]]
    rows += _count_rest(len(confirmed) - MAX_CONFIRMED)
    for caption, verdict in (
        (tables.too_small(report).caption, Verdict.TOO_SMALL),
        (tables.screened(report).caption, Verdict.NOT_REPLICATED),
    ):
        some = distinct(f for f in report.findings if f.verdict is verdict and not own)
        rows += [((f"{caption}:",), "")] if some else []
        rows += [(_list_numbers(outline, f), "screened") for f in some[:MAX_SCREENED]]
        rows += _count_rest(len(some) - MAX_SCREENED)
    lift = "lift" if report.change is None else "change"
    heads = (
        "Finding",
        *name_sides(report),
        *(("discovery*", "holdout") if report.n_holdout else (lift,)),
        tables.interval_words(report)[0],
        "adj. p",
    )
    cells = [(*row, *("" for _ in heads[len(row) :])) for row, _ in rows]
    # a caption that repeats the verdict is not set
    table = make_table(outline.headline, "t" + "n" * (len(heads) - 1), heads, cells)
    return replace(table, classes=tuple(style for _, style in rows))


def _list_numbers(outline: Outline, candidate: Finding, indent: str = "") -> tuple[str, ...]:
    report, finding = outline.report, outline.face(candidate)
    cell = main_cell(finding)
    interval = tables.interval_words(report)[1](cell)
    if finding.estimate is not None:
        interval = tables.write_estimate(report, finding.estimate)[1]
    lifts = [finding.discovery.lift, cell.lift] if report.n_holdout else [cell.lift]
    return (
        indent + words.label(finding),
        words.rate(cell.on_rate),
        words.rate(cell.off_rate),
        *map(words.signed, lifts),
        interval,
        words.p_value(cell.p_adjusted),
    )


def _count_rest(number: int) -> list[tuple[tuple[str, ...], str]]:
    return [((f"and {words.count(number)} more",), "more")] if number > 0 else []


def make_scorer_page(audits: ScorerAudits, path: object = None) -> Page:
    """Make the first screen of audits by every scorer: what each says, and where they differ."""
    scorers = tabulate(
        "Scorers",
        audits.reports.items(),
        Words("Scorer", lambda pair: words.clean(pair[0])),
        Number("error rate", lambda pair: words.rate(pair[1].error_rate)),
        Words("what its audit says", lambda pair: _summarize(pair[1])),
    )
    differences = tabulate(
        "Where the scorers differ",
        sorted(audits.agreements, key=lambda each: -each.apart / each.n)[:_MAX_ROWS],
        Words("Scorer", lambda each: words.clean(each.first)),
        Words("and scorer", lambda each: words.clean(each.second)),
        Number("differ on", lambda each: each.apart),
        Number("of answers", lambda each: each.n),
        Number("share", lambda each: words.rate(each.apart / each.n)),
        note="Audit the answers on which two differ: --disagreement A B.",
    )
    disputed = make_table(
        "Confirmed by some scorers and not by others",
        "t" + "t" * len(audits.reports),
        ("Finding", *map(words.clean, audits.reports)),
        [
            (
                words.clean(key),
                # a scorer whose audit had no such candidate says nothing
                *(words.VERDICTS[Verdict(each[n])] if n in each else "" for n in audits.reports),
            )
            for key, each in list(audits.disputed.items())[:_MAX_ROWS]
        ],
    )
    remarks = (
        f"Each audit has the error level {words.level(audits.level)}, a share of the plan's, so "
        f"that the plan's holds for all {len(audits.reports)} together.",
        *(
            f"Not audited: {words.clean(name)}, {words.clean(why)}."
            for name, why in audits.refusals.items()
        ),
    )
    return Page(
        "audit",
        "",
        f"{words.plural(len(audits.reports), 'scorer')} of the same answers, each audited",
        lead=(scorers, Bullets(tuple((remark,) for remark in remarks))),
        sections=map(Section.of, (differences, disputed)),
        footer=f"Report: {path}" if path else "",
    )


def _summarize(report: Report) -> str:
    """Return the headline, and the rules of the failure modes."""
    headline = Outline(report).headline
    rules = [mode.meaning for mode in report.modes]
    return words.clean(f"{headline}: {words.listing(rules, 3)}" if rules else headline)
