"""Cases as pages: where one stands, and what it found, confirmed and never looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from groundfault.auditing.stages import OPTIONS, find_stages
from groundfault.case.settings import CaseSettings, Step
from groundfault.case.simulation import Forecast, forecast_confirmation
from groundfault.case.summary import CaseSummary, LabelledMode
from groundfault.core.plan import to_fraction
from groundfault.render import words
from groundfault.render.case_wordings import (
    describe_next_wordings,
    list_wording_gaps,
    make_wording_sections,
)
from groundfault.render.case_words import name_folder, name_label_command
from groundfault.render.page import (
    Bullets,
    Code,
    Page,
    Paragraph,
    Remarks,
    Section,
    Statement,
    Statements,
    Table,
    TableColumn,
)
from groundfault.render.preview_pages import make_column_table

if TYPE_CHECKING:
    from groundfault.case.case import Case
    from groundfault.render.page import Line

_SELECTED = (
    "Modes were selected for their failures, so the rates of the audit lie too far apart on "
    "average; those of the labels do not depend on that selection."
)
_FRESH = {
    "kept apart": "they were drawn at random and kept apart before the audit",
    "without an outcome": "they had no outcome when the case began",
}
_TRUST = {
    "kept apart": (
        "Fresh rows are a random part of the table, so what holds of them holds of rows like these."
    ),
    "without an outcome": (
        "Fresh rows are those that had no outcome: what is confirmed holds of them, and of other "
        "rows only so far as these are like them."
    ),
}


def html(summary: CaseSummary) -> str:
    """The page of a case as HTML."""
    from groundfault.render.html import html as set_html

    return set_html(make_case_page(summary))


def markdown(summary: CaseSummary) -> str:
    """The page of a case as Markdown."""
    from groundfault.render.markdown import markdown as set_markdown

    return set_markdown(make_case_page(summary))


def make_case_page(summary: CaseSummary) -> Page:
    """What a case found, what held when it was labelled, what it cost, and what nobody looked at.

    Parameters
    ----------
    summary : CaseSummary
    """
    sections = (
        Section("Failure modes", _describe_modes(summary), blocks=tuple(_list_modes(summary))),
        *make_wording_sections(summary),
        Section("What it cost", (_describe_cost(summary),), anchor="cost"),
        Section("How sure this is", tuple(_describe_levels(summary)), anchor="levels"),
        Section(
            "What was never looked at", blocks=(Bullets(tuple(_list_gaps(summary))),), anchor="gaps"
        ),
        Section("Manifest", blocks=(Remarks(tuple(_list_hashes(summary))),), anchor="manifest"),
    )
    return _make_page(summary, sections)


def make_status_page(
    case: Case, forecast: Callable[[Case], Forecast | None] = forecast_confirmation
) -> Page:
    """Where a case stands, what the next step would cost, and what it could show.

    Before the audit no outcome is read for it: columns are told apart by their names and by what
    was declared.

    Parameters
    ----------
    case : Case
    forecast : callable
        Simulates what confirming its modes would cost.
    """
    summary = case.summarize()
    lines = _describe_next(summary, forecast(case), case)
    steps = Section("Next", blocks=tuple(map(Paragraph, lines)))
    modes = Section("Failure modes", blocks=tuple(_list_modes(summary, rules_apart=True)))
    levels = Section("How sure this is", tuple(_describe_levels(summary)))
    sections = (modes, *make_wording_sections(summary), steps, levels)
    if not summary.audited:
        sections = (steps, _list_columns(case), levels)
    return _make_page(summary, tuple(s for s in sections if s.content))


def _list_columns(case: Case) -> Section:
    rows = words.plural(len(case.audit_evidence), "row")
    sentence = (
        f"The audit reads {rows} and their outcomes. Its rules name columns that were known before "
        "the answer; here their names and what was declared decide that, and the audit also leaves "
        "out what gives the outcome away."
    )
    options = ", ".join(f"{option} says {stage}" for stage, (_, option) in OPTIONS.items())
    table = replace(
        make_column_table(find_stages(case.audit_evidence, {})),
        note="A case decides this when it begins. If a column is taken for the wrong thing, begin "
        f"another case: groundfault case new takes options, each with a column: {options}.",
    )
    return Section("What the audit could name", (sentence,), tables=(table,))


def _make_page(summary: CaseSummary, sections: tuple[Section, ...]) -> Page:
    settings = summary.settings
    models = (("Models", words.count(len(settings.models))),) if settings.models else ()
    facts = (
        *models,
        ("Audited", words.count(settings.audit_units)),
        ("Fresh", words.count(settings.fresh_units)),
        ("Labels bought", words.count(summary.labelled)),
        ("Level of the case", words.level(words.decimal(settings.alpha))),
    )
    return Page(
        "case",
        words.listing([words.clean(name) for name in settings.sources], 3) or "a case",
        _write_verdict(summary),
        facts,
        sections,
        bool(summary.confirmed),
    )


def _write_verdict(summary: CaseSummary) -> str:
    modes, confirmed = len(summary.modes), len(summary.confirmed)
    if not summary.audited:
        return "Nothing was looked at yet"
    if not modes:
        return "No failure mode: nothing is claimed"
    found = f"{words.plural(modes, 'failure mode')} in the audit"
    if not summary.chosen:
        return f"{found}, none confirmed on fresh labels yet"
    return f"{found}; confirmed on fresh labels: {confirmed or 'none'}"


def _describe_modes(summary: CaseSummary) -> tuple[str, ...]:
    if not summary.audited:
        return ("There was no audit yet.",)
    rate = words.rate(summary.error_rate)
    units = words.count(summary.settings.audit_units)
    head = f"{rate} of {units} audited units failed; {words.count(summary.rules)} rules could have"
    if not summary.modes:
        return (f"{head} been named, and none fails more often than chance allows.",)
    return (f"{head} been named. {_SELECTED}",)


def _list_modes(
    summary: CaseSummary, *, rules_apart: bool = False
) -> Iterator[Statements | Table | Remarks]:
    if not summary.modes:
        return
    statements = tuple(map(_state, summary.modes))
    if rules_apart:
        # a terminal prints no remarks of a statement
        statements = tuple(replace(statement, remarks=()) for statement in statements)
    yield Statements(statements)
    rows = tuple(
        (
            f"{mode.number}",
            mode.standing,
            words.signed(mode.lift),
            words.count(mode.labelled_inside),
            words.count(mode.labelled_outside),
            words.NONE if mode.e_value is None else f"{mode.e_value:.3g}",
        )
        for mode in summary.modes
        if mode.standing != "not chosen"
    )
    if rows:
        heads = ("Lift", "Labelled inside", "Outside", "E-value")
        columns = (
            TableColumn("Mode"),
            TableColumn("Standing"),
            *(TableColumn(head, "number") for head in heads),
        )
        graded = summary.settings.grader is not None
        basis = "labels and grades" if graded else "the labels drawn from all of either side"
        bar = 1 / float(to_fraction(summary.settings.share_alpha("confirm")))
        note = (
            f"Lift: failure rate of fresh units inside minus outside, by {basis}. An e-value of "
            f"{bar:g} confirms; those here are adjusted for all modes that were chosen."
        )
        yield Table("What fresh labels say", columns, rows, note)
    if rules_apart:
        yield Remarks(tuple((f"Mode {mode.number}", Code(mode.rule)) for mode in summary.modes))


def _state(mode: LabelledMode) -> Statement:
    elsewhere = f"elsewhere where {mode.context}" if mode.context else "elsewhere"
    sentence = (
        f"In the audit {words.rate(mode.rate)} of {words.count(mode.n)} failed, against "
        f"{words.rate(mode.rate_outside)} {elsewhere} (p {words.p_value(mode.p)}); "
        f"{words.plural(mode.fresh_inside, 'fresh unit')} inside; {_describe_standing(mode)}."
    )
    whose = f" ({words.clean(mode.outcome)})" if mode.outcome else ""
    return Statement(f"Mode {mode.number}{whose}: {mode.meaning}", sentence, ((Code(mode.rule),),))


def _describe_standing(mode: LabelledMode) -> str:
    return {
        "confirmed": "confirmed on fresh labels",
        "open": "not confirmed: the labels so far do not decide",
        "too few fresh rows": "cannot be confirmed: too few fresh units inside or outside",
        "not chosen": "no label was bought for it",
    }[mode.standing]


def _describe_cost(summary: CaseSummary) -> str:
    answers = f"{summary.settings.fresh_answers:,} {_name_fresh(summary.settings)}s"
    cost = f"{words.plural(summary.labelled, 'label')} of {answers}"
    if summary.budget is not None:
        cost += f", of at most {words.count(summary.budget)}"
    if summary.settings.grader is not None:
        grader = words.clean(summary.settings.grader)
        cost += f"; grades of {grader} cost nothing here and cannot confirm by themselves"
    if summary.wordings is not None:
        cost += f"; {words.plural(summary.wordings.asked, 'answer')} of the model in other words"
    if summary.review is not None:
        cost += f"; {words.plural(summary.review.settled, 'item')} reviewed"
    return f"{cost}."


def _describe_levels(summary: CaseSummary) -> Iterator[str]:
    settings = summary.settings
    levels = {
        step: words.level(words.decimal(settings.share_alpha(step))) for step in get_args(Step)
    }
    whole = words.level(words.decimal(settings.alpha))
    yield (
        "Audit: the chance that any mode fails no more often inside than outside is at most "
        f"{levels['audit']}, if units are independent. Confirmation: the chance that any mode is "
        "confirmed that has nothing to do with failing among the fresh units is at most "
        f"{levels['confirm']}, whichever modes were chosen and whenever one stops, if the audit "
        f"cannot have used their outcomes: {_FRESH[settings.freshness]}. Other words: the chance "
        f"of any false statement is at most {levels['probe']} by answers, and {levels['review']} "
        "by errors that people confirmed, if tasks of a pair could be swapped where a mode has "
        "nothing to do with failing, and wordings where they do nothing. The whole case: the "
        f"chance of any false statement is at most {whole}, the sum of all."
    )
    if settings.models:
        yield (
            "A mode is of one model, or of every model: then it is about the mean over all models, "
            "and of each unit the answer of one of them, drawn by lot, is labelled. The level of "
            "the confirmation is divided among the models by the number of their modes."
        )
    yield _TRUST[settings.freshness]


def _list_gaps(summary: CaseSummary) -> Iterator[tuple[str]]:
    settings = summary.settings
    left = settings.fresh_answers - summary.labelled
    yield (f"{words.plural(left, _name_fresh(settings))} never labelled.",)
    for mode in summary.modes:
        if mode.standing in ("not chosen", "too few fresh rows"):
            yield (f"Mode {mode.number}: {_describe_standing(mode)}.",)
    for remark in summary.remarks:
        yield (f"{words.capital(words.clean(remark))}.",)
    for gap in list_wording_gaps(summary):
        yield (gap,)


def _name_fresh(settings: CaseSettings) -> str:
    return "fresh answer" if settings.models else "fresh unit"


def _list_hashes(summary: CaseSummary) -> Iterator[tuple[str, Code]]:
    settings = summary.settings
    yield "Audited rows (SHA-256)", Code(settings.audit)
    yield "Fresh rows (SHA-256)", Code(settings.fresh)
    yield "Decided before any look (SHA-256)", Code(settings.seal)
    yield "Seed", Code(str(settings.seed))


def _describe_next(summary: CaseSummary, forecast: Forecast | None, case: Case) -> Iterator[Line]:
    folder = name_folder(case)
    if not summary.audited:
        yield (
            Code(f"groundfault audit --case {folder}"),
            " costs no label; it names rules under which the "
            f"{words.count(summary.settings.audit_units)} audited units fail more often.",
        )
        return
    if forecast is not None:
        yield _describe_forecast(summary, forecast, case)
        if not summary.chosen:
            yield (
                Code(f"groundfault case plan {folder} --budget N"),
                " costs no label; it says which modes N labels can confirm, and which to leave "
                "out.",
            )
    elif summary.modes:
        yield ("Every chosen mode is decided, or no label is left to buy.",)
    yield from describe_next_wordings(summary, folder)
    yield (
        Code(f"groundfault case report {folder}"),
        " costs no label; it writes the page of all this.",
    )


def _describe_forecast(summary: CaseSummary, forecast: Forecast, case: Case) -> Line:
    verb = "go on with" if summary.chosen else "begin"
    likely = words.listing(
        [f"mode {number} in {words.rate(share)}" for number, share in forecast.shares.items()]
    )
    return (
        Code(name_label_command(case)),
        f" ({verb} it) costs at most {words.plural(forecast.limit, 'label')}. In {forecast.runs} "
        "simulated runs from no label on, at the rates of the audit, which are too far apart on "
        f"average, half took up to {words.plural(forecast.median, 'label')}, and "
        f"confirmed were: {likely}.",
    )
