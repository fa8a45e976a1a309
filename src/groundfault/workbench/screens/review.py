"""Screens of people's decisions, and of reports on a case, on probes and on a taxonomy.

In a blind review the address is the same for every item, and a page holds no id: a turn that is
drawn anew for each item tells the server which one was meant. In a live audit the page asks once a
second for what was recorded, here or elsewhere; a label cannot be taken back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.routing import Route

from groundfault.base.registry import load_object
from groundfault.coding import Coding
from groundfault.errors import GroundfaultError, InputError
from groundfault.probes.review.reviewed_runs import ReviewProgress
from groundfault.render.agreement_table import tabulate_agreement
from groundfault.review.decision import summarize_agreement
from groundfault.review.notes import read_place
from groundfault.workbench.pages import Screen, bench_of, read_form, send_json, show_page

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams
    from starlette.requests import Request

    from groundfault.workbench.desks import LiveDesk, ReviewDesk

_ACTS = ("decide", "skip", "back", "again")
_STALE = "This page was not the newest: nothing was stored. Here is the item that is open now."
_SCORED = "That query had its score already, and yours was not used."


def _review_of(request: Request) -> ReviewDesk:
    desk = bench_of(request).review
    assert desk is not None
    return desk


def show_review(request: Request) -> Response:
    """Show the item on the desk, the three questions, and a key for each answer."""
    desk = _review_of(request)
    return show_page(
        request,
        "review.html.j2",
        stage=desk.look(),
        reviewer=desk.reviewer,
        notice="",
        guidance=desk.guidance,
    )


def show_whole_item(request: Request) -> Response:
    """Show the item on the desk with its texts uncut."""
    return show_page(request, "review_whole.html.j2", item=_review_of(request).read_whole())


async def act_on_item(request: Request) -> Response:
    """Decide, skip or take back an item, or begin again; show the item that is next."""
    fields = await read_form(request)
    act, desk = request.url.path.rpartition("/")[2], _review_of(request)
    is_current, stage = await run_in_threadpool(desk.act, act, fields.get("turn", ""), fields)
    notice = "" if is_current else _STALE
    return show_page(request, "review_stage.html.j2", stage=stage, notice=notice)


REVIEW = Screen(
    title="Review",
    path="/review",
    routes=(
        Route("/review", show_review),
        Route("/review/whole", show_whole_item),
        *(Route(f"/review/{act}", act_on_item, methods=["POST"]) for act in _ACTS),
    ),
    keys=(
        ("y n u", "answer the question: yes, no, unsure (or 1 2 3)"),
        ("e f", "what is to blame: extraction, format"),
        ("z", "take back the last answer; then the item before, to revise it"),
        ("s", "skip the item"),
        ("o", "note; Esc leaves it"),
        ("c w v", "codes of a run; the step at which it first goes wrong; the words that show it"),
        ("Ctrl+Enter", "keep the note on a run"),
    ),
    needs="review",
)


def show_progress(request: Request) -> Response:
    """Show how far a review is and how its reviewers agree, from the decisions as they are now."""
    reviewed = bench_of(request).progress
    assert reviewed is not None
    table = tabulate_agreement(summarize_agreement(reviewed.decisions, seed=reviewed.queue.seed))
    return show_page(
        request,
        "review_progress.html.j2",
        progress=ReviewProgress.of(reviewed),
        table=replace(table, note=""),
        notes=table.note.split("\n"),
    )


# a reviewer's own workbench has no such page: what others decided would sway them
PROGRESS = Screen(
    "Review", "/review/progress", (Route("/review/progress", show_progress),), needs="progress"
)


def show_probes(request: Request) -> Response:
    """Show the report of probe runs at the present state of their review, once it is unblinded."""
    reviewed = bench_of(request).progress
    assert reviewed is not None
    if reviewed.is_blind:
        return show_page(request, "probes_blind.html.j2", folder=reviewed.runs.folder)
    name = reviewed.runs.folder.absolute().name
    make_page = load_object("groundfault_lab.pages.probe_page:make_reviewed_page")
    page = make_page(reviewed, name)
    return show_page(request, "sections.html.j2", content=page, command="", reason="")


PROBES = Screen("Probes", "/probes", (Route("/probes", show_probes),), needs="progress")


def show_taxonomy(request: Request) -> Response:
    """Show the sections of a taxonomy's report."""
    bench = bench_of(request)
    claims = bench.place / "claims"
    return show_page(
        request,
        "sections.html.j2",
        content=bench.taxonomy,
        command=f"groundfault open {claims}" if claims.is_dir() else "",
        reason="The report on held-out models",
    )


