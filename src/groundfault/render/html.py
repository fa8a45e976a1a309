"""The report as one HTML page that needs nothing else: no script, no network, no file beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from groundfault.auditing.report import Report
from groundfault.core.finding import Finding
from groundfault.render import outline, tables, words
from groundfault.render.figures import figures

MOST_ROWS = 5000
MOST_ANSWERS = 12

# how the table of all candidates can be put in order; styles do it, without a script. Not by
# holdout lift: the largest of those, picked from all, would be no finding
_ORDERS: tuple[tuple[str, str, Callable[[Finding], Any]], ...] = (
    ("discovery", "discovery lift", lambda f: -abs(f.discovery.lift or 0.0)),
    ("p", "p of the screen", lambda f: 2.0 if f.discovery.p is None else f.discovery.p),
    ("size", "size of the slice", lambda f: -f.full.on),
    ("name", "name", lambda f: (f.name, f.outcome)),
)


def html(report: Report) -> str:
    """One self-contained page; everything that came from data or a model is escaped."""
    from markupsafe import Markup

    findings = report.findings[:MOST_ROWS]
    everything, rules = _without_rules(tables.everything(report, MOST_ROWS))
    return page(
        "report.html.j2",
        report=report,
        outline=outline.Outline(report),
        prose=outline,
        tables=tables,
        words=words,
        figures=[
            (figure, Markup(figure.svg)) for figure in figures(report)
        ],  # Vega has escaped its text
        everything=everything,
        rules=rules,
        orders=[(key, said) for key, said, _ in _ORDERS],
        ranks=_ranks(findings),
        verdicts=[str(f.verdict) for f in findings],
        most_answers=MOST_ANSWERS,
    )


def page(template: str, **values: Any) -> str:
    """A template filled in: every text is cleaned and escaped, and what a template names has to be
    there.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("groundfault.render"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: words.clean(value) if type(value) is str else value,
    )
    return environment.get_template(template).render(**values)


def _ranks(findings: tuple[Finding, ...]) -> list[str]:
    """For each row its place in every order, as custom properties of a style."""
    places: list[list[str]] = [[] for _ in findings]
    for key, _, by in _ORDERS:
        ordered = sorted(enumerate(findings), key=lambda item: by(item[1]))
        for place, (i, _) in enumerate(ordered):
            places[i].append(f"--{key}:{place + 1}")
    return [";".join(place) for place in places]


def _without_rules(table: tables.Table) -> tuple[tables.Table, list[str]]:
    """The table and, apart from it, the rules: on a page they stand under the names."""
    at = [i for i, column in enumerate(table.columns) if column.head == "Rule"]
    if not at:
        return table, [""] * len(table.rows)
    columns = tuple(column for column in table.columns if column.head != "Rule")
    rows = tuple((*row[: at[0]], *row[at[0] + 1 :]) for row in table.rows)
    return replace(table, columns=columns, rows=rows), [row[at[0]] for row in table.rows]
