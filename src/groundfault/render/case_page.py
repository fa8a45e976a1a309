"""Cases as pages: their state, their findings, confirmed or not, and what they never looked at."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from groundfault.auditing import messages
from groundfault.auditing.column_timing import OPTIONS, find_stages
from groundfault.case.settings import CaseSettings, Step
from groundfault.case.simulation import POWER, Forecast, forecast_confirmation
from groundfault.case.summary import CaseSummary, LabelledMode
from groundfault.core.plan import to_fraction
from groundfault.render import words
from groundfault.render.page import (
    Block,
    Bullets,
    Code,
    Line,
    Name,
    Number,
    Page,
    Paragraph,
    Remarks,
    Section,
    Statement,
    Statements,
    Table,
    Words,
    tabulate,
)
from groundfault.render.preview_pages import make_column_table

if TYPE_CHECKING:
    from groundfault.case.case import Case
    from groundfault.case.simulation import BudgetPlan
    from groundfault.case.wordings import ReviewedWordings, ReworkedMode, Wordings
    from groundfault.render.page import Line

_SELECTED = (
    "The audit chose the modes because they fail, so its rates look worse than they are; the rates "
    "on fresh labels do not depend on that choice."
)

_STANDINGS = {
    "confirmed": "confirmed on fresh labels",
    "open": "not confirmed: the labels so far do not decide",
    "too few fresh rows": "cannot be confirmed: too few fresh examples inside or outside",
    "not chosen": "no label was bought for it",
}
_FRESH = {
    "kept apart": "they were drawn at random and kept apart before the audit",
    "without an outcome": "they had no outcome when the case began",
}
_TRUST = {
    "kept apart": (
        "Fresh rows are a random part of the table, so a confirmation covers all rows like these."
    ),
    "without an outcome": (
        "Fresh rows are those that had no outcome: what is confirmed holds of them, and of other "
        "rows only so far as these are like them."
    ),
}


def make_case_page(summary: CaseSummary) -> Page:
    """Make the page of a case: findings, labels that confirm them, their cost, and gaps."""
    settings = summary.settings
    hashes = (
        ("Audited rows (SHA-256)", Code(settings.audit)),
        ("Fresh rows (SHA-256)", Code(settings.fresh)),
        ("Decided before any look (SHA-256)", Code(settings.seal)),
        ("Seed", Code(str(settings.seed))),
    )
    sections = (
        Section("Failure modes", _describe_modes(summary), _list_modes(summary)),
        *_make_wording_sections(summary),
        Section("Cost", _describe_cost(summary), anchor="cost"),
        Section("How sure this is", _describe_levels(summary), anchor="levels"),
        Section("Not looked at", Bullets(tuple(_list_gaps(summary))), anchor="gaps"),
        Section("Manifest", Remarks(hashes), anchor="manifest"),
    )
    return _make_page(summary, sections)


def make_status_page(
    case: Case, forecast: Callable[[Case], Forecast | None] = forecast_confirmation
) -> Page:
    """Make the page on the state of a case, with the cost and the promise of the next step.

    Before the audit no outcome is read for it: columns are told apart by their names and by what
    was declared.

    ``forecast`` simulates the cost of confirming its modes.
    """
    summary = case.summarize()
    lines = _describe_next(summary, forecast(case), case)
    steps = Section("Next", map(Paragraph, lines))
    modes = Section("Failure modes", _list_modes(summary))
    levels = Section("How sure this is", _describe_levels(summary))
    sections = (modes, *_make_wording_sections(summary), steps, levels)
    if not summary.audited:
        sections = (steps, _list_columns(case), levels)
    return _make_page(summary, sections)


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
    return Section("What the audit could name", sentence, table)


def _make_page(summary: CaseSummary, sections: tuple[Section, ...]) -> Page:
    settings = summary.settings
    models = (("Models", words.count(len(settings.models))),) if settings.models else ()
    facts = (
        *models,
        ("Audited", words.count(settings.audit_units)),
        ("Fresh", words.count(settings.fresh_units)),
        ("Labels bought", words.count(summary.labelled)),
        ("Error level", words.level(words.decimal(settings.alpha))),
    )
    return Page(
        "case",
        words.listing([words.clean(name) for name in settings.sources], 3) or "a case",
        _write_verdict(summary),
        facts=facts,
        sections=sections,
        good=bool(summary.confirmed),
    )


def _write_verdict(summary: CaseSummary) -> str:
    modes, confirmed = len(summary.modes), len(summary.confirmed)
    if not summary.audited:
        return "No audit yet"
    if not modes:
        return "No failure mode: nothing is claimed"
    found = f"{words.plural(modes, 'failure mode')} in the audit"
    if not summary.chosen:
        return f"{found}, none confirmed on fresh labels yet"
    return f"{found}; confirmed on fresh labels: {confirmed or 'none'}"


def _describe_modes(summary: CaseSummary) -> str:
    if not summary.audited:
        return "There was no audit yet."
    rate = words.rate(summary.error_rate)
    size = words.plural(summary.settings.audit_units, "audited example")
    head = f"{rate} of {size} failed; {words.count(summary.rules)} rules could have"
    if not summary.modes:
        return f"{head} been named, and none fails more often than chance allows."
    return f"{head} been named. {_SELECTED}"


def _list_modes(summary: CaseSummary) -> Iterator[Statements | Table]:
    if not summary.modes:
        return
    yield Statements(tuple(map(_state, summary.modes)))
    graded = summary.settings.grader is not None
    basis = "labels and grades" if graded else "the labels drawn from all of either side"
    bar = 1 / float(to_fraction(summary.settings.share_alpha("confirm")))
    yield tabulate(
        "What fresh labels say",
        [mode for mode in summary.modes if mode.standing != "not chosen"],
        Words("Mode", lambda mode: f"{mode.number}"),
        Words("Standing", lambda mode: mode.standing),
        Number("Difference (points)", lambda mode: words.points(mode.lift)),
        Number("Labelled inside", lambda mode: mode.labelled_inside),
        Number("Outside", lambda mode: mode.labelled_outside),
        Number("E-value", lambda m: None if m.e_value is None else f"{m.e_value:.3g}"),
        note=f"Difference: failure rate of fresh examples inside minus outside, by {basis}. An "
        f"e-value of {bar:g} confirms; those here are adjusted for all modes that were chosen.",
    )


def _state(mode: LabelledMode) -> Statement:
    where = f" where {mode.context}" if mode.context else ""
    sentence = (
        f"In the audit {words.rate(mode.rate)} of {words.count(mode.n)} failed, against "
        f"{words.rate(mode.rate_outside)} elsewhere{where} ({messages.equal_p(mode.p)}); "
        f"{words.plural(mode.fresh_inside, 'fresh example')} inside; {_STANDINGS[mode.standing]}."
    )
    whose = f" ({words.clean(mode.outcome)})" if mode.outcome else ""
    return Statement(f"Mode {mode.number}{whose}: {mode.meaning}", sentence, ((Code(mode.rule),),))


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
        f"The chance of any false statement in this case is at most {whole}, summed over steps. "
        f"Audit: the chance of a false mode is at most {levels['audit']}, if examples are "
        "independent. Confirmation: the chance of confirming a mode unrelated to failing is "
        f"at most {levels['confirm']}, for any choice of modes and whenever you stop, if the "
        f"audit could not use the fresh outcomes: {_FRESH[settings.freshness]}. Other words: the "
        f"chance of a false statement is at most {levels['probe']} by answers and "
        f"{levels['review']} by reviewed errors, if tasks of a pair, and wordings, can be swapped "
        "where they make no difference."
    )
    if settings.models:
        yield (
            "A mode is of one model, or of every model: then it is about the mean over all models, "
            "and of each example the answer of one of them, drawn by lot, is labelled. The level "
            "of the confirmation is divided among the models by the number of their modes."
        )
    yield _TRUST[settings.freshness]


def _list_gaps(summary: CaseSummary) -> Iterator[tuple[str]]:
    settings = summary.settings
    left = settings.fresh_answers - summary.labelled
    yield (f"{words.plural(left, _name_fresh(settings))} never labelled.",)
    for mode in summary.modes:
        if mode.standing in ("not chosen", "too few fresh rows"):
            yield (f"Mode {mode.number}: {_STANDINGS[mode.standing]}.",)
    for remark in summary.remarks:
        yield (f"{words.capital(words.clean(remark))}.",)
    for gap in _list_wording_gaps(summary):
        yield (gap,)


def _name_fresh(settings: CaseSettings) -> str:
    return "fresh answer" if settings.models else "fresh example"


def _describe_next(summary: CaseSummary, forecast: Forecast | None, case: Case) -> Iterator[Line]:
    folder = _name_folder(case)
    if not summary.audited:
        yield (
            Code(f"groundfault audit --case {folder}"),
            " costs no label; it names rules under which the "
            f"{words.count(summary.settings.audit_units)} audited examples fail more often.",
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
    yield from _describe_next_wordings(summary, folder)
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
        Code(_name_label_command(case)),
        f" ({verb} it) costs at most {words.plural(forecast.limit, 'label')}. In {forecast.runs} "
        "simulations from no label on, at the rates of the audit, which look worse than they are, "
        f"half needed up to {words.plural(forecast.median, 'label')}. Confirmed: {likely}.",
    )


def _name_folder(case: Case) -> str:
    """Write the folder of a case as a command takes it."""
    return words.clean(shlex.quote(str(case.folder)))


def _name_label_command(case: Case, *options: str) -> str:
    """Write the command that buys labels, which looks outcomes up where the table has them."""
    source = "ask" if case.settings.answers is None else "file"
    command = f"groundfault label confirm --case {_name_folder(case)}"
    return " ".join([command, *options, f"--label {source}"])


def describe_plan(plan: BudgetPlan, case: Case) -> Iterator[str]:
    """Describe the modes that a budget can confirm, those it cannot, and the next command."""
    can = words.plural(len(plan.powers), "mode") if plan.powers else "no mode"
    rates = words.listing(
        [
            f"{words.rate(rate)} ({words.clean(outcome)})" if outcome else words.rate(rate)
            for outcome, rate in plan.rates.items()
        ]
    )
    inside = (
        "at the lower end of the audit's interval for each"
        if plan.lift is None
        else f"more often by {100 * plan.lift:g} points"
    )
    yield (
        f"{words.plural(plan.budget, 'label')} confirm {can} in at least {words.rate(POWER)} of up "
        f"to {plan.runs} simulations in which examples inside modes fail {inside}, and others at "
        f"{rates}:"
    )
    for number, share in plan.powers.items():
        yield f"  mode {number}: {words.rate(share)}"
    company = "with those above" if plan.powers else "alone"
    # the last to be left out was simulated with the fewest others
    for number, share in reversed(plan.dropped.items()):
        yield f"  not mode {number}: {words.rate(share)} {company}"
        company = "with those above"
    if plan.powers:
        modes = [f"--mode {number}" for number in plan.powers]
        yield f"next: {_name_label_command(case, *modes, f'--budget {plan.budget}')}"


_ANSWERS = "do not match the key"
_ERRORS = "are failures of the model, as people confirmed"
_STATUSES = {
    "confirmed_model_error": "a failure of the model",
    "no_error": "no error",
    "extraction_artifact": "an answer that was read wrongly",
    "format_artifact": "a matter of form",
    "invalid_prompt": "a prompt that asks something else",
    "disputed": "disputed",
}


def _make_wording_sections(summary: CaseSummary) -> Iterator[Section]:
    """Yield sections on other words and on their review, for the steps that began."""
    wordings, review = summary.wordings, summary.review
    if wordings is not None:
        blocks = _list_reworked(wordings.judged, _ANSWERS)
        yield Section("In other words", _describe_answers(wordings), blocks, anchor="wordings")
    if review is not None:
        blocks = _list_reworked(review.judged, _ERRORS)
        yield Section("What reviewers said", _describe_review(review), blocks, anchor="review")


def _list_wording_gaps(summary: CaseSummary) -> Iterator[str]:
    """List gaps: modes in other words, and prompts and answers without a look."""
    wordings, review = summary.wordings, summary.review
    if wordings is None:
        yield (
            "Wordings of the tasks (groundfault lab probe): nothing here says what wording does to "
            "a mode."
        )
        return
    for mode in summary.modes:
        if mode.number not in wordings.modes:
            yield f"Mode {mode.number} in other words."
    if wordings.asked < wordings.prompts:
        left = wordings.prompts - wordings.asked
        yield f"{words.plural(left, 'prompt')} of the probe not asked yet, so nothing follows."
    if review is None:
        yield (
            "Answers that do not match their key were not reviewed (groundfault label review): "
            "some may be right, or have been read wrongly."
        )
    elif review.settled < review.items:
        left = review.items - review.settled
        yield f"{words.plural(left, 'item')} of the review without a verdict, so nothing follows."


def _describe_next_wordings(summary: CaseSummary, folder: str) -> Iterator[Line]:
    """Describe the cost of asking in other words, and of reviewing the answers."""
    wordings, review = summary.wordings, summary.review
    if wordings is None:
        if summary.chosen:
            yield (
                Code(f"groundfault lab probe init --case {folder} --question COL --target COL"),
                " costs no label; it pairs fresh tasks inside modes with tasks like them outside, "
                "in other words.",
            )
    elif wordings.asked < wordings.prompts:
        left = wordings.prompts - wordings.asked
        yield (
            Code(f"groundfault lab probe run --case {folder} --model NAME"),
            f" costs {words.plural(left, 'answer')} of the model; it says whether modes hold in "
            "other words, and what wording does.",
        )
    elif review is None or review.settled < review.items:
        left = wordings.answers.get("mismatch", 0) + wordings.answers.get("unreadable", 0)
        cost = f"about {left}" if review is None else str(review.items - review.settled)
        yield (
            Code(f"groundfault label review --case {folder} --reviewer NAME"),
            f" costs {cost} decisions; it says which answers are failures of the model.",
        )


def _describe_answers(wordings: Wordings) -> str:
    by = f" by {words.clean(wordings.model)}" if wordings.model else ""
    answers = ", ".join(f"{words.count(n)} {signal}" for signal, n in wordings.answers.items())
    text = (
        f"{words.plural(wordings.tasks, 'fresh task')} that nobody labelled, in pairs: one inside "
        "a mode, and the task outside all modes that is most like it. "
        f"{words.count(wordings.asked)} of {words.plural(wordings.prompts, 'prompt')} "
        f"answered{by}: {answers or 'none'}."
    )
    if wordings.invalid:
        text += f" {words.plural(wordings.invalid, 'prompt')} left out as invalid."
    return text


def _describe_review(review: ReviewedWordings) -> Iterator[str]:
    decided = [
        f"{words.count(count)} {_STATUSES[status]}"
        for status, count in review.statuses.items()
        if status in _STATUSES
    ]
    yield (
        f"{words.count(review.settled)} of {words.plural(review.items, 'item')} have a verdict; "
        f"answers by what was decided: {words.listing(decided) or 'none'}."
    )
    controls = review.controls
    if controls.rate is not None and controls.low is not None and controls.high is not None:
        yield (
            f"Of {controls.audited} answers that matched, reviewed unseen among the others, "
            f"{controls.errors or 'none'} "
            f"{'was an error' if controls.errors == 1 else 'were errors'}; matches that nobody "
            f"reviewed count as right (95% interval of their error rate "
            f"{words.span((controls.low, controls.high))})."
        )
    if review.unblinded:
        yield (f"{words.plural(review.unblinded, 'decision')} made after hidden fields were shown.")


def _list_reworked(judged: tuple[ReworkedMode, ...], what: str) -> tuple[Block, ...]:
    if not judged:
        return ()
    remarks = Remarks(tuple((f"Mode {mode.number}", _state_wording(mode, what)) for mode in judged))
    table = tabulate(
        "What wording does",
        [(mode, effect) for mode in judged for effect in mode.effects],
        Words("Mode", lambda pair: f"{pair[0].number}"),
        Words("Tasks of it", lambda pair: pair[1].side),
        Name("Wording", lambda pair: f"{pair[1].group}: {pair[1].option}"),
        Number("Change", lambda pair: words.signed(pair[1].difference)),
        Number("Tasks", lambda pair: pair[1].tasks),
        Number("p", lambda pair: words.p_value(pair[1].p)),
        Words("Verdict", lambda pair: "changes failures" if pair[1].differs else "not shown"),
        note=f"Change: share of answers that {what}, under the wording minus under the plain one, "
        "within each task. p is adjusted for everything in this section.",
    )
    return remarks, table


def _state_wording(mode: ReworkedMode, what: str) -> str:
    verdict = "holds in other words" if mode.holds else "not shown to hold in other words"
    return (
        f"{verdict}: over all wordings {words.rate(mode.rate)} of answers inside {what}, "
        f"against {words.rate(mode.rate_outside)} in their twins outside "
        f"({words.plural(mode.pairs, 'pair')}, {messages.equal_p(mode.p)})"
    )
