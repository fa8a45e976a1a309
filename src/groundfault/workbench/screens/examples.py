"""Examples by a rule, and two models or reports compared: the client shows the rows it asks for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from groundfault.auditing.gating import FAIL_ON, gate
from groundfault.auditing.report_examples import read_pair
from groundfault.errors import InputError
from groundfault.modes.examples import LONGEST
from groundfault.render import gate as gate_words
from groundfault.render.audit_groups import describe_overall
from groundfault.render.audit_words import Outline
from groundfault.render.transcript_page import list_steps
from groundfault.workbench.packing import MaskPool
from groundfault.workbench.pages import Screen, bench_of, make_trial_routes, read_number, show_page
from groundfault.workbench.rule_trials import RowSelection, count_untried
from groundfault.workbench.subjects import list_modes, read_subject

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request
    from starlette.responses import Response

    from groundfault.workbench.opened_report import OpenedReport

_WHOLE = 20_000
"""Characters of a text on the page of its own example: all of nearly every one."""
_MOST = 200
"""Rows, and columns, of one request: a page of lists shows fewer."""
_MAX_RULES = 60
"""Rules that are contrasted between two models: each takes a pass over all units."""


def show_examples(request: Request) -> Response:
    """Show the counts of a rule; the client lists its examples below."""
    bench = bench_of(request)
    subject = read_subject(bench.audited, request.query_params)
    selection = RowSelection.of(bench, request.query_params)
    index, rule, state = bench.index, subject.rule, bench.state
    assert state is not None
    index.filter(selection.where)
    return show_page(
        request,
        "examples.html.j2",
        subject=subject,
        is_list=not request.query_params.get("row"),
        is_late=any(state.is_late(one) for one in (rule, selection.joined) if one),
        cells=index.count(rule) if rule else {},
        model=subject.find_model(index.rows.outcomes),
        change=index.measure_change(rule, subject.pair) if subject.pair and rule else None,
    )


def send_outline(request: Request) -> Response:
    """Answer with the number of rows, and their columns."""
    return JSONResponse(bench_of(request).explorer.outline())


def send_block(request: Request) -> Response:
    """Answer with a column of all rows."""
    return PlainTextResponse(bench_of(request).explorer.pack(request.path_params["name"]))


def send_rule(request: Request) -> Response:
    """Answer with a rule and the masks of its rows."""
    bench = _require_counted(request)
    pool = MaskPool(len(bench.rows))
    rule = bench.explorer.describe_rule(read_subject(bench.audited, request.query_params), pool)
    return JSONResponse(rule | {"pool": pool.pack()})


def send_rules(request: Request) -> Response:
    """Answer with the modes and confirmed findings, each once, for all of its models."""
    bench = bench_of(request)
    pool, rules = MaskPool(len(bench.rows)), dict[str, dict[str, Any]]()
    for name, rule, key in _list_rules(bench):
        if rule not in rules and len(rules) < _MAX_RULES:
            rules[rule] = {"name": name, "key": key, "masks": [pool.add(bench.index.holds(rule))]}
    return JSONResponse({"rules": list(rules.values()), "pool": pool.pack()})


def _list_rules(bench: OpenedReport) -> Iterator[tuple[str, str, dict[str, object]]]:
    for mode in list_modes(bench.audited):
        yield mode.name, mode.mode.rule, {"mode": mode.number}
    for finding in map(Outline(bench.audited).face, bench.audited.confirmed):
        yield finding.name, finding.rule, {"finding": finding.key}


def send_mask(request: Request) -> Response:
    """Answer with the rows for which all filters hold, and whose texts have some words."""
    bench, query = _require_counted(request), request.query_params
    pool = MaskPool(len(bench.rows))
    holds = bench.index.filter(RowSelection.of(bench, query).where)
    words = query.get("words", "")
    pool.add(holds & bench.index.search(words) if words else holds)
    return PlainTextResponse(pool.pack())


def send_values(request: Request) -> Response:
    """Answer with values of a few rows, the places that the rule marks, and the same example."""
    bench, query = _require_counted(request), request.query_params
    data, rows = bench.explorer, bench.rows
    places, columns = (
        [read_number(text, -1, size) for text in query.getlist(name)[:_MOST]]
        for name, size in (("row", len(rows)), ("column", len(data.columns)))
    )
    if not places or -1 in (*places, *columns):
        raise InputError("there is no such row, or no such column")
    rule, is_whole = read_subject(bench.audited, query).rule, bool(query.get("whole"))
    values = data.read_values(places, columns, rule, _WHOLE if is_whole else LONGEST)
    same = []
    if is_whole:
        others = (rows.ids == rows.ids[places[0]]).fill_null(False).to_numpy()
        same = [row for row in np.flatnonzero(others)[:_MOST].tolist() if row != places[0]]
    return JSONResponse(values | {"same": same})


def _require_counted(request: Request) -> OpenedReport:
    """Raise `InputError` where a rule would be looked at that no ledger has: looking is a GET."""
    bench = bench_of(request)
    if count_untried(bench, RowSelection.of(bench, request.query_params)):
        raise InputError("this rule was not counted yet: open its page first")
    return bench


EXAMPLES = Screen(
    "Examples",
    "/examples",
    (
        *make_trial_routes("/examples", show_examples),
        Route("/data/report", send_outline),
        Route("/data/block/{name}", send_block),
        Route("/data/rule", send_rule),
        Route("/data/rules", send_rules),
        Route("/data/mask", send_mask),
        Route("/data/values", send_values),
    ),
    keys=(
        ("f", "Next side: fails inside, passes inside, near misses, all"),
        ("w", "One more filter, in SQL"),
        ("b", "The answers of all models side by side, or one answer a row"),
        ("e", "Edit the rule"),
    ),
    key="R",
)


def show_runs(request: Request) -> Response:
    """Show a failing and a passing run of one example side by side, their steps folded."""
    bench, example = bench_of(request), request.query_params.get("id", "")
    pair = read_pair(bench.rows.evidence, example)
    runs = {side: list_steps(steps) for side, steps in pair.items()}
    return show_page(request, "runs.html.j2", runs=runs, example=example)


RUNS = Screen(
    "Runs",
    "/runs",
    (Route("/runs", show_runs),),
    keys=(
        ("j k", "next step, step before"),
        ("Enter", "unfold the step"),
        ("i", "another example"),
    ),
    key="U",
    needs="transcripts",
)


def show_comparison(request: Request) -> Response:
    """Compare two models of the report, or the report with the baseline."""
    bench, params = bench_of(request), request.query_params
    if bench.baseline is None or not ("since" in params or len(bench.audited.outcomes) < 2):
        overall = describe_overall(bench.audited)
        return show_page(request, "compare.html.j2", overall=overall)
    # rows that are held out stay in the process that reads them: then stored rules are tested
    apart = bench.audited.n_holdout > 0
    verdict = gate(
        bench.audited if apart else bench.place,
        FAIL_ON,
        baseline=bench.baseline,
        evidence=None if apart else bench.evidence,
    )
    return show_page(
        request,
        "since.html.j2",
        lines=list(gate_words.lines(verdict)),
        headline=re.split(": |, but ", gate_words.headline(verdict), maxsplit=1)[1],
        groups=(
            ("Got worse", verdict.new),
            ("Known from the earlier report", verdict.known),
            ("Cannot be compared", verdict.uncompared),
        ),
        describe=gate_words.describe_match,
        models=len(bench.audited.outcomes) > 1,
        then=bench.baseline,
    )


COMPARISON = Screen(
    "Comparison",
    "/compare",
    (Route("/compare", show_comparison),),
    keys=(("1 2 3 4", "Both fail, only the second, only the first, neither"),),
    key="C",
    needs="rivals",
)
