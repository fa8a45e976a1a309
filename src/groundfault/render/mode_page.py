"""Failure modes on a page and on the first screen of a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from msgspec.structs import replace

from groundfault.auditing.column_timing import describe_share
from groundfault.auditing.messages import count_errors, describe_rates, equal_p
from groundfault.auditing.report import Report
from groundfault.auditing.report_examples import RuleExamples
from groundfault.modes.examples import share_opening
from groundfault.modes.mode import EVERY_MODEL, Mode, ModeChange, ModeExample, Side
from groundfault.render import words
from groundfault.render.audit_figures import draw_doses, draw_safely
from groundfault.render.audit_groups import name_change
from groundfault.render.description_tables import describe_annotation
from groundfault.render.highlights import find_patterns, highlight, quote_example
from groundfault.render.mode_words import (
    NAMES,
    SETS,
    ModeOutline,
    NumberedMode,
    describe_stability,
    format_count,
)
from groundfault.render.page import (
    Bar,
    Block,
    Code,
    Content,
    Entry,
    Excerpt,
    Excerpts,
    Fold,
    Line,
    Number,
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
    small,
    tabulate,
)

MAX_FULL = 5
"""Modes that a page shows unfolded."""
MAX_LISTED = 3
"""Modes on the first screen of a terminal, which has twelve lines."""
_MAX_MODELS = 8
"""Models that a terminal of 100 columns has room for."""
_MARKS = {"named": " ●", "confirmed": " ○", "": "  "}
_KINDS = {
    "range": "A range",
    "word": "A word",
    "value pair": "Two values",
    "pair": "Two conditions",
}
_MAX_FIGURES = 12
"""Pictures of columns on a page."""
_LONG_OPENING = 80
"""Characters from which a shared opening is said once: a line of a terminal."""

_SIDES: dict[Side, str] = {
    "failing": "Fails",
    "passing": "Passes, although it matches the rule",
    "near": "Near misses: one condition does not match",
}


def list_lead(outline: ModeOutline, *, terminal: bool = False) -> Iterator[Content]:
    """Yield the modes of each outcome; of a terminal the first three, a line each.

    Parameters
    ----------
    outline : ModeOutline
    terminal : bool
    """
    groups, several = outline.groups, len(outline.search.outcomes) > 1
    deciding = outline.report.deciding
    if deciding:
        without = words.listing([words.clean(one.column) for one in deciding], 3)
        modes_left = f": {outline.headline}" if groups else ", no failure mode was named"
        yield f"Without {without}{modes_left}."
    if outline.search.matrix:
        yield _tabulate_models(outline, terminal)
        yield outline.averages
        groups = ()
    left = MAX_LISTED
    for outcome, modes in groups:
        if terminal and not left:
            break
        items = tuple(_state(one, outline.full, terminal) for one in modes)
        shares = outline.split_failures(outcome)
        listed = Statements(items, MAX_FULL, shares=shares, is_graded=outline.report.is_graded)
        blocks = list_blocks(listed, outline.describe_coverage(outcome))
        if terminal:
            blocks, left = (Statements(items[:left]),), max(0, left - len(items))
        yield Entry(_name_outcome(outline, outcome), blocks) if several else blocks
    if terminal and sum(len(modes) for _, modes in groups) > MAX_LISTED:
        yield f"and {sum(len(modes) for _, modes in groups) - MAX_LISTED} more"
    if groups and not terminal:
        yield small(outline.legend)
    # where there is nothing at all, the headline says so
    if outline.silent and (groups or (outline.report.weaknesses and not deciding)):
        yield outline.silent
    yield outline.fixed


def list_why(outline: ModeOutline, *, terminal: bool = False) -> Iterator[Content]:
    """Yield the extent of the search and problems it could name; in a terminal all modes too."""
    if terminal:
        yield list_lead(outline)
    yield outline.power, outline.breadth
    if terminal:
        yield list_search(outline)


def _tabulate_models(outline: ModeOutline, terminal: bool) -> Table:
    """Tabulate one list of rules for several models; of many, a terminal shows both ends."""
    matrix, search = outline.search.matrix, outline.search
    rates = {one.outcome: one.errors / one.n if one.n else 0.0 for one in search.outcomes}
    models = sorted((cell.model for cell in matrix[0].cells), key=lambda name: -rates[name])
    shown = models
    if terminal and len(models) > _MAX_MODELS:
        shown = models[: _MAX_MODELS // 2] + models[-_MAX_MODELS // 2 :]
    rows = []
    for row in matrix[: MAX_LISTED if terminal else None]:
        cells = {cell.model: cell for cell in row.cells}
        numbers = [n for n, mode in enumerate(outline.report.modes, 1) if mode.rule == row.rule]
        meaning = f"{row.meaning} (only {row.only})" if row.only else row.meaning
        each = (f"{words.rate(cells[m].rate)}{_MARKS[cells[m].mark]}" for m in shown)
        sample = outline.report.modes[numbers[0] - 1].sample
        such = () if terminal else (quote_example(sample, ""),)
        rows.append((words.clean(meaning), words.count(row.n), *each, str(numbers[0]), *such))
    anchors = [f"mode-{row[-1 if terminal else -2]}" for row in rows]
    total = ("all", words.count(outline.report.n))
    such = () if terminal else ("",)
    rows.insert(0, (*total, *(words.rate(rates[m]) for m in shown), words.NONE, *such))
    hidden = len(matrix) - MAX_LISTED if terminal else 0
    left = [
        f"{len(models) - len(shown)} models between them" * (len(shown) < len(models)),
        words.plural(hidden, "more rule") * (hidden > 0),
    ]
    more = f"; {words.listing([one for one in left if one], 2)}: --why" if any(left) else ""
    heads = ("Rule", words.capital(f"{outline.report.unit}s"), *map(words.clean, shown), "Mode")
    heads += () if terminal else ("A typical failure",)
    note = (
        "Failure rates. ●: more often than elsewhere, and beyond the rows above; ○: more often "
        f"than elsewhere; no mark: no such excess was shown, and the model may still fail{more}."
    )
    kinds = f"tn{'n' * len(shown)}n{'' if terminal else 't'}"
    return make_table("Rules by model", kinds, heads, rows, note, ("", *anchors))


def _state(one: NumberedMode, full: float, terminal: bool) -> Statement:
    """State a mode with a typical failure; of a terminal the first mode alone has one."""
    example = quote_example(one.mode.sample) if not terminal or one.number == 1 else ""
    if terminal:
        return Statement(one.name, f"{one.sentence}.", ((example,),) if example else ())
    annotation = describe_annotation(one.report, one.mode.rule, one.mode.source)
    bar = Bar(one.mode.rate, find_rate_beside(one.mode), full)
    described = words.clean(f"{words.capital(annotation)}.") if annotation else ""
    lines = (one.nesting, described, example)
    remarks: tuple[Line, ...] = tuple((line,) for line in lines if line)
    return Statement(one.name, f"{words.capital(one.sentence)}.", remarks, one.anchor, bar)


def find_rate_beside(mode: Mode) -> float:
    """Return the second rate of a bar, beside the rule's own: elsewhere, or before."""
    return mode.rate_outside if mode.change is None else mode.rate_before


