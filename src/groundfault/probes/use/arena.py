"""A matched arena: policies on the same landscapes, with the same budget, task stream and audit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from groundfault.base.machine import run_in_order
from groundfault.base.progress import Progress, listener
from groundfault.core.plan import Plan
from groundfault.errors import PlanError
from groundfault.probes.policies import POLICIES, get
from groundfault.probes.policies.history import Floats, Keys, PromptHistory, PromptPolicy
from groundfault.probes.use.landscapes import WORLDS, Landscape, ReplayedRun, draw_landscape
from groundfault.stats.paired import ratio, student

Interval = tuple[float, float]

MIN_LANDSCAPES = 20
"""Landscapes, or seeds of a replay, that a comparison needs."""


@dataclass(frozen=True)
class LeaderboardRow:
    """A policy on one kind of landscape, or on one replayed model.

    Attributes
    ----------
    world, policy : str
    budget : int
    keys : float
        Mean of the unique audited keys.
    gain : float
        Mean paired difference from the control in them.
    gain_interval : pair of float, or None
        None where all differences are alike, as the control's are.
    ratio : float or None
        Ratio of the mean to the control's.
    ratio_interval : pair of float, or None
    tasks, rows, artefacts : float
        Means of the distinct tasks among those keys, of confirmed rows, and of keys that the audit
        turns down.
    """

    world: str
    policy: str
    budget: int
    keys: float
    gain: float
    gain_interval: Interval | None
    ratio: float | None
    ratio_interval: Interval | None
    tasks: float
    rows: float
    artefacts: float

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self)


def play_policy(
    policy: PromptPolicy, over: Landscape, *, budget: int, batch: int, plan: Plan, number: int
) -> Keys:
    """The keys that a policy asks, in their order: shape (budget,), or fewer where none is left."""
    keys = np.empty(0, dtype=np.intp)
    batches = -(-budget // batch)
    for turn in range(1, batches + 1):
        history = PromptHistory(
            over.tasks, over.sizes, keys, over.mismatch[keys], turn, batches, over.blocked
        )
        # the same tasks for every policy on a landscape, other ones on the next
        counter = number * batches + turn
        size = min(batch, budget - len(keys))
        more = policy.ask(
            history,
            size,
            plan.rng("tasks", counter),
            plan.rng(f"components {policy.name}", counter),
        )
        if not len(more):
            break
        keys = np.concatenate([keys, more])
    return keys


def arena(
    policies: Sequence[str] = tuple(POLICIES),
    worlds: Sequence[str] | None = None,
    *,
    replay: ReplayedRun | None = None,
    control: str = "stratified",
    budget: int = 192,
    batch: int = 3,
    landscapes: int = 40,
    seed: int = 0,
    level: float = 0.95,
    jobs: int = 1,
    progress: Progress | None = None,
) -> list[LeaderboardRow]:
    """Compare policies by the unique keys that an audit would confirm.

    Parameters
    ----------
    policies : sequence of str
        Names as `groundfault.probes.policies.get` takes them.
    worlds : sequence of str, optional
        Names of `WORLDS`, or of models that are replayed; all, where left out.
    replay : Replay, optional
        An exhaustive run, in place of simulated landscapes.
    control : str
        The policy that the others are compared with, on the same landscapes.
    budget, batch : int
        Queries of each run, and of each batch; a policy sees the signals after a batch.
    landscapes : int
        Landscapes of each kind, at least `MIN_LANDSCAPES`; of a replay seeds, with
        intervals for this one model and bank.
    seed : int
    level : float
        Coverage of the intervals: Student's for paired differences,
        `groundfault.stats.paired.ratio`'s for ratios.
    jobs : int
        Processes; the answer does not depend on it.
    progress : callable, optional

    Raises
    ------
    PlanError
        If a name is unknown, the budget or batch is below 1, or there are fewer than 20 landscapes.

    Notes
    -----
    Tasks drawn at random come from one stream that all policies share; components from a stream of
    each policy's own. What a policy that adapts finds is no rate of failures."""
    if not 0 < level < 1:
        raise PlanError(f"level must be strictly between 0 and 1, not {level}")
    names, rival = [get(name).name for name in policies], get(control).name
    played = play(
        dict.fromkeys([*names, rival]),
        worlds,
        replay=replay,
        budget=budget,
        batch=batch,
        landscapes=landscapes,
        seed=seed,
        jobs=jobs,
        progress=progress,
    )
    return [
        compare_with_control(world, name, budget, by_policy[name], by_policy[rival], level)
        for world, by_policy in played.items()
        for name in names
    ]


