"""Line charts of studies, as SVG: drawn by Altair, converted without a browser or a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Points = Sequence[tuple[float, float]]
Bars = Sequence[tuple[float, float, float]]

_APART = 0.035


def lines(
    series: Mapping[str, Points],
    x: str,
    y: str,
    *,
    percent: bool = True,
    bars: Mapping[str, Bars] | None = None,
    log: bool = False,
) -> str:
    """Lines over one axis.

    Parameters
    ----------
    series : mapping of str to sequence of pairs of float
        By name, the points of each line.
    x, y : str
        What the axes show.
    percent : bool
        Whether both are shares of 1.
    bars : mapping of str to sequence of triples of float, optional
        By name, intervals at the same places: x, low and high. Lines are set a little apart, so
        that bars show.
    log : bool
        Whether x is on a scale of equal ratios.
    """
    import altair as alt
    import vl_convert

    aside = {name: 1 + _APART * i if bars else 1.0 for i, name in enumerate(series)}
    rows = [
        {"line": name, "x": a * aside[name], "y": b}
        for name, points in series.items()
        for a, b in points
    ]
    ends = [
        {"line": name, "x": a * aside[name], "y": low, "top": high}
        for name, intervals in (bars or {}).items()
        for a, low, high in intervals
    ]
    axis = alt.Axis(format="%", tickCount=5) if percent else alt.Axis(tickCount=5)
    scale, ticks = alt.Scale(), axis
    if log:
        places = sorted({a for points in series.values() for a, _ in points})
        scale = alt.Scale(
            type="log", domain=[places[0] / 1.1, 1.1 * places[-1] * max(aside.values())]
        )
        ticks = alt.Axis(values=places)
    encodings: dict[str, Any] = {
        "x": alt.X("x:Q", title=x, axis=ticks, scale=scale),
        "y": alt.Y("y:Q", title=y, axis=axis, scale=alt.Scale(zero=False)),
        "color": alt.Color("line:N", title=None, sort=None, legend=alt.Legend(symbolOpacity=1)),
    }
    chart: Any = alt.Chart(alt.Data(values=rows)).mark_line(point=True).encode(**encodings)
    if ends:
        ruled = alt.Chart(alt.Data(values=ends)).mark_rule(opacity=0.5, strokeWidth=1.5)
        chart = ruled.encode(y2="top:Q", **encodings) + chart
    svg: str = vl_convert.vegalite_to_svg(chart.properties(width=420, height=260).to_dict())
    return svg
