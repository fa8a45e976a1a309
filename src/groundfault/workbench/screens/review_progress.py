"""How far a review is, and how far its reviewers agree; for who does not review."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from groundfault.probes.review.progress import ReviewProgress
from groundfault.render.agreement_table import tabulate_agreement
from groundfault.review.measuring import summarize_agreement
from groundfault.workbench.pages import bench_of, show_page
from groundfault.workbench.screen import Screen

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


def show_progress(request: Request) -> Response:
    """The counts and the measures, from the decisions as they are now."""
    reviewed = bench_of(request).progress
    assert reviewed is not None
    measures = summarize_agreement(reviewed.decisions, seed=reviewed.queue.seed)
    return show_page(
        request,
        "review_progress.html.j2",
        progress=ReviewProgress.of(reviewed),
        agreement=tabulate_agreement(measures),
    )


# a reviewer's own workbench has no such page: what others decided would sway them
SCREEN = Screen(
    title="Review",
    path="/review/progress",
    routes=(Route("/review/progress", show_progress),),
    shown=lambda bench: bench.progress is not None,
)
