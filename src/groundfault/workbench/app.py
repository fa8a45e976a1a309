"""The application: screens behind doors."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from groundfault.errors import GroundfaultError
from groundfault.workbench.auth import Access, AccessControl
from groundfault.workbench.pages import PART, load_templates, make_link, show_page
from groundfault.workbench.screens import examples, holdout, modes, review

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Scope

    from groundfault.workbench.opened_report import OpenedReport

SCREENS = (
    review.CASE,
    modes.MODES,
    examples.EXAMPLES,
    examples.RUNS,
    modes.RULES,
    examples.COMPARISON,
    holdout.HOLDOUT,
    holdout.LEDGER,
    review.REVIEW,
    review.CODES,
    review.PROGRESS,
    review.PROBES,
    review.TAXONOMY,
    review.LIVE,
)
"""All screens, in the order of the top bar."""


def make_app(bench: OpenedReport, access: Access | None = None) -> Starlette:
    """Return the workbench as an ASGI application; it leaves out screens that are empty here.

    Parameters
    ----------
    bench : OpenedReport
    access : Access, optional
        Left out, a new one, at ``app.state.access``.
    """
    access = access or Access()
    screens = tuple(screen for screen in SCREENS if screen.is_shown(bench))
    routes = [route for screen in screens for route in screen.routes]
    files = StaticFiles(directory=str(resources.files("groundfault.workbench") / "static"))
    app = Starlette(
        routes=[
            *routes,
            Route("/", _go_to_first),
            Route("/keys", _show_keys),
            Mount("/static", files),
        ],
        middleware=[Middleware(AccessControl, access, _make_shell)],
        exception_handlers={GroundfaultError: _show_error, 404: _show_missing},
    )
    app.state.bench, app.state.screens, app.state.access = bench, screens, access
    return app


def _go_to_first(request: Request) -> Response:
    """Redirect an unknown address to the first screen."""
    titles = [screen for screen in request.app.state.screens if screen.title]
    return RedirectResponse(make_link(request, titles[0].path), 303)


def _make_shell(scope: Scope) -> Response:
    """Return the page that asks for all others, the same for every report."""
    root = scope.get("root_path", "").rstrip("/")
    return HTMLResponse(load_templates().get_template("shell.html.j2").render(root=root))


def _show_keys(request: Request) -> Response:
    return show_page(request, "keys.html.j2")


def _show_error(request: Request, error: Exception) -> Response:
    template = "alert.html.j2" if PART in request.headers else "error.html.j2"
    return show_page(request, template, status=400, message=str(error))


def _show_missing(request: Request, _: Exception) -> Response:
    if request.scope["path"].endswith((".js", ".css")):
        return PlainTextResponse("not there", 404)
    return show_page(
        request, "error.html.j2", status=404, message="There is no such page in this workbench."
    )
