"""The first screen: what fails, how much of it, and what could not be said; and all findings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.responses import Response
from starlette.routing import Route

from groundfault.core.column_names import measures_answer
from groundfault.core.finding import Finding, Verdict
from groundfault.core.pairs import clip_changes
from groundfault.core.rules import Rule
from groundfault.errors import InputError, RuleError
from groundfault.modes.examples import choose_examples, select_losses, split_conditions
from groundfault.modes.near_misses import is_single
from groundfault.render import words
from groundfault.render.audit_groups import INSTRUMENT, main_cell
from groundfault.render.audit_words import Outline
from groundfault.render.mode_page import list_deciding
from groundfault.render.mode_words import ModeOutline
from groundfault.workbench.holdout_state import (
    freeze_rules,
    list_rules,
)
from groundfault.workbench.pages import Screen, bench_of, make_trial_routes, send_json, show_page
from groundfault.workbench.row_index import describe_type
from groundfault.workbench.rows import LONG, RowView, show_rows
from groundfault.workbench.subjects import Subject, list_modes, read_subject

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from starlette.requests import Request

    from groundfault.auditing.report import Report
    from groundfault.workbench.opened_report import OpenedReport
    from groundfault.workbench.row_index import RowIndex

_ORDERS: dict[str, tuple[str, Callable[[Finding], Any]]] = {
    "lift": ("lift", lambda finding: -abs(main_cell(finding).lift or 0.0)),
    "p": ("p-value", lambda f: 2.0 if main_cell(f).p is None else main_cell(f).p),
    "n": ("size", lambda finding: -main_cell(finding).on),
    "name": ("name", lambda finding: finding.key),
}
_PLACES = {"": "mixed in", "first": "first", "only": "only", "out": "left out"}
"""Where findings about the instrument stand."""
_MAX_FINDINGS = 300
"""Of a page: more are found by the search box, not by scrolling."""


def show_modes(request: Request) -> Response:
    """Show the failure modes of the report, its findings, and its limits."""
    report = bench_of(request).audited
    return show_page(
        request,
        "modes.html.j2",
        outline=Outline(report),
        deciding=list_deciding(report),
        modes=ModeOutline(report) if report.mode_search is not None else None,
        instrument=[one for one in report.findings if concerns_instrument(report, one)],
    )


def list_findings(request: Request) -> Response:
    """Show all findings, with any verdict."""
    report, params = bench_of(request).audited, request.query_params
    text, verdict = params.get("q", "").lower(), params.get("verdict", "")
    order, place = params.get("sort", "lift"), params.get("instrument", "")
    findings = [
        (finding, main_cell(finding), concerns_instrument(report, finding))
        for finding in map(Outline(report).face, report.findings)
        if verdict in ("", str(finding.verdict))
        and text in f"{finding.key} {finding.rule} {finding.source}".lower()
    ]
    if place in ("only", "out"):
        findings = [one for one in findings if one[2] == (place == "only")]
    _, rank = _ORDERS.get(order, _ORDERS["lift"])
    findings.sort(key=lambda one: (place == "first" and not one[2], rank(one[0])))
    return show_page(
        request,
        "findings.html.j2",
        findings=findings[:_MAX_FINDINGS],
        size=len(findings),
        total=len(report.findings),
        verdicts={str(one): words.VERDICTS[one] for one in Verdict},
        query={"q": params.get("q", ""), "verdict": verdict, "sort": order, "instrument": place},
        orders={name: label for name, (label, _) in _ORDERS.items()},
        places=_PLACES,
    )


MODES = Screen(
    "Modes",
    "/",
    (Route("/", show_modes), Route("/findings", list_findings)),
    key="M",
)


def concerns_instrument(report: Report, finding: Finding) -> bool:
    """Return whether a finding is about the instrument: the scorer or the prompt may be at fault.

    It is if the finder of such properties proposed it, or if its rule reads a column that was
    measured with the answer: one that ``--instrument`` named, or known by its name, such as
    ``finish_reason`` or ``answer_parsed``.

    Parameters
    ----------
    report : Report
    finding : Finding
        Of the report.
    """
    roles = report.manifest.roles
    return finding.source == INSTRUMENT or any(
        column in roles.instrument
        or (measures_answer(column) and column not in (*roles.known, *roles.allow_leakage))
        for column in Rule.parse(finding.rule).columns
    )


def edit_rule(request: Request) -> Response:
    """Show a rule in a box, its conditions, and its counts."""
    bench = bench_of(request)
    text = request.query_params.get("rule", "").strip()
    content: dict[str, Any] = {"rule": text, "trouble": "", "cells": {}}
    if text:
        try:
            content |= _count(bench, text)
        except (RuleError, InputError) as error:
            content["trouble"] = str(error)
    return show_page(
        request,
        "rule.html.j2",
        **content,
        modes=list_modes(bench.audited),
        columns=[(name, describe_type(kind)) for name, kind in bench.rows.frame.schema.items()],
    )


def download_tried(request: Request) -> Response:
    """Answer with the tried rules, as a library for an audit of fresh outcomes."""
    bench = bench_of(request)
    library = freeze_rules(bench, list(bench.state.rules if bench.state else ()))
    return send_json(library.to_json(), "tried-rules.json")


def _count(bench: OpenedReport, text: str) -> dict[str, Any]:
    cells = bench.index.count(text)
    parts, units = split_conditions(text), bench.rows.evidence.unit_index
    shorter = [
        (part, " AND ".join(f"({other})" for other in parts if other != part)) for part in parts
    ]
    pair = bench.audited.manifest.compare
    return {
        "cells": cells,
        "change": bench.index.measure_change(text, pair) if pair else None,
        "pair": pair,
        "conditions": shorter,
        "is_known": Rule.parse(text).sql in list_rules(bench.audited),
        "near": [
            (miss.condition, len(np.unique(units[miss.mask])))
            for miss in bench.index.find_near_misses(text)
        ],
    }


RULES = Screen(
    "Rules",
    "/rule",
    (*make_trial_routes("/rule", edit_rule), Route("/rule/tried.json", download_tried)),
    keys=(
        ("g", "The box of the rule"),
        ("Ctrl Enter", "Count the rule in the box; ⌘ Enter on a Mac"),
        ("x", "Examples of the rule"),
    ),
    key="T",
)


COUNT = 8
"""Examples of a side: a screen or two of cards."""


def show_examples(request: Request) -> Response:
    """Show examples in three columns: failing, passing, near."""
    bench = bench_of(request)
    subject = read_subject(bench.audited, request.query_params)
    index = bench.index
    cells = index.count(subject.rule)
    failing, passing = _choose_inside(index, subject)
    return show_page(
        request,
        "examples.html.j2",
        subject=subject,
        cells=cells,
        failing=failing,
        passing=passing,
        near=_choose_near(index, subject),
        model=subject.find_model(index.rows.outcomes),
        change=index.measure_change(subject.rule, subject.pair) if subject.pair else None,
        sides=subject.name_sides(is_single=is_single(index.find_near_misses(subject.rule))),
    )


def _choose_inside(
    index: RowIndex, subject: Subject
) -> tuple[tuple[RowView, ...], tuple[RowView, ...]]:
    """Return typical and different rows inside the rule: failing ones, and passing ones."""
    rows, outcome = index.rows, subject.outcome
    losses = select_losses(outcome, rows.unit_losses, rows.outcomes)
    if subject.pair:
        losses = clip_changes(rows.select_pair(subject.pair), less=subject.is_better)
    inside = index.mark(subject.rule)
    nowhere = np.zeros_like(inside)
    examples = choose_examples(
        rows.evidence, outcome, inside, nowhere, losses, count=COUNT, columns=rows.texts
    )
    sides = []
    for side, mask in (("failing", rows.fails), ("passing", rows.passes)):
        ids = [example.id for example in examples if example.side == side]
        places = _find_places(index, ids, mask, subject.find_model(index.rows.outcomes))
        sides.append(_show(index, subject, places))
    return sides[0], sides[1]


def _find_places(
    index: RowIndex, ids: list[str], mask: NDArray[np.bool_], model: str
) -> NDArray[np.intp]:
    """Return a row for each id, in their order: one of the mask where there is one."""
    names = index.rows.ids
    places = np.flatnonzero(names.is_in(ids).to_numpy() & index.rows.select_model(model))
    # of a dict the last one stays: the first of the mask
    order = places[np.lexsort((-places, mask[places]))]
    best = {str(names[int(place)]): int(place) for place in order}
    return np.array([best[name] for name in ids if name in best], dtype=np.intp)


def _choose_near(index: RowIndex, subject: Subject) -> list[tuple[RowView, str]]:
    """Return rows next to the rule, a few of each condition that alone keeps them out, and it."""
    every = index.find_near_misses(subject.rule)
    names = subject.name_conditions(every)
    misses = [one for one in zip(names, every, strict=True) if one[1].mask.any()]
    examples: list[tuple[RowView, str]] = []
    of_model = index.rows.select_model(subject.find_model(index.rows.outcomes))
    for name, miss in misses:
        places = miss.places[of_model[miss.places]]
        for row in _show(index, subject, places[: max(2, COUNT // len(misses))]):
            distance = np.nan if miss.distance is None else float(miss.distance[row.place])
            by = "" if np.isnan(distance) else f", missed by {distance:.4g}"
            examples.append((row, "" if is_single(every) else f"Not: {name}{by}"))
    return examples


def _show(index: RowIndex, subject: Subject, places: NDArray[np.intp]) -> tuple[RowView, ...]:
    rows = index.rows
    read = [name for name in index.find_candidate(subject.rule).columns if name in rows.columns]
    columns = list(dict.fromkeys([*rows.texts, *read]))
    return show_rows(rows, places, columns, rule=subject.rule, length=LONG)


EXAMPLES = Screen(
    "",
    "/examples",
    make_trial_routes("/examples", show_examples),
    keys=(
        ("f", "All that fail inside"),
        ("a", "All that pass inside"),
        ("e", "Edit the rule"),
    ),
)
