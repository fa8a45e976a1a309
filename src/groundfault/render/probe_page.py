"""Reviewed probe runs as a page: tables in the form of the paper's, and conclusions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from groundfault.probes.use.endpoints import RunEndpoints
from groundfault.probes.use.summary import Summary
from groundfault.render import probe_tables, probe_words, words
from groundfault.render.drawing import BAD, GOOD, MUTED, Drawing, Figure, Scale, make_stairs
from groundfault.render.page import Page, Section, Table, make_table
from groundfault.review.decision import summarize_agreement

if TYPE_CHECKING:
    from groundfault.probes.review.reviewed_runs import MissedErrors, ReviewedRuns
    from groundfault.review import Resolution

_FOR_FILES = ("Every run", "Unique audited prompt keys")
"""Captions of tables that a terminal leaves to the files."""


def make_page(summary: Summary, title: str, more: Iterable[Section] = ()) -> Page:
    """Make the page of reviewed runs.

    Parameters
    ----------
    summary : Summary
    title : str
        Names the runs.
    more : iterable of Section
        Sections of others, such as how far reviewers agree; they stand before the manifest.
    """
    # what is open comes first: no number below is final while rows wait for review
    results = summary.results
    models = results.models
    tables = [make(summary) for make in probe_tables.ALL]
    if len(models) == 1:
        # the facts of the page name it
        tables = [_drop_model(table) for table in tables]
    conclusions = tuple(probe_words.draw_conclusions(summary))
    return Page(
        "probes",
        title,
        probe_words.summarize(summary),
        (
            ("Model", models[0]) if len(models) == 1 else ("Models", words.count(len(models))),
            ("Policies", words.count(len(results.policies))),
            ("Runs", words.count(len(results.runs))),
            ("Queries (rows)", words.count(results.rows.queries)),
            ("Prompts asked (keys)", words.count(len(results.keys.asked))),
        ),
        (
            Section("What is still open", tuple(probe_words.list_open_points(summary))),
            Section("What may be said", conclusions, (draw_curves(summary),)),
            *(
                Section.of(table, for_files=table.caption in _FOR_FILES)
                for table in tables
                if table.rows
            ),
            *more,
            Section("What this does not say", probe_words.list_limits(summary)),
            Section.of(probe_tables.tabulate_manifest(summary), for_files=True),
        ),
        bool(results.keys.confirmed),
    )


def _drop_model(table: Table) -> Table:
    heads = [column.head for column in table.columns]
    return table.take_columns([i for i, h in enumerate(heads) if not h.startswith("Model")])


def make_review_sections(reviewed: ReviewedRuns) -> list[Section]:
    """Make the section on a review in which something was decided; none where nothing was."""
    if not reviewed.decisions:
        return []
    measures = summarize_agreement(reviewed.decisions, seed=reviewed.queue.seed)
    return [make_review_section(reviewed.resolutions, measures, reviewed.control_errors)]


def make_review_section(
    resolutions: Mapping[str, Resolution],
    measures: Mapping[str, Mapping[str, Mapping[str, Any]]],
    controls: MissedErrors | None = None,
) -> Section:
    """Make the section on the review: resolutions, agreement of reviewers, and hidden controls."""
    sentences = list(_describe_review(resolutions, controls))
    table = tabulate_agreement(measures)
    if not table.rows:
        sentences.append("No item was reviewed by two people: their agreement is not known.")
        return Section("Review", tuple(sentences))
    return Section("Review", tuple(sentences), tables=(replace(table, note=f"{_REVIEWED}."),))


def _describe_review(
    resolutions: Mapping[str, Resolution], controls: MissedErrors | None
) -> Iterator[str]:
    how = Counter(resolution.how for resolution in resolutions.values())
    yield (
        f"{words.plural(len(resolutions), 'item')} reviewed: {how['settled']:,} settled by "
        f"reviewers, {how['adjudicated']:,} by an adjudicator, {how['disputed']:,} disputed, "
        f"{how['waiting']:,} waiting for more."
    )
    if controls and controls.rate is not None:
        low, high = f"{controls.low:.1%}", f"{controls.high:.1%}"
        yield (
            f"Of {words.count(controls.matched)} items that matched, "
            f"{words.count(controls.audited)} were reviewed unseen among the others: "
            f"{words.count(controls.errors)} are model errors all the same "
            f"({words.rate(controls.rate)}, 95% interval {low} to {high}). No signal showed these."
        )
    elif controls:
        yield (
            "No item that matched was reviewed: errors that no signal showed cannot be estimated."
        )
    # decisions made after unblinding are counted, and said to be so
    late = sum(resolution.unblinded for resolution in resolutions.values())
    if late:
        yield (
            f"{words.plural(late, 'item')} {'rests' if late == 1 else 'rest'} on decisions made "
            "after unblinding."
        )


_MEASURES = {
    "raw": "Raw",
    "kappa": "Cohen's kappa",
    "alpha": "Krippendorff's alpha",
    "ac1": "Gwet's AC1",
}
_REVIEWED = (
    "Items that two or more reviewed blind; 95% intervals from a bootstrap over items; "
    "adjudicators left out"
)


def tabulate_agreement(measures: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Table:
    """Make a table of each question's measures; its note says why some could not be computed.

    Parameters
    ----------
    measures : mapping
        As `groundfault.review.decision.summarize_agreement` returns them; without items there are
        no rows.
    """
    rows: list[tuple[str, ...]] = []
    reasons: dict[str, list[str]] = {}
    for question, some in measures.items():
        if not some["raw"]["items"]:
            continue
        label = question.replace("_", " ")
        cells = (_write_measure(some[name]) for name in _MEASURES)
        rows.append((label, words.count(some["raw"]["items"]), *cells))
        for name, head in _MEASURES.items():
            if some[name]["reason"]:
                reasons.setdefault(some[name]["reason"], []).append(f"{head} of {label}")
    lines = [f"{reason} ({', '.join(where)})" for reason, where in reasons.items()]
    note = "\n".join([*lines, _REVIEWED]) if rows else _UNREVIEWED
    heads = ("Question", "Items", *_MEASURES.values())
    return make_table("Agreement of reviewers", "tnnnnn", heads, rows, note)


_UNREVIEWED = "no item was reviewed blind by two reviewers yet"


def _write_measure(measure: Mapping[str, Any]) -> str:
    value, low, high = measure["value"], measure["low"], measure["high"]
    if value is None:
        return words.NONE
    return f"{value:.2f}" + ("" if low is None else f" ({low:.2f} to {high:.2f})")


MAX_POLICIES = 6
"""Policies whose curves can be told apart in one figure."""
_COLOURS = (MUTED, GOOD, BAD, "#6a7fb5", "#b58a2e", "#8a5aa8")
_DASHES = ("", "5,2", "2,2", "8,2", "6,2,2,2", "3,5")


def draw_curves(summary: Summary) -> Figure:
    """Draw the mean number of unique audited keys after each query, with the range over seeds."""
    results = summary.results
    policies = [summary.control, *summary.rivals][:MAX_POLICIES]
    curves = [
        (place, model, _count_keys(list(runs)))
        for place, policy in enumerate(policies)
        for model, runs in groupby(results.select(policy), key=lambda run: run.model)
    ]
    drawing = Drawing(
        Scale.of_numbers(0, max(counts.shape[1] - 1 for *_, counts in curves), "queries of a run"),
        Scale.of_numbers(
            0, max(1, *(counts.max() for *_, counts in curves)), "unique audited keys", count=5
        ),
        width=560,
        height=260,
    )
    for place, policy in enumerate(policies):
        drawing.explain("line", _COLOURS[place], words.clean(policy), dash=_DASHES[place])
    ends = []
    for place, model, counts in curves:
        low, mean, high = (
            list(make_stairs(list(enumerate(levels.tolist()))))
            for levels in (counts.min(axis=0), counts.mean(axis=0), counts.max(axis=0))
        )
        drawing.area([*low, *reversed(high)], _COLOURS[place], 0.16)
        drawing.line(mean, _COLOURS[place], width=2, dash=_DASHES[place])
        name = policies[place] if len(results.models) == 1 else f"{policies[place]}, {model}"
        ends.append(f"{words.clean(name)} {mean[-1][1]:.1f}")
    not_shown = len(results.policies) - len(policies)
    caption = (
        "Mean over the runs of a policy, and from the least to the most of them. Audited errors "
        "alone, each prompt once in a run. What is unaudited counts as nothing."
        + (f" {not_shown} policies are not drawn." if not_shown else "")
    )
    alt = f"Curves: {'; '.join(ends)}."
    title = "Unique audited keys by query"
    return Figure("curves", title, caption, alt, drawing.to_svg(alt), wide=True)


def _count_keys(runs: list[RunEndpoints]) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Return keys after 0, 1, ... queries: shape (runs, 1 + queries).

    Runs that are short keep their last count.
    """
    longest = max(len(run.curve) for run in runs)
    return np.array(
        [[0, *run.curve, *[run.curve[-1]] * (longest - len(run.curve))] for run in runs]
    )
