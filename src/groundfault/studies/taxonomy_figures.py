"""Budget curves of an evaluated taxonomy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groundfault.studies import taxonomy_paper as printed
from groundfault.studies.charts import lines
from groundfault.studies.taxonomy_cells import Folds, cell, usable, values
from groundfault.studies.taxonomy_folds import BUDGETS

if TYPE_CHECKING:
    from groundfault.studies.taxonomy import Evaluated


def figures(found: Evaluated) -> dict[str, str]:
    """Budget curves on held-out tasks, of the default clusters."""
    folds = usable(found.folds["default"])
    if not folds:
        return {}
    out = {}
    for what, axis in (("tau", "Kendall's tau-b, all clusters"), ("mae", "mean error of failure rates")):
        series = {
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
        prior = float(np.mean([row["held out"]["prior"][what] for row in folds]))
        budgets = [b for b, _ in next(iter(series.values()), ())]
        series["Training models alone"] = [(b, prior) for b in budgets]
        out[f"budget-{what}"] = lines(series, "tasks asked", axis, percent=False)
    return out


def _points(folds: Folds, strategy: str, kind: str, what: str) -> list[tuple[float, float]]:
    out = []
    for budget in BUDGETS:
        found = values(folds, lambda row, b=budget: cell(row, "held out", strategy, b, kind, what))  # type: ignore[misc]
        if len(found) == len(folds):
            out.append((float(budget), float(found.mean())))
    return out
