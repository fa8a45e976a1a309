"""Probe policies on simulated landscapes: unique audited keys of all of them, matched, at two
budgets.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from groundfault.base.arrays import Floats
from groundfault.base.progress import Progress, listener
from groundfault.probes.policies import POLICIES
from groundfault_lab.probes.arena import WORLDS, compare_with_control, play
from groundfault_studies.resuming import Rows, resume_parts
from groundfault_studies.tables import PaperRow, PaperStudy, PaperTable

SOURCE = (
    "Landscapes of our own making: 18 tasks by 27 assignments; three prompts in a hundred are read "
    "wrongly"
)
BUDGETS = (192, 90)
REPLICATES, QUICK_REPLICATES = 200, 20
SEED = 2  # the scale and noise of gp were chosen on landscapes of seed 0
PAPERS, UNIFORM = "uniform, repeats", "uniform"

ArenaResults = Mapping[str, Mapping[str, Floats]]


def study(
    *,
    replicates: int | None = None,
    jobs: int = 1,
    quick: bool = False,
    keep: Path | None = None,
    progress: Progress | None = None,
) -> PaperStudy:
    """Play all policies on the same landscapes.

    Parameters
    ----------
    replicates : int, optional
        Landscapes of each kind, at least 20; left out, 200, or quickly 20.
    jobs : int
        Processes; the answer does not depend on it.
    quick : bool
        Fewer landscapes: to see that it runs, not for conclusions.
    keep : path, optional
        Where kinds that are done are kept; a study that was interrupted goes on from there.
    progress : callable, optional
    """
    progress = listener(progress)
    replicates = replicates or (QUICK_REPLICATES if quick else REPLICATES)
    parts = {
        f"{budget}, {world}, {replicates}": (world, budget, replicates)
        for budget in BUDGETS
        for world in WORLDS
    }
    rows = resume_parts(parts, _part, keep, jobs, progress)
    tables = []
    for budget in BUDGETS:
        played = {world: _scores(rows, budget, world) for world in WORLDS}
        tables += [
            _keys(played, budget, replicates),
            *(_against(played, c, budget) for c in (PAPERS, UNIFORM)),
        ]
    settings = {"replicates": replicates, "budgets": list(BUDGETS), "batch": 3, "seed": SEED}
    return PaperStudy(
        "probe-policies", "Which policy finds more failing prompts", SOURCE, settings, tuple(tables)
    )


def _part(world: str, budget: int, replicates: int) -> Rows:
    played = play(POLICIES, [world], budget=budget, landscapes=replicates, seed=SEED)[world]
    return [
        {"budget": budget, "world": world, "policy": name, "found": each.tolist()}
        for name, each in played.items()
    ]


def _scores(rows: list[dict[str, Any]], budget: int, world: str) -> dict[str, Floats]:
    return {
        row["policy"]: np.array(row["found"])
        for row in rows
        if (row["budget"], row["world"]) == (budget, world)
    }


def _keys(played: ArenaResults, budget: int, replicates: int) -> PaperTable:
    def format_mean(scores: Floats) -> str:
        return f"{scores[:, 0].mean():.1f} ({scores[:, 1].mean():.1f})"

    return PaperTable(
        f"{budget} queries: unique prompts on which the model errs",
        f"Means over {replicates} landscapes of each kind; in brackets the distinct tasks among "
        "them.",
        {world: (world, "text") for world in WORLDS},
        tuple(
            PaperRow(name, {world: format_mean(scores[name]) for world, scores in played.items()})
            for name in POLICIES
        ),
    )


def _against(played: ArenaResults, control: str, budget: int) -> PaperTable:
    def format_ratio(world: str, name: str) -> str:
        comparison = compare_with_control(
            world, name, budget, played[world][name], played[world][control]
        )
        if comparison.ratio is None or comparison.ratio_interval is None:
            return "–"
        return (
            f"{comparison.ratio:.2f} [{comparison.ratio_interval[0]:.2f}, "
            f"{comparison.ratio_interval[1]:.2f}]"
        )

    return PaperTable(
        f"{budget} queries: times as many as {control}",
        "Ratio of the means with its 95% interval, landscape by landscape.",
        {world: (world, "text") for world in WORLDS},
        tuple(
            PaperRow(name, {world: format_ratio(world, name) for world in WORLDS})
            for name in POLICIES
            if name != control
        ),
    )
