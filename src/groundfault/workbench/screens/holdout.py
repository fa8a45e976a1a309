"""The holdout: what it was opened for, and the one form that opens it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse
from starlette.routing import Route

from groundfault.errors import GroundfaultError
from groundfault.render.audit_groups import main_cell
from groundfault.render.audit_words import Outline
from groundfault.workbench.pages import bench_of, make_link, read_form, show_page
from groundfault.workbench.screen import Screen
from groundfault.workbench.spending import PREFIX, spend_holdout
from groundfault.workbench.tried_rules import freeze_rules, list_tried

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


def show_holdout(
    request: Request, trouble: str = "", form: dict[str, str] | None = None
) -> Response:
    """Rules to choose, the form that opens it for them, and what was opened here before."""
    bench, form = bench_of(request), form or {}
    report, library = bench.report, None
    assert report is not None
    rules = _list_rules(form) or request.query_params.getlist("rule")
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
        tried=list_tried(bench),
        prefix=PREFIX,
        guarantee=Outline(report).guarantee,
        spendings=[
            (spending, [(finding, main_cell(finding)) for finding in spending.report.findings])
            for spending in reversed(bench.spendings)
        ],
    )


async def open_holdout(request: Request) -> Response:
    """Open it for the rules whose hash was shown."""
    form, bench = await read_form(request), bench_of(request)
    try:
        spending = await run_in_threadpool(
            spend_holdout, bench, _list_rules(form), form.get("seal", ""), form.get("reason", "")
        )
    except GroundfaultError as error:
        return await run_in_threadpool(show_holdout, request, str(error), form)
    bench.spendings.append(spending)
    return RedirectResponse(make_link(request, "/holdout"), 303)


def _list_rules(form: dict[str, str]) -> list[str]:
    return [value for name, value in form.items() if name.startswith("rule-")]


SCREEN = Screen(
    "",
    "/holdout",
    (
        Route("/holdout", open_holdout, methods=["POST"]),
        Route("/holdout", show_holdout),
    ),
    shown=lambda bench: bench.report is not None,
)
