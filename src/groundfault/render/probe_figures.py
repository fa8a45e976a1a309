"""How unique audited prompt keys come in with the queries, by policy."""

from __future__ import annotations

from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from groundfault.probes.use.endpoints import RunEndpoints
from groundfault.probes.use.summary import Summary
from groundfault.render import words
from groundfault.render.figures import BAD, GOOD, MUTED, Figure, chart_rows, make_figure

MAX_POLICIES = 6
_COLOURS = (MUTED, GOOD, BAD, "#6a7fb5", "#b58a2e", "#8a5aa8")
_DASHES = ([1, 0], [5, 2], [2, 2], [8, 2], [6, 2, 2, 2], [3, 5])


class _Point(NamedTuple):
    """A policy's keys after a query: the mean over its runs, and the range; one line a model."""

    policy: str
    line: str
    query: int
    low: int
    mean: float
    high: int


def draw_curves(summary: Summary) -> Figure:
    """Mean number of unique audited keys after each query, with the range over seeds."""
    policies = [summary.control, *summary.rivals][:MAX_POLICIES]
    points = [point for policy in policies for point in _make_points(summary, policy)]
    last = {point.line: point.mean for point in points}
    ends = "; ".join(f"{name} {mean:.1f}" for name, mean in last.items())
    not_shown = len(summary.results.policies) - len(policies)
    caption = (
        "Mean over the runs of a policy, and from the least to the most of them. Audited errors "
        "alone, each prompt once in a run. What is unaudited counts as nothing."
        + (f" {not_shown} policies are not drawn." if not_shown else "")
    )
    return make_figure(
        "curves",
        "Unique audited keys by query",
        caption,
        f"Curves: {ends}.",
        _layer_curves([words.clean(policy) for policy in policies], points),
        [point._asdict() for point in points],
        wide=True,
    )


def _layer_curves(names: list[str], points: list[_Point]) -> Any:
    """The chart: a line for each policy over a band from its lowest to its highest run."""
    import altair as alt

    legend = alt.Legend(
        title=None, orient="top", symbolType="stroke", symbolStrokeWidth=2, labelFontSize=12
    )
    scale = alt.Scale(domain=names, range=list(_COLOURS[: len(names)]))
    dashes = alt.Scale(domain=names, range=list(_DASHES[: len(names)]))
    top = max([1.0, *(point.high for point in points)])
    base = chart_rows().encode(
        x=alt.X("query:Q", title="queries of a run", axis=alt.Axis(tickCount=6)),
        y=alt.Y(
            "mean:Q",
            title="unique audited keys",
            scale=alt.Scale(domain=[0, top]),
            axis=alt.Axis(tickCount=5),
        ),
        color=alt.Color("policy:N", scale=scale, legend=legend),
    )
    band = base.mark_area(opacity=0.16, interpolate="step-after").encode(
        y="low:Q", y2="high:Q", detail="line:N"
    )
    line = base.mark_line(strokeWidth=2, interpolate="step-after").encode(
        detail="line:N", strokeDash=alt.StrokeDash("policy:N", scale=dashes)
    )
    return (band + line).properties(width=560, height=260)


def _make_points(summary: Summary, policy: str) -> list[_Point]:
    """The points of a policy's curves, one curve a model."""
    results = summary.results
    label = words.clean(policy)
    points = []
    for model, runs in groupby(results.select(policy), key=lambda run: run.model):
        counts = _fill_curves(list(runs))
        line = label if len(results.models) == 1 else words.clean(f"{policy}, {model}")
        for query in range(counts.shape[1]):
            at = counts[:, query]
            mean = round(float(at.mean()), 4)
            points.append(_Point(label, line, query, int(at.min()), mean, int(at.max())))
    return points


def _fill_curves(runs: list[RunEndpoints]) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Keys after 0, 1, ... queries: shape (runs, 1 + queries); short runs keep their last count."""
    longest = max(len(run.curve) for run in runs)
    return np.array(
        [[0, *run.curve, *[run.curve[-1]] * (longest - len(run.curve))] for run in runs]
    )