def play(
    policies: Iterable[str],
    worlds: Sequence[str] | None = None,
    *,
    replay: ReplayedRun | None = None,
    budget: int = 192,
    batch: int = 3,
    landscapes: int = 40,
    seed: int = 0,
    jobs: int = 1,
    progress: Progress | None = None,
) -> dict[str, dict[str, Floats]]:
    """Counts of policies on the same landscapes: by world and policy an array (landscapes, 4).

    Its columns are unique audited keys, their tasks, confirmed rows, and artefacts. Parameters and
    errors are those of `arena`.
    """
    from joblib import delayed

    if budget < 1 or batch < 1:
        raise PlanError(f"budget {budget} and batch {batch} must be at least 1")
    # an interval over fewer landscapes is wider than any difference one looks for
    if landscapes < MIN_LANDSCAPES:
        raise PlanError(
            f"a comparison of policies needs at least {MIN_LANDSCAPES} landscapes, not {landscapes}"
        )
    there: Any = replay.landscapes if replay else WORLDS
    unknown = [world for world in worlds or () if world not in there]
    if unknown:
        raise PlanError(f"there is no landscape {unknown[0]!r}; there are {', '.join(there)}")
    names, played = [get(name).name for name in policies], {}
    for world in worlds or there:
        over = there[world] if replay else world
        work = (
            delayed(_play_landscape)(names, over, budget, batch, seed, number)
            for number in range(landscapes)
        )
        counts: list[Any] = []
        for each in run_in_order(work, jobs):
            counts.append(each)
            listener(progress)(f"{world}: {len(counts)} of {landscapes}")
        table = np.array(counts, dtype=np.float64).transpose(1, 0, 2)
        played[world] = dict(zip(names, table, strict=True))
    return played


def compare_with_control(
    world: str, policy: str, budget: int, outcomes: Floats, control: Floats, level: float = 0.95
) -> LeaderboardRow:
    """A policy's standing from what it and the control found, each as `play` gives it."""
    rival = control[:, 0]
    keys, tasks, rows, artefacts = map(float, outcomes.mean(axis=0))
    # paired: both played the same landscapes, whose spread would hide the difference
    gain = outcomes[:, 0] - rival
    more = ratio(outcomes[:, 0], rival, level)
    times = keys / float(rival.mean()) if rival.any() else None
    return LeaderboardRow(
        world=world,
        policy=policy,
        budget=budget,
        keys=keys,
        gain=float(gain.mean()),
        gain_interval=student(gain, level),
        ratio=times,
        ratio_interval=more[1:] if more else None,
        tasks=tasks,
        rows=rows,
        artefacts=artefacts,
    )


def _play_landscape(
    names: Sequence[str], over: Landscape | str, budget: int, batch: int, seed: int, number: int
) -> Any:
    """Counts of each policy on one landscape: keys, their tasks, confirmed rows, artefacts."""
    plan = Plan(seed=seed)
    land = (
        draw_landscape(over, plan.rng(f"landscape {over}", number))
        if isinstance(over, str)
        else over
    )
    return [
        _count_keys(
            play_policy(get(name), land, budget=budget, batch=batch, plan=plan, number=number), land
        )
        for name in names
    ]


def _count_keys(keys: Keys, over: Landscape) -> tuple[int, int, int, int]:
    # a repeat is a row and no discovery
    unique = np.unique(keys)
    confirmed = unique[over.wrong[unique]]
    return (
        len(confirmed),
        len(np.unique(confirmed // int(np.prod(over.sizes)))),
        int(over.wrong[keys].sum()),
        int((over.mismatch & ~over.wrong)[unique].sum()),
    )
