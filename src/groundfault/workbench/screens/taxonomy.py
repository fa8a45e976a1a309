"""A taxonomy: which examples fail together, and what the clusters are worth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from groundfault.workbench.pages import bench_of, show_page
from groundfault.workbench.screen import Screen

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


def show_taxonomy(request: Request) -> Response:
    """The sections of its report."""
    bench = bench_of(request)
    claims = bench.place / "claims"
    return show_page(
        request,
        "sections.html.j2",
        content=bench.taxonomy,
        command=f"groundfault open {claims}" if claims.is_dir() else "",
        reason="The report on held-out models",
    )


SCREEN = Screen(
    title="Taxonomy",
    path="/taxonomy",
    routes=(Route("/taxonomy", show_taxonomy),),
    shown=lambda bench: bench.taxonomy is not None,
)
