"""Both e-values of a sequential audit after each label, as a figure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from groundfault.render import words
from groundfault.render.drawing import (
    BAD,
    GOOD,
    MUTED,
    Drawing,
    Figure,
    Scale,
    make_stairs,
    spread_evenly,
)
from groundfault.sequential.certificate import WealthPoint

MAX_POINTS = 1_000
"""Labels of a longer audit are drawn evenly spread, the first and the last among them."""


def draw_wealth(path: Sequence[WealthPoint], alpha: float) -> Figure:
    """Both e-values after each label, on a scale of powers of ten.

    Parameters
    ----------
    path : sequence of WealthPoint
        From the start, where both e-values are 1.
    alpha : float in (0, 1)
    """
    bar = math.log10(1 / alpha)
    points = spread_evenly(path, MAX_POINTS)
    steps = [point.step for point in points]
    # an e-value of 0 or infinity has no place on the axis; its end does
    paths = {
        (name, colour): [min(max(log / math.log(10), -3.0), bar + 1.0) for log in logs]
        for name, colour, logs in (
            ("against the model's null", BAD, [p.model for p in points]),
            ("against the auditor's null", GOOD, [p.auditor for p in points]),
        )
    }
    levels = [0.0, bar, *(level for path in paths.values() for level in path)]
    drawing = Drawing(
        Scale.of_numbers(min(steps), max(*steps, min(steps) + 1), "labels"),
        Scale.of_numbers(min(levels), max(levels), "e-value, power of ten", count=5),
        width=560,
        height=260,
    )
    for (name, colour), levels in paths.items():
        drawing.explain("square", colour, name)
        # each level holds until the next label
        stairs = list(make_stairs(list(zip(steps, levels, strict=True))))
        drawing.line(stairs, colour, width=2)
    drawing.line([(min(steps), bar), (max(steps), bar)], MUTED, dash="4,3")
    ends = f"{path[-1].model / math.log(10):.2f} and {path[-1].auditor / math.log(10):.2f}"
    alt = (
        f"Two step lines over {words.plural(len(path) - 1, 'label')}; powers of ten at the "
        f"end: {ends}."
    )
    return Figure(
        "wealth",
        "Evidence against both nulls",
        f"Dashed: the level at which a null falls, 1 / alpha = {1 / alpha:g}. "
        "Values beyond the axis are drawn at its end.",
        alt,
        drawing.to_svg(alt),
        wide=True,
    )


def format_e_value(log_e: float) -> str:
    """An e-value from its natural logarithm, which may be too large for a float."""
    # counting shows for certain what no bet can: the e-value is then infinite
    if math.isinf(log_e) and log_e > 0:
        return "infinite (counted)"
    return f"{math.exp(log_e):.3g}" if log_e < 700 else f"10^{log_e / math.log(10):.0f}"
