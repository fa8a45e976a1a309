"""The figures of an audit's report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import fill

import polars as pl

from groundfault.auditing.report import Report
from groundfault.core.columns import tell_number
from groundfault.core.finding import Finding, Verdict
from groundfault.core.rules import Rule
from groundfault.errors import GroundfaultError, attempt
from groundfault.modes.examples import split_conditions
from groundfault.modes.mode import DosePoint, Mode
from groundfault.render import words
from groundfault.render.audit_groups import main_cell, read_cut
from groundfault.render.audit_words import Outline
from groundfault.render.drawing import Colour, Drawing, Figure, Scale, spread_evenly
from groundfault.render.page import Content, Figures, notice

MAX_POINTS = 400
"""Points of a scatter: more overlap, and make a page of megabytes."""
MAX_SLICES = 24
"""Slices drawn: one screen of them."""
MAX_LEVELS = 300
"""Thresholds drawn: about one a pixel."""
_CROWD = 60
"""Points from which the lesser ones are drawn small, or not at all."""
_LABEL = 40  # characters of a line of a slice's name
_COLOURS = {
    Verdict.CONFIRMED: Colour.GOOD,
    Verdict.TOO_SMALL: Colour.INK,
    Verdict.NOT_REPLICATED: Colour.BAD,
    Verdict.BELOW_FLOOR: Colour.REST,
}
_SHAPES = {
    Verdict.CONFIRMED: "circle",
    Verdict.TOO_SMALL: "square",
    Verdict.NOT_REPLICATED: "diamond",
    Verdict.BELOW_FLOOR: "circle",
}


def figures(report: Report) -> tuple[Figure, ...]:
    """Return the figures that this report has something for, in the order of reading."""
    visible = (shrinkage(report), floor(report), slices(report))
    return tuple(figure for figure in visible if figure is not None)


def draw_safely(
    name: str, draw: Callable[[], tuple[Figure, ...] | Figure | None]
) -> Iterator[Content]:
    """Yield figures or, where they cannot be drawn, a notice: a page has more than its figures."""
    failures: list[str] = []
    drawn = attempt(failures, name, None, draw)
    yield Figures((drawn,) if isinstance(drawn, Figure) else drawn or ())
    yield notice(words.name_failures(failures))


def shrinkage(report: Report) -> Figure | None:
    """Draw discovery lifts against holdout lifts; None without a holdout.

    Each candidate that survived the screen has an interval.
    """
    candidates = [
        f
        for f in report.findings
        if f.verdict is not Verdict.UNTESTABLE
        and f.discovery.lift is not None
        and f.holdout is not None
        and f.holdout.lift is not None
    ]
    if not candidates:
        return None
    survivors = [f for f in candidates if f.verdict is not Verdict.BELOW_FLOOR]
    rest = [f for f in candidates if f.verdict is Verdict.BELOW_FLOOR]
    visible = [*spread_evenly(rest, MAX_POINTS), *reversed(spread_evenly(survivors, MAX_POINTS))]
    # an interval of a ratio, and a least ratio, have no place on an axis of lifts
    is_lift = report.plan.effect == "risk_difference"
    least = words.decimal(report.plan.min_lift) if is_lift else 0.0
    intervals = {
        f.key: f.holdout.interval for f in survivors if is_lift and f.holdout and f.holdout.interval
    }
    caption = (
        "Dashed: equal on both parts. Differences on discovery were selected, so most are smaller "
        "on the holdout."
    )
    if intervals:
        level = words.level(1 - words.decimal(report.plan.alpha))
        caption += f" Vertical lines: {level} intervals of the difference on the holdout."
    if least:
        caption += f" Dotted: the least difference on the holdout worth confirming, {least:g}."
    if len(visible) < len(candidates):
        part = f"{words.count(len(visible))} of {words.count(len(candidates))} candidates"
        caption += f" {part} are drawn, evenly by rank."
    verdicts = [words.VERDICTS[f.verdict] for f in visible]
    counts = [f"{verdicts.count(word)} {word}" for word in dict.fromkeys(reversed(verdicts))]
    alt = f"Scatter of {len(visible)} candidates: {', '.join(counts)}."
    drawing = _draw_scatter(visible, intervals, least)
    return drawing.to_figure("shrinkage", "Discovery against holdout", caption, alt)


def _draw_scatter(
    visible: Sequence[Finding], intervals: dict[str, tuple[float, float]], least: float
) -> Drawing:
    places = [(f.discovery.lift or 0.0, main_cell(f).lift or 0.0) for f in visible]
    ends = [x for pair in (*places, *intervals.values()) for x in pair]
    reach = min(1.0, 0.1 * (1 + int(10 * max(0.1, *map(abs, ends)))))
    drawing = Drawing(
        Scale.of_numbers(-reach, reach, "difference on discovery (selected)"),
        Scale.of_numbers(-reach, reach, "difference on the holdout"),
        width=350,
        height=350,
    )
    for verdict in _COLOURS:
        if any(f.verdict is verdict for f in visible):
            drawing.explain(_SHAPES[verdict], _COLOURS[verdict], words.VERDICTS[verdict])
    drawing.line([(-reach, -reach), (reach, reach)], dash="4,4")
    drawing.line([(-reach, 0), (reach, 0)])
    drawing.line([(0, -reach), (0, reach)])
    for y in (-least, least) if 0 < least < reach else ():
        drawing.line([(-reach, y), (reach, y)], Colour.BAD, dash="1,3")
    for (x, _), f in zip(places, visible, strict=True):
        if f.key in intervals:
            # an interval may reach farther than the axis
            bounds = [(x, min(max(end, -reach), reach)) for end in intervals[f.key]]
            drawing.line(bounds, _COLOURS[f.verdict], opacity=0.55)
    crowded = len(visible) > _CROWD
    for place, f in zip(places, visible, strict=True):
        drawing.point(
            place,
            _COLOURS[f.verdict],
            shape=_SHAPES[f.verdict],
            size=20 if crowded and f.verdict is Verdict.BELOW_FLOOR else 64,
            edge=Colour.PAPER,
            edge_width=0.7,
            opacity=0.9,
        )
    return drawing


def floor(report: Report) -> Figure | None:
    """Draw the estimated false-discovery proportion at each threshold, and the floor.

    Return None for judges without one.
    """
    decoy_floor = report.floor
    if not decoy_floor.curve:
        return None
    curve = spread_evenly(decoy_floor.curve, MAX_LEVELS)
    places = [(c.threshold, min(c.fdp, 1.0)) for c in curve]
    effect = report.plan.effect
    what = (
        "size of the difference on discovery"
        if effect == "risk_difference"
        else f"|log {effect.replace('_', ' ')}| on discovery"
    )
    right = 1.02 * max(x for x, _ in places) or 1.0
    drawing = Drawing(
        Scale.of_numbers(0, right, f"threshold on {what}"),
        Scale.of_numbers(0, 1, "estimated false-discovery proportion"),
        width=350,
        height=350,
    )
    drawing.line(places, Colour.MUTED, width=1.6)
    if len(places) <= _CROWD:
        for place in places:
            drawing.point(place, Colour.MUTED, size=26)
    text = "No threshold is low enough in expected decoys, so nothing passed the screen."
    if decoy_floor.threshold is not None:
        text = f"The floor, {decoy_floor.threshold:.3g}, is the 95th percentile of decoys."
    if decoy_floor.threshold is not None and decoy_floor.inclusive:
        text = (
            f"The floor, {decoy_floor.threshold:.3g}, is the lowest threshold whose proportion "
            f"({decoy_floor.fdp:.3f}) is within the target."
        )
    caption = (
        "Decoys expected at or above each threshold, as a share of the candidates there. " + text
    )
    if decoy_floor.inclusive:  # Procedure A; Janus-lite takes a percentile instead of a target
        q = words.decimal(report.plan.q)
        drawing.line([(0, q), (right, q)], Colour.BAD, dash="4,3")
        drawing.text((right, q), f"target {q:g}", Colour.BAD, shift=(0, -5), anchor="end")
    if decoy_floor.threshold is not None:
        at = decoy_floor.threshold
        drawing.line([(at, 0), (at, 1)], Colour.GOOD)
        shift, anchor = (5, "start") if at < 0.7 * right else (-5, "end")
        drawing.text((at, 1), f"floor {at:.3g}", Colour.GOOD, shift=(shift, 12), anchor=anchor)
    if len(places) < len(decoy_floor.curve):
        part = f"{words.count(len(places))} of {words.count(len(decoy_floor.curve))} thresholds"
        caption += f" {part} are drawn."
    alt = f"Curve of the estimated false-discovery proportion. {text}"
    return drawing.to_figure("floor", "Where the floor was set", caption, alt)


def slices(report: Report) -> Figure | None:
    """Draw failure rates on and off each confirmed slice; None where nothing is confirmed."""
    outline = Outline(report)
    findings = [outline.face(f) for group in outline.groups for f in (group.lead, *group.distinct)]
    visible = findings[:MAX_SLICES]
    if not visible:
        return None
    drawing = _draw_slices(visible, "held-out examples" if report.n_holdout else "all examples")
    caption = "Filled: on the slice. Open: off it."
    if any(f.representative for f in visible):
        caption += " Paler ones are not told apart from the full-coloured one above them."
    if len(visible) < len(findings):
        caption += (
            f" The first {len(visible)} of {words.count(len(findings))} distinct slices are drawn."
        )
    text = "; ".join(
        f"{words.clean(words.label(f))} {words.rate(main_cell(f).on_rate)} on, "
        f"{words.rate(main_cell(f).off_rate)} off"
        for f in visible
    )
    alt = f"Failure rates: {text}."
    return drawing.to_figure("slices", "Confirmed slices", caption, alt, wide=True)


def _draw_slices(visible: Sequence[Finding], where: str) -> Drawing:
    rates = [(main_cell(f).on_rate or 0.0, main_cell(f).off_rate or 0.0) for f in visible]
    names = [fill(words.clean(words.label(f)), _LABEL) for f in visible]
    end = min(1.0, 0.1 * (1 + int(10 * max(max(pair) for pair in rates))))
    lines = sum(max(1, name.count("\n") + 0.4) for name in names)
    drawing = Drawing(
        Scale.of_numbers(0, end, f"failure rate on {where}", percent=True),
        Scale.of_names(names, colour=Colour.INK).turned(),
        width=480,
        height=24 * lines,
    )
    for i, ((on, off), finding) in enumerate(zip(rates, visible, strict=True)):
        opacity = 1.0 if finding.representative is None else 0.6
        drawing.line([(off, i), (on, i)], Colour.GOOD, width=2, opacity=opacity)
        drawing.point((off, i), Colour.PAPER, size=70, edge=Colour.MUTED, edge_width=1.6)
        drawing.point((on, i), Colour.GOOD, size=80, opacity=opacity)
    return drawing


_BAND = 34
"""Pixels of a bar and its gap: room for a count above it."""
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
    """Draw a picture for each column of numbers in a mode's rule.

    Parameters
    ----------
    mode : Mode
    name : str
        The beginning of the pictures' names.
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
    others = " that match the rest of the rule" if len(mode.conditions) > 1 else ""
    caption = f"Failure rate by {title}, of examples{others}; above each bar, their number."
    return draw_bars(bars, name, title, caption)


