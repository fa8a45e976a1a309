"""The rule editor: change a rule, and see what it counts on the discovery rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.responses import Response
from starlette.routing import Route

from groundfault.core.rules import Rule
from groundfault.errors import InputError, RuleError
from groundfault.modes.examples import split_conditions
from groundfault.workbench.column_values import describe_type
from groundfault.workbench.comparison import measure_change
from groundfault.workbench.pages import bench_of, show_page
from groundfault.workbench.screen import Screen
from groundfault.workbench.subjects import list_modes
from groundfault.workbench.tried_rules import (
    freeze_rules,
    list_rules,
    list_tried,
    needs_fresh_data,
    try_rule,
)

if TYPE_CHECKING:
    from starlette.requests import Request

    from groundfault.workbench.bench import Bench


def edit_rule(request: Request) -> Response:
    """A rule in a box, its conditions, and its counts."""
    bench = bench_of(request)
    assert bench.report is not None
    text = request.query_params.get("rule", "").strip()
    pair = bench.report.manifest.compare
    content: dict[str, Any] = {"rule": text, "trouble": "", "cells": {}, "pair": pair}
    if text:
        try:
            content |= _count(bench, text)
        except (RuleError, InputError) as error:
            content["trouble"] = str(error)
    rows = bench.rows
    return show_page(
        request,
        "rule.html.j2",
        **content,
        modes=list_modes(bench.report),
        columns=[(name, describe_type(kind)) for name, kind in rows.frame.schema.items()],
        size=rows.evidence.unit_count,
        total=rows.total,
        unit=bench.report.unit,
        tried=list_tried(bench),
    )


def download_tried(request: Request) -> Response:
    """The rules that were tried, as a library that an audit of fresh outcomes takes."""
    bench = bench_of(request)
    library = freeze_rules(bench, [one.rule for one in list_tried(bench)])
    return Response(
        library.to_json(),
        media_type="application/json",
        headers={"content-disposition": 'attachment; filename="tried-rules.json"'},
    )


def _count(bench: Bench, text: str) -> dict[str, Any]:
    cells = try_rule(bench, text)
    parts, units = split_conditions(text), bench.rows.evidence.unit_index
    shorter = [
        (part, " AND ".join(f"({other})" for other in parts if other != part)) for part in parts
    ]
    assert bench.report is not None
    pair = bench.report.manifest.compare
    return {
        "cells": cells,
        "change": measure_change(bench.index, text, pair) if pair else None,
        "conditions": shorter,
        "late": needs_fresh_data(bench, text),
        "is_known": Rule.parse(text).sql in list_rules(bench.report),
        "near": [
            (miss.condition, len(np.unique(units[miss.mask])))
            for miss in bench.index.find_near_misses(text)
        ],
    }


SCREEN = Screen(
    "Rules",
    "/rule",
    (Route("/rule", edit_rule), Route("/rule/tried.json", download_tried)),
    keys=(
        ("g", "The box of the rule"),
        ("Ctrl Enter", "Count the rule in the box; ⌘ Enter on a Mac"),
        ("x", "Examples of the rule"),
    ),
    key="T",
    shown=lambda bench: bench.report is not None,
)
