"""A live sequential audit: both e-values as labels come in, what is next, and its label.

The page asks once a second whether anything was recorded, here or elsewhere. A label is one key to
choose it and Enter to record it: unlike a review, what was recorded cannot be taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from groundfault.errors import GroundfaultError, InputError
from groundfault.workbench.live_desk import LiveDesk
from groundfault.workbench.pages import bench_of, make_link, read_form, show_page
from groundfault.workbench.screen import Screen

if TYPE_CHECKING:
    from starlette.requests import Request

_STALE = "That query had its score already, and yours was not used."


def _desk(request: Request) -> LiveDesk:
    desk = bench_of(request).live
    assert desk is not None
    return desk


def show_live(request: Request) -> Response:
    """The whole page."""
    return show_page(request, "live.html.j2", stage=_desk(request).look(), notice="")


def show_stage(request: Request) -> Response:
    """What changed since a version; nothing where nothing did."""
    stage = _desk(request).look()
    if request.query_params.get("version") == stage.version:
        return Response(status_code=204)
    return show_page(request, "live_stage.html.j2", stage=stage, notice="")


async def save_label(request: Request) -> Response:
    """Take a score of the open query."""
    fields = await read_form(request)
    step, reply = fields.get("step", ""), fields.get("number") or fields.get("score", "")
    number = int(step) if step.isdecimal() else 0
    try:
        if number and not reply:
            raise InputError("nothing is chosen: press y, n, u or g first")
        is_current, stage = await run_in_threadpool(_desk(request).label, number, reply)
    except GroundfaultError as error:
        # what was shown stays, with the reason above it
        stage = await run_in_threadpool(_desk(request).look)
        return show_page(
            request, "live_stage.html.j2", status=400, stage=stage, notice=f"Not recorded: {error}"
        )
    if "hx-request" not in request.headers:
        return RedirectResponse(make_link(request, "/live"), 303)
    notice = "" if is_current else _STALE
    return show_page(request, "live_stage.html.j2", stage=stage, notice=notice)


def download_certificate(request: Request) -> Response:
    """The certificate as it stands."""
    return Response(
        _desk(request).certificate().to_json(),
        media_type="application/json",
        headers={"content-disposition": 'attachment; filename="certificate.json"'},
    )


SCREEN = Screen(
    title="Live audit",
    path="/live",
    routes=(
        Route("/live", show_live),
        Route("/live/stage", show_stage),
        Route("/live/label", save_label, methods=["POST"]),
        Route("/live/certificate.json", download_certificate),
    ),
    keys=(
        ("y n", "the case passes, fails"),
        ("u", "it cannot be scored"),
        ("g", "a number from 0 to 1"),
        ("Enter", "record the label; it stays"),
    ),
    shown=lambda bench: bench.live is not None,
)
