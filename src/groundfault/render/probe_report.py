"""Probe runs after audit as a page: the paper's tables 2 and 5 to 13 in form, and what may be
said.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from groundfault.probes.use.summary import Summary
from groundfault.render import probe_tables, probe_words, words
from groundfault.render.page import Page, Section
from groundfault.render.probe_figures import curves
from groundfault.render.tables import Table

if TYPE_CHECKING:
    from groundfault.probes.review.reviewed_runs import Missed
    from groundfault.review import Resolution
    from groundfault.stats.agreement import Agreement

BRIEF = ("Every run", "Unique audited prompt keys", "Manifest")
"""Sections that a terminal leaves to the files."""


def page(
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
    results = summary.results
    drawn = (curves(summary),) if figures else ()
    sections = [
        Section("What is still open", tuple(probe_words.still_open(summary))),
        Section("What may be said", tuple(probe_words.conclusions(summary)), drawn),
        *(Section(table.caption, (), (), (table,)) for table in _tables(summary)),
        *more,
        Section("What this does not say", probe_words.LIMITS),
        Section("Manifest", (), (), (probe_tables.manifest(summary),)),
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
        probe_words.verdict(summary),
        facts,
        tuple(sections),
        bool(results.keys.confirmed),
    )


def _tables(summary: Summary) -> Iterator[Table]:
    one = len(summary.results.models) == 1
    made = (_unnamed(make(summary), one) for make in probe_tables.ALL)
    return (table for table in made if table.rows)


def _unnamed(table: Table, one: bool) -> Table:
    """Without the model, which the head of the page names where there is one."""
    kept = [
        i for i, column in enumerate(table.columns) if not (one and column.head.startswith("Model"))
    ]
    columns = tuple(table.columns[i] for i in kept)
    return replace(
        table, columns=columns, rows=tuple(tuple(row[i] for i in kept) for row in table.rows)
    )


def reviewed(
    resolutions: Mapping[str, Resolution],
    agreement: Mapping[str, Mapping[str, Agreement]],
    missed: Missed | None = None,
) -> Section:
    """How items were settled, how far reviewers agree, and what controls say of errors that no
    signal showed.
    """
    how = Counter(found.how for found in resolutions.values())
    said = [
        f"{words.plural(len(resolutions), 'item')} reviewed: {how['settled']:,} settled by reviewers, "
        f"{how['adjudicated']:,} by an adjudicator, {how['disputed']:,} disputed, {how['waiting']:,} waiting for more."
    ]
    late = sum(found.unblinded for found in resolutions.values())
    if missed and missed.rate is not None:
        low, high = f"{missed.low:.1%}", f"{missed.high:.1%}"
        said.append(
            f"Of {words.count(missed.matched)} items that matched their key, {words.count(missed.audited)} were "
            f"reviewed unseen among the others: {words.count(missed.errors)} are model errors all the same "
            f"({words.rate(missed.rate)}, 95% interval {low} to {high}). No signal showed these."
        )
    elif missed:
        said.append(
            "No item that matched its key was reviewed: errors that no signal showed cannot be estimated."
        )
    if late:
        said.append(
            f"{words.plural(late, 'item')} {'rests' if late == 1 else 'rest'} on decisions made after unblinding."
        )
    rows = tuple(
        (
            question.replace("_", " "),
            words.count(measures["raw"].items),
            *(_coefficient(m) for m in measures.values()),
        )
        for question, measures in agreement.items()
        if measures["raw"].items
    )
    heads = ("Items", "Raw", "Cohen's kappa", "Krippendorff's alpha", "Gwet's AC1")
    note = "Items that two or more reviewed blind; 95% intervals from a bootstrap over items; adjudicators left out."
    table = probe_tables.made("Agreement of reviewers", "tnnnnn", ("Question", *heads), rows, note)
    if not rows:
        said.append("No item was reviewed by two people: their agreement is not known.")
    return Section("Review", tuple(said), (), (table,) if rows else ())


def _coefficient(found: Agreement) -> str:
    if math.isnan(found.value):
        return words.NONE
    return f"{found.value:.2f}" + (
        "" if math.isnan(found.low) else f" ({found.low:.2f} to {found.high:.2f})"
    )
