"""What probe runs found, once nobody reviews them blind any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from groundfault.workbench.pages import bench_of, show_page
from groundfault.workbench.screen import Screen

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


def show_probes(request: Request) -> Response:
    """The report of the runs as their review stands; none while the review is blind."""
    from groundfault.probes.use.summary import Summary
    from groundfault.render.probe_page import make_page, make_review_sections

    reviewed = bench_of(request).progress
    assert reviewed is not None
    if reviewed.is_blind:
        return show_page(request, "probes_blind.html.j2", folder=reviewed.runs.folder)
    sections = make_review_sections(reviewed)
    name = reviewed.runs.folder.absolute().name
    page = make_page(Summary.of(reviewed), name, sections)
    return show_page(request, "sections.html.j2", content=page, command="", reason="")


SCREEN = Screen(
    title="Probes",
    path="/probes",
    routes=(Route("/probes", show_probes),),
    shown=lambda bench: bench.progress is not None,
)
