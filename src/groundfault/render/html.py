"""Any page as one HTML file without scripts, network or other files."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from groundfault.render import words
from groundfault.render.page import Page, Section

if TYPE_CHECKING:
    from jinja2 import Environment

_LINE = 2
"""Height of a line with what surrounds it, in em."""
_MOST_LINES = 18
"""Lines of a frame: half a screen, so that cells around it stay in sight."""


def html(page: Page) -> str:
    """Set a page as one self-contained file; everything from data or a model is escaped."""
    return _set(page, "page.html.j2")


def frame(page: Page) -> str:
    """Set a page in a frame for a notebook: no script runs in it, and it cannot reach the notebook.

    It is a document of its own: neither its styles nor, should this library fail to escape
    something, its markup touch the notebook, whose page may run what its reader may.
    """
    from markupsafe import escape

    content = _set(page, "frame.html.j2")
    # without a script nobody can measure it, so its height is guessed: of a long one there is more
    # to scroll to
    lines = sum(content.count(tag) for tag in ("<p", "<tr", "<h3", 'class="bar"', "<li"))
    height = min(_MOST_LINES, lines + 2) * _LINE
    return (
        f'<iframe sandbox title="groundfault {escape(page.kind)}" srcdoc="{escape(content)}" '
        f'style="width: 100%; height: {height:g}em; border: 0; resize: vertical"></iframe>'
    )


def make_environment(*packages: str) -> Environment:
    """Make the template environment: it escapes text and replaces control characters.

    Parameters
    ----------
    *packages : str
        Packages with templates of their own, beside the common ones.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in (*packages, "groundfault.render")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: words.clean(value) if type(value) is str else value,
    )
    # what draws a figure has escaped the text in it
    environment.globals["svg"] = lambda figure: Markup(figure.svg)
    return environment


# a process compiles each template once: that takes longer than filling it in
_load_templates = cache(make_environment)


def _set(page: Page, template: str) -> str:
    return _load_templates().get_template(template).render(page=page, tabs=_list_tabs(page))


def _list_tabs(page: Page) -> dict[str, list[tuple[str, Section]]]:
    """Return anchored sections by the tab that they stand on; the lead is on the first."""
    tab, tabs = "Result", dict[str, list[tuple[str, Section]]](Result=[])
    for anchor, section in page.anchored:
        tab = section.tab or tab
        tabs.setdefault(tab, []).append((anchor, section))
    return tabs
