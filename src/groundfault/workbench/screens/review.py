"""Blind review: one item, three questions, a key for each answer; nothing that names who answered.

The address is the same for every item, and a page holds no id: a turn that is drawn anew for each
item tells the server which one was meant."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.routing import Route

from groundfault.review.questions import GUIDANCE
from groundfault.workbench.pages import bench_of, read_form, show_page
from groundfault.workbench.review_desk import ReviewDesk, ReviewStage
from groundfault.workbench.screen import Screen

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

ACTS = ("decide", "skip", "back", "again")
_STALE = "This page was not the newest: nothing was stored. Here is the item that is open now."


def _desk(request: Request) -> ReviewDesk:
    desk = bench_of(request).review
    assert desk is not None
    return desk


async def _show(request: Request) -> Response:
    stage = await run_in_threadpool(_desk(request).look)
    who = _desk(request).reviewer
    return show_page(
        request, "review.html.j2", stage=stage, reviewer=who, notice="", guidance=GUIDANCE
    )


async def _show_whole(request: Request) -> Response:
    view = await run_in_threadpool(_desk(request).read_whole)
    return show_page(request, "review_whole.html.j2", item=view)


async def _act(request: Request) -> Response:
    fields = await read_form(request)
    desk, turn = _desk(request), fields.get("turn", "")
    act = request.url.path.rpartition("/")[2]
    if act == "again":
        stage = await run_in_threadpool(desk.start_again)
        return _show_stage(request, stage, "")
    decide = partial(desk.decide, answers=fields)
    acts: dict[str, Callable[[str], tuple[bool, ReviewStage]]] = {
        "decide": decide,
        "skip": desk.skip,
        "back": desk.back,
    }
    is_current, stage = await run_in_threadpool(acts[act], turn)
    return _show_stage(request, stage, "" if is_current else _STALE)


def _show_stage(request: Request, stage: ReviewStage, notice: str) -> Response:
    return show_page(request, "review_stage.html.j2", stage=stage, notice=notice)


SCREEN = Screen(
    title="Review",
    path="/review",
    routes=(
        Route("/review", _show),
        Route("/review/whole", _show_whole),
        *(Route(f"/review/{act}", _act, methods=["POST"]) for act in ACTS),
    ),
    keys=(
        ("y n u", "answer the question: yes, no, unsure (or 1 2 3)"),
        ("e f", "what is to blame: extraction, format"),
        ("z", "take back the last answer; then the item before, to revise it"),
        ("s", "skip the item"),
        ("o", "note; Esc leaves it"),
    ),
    shown=lambda bench: bench.review is not None,
)