def list_deciding(report: Report) -> tuple[Statement, ...]:
    """List the rules over the columns that decide the outcome."""
    return tuple(
        Statement(words.clean(one.column), f"{describe_share(one.share)}.")
        if mode is None
        else Statement(
            words.clean(f"{mode.meaning}{f' ({mode.outcome})' if mode.outcome else ''}"),
            f"{describe_rates(mode, unit=report.unit)}.",
            bar=Bar(mode.rate, mode.rate_outside),
        )
        for one in report.deciding or ()
        for mode in one.modes or (None,)
    )


def list_search(outline: ModeOutline) -> Iterator[Content]:
    """Yield the possible rules, and the failure rate that a rule needed to be named."""
    search = outline.search
    unit = f"{outline.report.unit}s"
    needed = {"Failure rate" if outline.changes is None else "Rise of failures": search.detectable}
    needed |= {_KINDS[kind]: rates for kind, rates in search.detectable_by.items()}
    power = tabulate(
        "The failure rate that a rule needed to be found four times in five",
        search.detectable,
        Number(f"Matches this share of {unit}", lambda share: words.level(float(share))),
        *(Number(name, partial(_write_rate, rates)) for name, rates in needed.items()),
    )
    kinds = NAMES | SETS
    classes = tabulate(
        "Possible rules",
        search.classes,
        Words("Kind", lambda c: words.capital(kinds.get(c.name, c.name))),
        Number("Rules", lambda c: format_count(c.rules)),
        Number("Share of the error level", lambda c: words.rate(c.weight)),
    )
    yield outline.guarantee, (f"{words.capital(one)}." for one in search.remarks)
    yield power, classes


