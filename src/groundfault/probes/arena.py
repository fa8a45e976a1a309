"""A matched arena: policies on the same simulated landscapes, with the same budget, task stream and audit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groundfault.errors import PlanError
from groundfault.plan import Plan
from groundfault.probes.policies import POLICIES, Asked, Policy

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

TASKS, SIZES = 18, (3, 3, 3)
_ARTEFACTS = 0.1  # share of the keys of one format whose right answers are read wrongly


@dataclass(frozen=True, eq=False)
class Landscape:
    """What a model does with every prompt key, always the same.

    Attributes
    ----------
    wrong : bool array, shape (K,)
        The model errs: what an audit would confirm.
    mismatch : bool array, shape (K,)
        The routing signal: errors, and answers that are read wrongly.
    """

    wrong: Bools
    mismatch: Bools


@dataclass(frozen=True)
class Standing:
    """A policy on one kind of landscape.

    Attributes
    ----------
    world, policy : str
    keys : float
        Mean of the unique audited keys.
    gain, low, high : float
        Mean paired difference from the control, and its interval.
    tasks, rows, artefacts : float
        Means of the distinct tasks among those keys, of confirmed rows, and of keys that the audit turns down.
    """

    world: str
    policy: str
    keys: float
    gain: float
    low: float
    high: float
    tasks: float
    rows: float
    artefacts: float


def landscape(world: str, rng: np.random.Generator) -> Landscape:
    """A landscape of 18 tasks by 27 assignments, drawn from one of `WORLDS`."""
    if world not in WORLDS:
        raise PlanError(f"there is no landscape {world!r}; there are {', '.join(WORLDS)}")
    options = np.stack(np.unravel_index(np.arange(27), SIZES), axis=1)
    wrong = rng.random((TASKS, 27)) < WORLDS[world](options, rng)
    read_wrongly = (options[:, 2] == rng.integers(3)) & (rng.random((TASKS, 27)) < _ARTEFACTS)
    return Landscape(wrong.ravel(), (wrong | read_wrongly).ravel())


def run(policy: Policy, over: Landscape, *, budget: int, batch: int, plan: Plan, number: int) -> NDArray[np.intp]:
    """The keys that a policy asks, in their order: shape (budget,), or fewer where none is left."""
    keys = np.empty(0, dtype=np.intp)
    batches = -(-budget // batch)
    for turn in range(1, batches + 1):
        asked = Asked(TASKS, SIZES, keys, over.mismatch[keys], turn, batches)
        counter = number * batches + turn
        size = min(batch, budget - len(keys))
        more = policy.ask(asked, size, plan.rng("tasks", counter), plan.rng(f"components {policy.name}", counter))
        if not len(more):
            break
        keys = np.concatenate([keys, more])
    return keys


def arena(
    policies: Sequence[str] = tuple(POLICIES),
    worlds: Sequence[str] | None = None,
    *,
    control: str = "stratified",
    budget: int = 192,
    batch: int = 3,
    landscapes: int = 40,
    seed: int = 0,
    level: float = 0.95,
) -> list[Standing]:
    """Compare policies by the unique keys that an audit would confirm.

    Parameters
    ----------
    policies : sequence of str
        Names of `groundfault.probes.policies.POLICIES`.
    worlds : sequence of str, optional
        Names of `WORLDS`; all, where left out.
    control : str
        The policy that the others are compared with, on the same landscapes.
    budget, batch : int
        Queries of each run, and queries between two looks at the signals.
    landscapes : int
        Of each kind, at least 20.
    seed : int
    level : float
        Coverage of the intervals, which are Student's for paired differences.

    Raises
    ------
    PlanError
        If a name is unknown, the budget or batch is below 1, or there are fewer than 20 landscapes.

    Notes
    -----
    Tasks drawn at random come from one stream that all policies share; components from a stream of each policy's own.
    What a policy that adapts finds is no rate of failures.
    """
    known = {*policies, control}
    unknown = sorted(known - set(POLICIES))
    if unknown:
        raise PlanError(f"there is no policy {unknown[0]!r}; there are {'; '.join(POLICIES)}")
    if budget < 1 or batch < 1:
        raise PlanError(f"budget {budget} and batch {batch} must be at least 1")
    if landscapes < 20:
        raise PlanError(f"a comparison of policies needs at least 20 landscapes, not {landscapes}")
    if not 0 < level < 1:
        raise PlanError(f"level must be strictly between 0 and 1, not {level}")
    plan, standings = Plan(seed=seed), []
    for world in worlds if worlds is not None else WORLDS:
        lands = [landscape(world, plan.rng(f"landscape {world}", number)) for number in range(landscapes)]
        found = {
            name: np.array(
                [
                    _counts(run(POLICIES[name], land, budget=budget, batch=batch, plan=plan, number=number), land)
                    for number, land in enumerate(lands)
                ]
            )
            for name in dict.fromkeys([*policies, control])
        }
        for name in policies:
            keys, tasks, rows, artefacts = found[name].mean(axis=0)
            gain, low, high = _paired(found[name][:, 0] - found[control][:, 0], level)
            standings.append(Standing(world, name, keys, gain, low, high, tasks, rows, artefacts))
    return standings


def _counts(keys: NDArray[np.intp], over: Landscape) -> tuple[int, int, int, int]:
    unique = np.unique(keys)
    confirmed = unique[over.wrong[unique]]
    return (
        len(confirmed),
        len(np.unique(confirmed // 27)),
        int(over.wrong[keys].sum()),
        int((over.mismatch & ~over.wrong)[unique].sum()),
    )


def _paired(difference: Floats, level: float) -> tuple[float, float, float]:
    from scipy.special import stdtrit

    n = len(difference)
    half = stdtrit(n - 1, 0.5 + level / 2) * difference.std(ddof=1) / np.sqrt(n)
    mean = float(difference.mean())
    return mean, mean - float(half), mean + float(half)


def _sparse_by_task(options: NDArray[np.intp], rng: np.random.Generator) -> Floats:  # noqa: ARG001
    brittle = np.isin(np.arange(TASKS), rng.choice(TASKS, 3, replace=False))
    return np.where(brittle, 0.35, 0.013)[:, None] * np.ones(27)


def _sparse_by_component(options: NDArray[np.intp], rng: np.random.Generator) -> Floats:
    groups = rng.choice(3, 2, replace=False)
    on = (options[:, groups] == rng.integers(3, size=2)).all(axis=1)
    return np.ones((TASKS, 1)) * np.where(on, 0.4, 0.018)


def _task_by_component(options: NDArray[np.intp], rng: np.random.Generator) -> Floats:
    chance = np.full((TASKS, 27), 0.02)
    for task in rng.choice(TASKS, 6, replace=False):
        chance[task, options[:, rng.integers(3)] == rng.integers(3)] = 0.6
    return chance


def _diffuse(options: NDArray[np.intp], rng: np.random.Generator) -> Floats:
    effects = rng.normal(0, 0.7, (3, 3))
    within = sum((effects[g][options[:, g]] for g in range(3)), np.zeros(27))
    return np.asarray(1 / (1 + np.exp(2.6 - rng.normal(0, 1, (TASKS, 1)) - within)))


def _unstructured(options: NDArray[np.intp], rng: np.random.Generator) -> Floats:  # noqa: ARG001
    return np.full((TASKS, 27), 0.13)


WORLDS: dict[str, Callable[[NDArray[np.intp], np.random.Generator], Floats]] = {
    "sparse by task": _sparse_by_task,
    "sparse by component": _sparse_by_component,
    "task by component": _task_by_component,
    "diffuse": _diffuse,
    "unstructured": _unstructured,
}
"""Chances of an error by kind of landscape: shape (18, 27)."""
