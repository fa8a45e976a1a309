"""The screen of the codebook: a coder's notes by code, moved by keys or by dragging."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.routing import Route

from groundfault.coding import Coding
from groundfault.errors import InputError
from groundfault.workbench.pages import Screen, bench_of, read_form, show_page

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams
    from starlette.requests import Request

    from groundfault.workbench.desks import ReviewDesk


def _desk_of(request: Request) -> tuple[ReviewDesk, Coding]:
    desk = bench_of(request).review
    assert desk is not None
    assert desk.coding is not None
    return desk, desk.coding


def show_codes(request: Request) -> Response:
    """Show this coder's notes by code, and suggestions; those of others would sway them."""
    desk, coding = _desk_of(request)
    notes = [note for note in coding.notes if note.reviewer == desk.reviewer]
    groups = {code: [note for note in notes if code in note.codes] for code in coding.codes}
    if rest := [note for note in notes if not note.codes]:
        groups |= {"": rest}
    suggestions = coding.suggestions(desk.reviewer)
    return show_page(
        request, "codes.html.j2", groups=groups, told=coding.codes, suggestions=suggestions
    )


async def change_codes(request: Request) -> Response:
    """Make one change of the codebook, and show it."""
    fields = await read_form(request)
    desk, coding = _desk_of(request)
    await run_in_threadpool(_change, coding, desk.reviewer, fields)
    return show_codes(request)


def _change(coding: Coding, coder: str, fields: QueryParams) -> None:
    act, code, into = (fields.get(name, "").strip() for name in ("act", "code", "into"))
    if act == "move":
        runs: dict[str, list[str]] = {}
        for one in fields.getlist("runs"):
            run, _, held = one.partition(":")
            runs.setdefault(held, []).append(run)
        if not runs:
            raise InputError("choose one note or more: walk to it with j and k, and press x")
        for held, some in runs.items():
            coding.move(some, held, into, coder=coder)
    elif act == "rename":
        coding.rename(code, into)
    elif act == "define":
        coding.define(code, into)
    elif act == "accept" and code.isdecimal():
        coding.accept(int(code[:9]), into, coder=coder)
    elif act == "suggest":
        coding.suggest(coder=coder)
    elif act == "undo":
        coding.undo()
    else:
        raise InputError("this is no change of a codebook: open the page again")


CODES = Screen(
    title="Codes",
    path="/codes",
    routes=(
        Route("/codes", show_codes),
        Route("/codes", change_codes, methods=["POST"]),
    ),
    keys=(
        ("x m", "choose the note you walked to; move the chosen ones to a code"),
        ("r d", "rename a code, or join it to another; define it"),
        ("g z", "suggest codes; take the last change back"),
    ),
    key="C",
    needs="codebook",
)