def draw_bars(bars: Sequence[DoseBar], name: str, title: str, caption: str) -> Figure:
    """Draw failure rates along a column as bars, dark where a rule holds.

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
        drawing.bar((i, 0), (i, bar.rate), _BAND - 12, Colour.BAD if bar.inside else Colour.REST)
        drawing.text((i, bar.rate), words.count(bar.n), shift=(0, -4), anchor="middle", size=11)
    text = "; ".join(
        f"{words.rate(bar.rate)} of {words.count(bar.n)} at {bar.label}" for bar in bars
    )
    alt = f"Failure rate by {title}: {text}."
    return drawing.to_figure(name, f"Along {title}", caption, alt, wide=width > _WIDE)


def name_range(point: DosePoint) -> str:
    """Name a value, or a range of values, as short as they can be told apart."""
    # from 10,000 on, four digits would not tell the ends apart
    told = (
        tell_number(point.column, end) if 1e4 <= abs(end) < 1e9 else f"{end:.4g}"
        for end in (point.low, point.high)
    )
    return "–".join(dict.fromkeys(told))


def _find_inside(mode: Mode, points: list[DosePoint]) -> list[bool]:
    """Return for which points the conditions on their column hold.

    Conditions that read other columns too hold everywhere.
    """
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


def draw_cuts(findings: Iterable[Finding], lead: Finding, name: str) -> Figure | None:
    """Draw failure rates between the cuts of a column, from the counts on both sides of each.

    Parameters
    ----------
    findings : iterable of Finding
        All of a report; those of other columns and outcomes are passed over, and those for which
        other units have a value.
    lead : Finding
        The one whose side is marked.
    name : str
        Of the picture.

    Returns
    -------
    Figure or None
        None where there are not two cuts.
    """
    cut = read_cut(lead.rule)
    if cut is None:
        return None
    total = lead.full.on + lead.full.off
    failures = lead.full.on_errors + lead.full.off_errors
    above: dict[tuple[float, bool], tuple[int, float]] = {}
    for finding in findings:
        other, cell = read_cut(finding.rule), finding.full
        if (
            other is not None
            and (other.column, finding.outcome) == (cut.column, lead.outcome)
            and cell.on + cell.off == total
        ):
            sides = (cell.on, cell.on_errors) if other.above else (cell.off, cell.off_errors)
            above[(other.value, not other.inclusive)] = sides
    if len(above) < 2:
        return None
    edges = sorted(above)
    counts = [(total, failures), *(above[edge] for edge in edges), (0, 0.0)]
    names = [_name(*pair) for pair in zip([None, *edges], [*edges, None], strict=True)]
    bars = []
    for place, label in enumerate(names):
        n = counts[place][0] - counts[place + 1][0]
        errors = counts[place][1] - counts[place + 1][1]
        holds = (place > edges.index((cut.value, not cut.inclusive))) is cut.above
        if n > 0:
            bars.append(DoseBar(label, max(errors, 0.0) / n, n, holds))
    title = words.clean(cut.column)
    caption = f"Failure rate by {title}, of all examples; above each bar, their number."
    return draw_bars(bars, name, title, caption)


def _name(low: tuple[float, bool] | None, high: tuple[float, bool] | None) -> str:
    """Name the values between two cuts."""
    if low is None and high is not None:
        return f"{'≤' if high[1] else '<'} {high[0]:.4g}"
    if low is not None and high is None:
        return f"{'>' if low[1] else '≥'} {low[0]:.4g}"
    assert low is not None
    assert high is not None
    return f"{low[0]:.4g} to {high[0]:.4g}"
