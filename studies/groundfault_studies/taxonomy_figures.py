"""Budget curves of an evaluated taxonomy."""

from __future__ import annotations

import numpy as np

from groundfault_studies import taxonomy_paper as printed
from groundfault_studies.charts import lines
from groundfault_studies.ranks import bootstrap_bands
from groundfault_studies.taxonomy_cells import (
    Floats,
    Folds,
    TaxonomyEvaluation,
    cell,
    usable,
    values,
)
from groundfault_studies.taxonomy_folds import BUDGETS


def figures(evaluation: TaxonomyEvaluation) -> dict[str, str]:
    """Budget curves on held-out tasks, of the default clusters, or of the paper's where those are
    none.
    """
    preset = "default" if usable(evaluation.folds["default"]) else "paper"
    folds = usable(evaluation.folds[preset])
    if not folds:
        return {}
    of = "the default clusters" if preset == "default" else "the paper's clusters"
    out = {}
    for what, axis in (
        ("tau", f"Kendall's tau-b over {of}"),
        ("mae", f"mean error of failure rates of {of}"),
    ):
        curves = {
            printed.NAMES[s] + how: points
            for s, kind, how in (
                ("random", "direct", ", as asked"),
                ("random", "shrunk", ", shrunk"),
                ("taxonomy", "direct", ", as asked"),
                ("taxonomy", "shrunk", ", shrunk"),
                ("irt", "ability", ", by ability"),
            )
            if (points := _points(folds, s, kind, what))
        }
        prior = values(folds, lambda row, w=what: row["held out"]["prior"][w])  # type: ignore[misc]
        budgets = [at[0] for at in next(iter(curves.values()), ())]
        curves["Training models alone"] = [(b, *_mean(prior)) for b in budgets]
        series = {name: [at[:2] for at in points] for name, points in curves.items()}
        bars = {
            name: [(b, low, high) for b, _, low, high in points] for name, points in curves.items()
        }
        out[f"budget-{what}"] = lines(
            series, "tasks asked", axis, percent=False, bars=bars, log=True
        )
    return out


def _points(
    folds: Folds, strategy: str, kind: str, what: str
) -> list[tuple[float, float, float, float]]:
    """Budget, mean, and ends of its 95 % interval over models."""
    out = []
    for budget in BUDGETS:
        cells = values(folds, lambda row, b=budget: cell(row, "held out", strategy, b, kind, what))  # type: ignore[misc]
        if len(cells) == len(folds):
            out.append((float(budget), *_mean(cells)))
    return out


def _mean(numbers: Floats) -> tuple[float, float, float]:
    mean, low, high = (float(end[0]) for end in bootstrap_bands(numbers[:, None]))
    return (mean, low, high) if np.isfinite(low) else (mean, mean, mean)
