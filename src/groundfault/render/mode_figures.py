"""Small pictures of how failures go along a column that a mode's rule cuts."""

from __future__ import annotations

from typing import Any

import polars as pl

from groundfault.core.rules import Rule
from groundfault.errors import GroundfaultError
from groundfault.modes.examples import split_conditions
from groundfault.modes.mode import DosePoint, Mode
from groundfault.render import words
from groundfault.render.figures import BAD, INK, REST, Figure, chart_rows, make_figure

_BAND = 34
_WIDE = 420
"""Pixels above which a picture takes the full width of a page."""


def draw_doses(mode: Mode, name: str) -> tuple[Figure, ...]:
    """A picture for each column of numbers in a mode's rule.

    Parameters
    ----------
    mode : Mode
    name : str
        What the names of the pictures begin with.
    """
    columns = dict.fromkeys(point.column for point in mode.doses)
    return tuple(
        _draw(mode, column, f"{name}-dose-{place}") for place, column in enumerate(columns, 1)
    )


def _draw(mode: Mode, column: str, name: str) -> Figure:
    import altair as alt

    points = [point for point in mode.doses if point.column == column and point.n]
    inside = _find_inside(mode, points)
    rows = [
        {
            "value": name_range(point),
            "rate": point.errors / point.n,
            "size": words.count(point.n),
            "inside": on,
        }
        for point, on in zip(points, inside, strict=True)
    ]
    title = words.clean(column)
    x = alt.X("value:N", sort=None, title=title, axis=alt.Axis(labelAngle=0, labelLimit=0))
    scale = alt.Scale(domain=[0, 1.0])
    y = alt.Y("rate:Q", title=None, scale=scale, axis=alt.Axis(format="%", tickCount=3))
    base = chart_rows().encode(x=x)
    colour = alt.condition("datum.inside", alt.value(BAD), alt.value(REST))
    bars = base.mark_bar(size=_BAND - 12, cornerRadiusEnd=2).encode(y=y, color=colour)
    sizes = base.mark_text(dy=-7, fontSize=11, color=INK).encode(y=y, text="size:N")
    # a band for each, wide enough for its label
    band = max(_BAND, 8 + 7 * max((len(str(row["value"])) for row in rows), default=0))
    width = max(band * len(rows), 130)
    chart: Any = (bars + sizes).properties(width=width, height=110)
    text = "; ".join(
        f"{words.rate(p.errors / p.n)} of {words.count(p.n)} at {name_range(p)}" for p in points
    )
    others = " for which the rest of the rule holds" if len(mode.conditions) > 1 else ""
    caption = f"Failure rate by {title}, of examples{others}; above each bar, how many these are."
    return make_figure(
        name,
        f"Along {title}",
        caption,
        f"Failure rate by {title}: {text}.",
        chart,
        rows,
        wide=width > _WIDE,
    )


def name_range(point: DosePoint) -> str:
    """A value, or the range of values, as short as they can be told apart."""
    if point.low == point.high:
        return f"{point.low:.4g}"
    return f"{point.low:.4g}–{point.high:.4g}"


def _find_inside(mode: Mode, points: list[DosePoint]) -> list[bool]:
    """For which points the conditions on their column hold; all, where these read others too."""
    if not points:
        return []
    column = points[0].column
    table = pl.DataFrame({column: [(point.low + point.high) / 2 for point in points]})
    holds = pl.Series([True] * len(points))
    for condition in split_conditions(mode.rule):
        rule = Rule.parse(condition)
        if rule.columns != (column,):
            continue
        try:
            holds &= table.select(rule.to_polars().fill_null(False)).to_series()
        except (GroundfaultError, pl.exceptions.PolarsError):
            continue
    return holds.to_list()
