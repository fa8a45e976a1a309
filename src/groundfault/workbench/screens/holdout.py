"""The holdout: the questions it was opened for, and the one form that opens it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse
from starlette.routing import Route

from groundfault.auditing.report import WRITTEN, read_report
from groundfault.auditing.verification import check_writing
from groundfault.auditing.verification_checks import VerificationCheck
from groundfault.base.holdout_events import OPENED, REPLAYED, TRIED
from groundfault.errors import GroundfaultError
from groundfault.render import words
from groundfault.render.audit_groups import main_cell
from groundfault.render.audit_tables import manifest
from groundfault.render.audit_words import Outline
from groundfault.workbench.holdout_state import read_events
from groundfault.workbench.pages import (
    Screen,
    bench_of,
    make_link,
    read_form,
    read_number,
    show_page,
)
from groundfault.workbench.rule_trials import PREFIX, freeze_rules, spend_holdout

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams
    from starlette.requests import Request
    from starlette.responses import Response

    from groundfault.auditing.report import Report
    from groundfault.base.holdout_events import Event
    from groundfault.workbench.opened_report import OpenedReport


def show_holdout(request: Request, trouble: str = "", form: QueryParams | None = None) -> Response:
    """Show rules to choose, the form that tests them, and the tests made here before."""
    bench, form = bench_of(request), request.query_params if form is None else form
    report, library = bench.audited, None
    rules = form.getlist("rule")
    if rules:
        try:
            library = freeze_rules(bench, rules)
        except GroundfaultError as error:
            trouble = trouble or str(error)
    return show_page(
        request,
        "holdout.html.j2",
        status=400 if trouble else 200,
        trouble=trouble,
        form=form,
        library=library,
        prefix=PREFIX,
        guarantee=Outline(report).guarantee,
        main_cell=main_cell,
    )


async def open_holdout(request: Request) -> Response:
    """Open it for the rules whose hash was shown."""
    form, bench = await read_form(request), bench_of(request)
    try:
        await run_in_threadpool(
            spend_holdout, bench, form.getlist("rule"), form.get("seal", ""), form.get("reason", "")
        )
    except GroundfaultError as error:
        return await run_in_threadpool(show_holdout, request, str(error), form)
    return RedirectResponse(make_link(request, "/holdout"), 303)


HOLDOUT = Screen(
    "",
    "/holdout",
    (Route("/holdout", open_holdout, methods=["POST"]), Route("/holdout", show_holdout)),
)


PAGE = 100
"""Events of a page: a few screens of one line each."""

_NAMES = {
    OPENED: "Outcomes looked at",
    REPLAYED: "Same audit again",
    TRIED: "Rule tried",
    WRITTEN: "Report written",
}
_LONGEST = 300
"""Characters of an event of an unknown kind: three lines."""


def show_ledger(request: Request) -> Response:
    """Show the events, the last first, and the checks of the record."""
    bench = bench_of(request)
    report, events = bench.audited, read_events(bench.ledger)
    kind = request.query_params.get("kind", "")
    known = {event.hash: event for event in events}
    picks = [event for event in reversed(events) if kind in ("", event.kind)]
    start = read_number(request.query_params.get("start", ""), 0, len(picks))
    return show_page(
        request,
        "ledger.html.j2",
        checks=_check(bench),
        events=picks[start : start + PAGE],
        name_kind=name_kind,
        describe=lambda event: describe_event(event, known),
        is_of_others=lambda event: _is_of_others(report, event, known),
        kinds=dict.fromkeys(event.kind for event in events),
        kind=kind,
        start=start,
        size=len(picks),
        page=PAGE,
        outline=Outline(report),
        tables=[table for table in manifest(report) if table.rows],
    )


async def verify_numbers(request: Request) -> Response:
    """Compute every number again."""
    bench = bench_of(request)
    bench.verification = await run_in_threadpool(bench.verify)
    return RedirectResponse(make_link(request, "/ledger"), 303)


def _check(bench: OpenedReport) -> tuple[VerificationCheck, ...]:
    """Check the chain, the files and the opening, without the outcomes."""
    if bench.ledger is None:
        return (VerificationCheck("ledger", "waived", "nothing is recorded here"),)
    try:
        if read_events(bench.ledger):
            bench.ledger.check()
        chain = VerificationCheck("chain", "passed", "no event was changed, removed or moved")
    except GroundfaultError as error:
        chain = VerificationCheck("chain", "failed", str(error))
    checks = check_writing(bench.folder, read_report(bench.place), bench.ledger)
    return chain, *checks


def name_kind(kind: str) -> str:
    """Return a kind of event in words.

    Examples
    --------
    >>> name_kind("rule_tried"), name_kind("something_else")
    ('Rule tried', 'Something else')
    """
    return _NAMES.get(kind, kind.replace("_", " ").capitalize())


def _is_of_others(report: Report, event: Event, known: Mapping[str, Event]) -> bool:
    """Return whether an event is about other outcomes than this report: a ledger may hold many."""
    look = known.get(str(event.body.get("opening")), event)
    ours = report.hashes.outcome
    return bool(look.body.get("outcome", ours) != ours)


def describe_event(event: Event, known: Mapping[str, Event]) -> str:
    """Return the particulars of an event, on a line.

    Parameters
    ----------
    event : Event
    known : mapping of str to Event
        All events of its ledger, by hash.
    """
    body: Mapping[str, Any] = event.body
    if event.kind == TRIED:
        counts = body.get("counts", {})
        numbers = [
            f"{name + ' ' if name else ''}{cell[1]:g} of {cell[0]:,} fail inside"
            for name, cell in counts.items()
        ]
        return f"{body.get('rule')} ({'; '.join(numbers)})"
    if event.kind in (OPENED, REPLAYED):
        parts = [f"by {body.get('rule')}" if body.get("rule") else ""]
        parts += [f"level {body['level']:g}" if body.get("level") is not None else ""]
        parts += ["in the browser" if body.get("via") == "web" else ""]
        parts += [str(body.get("reason") or "")]
        return ", ".join(filter(None, parts))
    if event.kind == WRITTEN:
        files = words.listing(list(body.get("files", ())), 6)
        look = known.get(str(body.get("opening")))
        return f"{files}, after event {look.seq}" if look else files
    text = ", ".join(
        f"{key}: {', '.join(value) if isinstance(value, Mapping) else value}"
        for key, value in body.items()
        if value is not None
    )
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


LEDGER = Screen(
    "Ledger",
    "/ledger",
    (Route("/ledger", show_ledger), Route("/ledger/verify", verify_numbers, methods=["POST"])),
    key="L",
)
