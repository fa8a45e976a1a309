"""Any page as one HTML file that needs nothing else: no script, no network, no file beside it."""

from __future__ import annotations

from groundfault.render import words
from groundfault.render.page import Page


def html(page: Page) -> str:
    """One self-contained page; everything that came from data or a model is escaped."""
    return _set(page, "page.html.j2")


def fragment(page: Page) -> str:
    """A page to stand inside another one, as in a notebook; its styles leave the rest alone."""
    return _set(page, "fragment.html.j2")


def _set(page: Page, template: str) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("groundfault.render"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: words.clean(value) if type(value) is str else value,
    )
    # what draws a figure has escaped the text in it
    return environment.get_template(template).render(page=page, svg=lambda f: Markup(f.svg))
