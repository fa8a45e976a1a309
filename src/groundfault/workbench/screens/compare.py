"""Comparison: two models on the same examples, and this report beside an earlier one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from groundfault.auditing.gating import FAIL_ON, gate
from groundfault.render import gate as gate_words
from groundfault.render.change_words import describe_overall
from groundfault.workbench.comparison import compare_models, find_unit_rows
from groundfault.workbench.excerpts import show_rows
from groundfault.workbench.pages import bench_of, show_page
from groundfault.workbench.screen import Screen

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams
    from starlette.requests import Request
    from starlette.responses import Response

    from groundfault.workbench.bench import Bench

PAGE = 20
"""Examples of a page, each with two answers."""
CELLS = 4
"""Both fail, only the second, only the first, neither."""
_ONLY_SECOND = 1


def show_comparison(request: Request) -> Response:
    """Two models of the report, or the report and its baseline."""
    bench, params = bench_of(request), request.query_params
    assert bench.report is not None
    if bench.baseline is not None and ("since" in params or len(bench.report.outcomes) < 2):
        verdict = gate(bench.report, FAIL_ON, baseline=bench.baseline)
        return show_page(
            request,
            "since.html.j2",
            lines=list(gate_words.lines(verdict)),
            groups=(
                ("Worse, or new", verdict.new),
                ("No worse than before", verdict.known),
                ("Cannot be compared", verdict.uncompared),
            ),
            describe=gate_words.describe_match,
            models=len(bench.report.outcomes) > 1,
            then=bench.baseline,
        )
    return _show_models(request, bench, params)


def _show_models(request: Request, bench: Bench, params: QueryParams) -> Response:
    assert bench.report is not None
    index = bench.index
    rows, names = index.rows, index.rows.outcomes
    pair = bench.report.manifest.compare or names[:2]
    first, second = params.get("a", pair[0]), params.get("b", pair[-1])
    cell = _read_number(params, "cell", _ONLY_SECOND, CELLS)
    comparison = compare_models(index, bench.report, first, second, cell)
    places = comparison.cells[cell]
    start = _read_number(params, "start", 0, max(1, len(places)))
    units = places[start : start + PAGE]
    sides = [
        show_rows(rows, find_unit_rows(rows, units, model), rows.texts) for model in (first, second)
    ]
    return show_page(
        request,
        "compare.html.j2",
        comparison=comparison,
        models=names,
        cell=cell,
        start=start,
        end=start + len(units),
        pairs=list(zip(*sides, strict=True)),
        page=PAGE,
        unit=bench.report.unit,
        total=rows.total,
        overall=describe_overall(bench.report),
    )


def _read_number(params: QueryParams, name: str, default: int, size: int) -> int:
    text = params.get(name, "")
    number = int(text) if text.isdecimal() and text.isascii() and len(text) < 12 else default
    return number if number < size else default


def _has_two(bench: Bench) -> bool:
    report = bench.report
    if report is None:
        return False
    models = len(report.outcomes) > 1 or report.manifest.compare is not None
    return models or bench.baseline is not None


SCREEN = Screen(
    "Comparison",
    "/compare",
    (Route("/compare", show_comparison),),
    keys=(
        ("1", "Both fail"),
        ("2", "Only the second fails"),
        ("3", "Only the first fails"),
        ("4", "Neither fails"),
    ),
    key="C",
    shown=_has_two,
)
