"""Reviewed probe runs as a page: tables in the form of the paper's, and conclusions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from groundfault.auditing.messages import equal_p
from groundfault.render import words
from groundfault.render.agreement_table import REVIEWED, tabulate_agreement
from groundfault.render.drawing import Colour, Drawing, Figure, Scale, make_stairs
from groundfault.render.markdown import markdown
from groundfault.render.page import Figures, Page, Section, Table
from groundfault.review.decision import summarize_agreement
from groundfault_lab.pages import probe_tables
from groundfault_lab.pages.probe_tables import LEVEL, quote
from groundfault_lab.probes import comparison
from groundfault_lab.probes.endpoints import RunEndpoints
from groundfault_lab.probes.summary import Summary

if TYPE_CHECKING:
    from groundfault.probes.review.reviewed_runs import MissedErrors, ReviewedRuns
    from groundfault.review import Resolution
    from groundfault_lab.probes.release import Package

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
    results = summary.results
    models = results.models
    tables = [make(summary) for make in probe_tables.ALL]
    if len(models) == 1:
        # the facts of the page name it
        tables = [_drop_model(table) for table in tables]
    return Page(
        "probes",
        title,
        summarize(summary),
        facts=(
            ("Model", models[0]) if len(models) == 1 else ("Models", words.count(len(models))),
            ("Policies", words.count(len(results.policies))),
            ("Runs", words.count(len(results.runs))),
            ("Queries (rows)", words.count(results.rows.queries)),
            ("Prompts asked (keys)", words.count(len(results.keys.asked))),
        ),
        sections=(
            # what is open comes first: no number below is final while rows wait for review
            Section("What is still open", list_open_points(summary)),
            Section(
                "What may be said", draw_conclusions(summary), Figures((draw_curves(summary),))
            ),
            *(Section.of(table, for_files=table.caption in _FOR_FILES) for table in tables),
            *more,
            Section("What this does not say", list_limits(summary)),
            Section.of(probe_tables.tabulate_manifest(summary), for_files=True),
        ),
        good=bool(results.keys.confirmed),
    )


def _drop_model(table: Table) -> Table:
    heads = [column.head for column in table.columns]
    return table.take_columns([i for i, h in enumerate(heads) if not h.startswith("Model")])


_LIMITS = (
    "Rows are queries, keys are prompts. A prompt that was asked again is no second discovery.",
    "What a policy finds within its budget is no rate of failures: a policy that adapts looks "
    "where it saw mismatches.",
    "The prompts are those of one bank and one grammar. Nothing here speaks of other tasks or "
    "wordings.",
)


def list_limits(summary: Summary) -> tuple[str, ...]:
    """List claims that the numbers do not support."""
    compared = "its key" if summary.has_keys else "that to the base wording"
    return (
        f"A routing signal says that an answer differs from {compared}, or cannot be read. It is "
        "no error: only a row that review confirmed is counted as one.",
        *_LIMITS,
    )


def summarize(summary: Summary) -> str:
    """Return the answer in a line: how many errors were confirmed."""
    results = summary.results
    keys = len(results.keys.confirmed)
    if not keys:
        waiting = results.keys.open
        return "No model error is confirmed" + (
            f"; {words.plural(len(waiting), 'prompt key')} open" if waiting else ""
        )
    least = "At least " if results.keys.open else ""
    unique = f"{least}{words.count(keys)} unique audited prompt {'key' if keys == 1 else 'keys'}"
    return f"{unique} with confirmed model errors"


def list_open_points(summary: Summary) -> Iterator[str]:
    """List rows and runs that are unaudited, disputed or not finished."""
    rows, keys = summary.results.rows, summary.results.keys
    for asked, answered in summary.other_models:
        yield (
            f"The model {asked!r} was asked, and the server answered as {answered!r}: what is said "
            "here may be of that model."
        )
    if rows.waiting:
        yield (
            f"{words.plural(rows.waiting, 'row')} routed to review {_is(rows.waiting)} unaudited "
            f"({_by_policy(summary, 'waiting')}). They count as no error until they are reviewed."
        )
    if rows.disputed:
        by_policy = _by_policy(summary, "disputed")
        yield f"{words.plural(rows.disputed, 'row')} {_is(rows.disputed)} disputed ({by_policy})."
    if keys.open:
        most = len(keys.confirmed) + len(keys.open)
        yield (
            f"{words.plural(len(keys.open), 'prompt key')} {_is(len(keys.open))} open: the unique "
            f"audited keys are {len(keys.confirmed):,} now and at most {most:,}."
        )
    short = [run for run in summary.results.runs if run.rows.queries < run.budget]
    if short:
        runs = words.plural(len(short), "run")
        yield f"{runs} {_is(len(short))} not finished, such as {_name_run(short[0])}."
    if not (rows.waiting or rows.disputed or short or summary.other_models):
        yield "Nothing: all runs are finished, and all that was routed to review is settled."


def draw_conclusions(summary: Summary) -> Iterator[str]:
    """Yield the conclusions that the review supports."""
    results = summary.results
    rows, keys = results.rows, results.keys
    yield (
        f"Of {words.count(rows.queries)} queries, {words.count(rows.routed)} rows were routed to "
        f"review by a machine. Review confirmed {words.plural(rows.confirmed, 'model error row')} "
        f"and excluded {words.count(rows.excluded)}."
    )
    tasks = words.plural(len(keys.tasks), "task")
    yield f"The confirmed errors are of {_keys(len(keys.confirmed))}, in {tasks}."
    model = results.models[0] if len(results.models) == 1 else None
    for policy in summary.rivals:
        yield compare(summary, policy, model)
    if not summary.rivals:
        yield f"There is one policy, {quote(summary.control)}: nothing to compare."


def compare(summary: Summary, policy: str, model: str | None) -> str:
    """Compare a policy with the control: which finds more unique audited keys."""
    control, quoted_policy = quote(summary.control), quote(policy)
    why = comparison.explain_mismatch(summary.results, policy, summary.control, model)
    difference = summary.difference(policy, model)
    if why or difference is None:
        return f"{quoted_policy} and {control} cannot be compared with matched budgets: {why}."
    numbers = f"{words.signed(difference.mean)} a seed"
    if difference.interval:
        low, high = difference.interval
        numbers += f" (95% interval {words.signed(low)} to {words.signed(high)}, Student's)"
    numbers += f", {equal_p(difference.p)}, {words.plural(len(difference.seeds), 'seed')}"
    if difference.p <= LEVEL:
        more = "more" if difference.mean > 0 else "fewer"
        sentence = (
            f"With the same budget {quoted_policy} finds {more} unique audited prompt keys than "
            f"{control}: {numbers}."
        )
    else:
        sentence = (
            f"There is no matched-budget evidence that {quoted_policy} finds more unique audited "
            f"prompt keys than {control}: {numbers}."
        )
        if difference.min_p > LEVEL:
            sentence += (
                " So few seeds cannot give any: the smallest p they allow is "
                f"{words.p_value(difference.min_p)}. At least 6 are needed, better 20."
            )
    open_keys = [summary.results.pool(name, model).keys.open for name in (policy, summary.control)]
    return sentence + (" This may change while prompt keys are open." if any(open_keys) else "")


def _by_policy(summary: Summary, what: str) -> str:
    results = summary.results
    return ", ".join(
        f"{quote(name)} {getattr(results.pool(name).rows, what):,}" for name in results.policies
    )


def _keys(number: int) -> str:
    return words.plural(number, "unique prompt key")


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _name_run(run: RunEndpoints) -> str:
    return f"{run.model}, {run.policy}, seed {run.seed}"


def make_reviewed_page(reviewed: ReviewedRuns, title: str) -> Page:
    """Make the page of runs as their review stands."""
    return make_page(Summary.of(reviewed), title, make_review_sections(reviewed))


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
    table = replace(tabulate_agreement(measures), note=f"{REVIEWED}.")
    alone = "No item was reviewed by two people: their agreement is not known."
    return Section(
        "Review", _describe_review(resolutions, controls), table if table.rows else alone
    )


def set_tables(package: Package) -> str:
    """Return the tables of a package as Markdown, from what is published alone."""
    more = []
    if package.decisions:
        seed = int(package.config["review"]["seed"])
        measures = summarize_agreement(package.decisions, seed=seed)
        more.append(make_review_section(package.resolutions, measures))
    return markdown(make_page(package.summary, "published probes", more))


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


MAX_POLICIES = 6
"""Policies whose curves can be told apart in one figure."""
_COLOURS = (Colour.MUTED, Colour.GOOD, Colour.BAD, "#6a7fb5", "#b58a2e", "#8a5aa8")
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
    return drawing.to_figure("curves", title, caption, alt, wide=True)


def _count_keys(runs: list[RunEndpoints]) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Return keys after 0, 1, ... queries: shape (runs, 1 + queries).

    Runs that are short keep their last count.
    """
    longest = max(len(run.curve) for run in runs)
    return np.array(
        [[0, *run.curve, *[run.curve[-1]] * (longest - len(run.curve))] for run in runs]
    )
