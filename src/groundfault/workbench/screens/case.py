"""A case: where it stands, and what the next step costs; before its audit, without an outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from groundfault.workbench.pages import bench_of, show_page
from groundfault.workbench.screen import Screen

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


def show_case(request: Request) -> Response:
    """Where the case stands now: its folder and its ledger are read anew."""
    from groundfault.render.case_page import make_status_page

    bench = bench_of(request)
    assert bench.case is not None
    is_later = bench.report is None and bench.case.report is not None
    return show_page(
        request,
        "sections.html.j2",
        content=make_status_page(bench.case, bench.forecast),
        command=f"groundfault open {bench.case.folder}" if is_later else "",
        reason="There is an audit now; to see its examples, start anew",
    )


SCREEN = Screen(
    title="Case",
    path="/case",
    routes=(Route("/case", show_case),),
    key="O",
    shown=lambda bench: bench.case is not None,
)
