"""Figures of a taxonomy: who fails where, beyond ability or not, and how stable clusters are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from groundfault.render import words
from groundfault.render.drawing import Colour, Drawing, Figure, Scale, spread_evenly
from groundfault_lab.taxonomy.fitting.taxonomy import Taxonomy

MAX_MODELS = 60
"""Models whose names fit under a heatmap; of more, evenly many are drawn."""
MAX_CLUSTERS = 40
"""Rows that fit on a screen and a half."""
_BAND = 26
"""Pixels of a row: a line of text and some room."""
_MAX_NAME = 38
"""Characters of a cluster's name beside a row: a third of a page."""
# ColorBrewer's scales: light to dark for shares, two hues around white for differences
_ORANGES = ("#fff5eb", "#fdd0a2", "#fd8d3c", "#d94801", "#7f2704")
_PURPLE_ORANGE = ("#542788", "#b2abd2", "#f7f7f7", "#fdb863", "#b35806")
_SHAPES = {"examples": "circle", "models": "diamond", "seeds": "triangle"}


def draw_figures(taxonomy: Taxonomy) -> tuple[Figure, ...]:
    """Draw the figures of a taxonomy in their order; none where there is no cluster."""
    figures = [draw_heatmap, draw_excess] if taxonomy.clusters else []
    figures += [draw_stability] if any(c.stability for c in taxonomy.clusters) else []
    return tuple(draw(taxonomy) for draw in figures)


def draw_heatmap(taxonomy: Taxonomy) -> Figure:
    """Draw the share of failures of each model in each cluster."""
    clusters = taxonomy.clusters[:MAX_CLUSTERS]
    alt = (
        f"Heatmap of {len(taxonomy.clusters)} clusters by {len(taxonomy.matrix.models)} models: "
        "share failed."
    )
    caption = "Share failed; models from the weakest to the strongest." + _describe_omissions(
        taxonomy
    )
    levels = [(share, words.rate(share)) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    drawing = _draw_grid(taxonomy, [c.failure for c in clusters], _ORANGES, levels)
    return drawing.to_figure("heatmap", "Who fails where", caption, alt, wide=True)


def draw_excess(taxonomy: Taxonomy) -> Figure:
    """Draw failures by model and cluster beyond those that ability and difficulty explain."""
    rows = [cluster.excess for cluster in taxonomy.clusters[:MAX_CLUSTERS]]
    # at least ten points to either side, or noise would fill the scale
    reach = max([0.1, *(float(np.nanmax(np.abs([0.0, *row]))) for row in rows)])
    levels = [
        (place, words.signed(100 * (2 * place - 1) * reach, 0))
        for place in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    places = [(np.asarray(row) / reach + 1) / 2 for row in rows]
    drawing = _draw_grid(taxonomy, places, _PURPLE_ORANGE, levels)
    alt = (
        f"Heatmap of {len(taxonomy.clusters)} clusters by models: failures beyond ability and "
        "difficulty."
    )
    caption = (
        "In points. Orange: fails more often than its ability and the examples' difficulty "
        "explain; purple: less often."
    )
    return drawing.to_figure(
        "excess",
        "Beyond ability and difficulty",
        caption + _describe_omissions(taxonomy),
        alt,
        wide=True,
    )


def draw_stability(taxonomy: Taxonomy) -> Figure:
    """Draw how well each cluster is found again when examples, models and seeds change."""
    clusters = [c for c in taxonomy.clusters if c.stability][:MAX_CLUSTERS]
    drawing = Drawing(
        Scale.of_numbers(0, 1, "mean Jaccard index", count=5),
        Scale.of_names([shorten_name(c.name) for c in clusters], colour=Colour.INK).turned(),
        width=480,
        height=_BAND * len(clusters),
    )
    threshold = taxonomy.settings.stability
    drawing.line([(threshold, -0.5), (threshold, len(clusters) - 0.5)], Colour.BAD, dash="4,3")
    axes = {axis for cluster in clusters for axis in cluster.stability}
    for axis, shape in _SHAPES.items():
        if axis in axes:
            drawing.explain(shape, Colour.MUTED, f"other {axis}")
    for i, cluster in enumerate(clusters):
        for axis, value in cluster.stability.items():
            colour = Colour.GOOD if cluster.published else Colour.REST
            drawing.point((value, i), colour, shape=_SHAPES[axis], size=80)
    lowest = "; ".join(
        f"{shorten_name(c.name)} {min(c.stability.values(), default=0.0):.2f}" for c in clusters
    )
    caption = f"Dashed: {threshold:g}, below which a cluster is not published. Green: published."
    alt = f"Lowest Jaccard index: {lowest}."
    return drawing.to_figure("stability", "Found again", caption, alt, wide=True)


def _draw_grid(
    taxonomy: Taxonomy,
    rows: Sequence[Sequence[float] | np.ndarray],
    colours: Sequence[str],
    levels: Sequence[tuple[float, str]],
) -> Drawing:
    """Draw a cell for each cluster and model, coloured by a share in [0, 1]; none for NaN."""
    models = _select_models(taxonomy)
    names = [words.clean(taxonomy.matrix.models[j]) for j in models]
    drawing = Drawing(
        Scale.of_names(names, tilted=True),
        Scale.of_names(
            [shorten_name(c.name) for c in taxonomy.clusters[: len(rows)]], colour=Colour.INK
        ).turned(),
        # as narrow as names under it allow, as wide as a page allows
        width=max(240, min(16 * len(names), 760)),
        height=_BAND * len(rows),
    )
    for place, level in levels:
        drawing.explain("square", mix_colours(place, colours), level)
    for i, row in enumerate(rows):
        for x, j in enumerate(models):
            if not np.isnan(row[j]):
                colour = mix_colours(min(max(float(row[j]), 0.0), 1.0), colours)
                drawing.bar((x - 0.5, i), (x + 0.5, i), _BAND - 1, colour)
    return drawing


def shorten_name(name: str) -> str:
    """Shorten the name of a cluster to what fits beside a row."""
    return words.clean(name)[:_MAX_NAME]


def _select_models(taxonomy: Taxonomy) -> list[int]:
    """Select the models that are drawn, from the weakest on."""
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


def mix_colours(share: float, stops: Sequence[str]) -> str:
    """Return the colour at a share of the way along some colours.

    Parameters
    ----------
    share : float
        In [0, 1].
    stops : sequence of str
        Colours at equal distances, such as ``#ffffff``.

    Examples
    --------
    >>> mix_colours(0.25, ["#000000", "#ffffff", "#ff0000"])
    '#808080'
    """
    place = share * (len(stops) - 1)
    i = min(int(place), len(stops) - 2)
    ends = [[int(stop[k : k + 2], 16) for k in (1, 3, 5)] for stop in stops[i : i + 2]]
    return "#" + "".join(
        f"{round(a + (place - i) * (b - a)):02x}" for a, b in zip(*ends, strict=True)
    )
