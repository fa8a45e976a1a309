"""Cases as pages: what wording does to a mode, and what reviewers said of the answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from groundfault.render import words
from groundfault.render.page import Code, Remarks, Section, Table, TableColumn

if TYPE_CHECKING:
    from groundfault.case.summary import CaseSummary
    from groundfault.case.wordings import ReviewedWordings, ReworkedMode, Wordings
    from groundfault.render.page import Line

_ANSWERS = "do not match the key"
_ERRORS = "are errors of the model, as people confirmed"
_STATUSES = {
    "confirmed_model_error": "an error of the model",
    "no_error": "no error",
    "extraction_artifact": "an answer that was read wrongly",
    "format_artifact": "a matter of form",
    "invalid_prompt": "a prompt that asks something else",
    "disputed": "disputed",
}


def make_wording_sections(summary: CaseSummary) -> tuple[Section, ...]:
    """Sections on other words and on their review, for the steps that began.

    Parameters
    ----------
    summary : CaseSummary
    """
    sections = []
    if summary.wordings is not None:
        sections.append(
            Section(
                "In other words",
                (_describe_answers(summary.wordings),),
                blocks=tuple(_show(summary.wordings.judged, _ANSWERS)),
                anchor="wordings",
            )
        )
    if summary.review is not None:
        sections.append(
            Section(
                "What reviewers said",
                tuple(_describe_review(summary.review)),
                blocks=tuple(_show(summary.review.judged, _ERRORS)),
                anchor="review",
            )
        )
    return tuple(sections)


def list_wording_gaps(summary: CaseSummary) -> Iterator[str]:
    """What of modes in other words nobody looked at."""
    wordings, review = summary.wordings, summary.review
    if wordings is None:
        yield (
            "Wordings of the tasks (groundfault probe): nothing here says what wording does to a "
            "mode."
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
            "Answers that do not match their key were not reviewed (groundfault probe review): "
            "some may be right, or have been read wrongly."
        )
    elif review.settled < review.items:
        left = review.items - review.settled
        yield f"{words.plural(left, 'item')} of the review without a verdict, so nothing follows."


def describe_next_wordings(summary: CaseSummary, folder: str) -> Iterator[Line]:
    """What asking in other words, and reviewing it, would cost."""
    wordings, review = summary.wordings, summary.review
    if wordings is None:
        if summary.chosen:
            yield (
                Code(f"groundfault probe init --case {folder} --question COL --target COL"),
                " costs no label; it pairs fresh tasks inside modes with tasks like them outside, "
                "in other words.",
            )
    elif wordings.asked < wordings.prompts:
        left = wordings.prompts - wordings.asked
        yield (
            Code(f"groundfault probe run --case {folder} --model NAME"),
            f" costs {words.plural(left, 'answer')} of the model; it says whether modes hold in "
            "other words, and what wording does.",
        )
    elif review is None or review.settled < review.items:
        left = wordings.answers.get("mismatch", 0) + wordings.answers.get("unreadable", 0)
        cost = f"about {left}" if review is None else str(review.items - review.settled)
        yield (
            Code(f"groundfault probe review --case {folder} --reviewer NAME"),
            f" costs {cost} decisions; it says which answers are errors of the model.",
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
    text = f"{words.count(review.settled)} of {words.plural(review.items, 'item')} have a verdict"
    yield f"{text}; answers by what was decided: {words.listing(decided) or 'none'}."
    controls = review.controls
    if controls.rate is not None and controls.low is not None and controls.high is not None:
        yield (
            f"Of {controls.audited} answers that matched, reviewed unseen among the others, "
            f"{controls.errors or 'none'} "
            f"{'was an error' if controls.errors == 1 else 'were errors'}; matches that nobody "
            f"reviewed count as right (95% interval of their error rate {words.rate(controls.low)} "
            f"to {words.rate(controls.high)})."
        )
    if review.unblinded:
        yield (f"{words.plural(review.unblinded, 'decision')} made after hidden fields were shown.")


def _show(judged: tuple[ReworkedMode, ...], what: str) -> Iterator[Remarks | Table]:
    if not judged:
        return
    yield Remarks(tuple((f"Mode {mode.number}", _state(mode, what)) for mode in judged))
    rows = tuple(
        (
            f"{mode.number}",
            effect.side,
            f"{effect.group}: {effect.option}",
            words.signed(effect.difference),
            words.count(effect.tasks),
            words.p_value(effect.p),
            "changes failures" if effect.differs else "not shown",
        )
        for mode in judged
        for effect in mode.effects
    )
    if rows:
        columns = (
            TableColumn("Mode"),
            TableColumn("Tasks of it"),
            TableColumn("Wording", "code"),
            *(TableColumn(head, "number") for head in ("Change", "Tasks", "p")),
            TableColumn("Verdict"),
        )
        note = (
            f"Change: share of answers that {what}, under the wording minus under the plain one, "
            "within each task. p is adjusted for everything in this section."
        )
        yield Table("What wording does", columns, rows, note)


def _state(mode: ReworkedMode, what: str) -> str:
    verdict = "holds in other words" if mode.holds else "not shown to hold in other words"
    return (
        f"{verdict}: over all wordings {words.rate(mode.rate)} of answers inside {what}, "
        f"against {words.rate(mode.rate_outside)} in their twins outside "
        f"({words.plural(mode.pairs, 'pair')}, p {words.p_value(mode.p)})"
    )
