"""Reports of every kind: one outline a result, which HTML, Markdown and terminals set."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from groundfault.base.registry import load_object

if TYPE_CHECKING:
    from groundfault.render.page import Page

_OUTLINES = {
    "Report": "groundfault.render.audit_page:make_page",
    "Certificate": "groundfault.render.sequential_page:make_page",
    "Confirmation": "groundfault.render.sequential_page:make_confirmation_page",
    "CaseSummary": "groundfault.render.case_page:make_case_page",
    "Taxonomy": "groundfault_lab.pages.taxonomy_page:make_page",
    "BankCheck": "groundfault_lab.pages.bank_card:make_card",
    "ScorerAudits": "groundfault.render.audit_page:make_scorer_page",
    "Check": "groundfault.render.preview_pages:make_check_page",
}
"""Makers of outlines by the class of the result; a subclass has that of its parent."""


def make_outline(result: object) -> Page:
    """Make the page of a result: the whole of its report, for any format.

    Parameters
    ----------
    result : object
        Of a class that `_OUTLINES` names, or its page, which stays as it is.
    """
    if type(result).__name__ == "Page":
        return cast("Page", result)
    name = next(c.__name__ for c in type(result).__mro__ if c.__name__ in _OUTLINES)
    page: Page = load_object(_OUTLINES[name])(result)
    return page


def to_html(result: object) -> str:
    """Return the report of a result as one self-contained HTML page."""
    from groundfault.render.html import html

    return html(make_outline(result))


def to_markdown(result: object) -> str:
    """Return the report of a result as Markdown."""
    from groundfault.render.markdown import markdown

    return markdown(make_outline(result))
