"""Reviewed probe runs as a page: tables in the form of the paper's, and conclusions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from groundfault.probes.use.summary import Summary
from groundfault.render import probe_tables, probe_words, words
from groundfault.render.page import Page, Section, Table, make_table
from groundfault.render.probe_figures import draw_curves
from groundfault.review import agreement

if TYPE_CHECKING:
    from groundfault.probes.review.reviewed_runs import MissedErrors, ReviewedRuns
    from groundfault.review import Resolution
    from groundfault.stats.agreement import Agreement

BRIEF = ("Every run", "Unique audited prompt keys", "Manifest")
"""Sections that a terminal leaves to the files."""


def make_page(
    summary: Summary, title: str, more: Iterable[Section] = (), *, figures: bool = True
) -> Page:
    """What the report says.

    Parameters
    ----------
    summary : Summary
    title : str
        Of what runs.
    more : iterable of Section
        What others have to say of them, such as how far reviewers agree; before the manifest.
    figures : bool
        Whether curves are drawn, which takes a second.
    """
    # what is open comes first: no number below is final while rows wait for review
    results = summary.results
    chart = (draw_curves(summary),) if figures else ()
    sections = [
        Section("What is still open", tuple(probe_words.list_open_points(summary))),
        Section("What may be said", tuple(probe_words.draw_conclusions(summary)), chart),
        *(Section(table.caption, (), (), (table,)) for table in _make_tables(summary)),
        *more,
        Section("What this does not say", probe_words.list_limits(summary)),
        Section("Manifest", (), (), (probe_tables.tabulate_manifest(summary),)),
    ]
    models = results.models
    facts = (
        ("Model", models[0]) if len(models) == 1 else ("Models", words.count(len(models))),
        ("Policies", words.count(len(results.policies))),
        ("Runs", words.count(len(results.runs))),
        ("Queries (rows)", words.count(results.rows.queries)),
        ("Prompts asked (keys)", words.count(len(results.keys.asked))),
    )
    return Page(
        "probes",
        title,
        probe_words.summarize(summary),
        facts,
        tuple(sections),
        bool(results.keys.confirmed),
    )


def _make_tables(summary: Summary) -> Iterator[Table]:
    one = len(summary.results.models) == 1
    tables = (_drop_model(make(summary), one) for make in probe_tables.ALL)
    return (table for table in tables if table.rows)


def _drop_model(table: Table, one: bool) -> Table:
    """Without the model, which the head of the page names where there is one."""
    places = [
        i for i, column in enumerate(table.columns) if not (one and column.head.startswith("Model"))
    ]
    columns = tuple(table.columns[i] for i in places)
    return replace(
        table, columns=columns, rows=tuple(tuple(row[i] for i in places) for row in table.rows)
    )


def make_review_sections(reviewed: ReviewedRuns) -> list[Section]:
    """The section on a review in which something was decided; none where nothing was."""
    if not reviewed.decisions:
        return []
    return [
        make_review_section(
            reviewed.resolutions,
            agreement(reviewed.decisions, seed=reviewed.queue.seed),
            reviewed.control_errors,
        )
    ]


def make_review_section(
    resolutions: Mapping[str, Resolution],
    measures: Mapping[str, Mapping[str, Agreement]],
    controls: MissedErrors | None = None,
) -> Section:
    """The section on the review: resolutions, agreement of reviewers, and hidden controls."""
    rows = tuple(
        (
            question.replace("_", " "),
            words.count(some["raw"].items),
            *(_format_coefficient(m) for m in some.values()),
        )
        for question, some in measures.items()
        if some["raw"].items
    )
    heads = ("Items", "Raw", "Cohen's kappa", "Krippendorff's alpha", "Gwet's AC1")
    note = (
        "Items that two or more reviewed blind; 95% intervals from a bootstrap over items; "
        "adjudicators left out."
    )
    table = make_table("Agreement of reviewers", "tnnnnn", ("Question", *heads), rows, note)
    sentences = list(_describe_review(resolutions, controls))
    if not rows:
        sentences.append("No item was reviewed by two people: their agreement is not known.")
    return Section("Review", tuple(sentences), (), (table,) if rows else ())


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


def _format_coefficient(measure: Agreement) -> str:
    if math.isnan(measure.value):
        return words.NONE
    return f"{measure.value:.2f}" + (
        "" if math.isnan(measure.low) else f" ({measure.low:.2f} to {measure.high:.2f})"
    )
