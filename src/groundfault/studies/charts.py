"""Line charts of studies, as SVG: drawn by Altair, converted without a browser or a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Points = Sequence[tuple[float, float]]


def lines(series: Mapping[str, Points], x: str, y: str, *, percent: bool = True) -> str:
    """Lines over one axis.

    Parameters
    ----------
    series : mapping of str to sequence of pairs of float
        By name, the points of each line.
    x, y : str
        What the axes show.
    percent : bool
        Whether both are shares of 1.
    """
    import altair as alt
    import vl_convert

    rows = [{"line": name, "x": a, "y": b} for name, points in series.items() for a, b in points]
    axis = alt.Axis(format="%", tickCount=5) if percent else alt.Axis(tickCount=5)
    chart = (
        alt.Chart(alt.Data(values=rows))
        .mark_line(point=True)
        .encode(
            x=alt.X("x:Q", title=x, axis=axis),
            y=alt.Y("y:Q", title=y, axis=axis, scale=alt.Scale(zero=False)),
            color=alt.Color("line:N", title=None, sort=None),
        )
        .properties(width=420, height=260)
    )
    svg: str = vl_convert.vegalite_to_svg(chart.to_dict())
    return svg
