"""Figures of a taxonomy: who fails where, beyond ability or not, and how stable clusters are."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundfault.render import words
from groundfault.render.figures import (
    BAD,
    GOOD,
    INK,
    MUTED,
    REST,
    RULE,
    Figure,
    chart_rows,
    make_figure,
    spread_evenly,
)
from groundfault.taxonomy.fitting.taxonomy import Cluster, Taxonomy

MAX_MODELS = 60
"""Models whose names fit under a heatmap; of more, evenly many are drawn."""

MAX_CLUSTERS = 40

_SHARE = "format(datum.value, '.0%')"

_POINTS = "datum.value == 0 ? '0' : format(100 * datum.value, '+d')"  # a zero has no sign


def draw_heatmap(taxonomy: Taxonomy) -> Figure:
    """Share of failures of each model in each cluster."""
    rows = _list_cells(taxonomy, "failure")
    chart = _draw_grid(
        taxonomy, rows, {"scheme": "oranges", "domain": [0, 1]}, "share failed", _SHARE
    )
    description = (
        f"Heatmap of {len(taxonomy.clusters)} clusters by {len(taxonomy.matrix.models)} models: "
        "share failed."
    )
    caption = "Models from the weakest to the strongest." + _describe_omissions(taxonomy)
    return make_figure("heatmap", "Who fails where", caption, description, chart, rows, wide=True)


def draw_excess(taxonomy: Taxonomy) -> Figure:
    """Failures by model and cluster beyond those that ability and difficulty explain."""
    rows = _list_cells(taxonomy, "excess")
    # at least ten points to either side, or noise would fill the scale
    reach = max([0.1, *(abs(row["value"]) for row in rows if row["value"] is not None)])
    scale = {"scheme": "purpleorange", "domain": [-reach, reach]}
    chart = _draw_grid(taxonomy, rows, scale, "points", _POINTS)
    description = (
        f"Heatmap of {len(taxonomy.clusters)} clusters by models: failures beyond ability and "
        "difficulty."
    )
    caption = (
        "Orange: fails more often than its ability and the examples' difficulty explain; purple: "
        "less often."
    )
    return make_figure(
        "excess",
        "Beyond ability and difficulty",
        caption + _describe_omissions(taxonomy),
        description,
        chart,
        rows,
        wide=True,
    )


def draw_stability(taxonomy: Taxonomy) -> Figure:
    """How well each cluster is found again when examples, models and seeds change."""
    rows = [
        {"name": _shorten_name(c), "axis": axis, "value": value, "published": c.published}
        for c in taxonomy.clusters[:MAX_CLUSTERS]
        for axis, value in c.stability.items()
    ]
    description = "; ".join(
        f"{_shorten_name(c)} {_find_lowest(c):.2f}" for c in taxonomy.clusters[:MAX_CLUSTERS]
    )
    caption = (
        f"Dashed: {taxonomy.settings.stability:g}, below which a cluster is not published. Green: "
        "published."
    )
    return make_figure(
        "stability",
        "Found again",
        caption,
        f"Lowest Jaccard index: {description}.",
        _draw_points(rows, taxonomy.settings.stability),
        rows,
        wide=True,
    )


def _draw_points(rows: list[dict[str, Any]], threshold: float) -> Any:
    """A point for each cluster and axis of change, and a dashed line at the threshold."""
    import altair as alt

    names = alt.Axis(
        title=None, domain=False, ticks=False, labelPadding=8, labelLimit=240, labelColor=INK
    )
    scale = alt.Scale(domain=[0, 1])
    base = chart_rows().encode(
        y=alt.Y("name:N", sort=None, axis=names),
        x=alt.X("value:Q", scale=scale, title="mean Jaccard index", axis=alt.Axis(tickCount=5)),
    )
    kinds = {"examples": "circle", "models": "diamond", "seeds": "triangle-up"}
    shape = alt.Shape(
        "axis:N", scale=alt.Scale(domain=list(kinds), range=list(kinds.values())), title="other"
    )
    colour = alt.condition("datum.published", alt.value(GOOD), alt.value(REST))
    legend = alt.Legend(orient="top", titleColor=MUTED)
    dots = base.mark_point(filled=True, size=80, opacity=1).encode(
        shape=shape.legend(legend), color=colour
    )
    # a data set of its own, or the rule would be drawn once a row
    bar = alt.Chart(alt.Data(values=[{"x": threshold}])).mark_rule(color=BAD, strokeDash=[4, 3])
    chart = bar.encode(x=alt.X("x:Q", scale=scale)) + dots
    # three rows a cluster: examples, models, seeds
    return chart.properties(width=480, height=max(60, 26 * len(rows) // 3))


def _find_lowest(cluster: Cluster) -> float:
    return min(cluster.stability.values(), default=0.0)


def _shorten_name(cluster: Cluster) -> str:
    return words.clean(cluster.name)[:48]


def _select_models(taxonomy: Taxonomy) -> list[int]:
    """Models that are drawn, from the weakest on."""
    with np.errstate(invalid="ignore"):
        rate = np.nan_to_num(np.nanmean(taxonomy.matrix.values, axis=0))
    # evenly spread by rank: the strongest alone would hide who fails
    order: list[int] = np.argsort(rate, kind="stable").tolist()
    return spread_evenly(order, MAX_MODELS)


def _describe_omissions(taxonomy: Taxonomy) -> str:
    models, clusters = len(taxonomy.matrix.models), len(taxonomy.clusters)
    sentence = (
        f" {MAX_MODELS} of {models} models are drawn, evenly by rank."
        if models > MAX_MODELS
        else ""
    )
    return sentence + (
        f" The {MAX_CLUSTERS} largest of {clusters} clusters." if clusters > MAX_CLUSTERS else ""
    )


def _list_cells(taxonomy: Taxonomy, what: str) -> list[dict[str, Any]]:
    rows = []
    for cluster in taxonomy.clusters[:MAX_CLUSTERS]:
        values = cluster.failure if what == "failure" else cluster.excess.tolist()
        for j in _select_models(taxonomy):
            # Vega draws null as a gap, and NaN is no JSON
            value = None if np.isnan(values[j]) else round(float(values[j]), 4)
            model = words.clean(taxonomy.matrix.models[j])
            rows.append({"cluster": _shorten_name(cluster), "model": model, "value": value})
    return rows


def _draw_grid(
    taxonomy: Taxonomy, rows: list[dict[str, Any]], scale: dict[str, Any], title: str, label: str
) -> Any:
    import altair as alt

    # the order of the rows is the order of the axis
    names = list(dict.fromkeys(row["model"] for row in rows))
    axis = alt.Axis(title=None, domain=False, ticks=False, labelLimit=240, labelColor=INK)
    tilted = alt.Axis(
        title=None, domain=False, ticks=False, labelAngle=-60, labelLimit=150, labelColor=MUTED
    )
    legend = alt.Legend(title=title, labelExpr=label, gradientLength=90, titleColor=MUTED)
    chart = chart_rows().encode(
        x=alt.X("model:N", sort=names, axis=tilted),
        y=alt.Y("cluster:N", sort=None, axis=axis),
        color=alt.Color("value:Q", scale=alt.Scale(**scale), legend=legend),
    )
    height = 26 * min(len(taxonomy.clusters), MAX_CLUSTERS)
    cells = chart.mark_rect(stroke=RULE, strokeWidth=0.5)
    return cells.properties(width=max(240, min(16 * len(names), 760)), height=max(height, 40))
