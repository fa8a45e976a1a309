"""How unique audited prompt keys come in with the queries, by policy."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from groundfault.probes.use.endpoints import RunEndpoints
from groundfault.probes.use.summary import Summary
from groundfault.render import words
from groundfault.render.drawing import BAD, GOOD, MUTED, Drawing, Figure, Scale, make_stairs

MAX_POLICIES = 6
"""Policies whose curves can be told apart in one figure."""
_COLOURS = (MUTED, GOOD, BAD, "#6a7fb5", "#b58a2e", "#8a5aa8")
_DASHES = ("", "5,2", "2,2", "8,2", "6,2,2,2", "3,5")


def draw_curves(summary: Summary) -> Figure:
    """Draw the mean number of unique audited keys after each query, with the range over seeds."""
    results = summary.results
    policies = [summary.control, *summary.rivals][:MAX_POLICIES]
    curves = [
        (place, model, _count_keys(list(runs)))
        for place, policy in enumerate(policies)
        for model, runs in groupby(results.select(policy), key=lambda run: run.model)
    ]
    drawing = Drawing(
        Scale.of_numbers(0, max(counts.shape[1] - 1 for *_, counts in curves), "queries of a run"),
        Scale.of_numbers(
            0, max(1, *(counts.max() for *_, counts in curves)), "unique audited keys", count=5
        ),
        width=560,
        height=260,
    )
    for place, policy in enumerate(policies):
        drawing.explain("line", _COLOURS[place], words.clean(policy), dash=_DASHES[place])
    ends = []
    for place, model, counts in curves:
        low, mean, high = (
            list(make_stairs(list(enumerate(levels.tolist()))))
            for levels in (counts.min(axis=0), counts.mean(axis=0), counts.max(axis=0))
        )
        drawing.area([*low, *reversed(high)], _COLOURS[place], 0.16)
        drawing.line(mean, _COLOURS[place], width=2, dash=_DASHES[place])
        name = policies[place] if len(results.models) == 1 else f"{policies[place]}, {model}"
        ends.append(f"{words.clean(name)} {mean[-1][1]:.1f}")
    not_shown = len(results.policies) - len(policies)
    caption = (
        "Mean over the runs of a policy, and from the least to the most of them. Audited errors "
        "alone, each prompt once in a run. What is unaudited counts as nothing."
        + (f" {not_shown} policies are not drawn." if not_shown else "")
    )
    alt = f"Curves: {'; '.join(ends)}."
    title = "Unique audited keys by query"
    return Figure("curves", title, caption, alt, drawing.to_svg(alt), wide=True)


def _count_keys(runs: list[RunEndpoints]) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Return keys after 0, 1, ... queries: shape (runs, 1 + queries).

    Runs that are short keep their last count.
    """
    longest = max(len(run.curve) for run in runs)
    return np.array(
        [[0, *run.curve, *[run.curve[-1]] * (longest - len(run.curve))] for run in runs]
    )