def _write_rate(rates: Mapping[str, float | None], share: str) -> str:
    rate = rates.get(share)
    return "not found" if rate is None else words.rate(rate)


def make_section(outline: ModeOutline) -> Section:
    """Make the section on each mode: numbers, rule, other wordings, examples."""
    return Section("Failure modes", _list_entries(outline), anchor="modes")


def _list_entries(outline: ModeOutline) -> Iterator[Content]:
    drawn = 0
    for outcome, modes in outline.groups:
        if len(outline.search.outcomes) > 1:
            yield Paragraph((_name_outcome(outline, outcome), ":"))
        for place, one in enumerate(modes):
            blocks = list_blocks(_describe(outline, one, drawn < _MAX_FIGURES))
            entry = Entry(one.name, blocks, one.anchor)
            drawn += len({point.column for point in one.mode.doses})
            yield entry if place < MAX_FULL else Fold((one.name,), (entry,))


def _describe(outline: ModeOutline, one: NumberedMode, with_figures: bool) -> Iterator[Content]:
    mode = one.mode
    yield " ".join(filter(None, [f"{words.capital(one.sentence)}.", one.nesting]))
    yield _count(one)
    yield Remarks(tuple(_remark(outline, one)))
    if with_figures and mode.doses:
        yield draw_safely("the figure of a mode", partial(draw_doses, mode, one.anchor))
    sides, sample = _SIDES, mode.sample
    if mode.change is not None and not mode.is_unpaired:
        got = "better" if mode.is_less_frequent else "worse"
        sides = _SIDES | {"failing": f"Got {got}", "passing": f"Did not get {got}"}
        # whether one outside is right now tells little of a change
        sample = tuple(replace(example, loss=None) for example in sample)
    yield list_excerpts(sample, mode.rule, sides)


def _count(one: NumberedMode) -> Table:
    """Count failures inside and outside the rule."""
    mode = one.mode
    if mode.change is not None:
        return _count_change(one, mode.change)
    parts = [
        ("Inside the rule", mode.errors, mode.n),
        ("Elsewhere", mode.errors_outside, mode.n_outside),
    ]
    if one.earlier:
        parts.insert(1, ("Of it, in no earlier mode", mode.errors_new, mode.n_new))
    rows = [
        (part, count_errors(errors), words.count(n), words.rate(errors / n if n else None))
        for part, errors, n in parts
    ]
    loss = "Loss" if one.report.is_graded else "Failures"
    heads = ("Where", loss, f"{words.capital(one.report.unit)}s", "Rate")
    return make_table(one.name, "tnnn", heads, rows)


