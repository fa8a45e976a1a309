"""The first screen: what fails, how much of it, and what could not be said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from groundfault.workbench.pages import bench_of, show_page
from groundfault.workbench.screen import Screen

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


def show_modes(request: Request) -> Response:
    """The failure modes of the report."""
    return show_page(request, "modes.html.j2", report=bench_of(request).report)


SCREEN = Screen(
    "Modes",
    "/",
    (Route("/", show_modes),),
    shown=lambda bench: bench.report is not None,
)
