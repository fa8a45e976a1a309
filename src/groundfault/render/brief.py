"""A brief: a page of A4 for readers who decide, with a chart, three examples and one limit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from groundfault.auditing.report import Report
from groundfault.base.files import write_text
from groundfault.exports.slices import ReportSlices
from groundfault.render import words
from groundfault.render.audit_words import Outline
from groundfault.render.first_screen import describe_excluded, describe_trust
from groundfault.render.highlights import pick_texts
from groundfault.render.html import html
from groundfault.render.mode_page import find_rate_beside, list_excerpts
from groundfault.render.mode_words import ModeOutline
from groundfault.render.page import (
    Bar,
    Content,
    Excerpts,
    Page,
    Section,
    Statement,
    Statements,
    small,
)

_MODES, _MODELS, _BARS = 5, 6, 8
"""Bars of modes, of models, and of both that leave room for three examples on a page of A4."""
_EXAMPLES = 3  # one beside the other on A4


class Brief:
    """Writes the brief of a report; a browser prints it on one page of A4."""

    name = "brief"

    def export(self, slices: ReportSlices, out: Path) -> str:
        """Write one HTML file that loads no other file."""
        write_text(out, html(make_brief(slices.report)))
        return "one page"


def make_brief(report: Report) -> Page:
    """Make the brief of a report: models or failure modes, and three failures."""
    outline = Outline(report)
    sections = (
        Section("Where it fails", _draw_modes(report)),
        Section("Examples", _show_examples(report)),
        Section(
            "How sure is this?",
            describe_trust(outline, "see the full report"),
            describe_excluded(outline),
        ),
    )
    lead = (outline.selection, outline.overall, _draw_models(report))
    title, facts = outline.title, outline.facts
    # without a mode, what is excluded is the result
    sections = sections if report.modes else sections[::-1]
    return Page("brief", title, outline.headline, facts=facts, lead=lead, sections=sections)


def _draw_models(report: Report) -> Statements | None:
    """Draw a bar for each of several models, those first that fail most."""
    search = report.mode_search
    models = [one for one in (search.outcomes if search else ()) if one.outcome in report.outcomes]
    if len(models) < 2:
        return None
    rates = sorted(((one.errors / (one.n or 1), one.outcome) for one in models), reverse=True)
    full = rates[0][0] or 1.0
    items = [
        Statement(words.clean(f"{name}: {words.rate(rate)} fail"), "", bar=Bar(rate, 0.0, full))
        for rate, name in rates
    ]
    return Statements(tuple(items[:_MODELS]))


def _draw_modes(report: Report) -> Iterator[Content]:
    if not report.modes:
        return
    outline = ModeOutline(report)
    models = len(report.outcomes) if len(report.outcomes) > 1 else 0
    # a rule stands once, with the rates of one model
    modes = {one.mode.rule: one for _, group in outline.groups for one in group}
    items = [
        Statement(
            one.name.partition(". ")[2],
            f"{words.clean(f'{one.mode.outcome}: ' if models else '')}{one.sentence}",
            bar=Bar(one.mode.rate, find_rate_beside(one.mode), outline.full),
        )
        for one in modes.values()
    ]
    count = min(_MODES, _BARS - min(models, _MODELS))
    more = len(items) - count
    rest = f" {words.plural(more, 'more rule')} in the full report." if more > 0 else ""
    yield Statements(tuple(items[:count])), small(f"{outline.legend}{rest}")


def _show_examples(report: Report) -> Content:
    """Show a failure of each of the first modes, or typical ones, as long as a page has room."""
    samples = {mode.meaning: mode.sample[:1] for mode in reversed(report.modes) if mode.sample}
    named = [*samples.items()][::-1] or [("", (example,)) for example in report.sample]
    blocks = [
        block
        for title, (one,) in named[:_EXAMPLES]
        for block in list_excerpts(
            (replace(one, texts=dict(pick_texts(one))),), "", {"failing": words.clean(title)}
        )
    ]
    groups = tuple(g for one in blocks if isinstance(one, Excerpts) for g in one.groups)
    return Excerpts(groups) if groups else None