def _count_change(one: NumberedMode, change: ModeChange) -> Table:
    """Count failures before and now, inside and outside the rule."""
    mode = one.mode
    parts = [
        ("Inside the rule", change.before, mode.errors, mode.n, change.difference),
        ("Elsewhere", change.before_outside, mode.errors_outside, mode.n_outside, change.elsewhere),
    ]
    sizes = change.n_before, change.n_before_outside
    then = ["" if size is None else f" of {words.count(size)}" for size in sizes]
    rows = [
        (part, count_errors(before) + of, count_errors(now), words.count(n), words.points(moved))
        for (part, before, now, n, moved), of in zip(parts, then, strict=True)
    ]
    loss = "Loss" if one.report.is_graded else "Failures"
    heads = ("Where", f"{loss} before", "Now", f"{words.capital(one.report.unit)}s", "Points")
    return make_table(one.name, "tnnnn", heads, rows)


def _expect(mode: Mode) -> str:
    """Return the failure rate to expect of new examples, where a report says it."""
    if mode.corrected is None or words.rate(mode.corrected) == words.rate(mode.rate):
        return ""
    return (
        f"; expect {words.rate(mode.corrected)} of new examples, because a chosen rule looks worse "
        "than it is"
    )


def _remark(outline: ModeOutline, one: NumberedMode) -> Iterator[tuple[str, str | Code | Line]]:
    mode, rules = one.mode, format_count(outline.search.rules)
    yield "Rule", Code(mode.rule)
    level = words.level(1 - words.decimal(one.report.plan.alpha))
    if mode.change is not None:
        yield from _remark_change(one, mode.change, rules, f"{level} interval")
    else:
        yield from _remark_rate(outline, one, rules, f"{level} interval")
    if mode.stability is not None:
        yield "Stability", describe_stability(mode)
    for other in mode.alternatives:
        overlap = f"{words.rate(other.overlap)} of the same {one.report.unit}s"
        yield "Alternative", (f"{words.clean(other.meaning)} ({overlap}): ", Code(other.rule))
    if mode.source != "modes":
        yield "Proposed by", mode.source
    if annotation := describe_annotation(one.report, mode.rule, mode.source):
        yield "Annotation", words.clean(annotation)


def _remark_change(
    one: NumberedMode, change: ModeChange, rules: str, level: str
) -> Iterator[tuple[str, str]]:
    """Yield how sure a change is."""
    mode, units = one.mode, f"{one.report.unit}s"
    ends = words.span(change.interval, words.points)
    yield level, f"{ends} points: the change, for this rule alone"
    swapped = f"if the two runs could be swapped within {units}"
    if mode.is_unpaired:
        swapped = f"if it is chance which run like {units} are in"
    yield (
        "Against chance",
        f"{equal_p(mode.p_marginal)}, corrected for the search of {rules} rules, {swapped}",
    )
    yield (
        "Unlike the rest",
        f"{equal_p(mode.p_conditional)}, corrected in the same way, given the change of "
        f"{units} elsewhere and in earlier modes",
    )


def _remark_rate(
    outline: ModeOutline, one: NumberedMode, rules: str, level: str
) -> Iterator[tuple[str, str]]:
    """Yield how sure a failure rate is."""
    mode = one.mode
    yield (
        level,
        f"{words.span(mode.interval)}: the failure rate inside, for this rule alone{_expect(mode)}",
    )
    # where other rows proposed it, no rule beside it could have been tested in its place
    whole = "" if outline.search.searched is not None else f" for the search of {rules} rules"
    yield (
        "Against chance",
        f"{equal_p(mode.p_marginal)}, corrected{whole}, for equal failure rates inside and outside",
    )
    if one.earlier:
        how = "in the same way" if mode.n_new else "for what could be added to its mode"
        yield (
            "Beyond earlier modes",
            f"{equal_p(mode.p_conditional)}, corrected {how}, comparing only "
            f"{one.report.unit}s that match the same earlier modes",
        )


def list_excerpts(
    sample: tuple[ModeExample, ...], rule: str, sides: Mapping[Side, str] = _SIDES
) -> Iterator[Block]:
    """Yield examples by side, under its title, the words that the rule names highlighted.

    An opening that all texts of a column share is shown once, before them.
    """
    openings = find_openings(sample)
    if openings:
        items = tuple((f"Every {words.clean(name)} begins", o) for name, o in openings.items())
        yield Remarks(items)
    patterns = find_patterns(rule) if rule else {}
    groups = []
    for side, title in sides.items():
        some = [example for example in sample if example.side == side]
        if some:
            excerpts = tuple(_make_excerpt(e, patterns, openings) for e in some)
            groups.append((title, excerpts))
    if groups:
        yield Excerpts(tuple(groups))


