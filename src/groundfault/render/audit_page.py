"""The report of an audit as a page, and in a terminal its first screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from groundfault.auditing.messages import describe_unused
from groundfault.auditing.report import Report
from groundfault.auditing.scorers import ScorerAudits
from groundfault.core.finding import Finding, Verdict
from groundfault.render import (
    audit_tables as tables,
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
from groundfault.render.audit_words import ASSOCIATION, Outline
from groundfault.render.first_screen import VERIFY, WHY, describe_counting, list_first, name_next
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
    ("discovery", "difference on discovery", lambda f: -abs(f.discovery.lift or 0.0)),
    ("p", "p of the screen", lambda f: 2.0 if f.discovery.p is None else f.discovery.p),
    ("size", "size of the slice", lambda f: -f.full.on),
    ("name", "name", lambda f: (f.name, f.outcome)),
)


def make_page(report: Report) -> Page:
    """Make the page of an audit: its first screen, and tabs on why it says so and how to check."""
    outline = Outline(report)
    modes = ModeOutline(report) if report.mode_search is not None else None
    sections = (
        mode_page.make_section(modes) if modes is not None and report.modes else None,
        *transcript_page.list_sections(report),
        _make_confirmed_section(outline),
        _make_strength_section(outline),
        description_tables.make_section(report),
        Section("How sure this is", _list_why(outline), anchor="sure", tab=WHY),
        Section("Figures", draw_safely("the figures", partial(figures, report)), anchor="figures"),
        Section.of(tables.too_small(report), audit_words.TOO_SMALL, anchor="too-small"),
        Section.of(tables.screened(report), audit_words.UNCONFIRMED, anchor="screened"),
        Section("What this audit could have missed", _list_limits(outline, modes), anchor="limits"),
        _make_full_section(outline),
        Section(
            "Manifest",
            "What is needed to compute this report again: groundfault verify.",
            Columns(tables.manifest(report)),
            anchor="manifest",
            tab=VERIFY,
        ),
    )
    return Page(
        "audit",
        outline.title,
        outline.headline,
        facts=outline.facts,
        lead=_list_lead(outline),
        sections=sections,
        good=bool(report.deciding or outline.is_finding),
        footer=f"Made by groundfault {report.groundfault_version}.",
    )


def make_summary(
    report: Report, path: object = None, *, why: bool = False, terminal: bool = True
) -> Page:
    """Make the first screen of a report; in a terminal its last line names the next command.

    Parameters
    ----------
    report : Report
    path : path, optional
        Where the page is.
    why : bool
        Whether everything else follows: all modes and findings, and how sure they are.
    terminal : bool
        Whether in twelve lines; else as on a page.
    """
    outline = Outline(report)
    return Page(
        "audit",
        outline.title,
        outline.headline,
        facts=outline.facts,
        lead=_list_lead(outline, terminal=terminal),
        sections=(
            *transcript_page.list_sections(report, _MAX_BEHAVIOURS),
            Section("Why", _list_why(outline, terminal=True)) if why else None,
        ),
        good=bool(report.deciding or outline.is_finding),
        footer=name_next(path) if terminal else "",
    )


def _list_lead(outline: Outline, *, terminal: bool = False) -> Iterator[Content]:
    """Yield the first screen; without modes the findings stand in their place."""
    yield list_first(outline, terminal=terminal)
    if terminal:
        # below failure modes, of those findings alone that the caller asked for
        yield _make_summary_table(outline, own=bool(outline.report.modes), short=True)
    elif outline.groups and not outline.report.modes:
        yield _state_findings(outline)


def _state_findings(outline: Outline) -> Statements:
    items = tuple(_state(outline, g, n) for n, g in enumerate(outline.groups, 1))
    return Statements(items, MAX_NAMES, "more groups")


def _list_why(outline: Outline, *, terminal: bool = False) -> Iterator[Content]:
    """Yield how sure the first screen is, and everything that it left out."""
    report = outline.report
    yield Remarks(outline.tests), notice(outline.warning)
    if report.mode_search is not None:
        yield mode_page.list_why(ModeOutline(report), terminal=terminal)
    if terminal:
        table = _make_summary_table(outline, own=False)
        yield table
        if table.rows and report.n_holdout:
            yield small("* selected as among the largest, so too large on average")
    elif report.modes and outline.groups:
        yield Fold((outline.findings_headline,), (_state_findings(outline),))
    yield f"Findings: {outline.tally}" if report.modes else outline.tally
    yield outline.better, outline.alike, words.clean(report.parts)
    yield description_tables.describe_arms(report), describe_counting(report)
    yield (f"{words.capital(words.clean(one))}." for one in describe_unused(report.unused))
    yield outline.conclusion if terminal else None
    yield outline.footing, outline.unscored if terminal else None
    if report.manifest.settings_file:
        yield f"Set by {words.clean(report.manifest.settings_file)}."
    hints = map(words.capital, report.hints)
    yield Bullets(tuple((f"{hint}.",) for hint in hints)) if report.hints else None


def _state(outline: Outline, group: FindingGroup, number: int) -> Statement:
    remarks: list[Line] = []
    lead = outline.face(group.lead)
    if lead.aliases:
        remarks.append(("Same examples as ", Code(words.listing(lead.aliases)), "."))
    if group.distinct:
        remarks.append(_list_names(outline, "Not to be told apart from ", group.distinct))
    if group.cuts:
        column = find_cut_column(lead)
        remarks.append(_list_names(outline, f"Other cuts of {words.clean(column)}: ", group.cuts))
    return Statement(Code(words.label(lead)), lead.sentence, tuple(remarks), f"finding-{number}")


def _list_names(outline: Outline, start: str, findings: Sequence[Finding]) -> Line:
    """List names of findings, each with its difference."""
    line: list[str | Code] = [start]
    for place, finding in enumerate(map(outline.face, findings[:MAX_NAMES])):
        points = words.points(main_cell(finding).lift)
        line += [", " if place else "", Code(finding.name), f" ({points} points)"]
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
    """Return an entry for each lead, with its group folded under it."""
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


def _make_summary_table(outline: Outline, *, own: bool, short: bool = False) -> Table:
    """Return confirmed findings, then findings that passed only the screen.

    Parameters
    ----------
    outline : Outline
    own : bool
        Whether to list only candidates that the caller asked for.
    short : bool
        Whether to list a few, without findings that passed only the screen.
    """
    most = mode_page.MAX_LISTED if short else MAX_CONFIRMED
    report = outline.report
    confirmed = [
        (finding, "  " if finding.representative else "")
        for group in outline.groups
        for finding in (group.lead, *group.distinct)
        if not own or finding.name in report.manifest.own_rules
    ]
    rows = [(_list_numbers(outline, f, indent), "") for f, indent in confirmed[:MAX_CONFIRMED]]
    rows += _count_rest(len(confirmed) - most)
    for caption, verdict in (
        (tables.too_small(report).caption, Verdict.TOO_SMALL),
        (tables.screened(report).caption, Verdict.NOT_REPLICATED),
    ):
        some = distinct(f for f in report.findings if f.verdict is verdict and not (own or short))
        rows += [((f"{caption}:",), "")] if some else []
        rows += [(_list_numbers(outline, f), "screened") for f in some[:MAX_SCREENED]]
        rows += _count_rest(len(some) - MAX_SCREENED)
    lift = "points" if report.change is None else "change"
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
        *map(words.points, lifts),
        interval,
        words.p_value(cell.p_adjusted),
    )


def _count_rest(number: int) -> list[tuple[tuple[str, ...], str]]:
    return [((f"and {words.count(number)} more",), "more")] if number > 0 else []


def make_scorer_page(audits: ScorerAudits, path: object = None) -> Page:
    """Make the first screen of audits by every scorer: each one's answer, and their differences."""
    scorers = tabulate(
        "Scorers",
        audits.reports.items(),
        Words("Scorer", lambda pair: words.clean(pair[0])),
        Number("failure rate", lambda pair: words.rate(pair[1].error_rate)),
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
