"""Small pictures of how failures go along a column that a mode's rule cuts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from groundfault.core.rules import Rule
from groundfault.errors import GroundfaultError
from groundfault.modes.examples import split_conditions
from groundfault.modes.mode import DosePoint, Mode
from groundfault.render import words
from groundfault.render.drawing import BAD, REST, Drawing, Figure, Scale

_BAND = 34
_WIDE = 420
"""Pixels above which a picture takes the full width of a page."""


@dataclass(frozen=True)
class DoseBar:
    """Failures at one value, or in one range, of a column.

    Attributes
    ----------
    label : str
        The value or range.
    rate : float
        Failure rate, in [0, 1].
    n : int
        Units.
    inside : bool
        Whether the rule holds there.
    """

    label: str
    rate: float
    n: int
    inside: bool


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
    points = [point for point in mode.doses if point.column == column and point.n]
    bars = [
        DoseBar(name_range(point), point.errors / point.n, point.n, on)
        for point, on in zip(points, _find_inside(mode, points), strict=True)
    ]
    title = words.clean(column)
    others = " for which the rest of the rule holds" if len(mode.conditions) > 1 else ""
    caption = f"Failure rate by {title}, of examples{others}; above each bar, how many these are."
    return draw_bars(bars, name, title, caption)


def draw_bars(bars: Sequence[DoseBar], name: str, title: str, caption: str) -> Figure:
    """Failure rates along a column as bars, dark where a rule holds.

    Parameters
    ----------
    bars : sequence of DoseBar
    name, title, caption : str
        Of the picture; the title is the column.
    """
    # a band for each, wide enough for its label
    band = max(_BAND, 8 + 7 * max((len(bar.label) for bar in bars), default=0))
    width = max(band * len(bars), 130)
    drawing = Drawing(
        Scale.of_names([bar.label for bar in bars], title=title),
        Scale.of_numbers(0, 1, count=2, percent=True),
        width=width,
        height=110,
    )
    for i, bar in enumerate(bars):
        drawing.bar((i, 0), (i, bar.rate), _BAND - 12, BAD if bar.inside else REST)
        drawing.text((i, bar.rate), words.count(bar.n), shift=(0, -4), anchor="middle", size=11)
    text = "; ".join(
        f"{words.rate(bar.rate)} of {words.count(bar.n)} at {bar.label}" for bar in bars
    )
    alt = f"Failure rate by {title}: {text}."
    return Figure(name, f"Along {title}", caption, alt, drawing.to_svg(alt), wide=width > _WIDE)


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
    table = pl.DataFrame({column: [point.low for point in points]})
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
