"""Probe policies on simulated landscapes: unique audited keys of all of them, matched, at two budgets."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from groundfault.probes.arena import Standing, play, standing
from groundfault.probes.asked import Floats
from groundfault.probes.landscapes import WORLDS
from groundfault.probes.policies import POLICIES
from groundfault.studies.tables import Row, Study, Table

SOURCE = "Landscapes of our own making: 18 tasks by 27 assignments, two to four prompts in a hundred read wrongly"
BUDGETS = (90, 192)
SEED = 2  # the scale and noise of gp were chosen on landscapes of seed 0
PAPERS, UNIFORM = "uniform, repeats", "uniform"

Played = Mapping[str, Mapping[str, Floats]]


def study(*, replicates: int = 200, jobs: int = 1, progress: Callable[[str], object] = bool) -> Study:
    """Play all policies on the same landscapes.

    Parameters
    ----------
    replicates : int
        Landscapes of each kind, at least 20.
    jobs : int
        Processes; the answer does not depend on it.
    progress : callable, optional
    """
    tables = []
    for budget in BUDGETS:
        played = play(POLICIES, budget=budget, landscapes=replicates, seed=SEED, jobs=jobs, progress=progress)
        tables += [_keys(played, budget), *(_against(played, control, budget) for control in (PAPERS, UNIFORM))]
    settings = {"replicates": replicates, "budgets": list(BUDGETS), "batch": 3, "seed": SEED}
    return Study("probe-policies", "Which policy finds more failing prompts", SOURCE, settings, tuple(tables))


def _keys(played: Played, budget: int) -> Table:
    return Table(
        f"{budget} queries: unique prompts on which the model errs",
        f"Means over {_landscapes(played)} landscapes of each kind; in brackets the distinct tasks among them.",
        {world: (world, "text") for world in WORLDS},
        tuple(
            Row(
                name,
                {
                    world: f"{found[name][:, 0].mean():.1f} ({found[name][:, 1].mean():.1f})"
                    for world, found in played.items()
                },
            )
            for name in POLICIES
        ),
    )


def _against(played: Played, control: str, budget: int) -> Table:
    rivals = {world: found[control] for world, found in played.items()}
    return Table(
        f"{budget} queries: times as many as {control}",
        "Ratio of the means with its 95% interval, landscape by landscape.",
        {world: (world, "text") for world in WORLDS},
        tuple(
            Row(name, {w: _times(standing(w, name, budget, found[name], rivals[w])) for w, found in played.items()})
            for name in POLICIES
            if name != control
        ),
    )


def _times(found: Standing) -> str:
    if found.ratio is None or found.ratio_interval is None:
        return "–"
    return f"{found.ratio:.2f} [{found.ratio_interval[0]:.2f}, {found.ratio_interval[1]:.2f}]"


def _landscapes(played: Played) -> int:
    return len(played[next(iter(WORLDS))][PAPERS])
