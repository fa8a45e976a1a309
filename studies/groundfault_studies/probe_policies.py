"""Probe policies on simulated landscapes: unique audited keys of all of them, matched, at two
budgets.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from groundfault.base.arrays import Floats
from groundfault.base.long_work import Progress, listener
from groundfault.core.plan import Plan
from groundfault.probes.policies import get
from groundfault_lab.probes.arena import (
    WORLDS,
    compare_with_control,
    draw_landscape,
    play,
    play_policy,
)
from groundfault_lab.probes.policies import POLICIES
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
PAIR = ("caps, repeats", PAPERS)
"""The two policies of the paper, of which it says how many failing prompts both find."""
LAYOUTS = {"v2": (3, 15), "v4": (4, 24)}
"""Seeds, and queries of each, of the paper's runs of one model."""

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
        f"{budget}, {world}, {policy}, {replicates}": (world, budget, policy, replicates)
        for budget in BUDGETS
        for world in WORLDS
        for policy in POLICIES
    }
    rows = resume_parts(parts, _part, keep, jobs, progress)
    shares = {
        f"overlap, {world}, {shared}, {replicates}": (world, shared, replicates)
        for shared in (False, True)
        for world in WORLDS
    }
    overlaps = resume_parts(shares, measure_overlap, keep, jobs, progress)
    tables = []
    for budget in BUDGETS:
        played = {world: _scores(rows, budget, world) for world in WORLDS}
        tables += [
            _keys(played, budget, replicates),
            *(_against(played, c, budget) for c in (PAPERS, UNIFORM)),
        ]
    tables.append(_compare_overlaps(overlaps, replicates))
    settings = {"replicates": replicates, "budgets": list(BUDGETS), "batch": 3, "seed": SEED}
    return PaperStudy(
        "probe-policies", "Which policy finds more failing prompts", SOURCE, settings, tuple(tables)
    )


def _part(world: str, budget: int, policy: str, replicates: int) -> Rows:
    played = play([policy], [world], budget=budget, landscapes=replicates, seed=SEED)[world]
    return [
        {"budget": budget, "world": world, "policy": name, "found": each.tolist()}
        for name, each in played.items()
    ]


def measure_overlap(world: str, shared: bool, replicates: int) -> Rows:
    """Failing prompts that both policies of the paper find, and that either does: one row a layout.

    Parameters
    ----------
    world : str
    shared : bool
        Whether both draw components from the same random numbers.
    replicates : int
    """
    rows, plan = [], Plan(seed=SEED)
    for layout, (seeds, budget) in LAYOUTS.items():
        counts = np.zeros((replicates, 2))
        for number in range(replicates):
            over = draw_landscape(world, plan.rng(f"landscape {world}", number))
            found = [set[int](), set[int]()]
            for keys, name in zip(found, PAIR, strict=True):
                for seed in range(seeds):
                    asked = play_policy(
                        get(name),
                        over,
                        budget=budget,
                        batch=3,
                        plan=plan,
                        number=number * seeds + seed,
                        shared=shared,
                    )
                    keys |= set(asked[over.wrong[asked]].tolist())
            counts[number] = len(found[0] & found[1]), len(found[0] | found[1])
        both, either = counts.sum(axis=0)
        rows.append({"world": world, "shared": shared, "layout": layout, "share": both / either})
    return rows


def _compare_overlaps(rows: Rows, replicates: int) -> PaperTable:
    heads = {False: "streams of their own", True: "the same random numbers"}
    lines = [
        PaperRow(
            f"{layout}, {heads[shared]}",
            {
                row["world"]: row["share"]
                for row in rows
                if (row["layout"], row["shared"]) == (layout, shared)
            },
        )
        for layout in LAYOUTS
        for shared in heads
    ]
    return PaperTable(
        "Failing prompts that both policies of the paper find",
        f"As a share of those that either finds, over {replicates} landscapes of each kind; v2 is "
        "3 seeds of 15 queries, v4 is 4 of 24. The paper has 9 of 13 in v2, over three models, and "
        "11 of 12 in v4. Tasks come from the same random numbers in all rows.",
        {world: (world, "rate") for world in WORLDS},
        tuple(lines),
    )


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