def find_openings(sample: tuple[ModeExample, ...]) -> dict[str, str]:
    """Find, by column, the long opening that all texts share, up to the end of a word."""
    texts: dict[str, list[str]] = {}
    for example in sample:
        for name, text in example.texts.items():
            texts.setdefault(name, []).append(text)
    openings = {}
    for name, some in texts.items():
        shared = share_opening(some)
        shared = shared[: max(shared.rfind(" "), shared.rfind("\n")) + 1]
        if len(shared) >= _LONG_OPENING and len(set(some)) > 1:
            openings[name] = shared
    return openings


def _make_excerpt(
    example: ModeExample, patterns: dict[str, tuple[str, ...]], openings: dict[str, str]
) -> Excerpt:
    texts = []
    for name, text in example.texts.items():
        opening = openings.get(name, "")
        lines = [
            highlight(line, patterns.get(name, ()))
            for line in text.removeprefix(opening).splitlines()
        ]
        if opening:
            lines[:1] = [("[…] ", *lines[0])] if lines else [("[…]",)]
        texts.append((name, tuple(lines)))
    return Excerpt(example.id, _describe_loss(example), tuple(texts))


def _describe_loss(example: ModeExample) -> str:
    loss = example.loss
    if loss is None:
        return ""
    if loss not in (0.0, 1.0):
        return f"loss {loss:.2g}"
    return ("right", "wrong")[int(loss)] if example.side == "near" else ""


def _name_outcome(outline: ModeOutline, outcome: str) -> str | Code:
    if outline.changes is not None:
        return outline.name_outcome(outcome)
    name = outline.name_outcome(outcome)
    return words.capital(name) if outcome == EVERY_MODEL else Code(name)


_NAMES: dict[Side, str] = {
    "failing": "inside the rule, and wrong",
    "passing": "inside the rule, and right",
    "near": "outside the rule by one condition",
}


def make_example_page(lookup: RuleExamples, side: Side) -> Page:
    """Make a page of examples of one side of a rule, the words that it names highlighted.

    Parameters
    ----------
    lookup : RuleExamples
    side : {"failing", "passing", "near"}
    """
    subject, examples = lookup.subject, lookup.examples
    name = _name_side(lookup, side)
    lead: list[Content] = []
    if subject is not None:
        lead.append(Paragraph(("Rule: ", Code(subject.rule))))
        lead.append(
            f"{words.capital(describe_rates(subject))}."
            if isinstance(subject, Mode)
            else subject.sentence
        )
    if examples:
        size = words.plural(len(examples), "example")
        order = "those most like failing ones" if side == "near" else "the most typical"
        lead.append(f"{size} {name}, {order} first:")
        rule = subject.rule if subject else ""
        lead.append(list_excerpts(examples, rule, dict.fromkeys(_SIDES, "")))
    else:
        lead.append(f"No example is {name}.")
    title = "All examples"
    if subject is not None:
        outcome = f" ({subject.outcome})" if subject.outcome else ""
        title = words.clean(f"{subject.meaning}{outcome}")
    return Page("examples", "", title, lead=lead, good=bool(examples))


def _name_side(lookup: RuleExamples, side: Side) -> str:
    subject = lookup.subject
    if subject is None:
        return _NAMES[side].rpartition(", and ")[2]
    unpaired = isinstance(subject, Mode) and subject.is_unpaired
    if lookup.pair is None or unpaired or side == "near":
        return _NAMES[side]
    change = name_change(lookup.pair, is_better=subject.is_less_frequent)
    return f"inside the rule, and {'not ' if side == 'passing' else ''}{change}"
