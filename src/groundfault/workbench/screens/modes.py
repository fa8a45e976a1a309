"""The first screen: failure modes, their share of failures, limits of the audit, and findings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from starlette.responses import Response
from starlette.routing import Route

from groundfault.core.column_meaning import measures_answer
from groundfault.core.finding import Finding, Verdict
from groundfault.core.rules import Rule
from groundfault.errors import InputError, RuleError
from groundfault.modes.examples import split_conditions
from groundfault.render import words
from groundfault.render.audit_groups import INSTRUMENT, main_cell
from groundfault.render.audit_words import Outline
from groundfault.render.mode_page import list_deciding
from groundfault.render.mode_words import ModeOutline
from groundfault.workbench.pages import Screen, bench_of, make_trial_routes, send_json, show_page
from groundfault.workbench.rule_trials import freeze_rules, list_rules
from groundfault.workbench.subjects import list_modes

if TYPE_CHECKING:
    from starlette.requests import Request

    from groundfault.auditing.report import Report
    from groundfault.workbench.opened_report import OpenedReport

_ORDERS: dict[str, tuple[str, Callable[[Finding], object]]] = {
    "lift": ("difference", lambda finding: -abs(main_cell(finding).lift or 0.0)),
    "p": ("p-value", lambda f: 2.0 if main_cell(f).p is None else main_cell(f).p),
    "n": ("size", lambda finding: -main_cell(finding).on),
    "name": ("name", lambda finding: finding.key),
}
_PLACES = {"": "mixed in", "first": "first", "only": "only", "out": "left out"}
"""Where findings about the instrument stand."""
_MAX_FINDINGS = 300
"""Of a page: more are found by the search box, not by scrolling."""


def show_modes(request: Request) -> Response:
    """Show the failure modes of the report, the findings, and the limits."""
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


MODES = Screen("Modes", "/", (Route("/", show_modes), Route("/findings", list_findings)), key="M")


def concerns_instrument(report: Report, finding: Finding) -> bool:
    """Return whether a finding is about the instrument: the scorer or the prompt may be at fault.

    It is if the finder ``instrument`` proposed it, or if its rule reads a column that was
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
    """Show a rule in a box, with conditions and counts."""
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


def describe_type(kind: pl.DataType) -> str:
    """Return the kind of a column in plain words.

    Examples
    --------
    >>> describe_type(pl.Int64()), describe_type(pl.List(pl.String()))
    ('whole numbers', 'lists or records')
    """
    if kind.is_integer():
        return "whole numbers"
    if kind.is_numeric():
        return "numbers"
    if kind.is_nested():
        return "lists or records"
    names = {
        pl.String: "text",
        pl.Boolean: "true or false",
        pl.Date: "dates",
        pl.Datetime: "dates and times",
    }
    return names.get(type(kind), str(kind).lower())


def _count(bench: OpenedReport, text: str) -> dict[str, object]:
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