TAXONOMY = Screen("Taxonomy", "/taxonomy", (Route("/taxonomy", show_taxonomy),), needs="taxonomy")


def show_case(request: Request) -> Response:
    """Show the state of a case and the cost of its next step; folder and ledger are read anew."""
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


CASE = Screen("Case", "/case", (Route("/case", show_case),), key="O", needs="case")


def _live_of(request: Request) -> LiveDesk:
    desk = bench_of(request).live
    assert desk is not None
    return desk


def show_live(request: Request) -> Response:
    """Show a sequential audit: both e-values, the next case, and its label."""
    desk = _live_of(request)
    return show_page(request, "live.html.j2", stage=desk.look(ask=False), notice="")


def show_stage(request: Request) -> Response:
    """Draw the next query, and answer with the changes since a version, if there are any."""
    stage = _live_of(request).look()
    if request.query_params.get("version") == stage.version:
        return Response(status_code=204)
    return show_page(request, "live_stage.html.j2", stage=stage, notice="")


async def save_label(request: Request) -> Response:
    """Take a score of the open query, or the last one back."""
    fields = await read_form(request)
    step, reply = fields.get("step", ""), fields.get("number") or fields.get("score", "")
    number, desk = int(step) if step.isdecimal() else 0, _live_of(request)
    try:
        if "undo" in fields:
            is_current, stage = await run_in_threadpool(desk.undo, number)
        elif number and not reply:
            raise InputError("no answer is chosen: press y, n, u or g first")
        else:
            is_current, stage = await run_in_threadpool(desk.label, number, reply)
        status, notice = 200, "" if is_current else _SCORED
    except GroundfaultError as error:
        # what was shown stays, with the reason above it
        stage = await run_in_threadpool(desk.look)
        status, notice = 400, f"Not recorded: {error}"
    return show_page(request, "live_stage.html.j2", status=status, stage=stage, notice=notice)


def download_certificate(request: Request) -> Response:
    """Answer with the present certificate."""
    return send_json(_live_of(request).certificate().to_json(), "certificate.json")


LIVE = Screen(
    title="Live audit",
    path="/live",
    routes=(
        Route("/live", show_live),
        Route("/live/stage", show_stage, methods=["POST"]),
        Route("/live/label", save_label, methods=["POST"]),
        Route("/live/certificate.json", download_certificate),
    ),
    keys=(
        ("y n", "the case passes, fails"),
        ("u", "it cannot be scored"),
        ("g", "the share that passed"),
        ("Enter", "record the label"),
        ("b", "take the last label back"),
    ),
    needs="live",
)


def _coding_of(request: Request) -> tuple[Coding, str]:
    desk = _review_of(request)
    assert desk.coding is not None
    return desk.coding, desk.reviewer


def show_codes(request: Request) -> Response:
    """Show this coder's notes by code, and suggestions; other coders' notes would sway them."""
    coding, coder = _coding_of(request)
    notes = [note for note in coding.notes if note.reviewer == coder]
    groups = {code: [note for note in notes if code in note.codes] for code in coding.codes}
    if rest := [note for note in notes if not note.codes]:
        groups |= {"": rest}
    suggestions = coding.suggestions(coder)
    return show_page(
        request, "codes.html.j2", groups=groups, told=coding.codes, suggestions=suggestions
    )


async def change_codes(request: Request) -> Response:
    """Make one change of the codebook, and show the codebook."""
    fields = await read_form(request)
    await run_in_threadpool(_change, *_coding_of(request), fields)
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
        coding.accept(read_place(code), into, coder=coder)
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
