"""Pages: templates filled in, everything from a model or a file as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from groundfault.errors import GroundfaultError, InputError
from groundfault.render import words
from groundfault.render.html import make_environment
from groundfault.workbench.auth import MAX_BODY
from groundfault.workbench.rule_trials import RowSelection, count_untried, try_rules

if TYPE_CHECKING:
    from jinja2 import Environment
    from starlette.requests import Request

    from groundfault.workbench.opened_report import OpenedReport

PART = "x-groundfault-part"
"""Header of a request for a part of a page."""
_MAX_DIGITS = 12
"""Of a place in a list: no table has so many rows."""
_MAX_FIELDS = 100
"""Of a form: a choice of rules to test has the most."""


def bench_of(request: Request) -> OpenedReport:
    """Return the opened report, case or review."""
    bench: OpenedReport = request.app.state.bench
    return bench


def show_page(
    request: Request, template: str, *, status: int = 200, **content: object
) -> HTMLResponse:
    """Return a page, or a part of one, from a template.

    Parameters
    ----------
    request : Request
    template : str
        A file of ``templates``.
    status : int
    **content
        Variables of the template, beside ``bench``, ``link``, ``words`` and ``path``.
    """
    content |= {
        "bench": bench_of(request),
        "screens": [s for s in request.app.state.screens if s.is_shown(bench_of(request))],
        "path": request.scope["path"].removeprefix(request.scope.get("root_path", "")) or "/",
        "link": lambda path, **query: make_link(request, path, **query),
    }
    return HTMLResponse(load_templates().get_template(template).render(content), status)


def send_json(text: str, name: str) -> Response:
    """Answer with JSON to be kept as a file of this name."""
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type="application/json", headers=headers)


def make_link(request: Request, path: str, **query: object) -> str:
    """Return an address of the workbench, behind a proxy too; None and empty values are left out.

    Parameters
    ----------
    request : Request
    path : str
        Such as ``/rule``.
    **query
        Lists give the name several times.
    """
    root: str = request.scope.get("root_path", "").rstrip("/")
    pairs = {name: value for name, value in query.items() if value not in (None, "", [], ())}
    return root + path + (f"?{urlencode(pairs, doseq=True)}" if pairs else "")


def read_number(text: str, default: int, size: int) -> int:
    """Return the number, from 0 and below a size, that a part of an address is; else a default.

    Examples
    --------
    >>> read_number("7", 0, 10), read_number("70", 0, 10), read_number("x", -1, 10)
    (7, 0, -1)
    """
    is_number = text.isdecimal() and text.isascii() and len(text) < _MAX_DIGITS
    return int(text) if is_number and int(text) < size else default


async def read_form(request: Request) -> QueryParams:
    """Return the fields of a form that was sent.

    Raises
    ------
    InputError
        If it is no form, was cut off, or is too large.
    """
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY:
                raise InputError(f"a form has at most {MAX_BODY:,} bytes")
    except ClientDisconnect:
        raise InputError("the form was cut off") from None
    try:
        fields = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise InputError("the form cannot be read") from None
    return QueryParams(fields)


def make_trial_routes(path: str, show: Callable[[Request], Response]) -> tuple[Route, Route]:
    """Return the routes of a page that counts rules: a new rule is counted only by a POST.

    Looking is not recorded: where the rule or a filter of an address was not tried yet, the page
    that asks for it is shown instead.

    Parameters
    ----------
    path : str
    show : callable
        Makes the page.
    """

    def look(request: Request) -> Response:
        bench = bench_of(request)
        try:
            rules = count_untried(bench, RowSelection.of(bench, request.query_params))
        except GroundfaultError:
            rules = {}  # the page says what is wrong
        fields = request.query_params.multi_items()
        return (
            show_page(request, "try.html.j2", rules=rules, fields=fields)
            if rules
            else show(request)
        )

    async def count(request: Request) -> Response:
        form = await read_form(request)
        await run_in_threadpool(try_rules, bench_of(request), form)
        return RedirectResponse(f"{make_link(request, path)}?{form}", 303)

    return Route(path, look), Route(path, count, methods=["POST"])


_OPTION = re.compile(r"--[a-z][a-z-]*")


@cache
def load_templates() -> Environment:
    """Load the templates; text is escaped, and characters that steer a terminal are replaced."""
    from markupsafe import Markup, escape

    def keep_options(text: str) -> Markup:
        # a line may end between the hyphens of an option and its name
        escaped = str(escape(words.clean(text)))
        return Markup(_OPTION.sub(r'<span class="option">\g<0></span>', escaped))

    environment = make_environment("groundfault.workbench")
    environment.filters["keep_options"] = keep_options
    environment.globals["words"] = words
    return environment


@dataclass(frozen=True)
class Screen:
    """One screen of the workbench.

    Attributes
    ----------
    title : str
        In the top bar; empty for a screen that others lead to.
    path : str
        Where the top bar leads, such as ``/rule``.
    routes : tuple of Route
        All its addresses.
    keys : tuple of pair of str
        Keys and their actions, for the page that ``?`` opens; elements with ``data-key`` obey them.
    key : str
        Leads there from anywhere.
    needs : str
        The attribute of the opened subject that this screen shows.
    """

    title: str
    path: str
    routes: tuple[Route, ...]
    keys: tuple[tuple[str, str], ...] = ()
    key: str = ""
    needs: str = "report"

    def is_shown(self, bench: OpenedReport) -> bool:
        """Return whether there is anything to show."""
        return getattr(bench, self.needs) is not None
