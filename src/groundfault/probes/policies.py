"""Policies: which prompt keys to ask next. Each is a pure function of what was asked and of its generators."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from groundfault.errors import PlanError

Keys = NDArray[np.intp]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Asked:
    """All that a policy may know, of K = tasks * assignments prompt keys, task by task.

    Attributes
    ----------
    tasks : int
    sizes : tuple of int
        Options of each group; assignments are counted with the last group fastest.
    keys : intp array, shape (n,)
        The keys asked, in their order.
    mismatch : bool array, shape (n,)
        The routing signal of each.
    batch, batches : int
        Which batch comes next, from 1, and how many there will be.
    """

    tasks: int
    sizes: tuple[int, ...]
    keys: Keys
    mismatch: NDArray[np.bool_]
    batch: int
    batches: int

    @property
    def assignments(self) -> int:
        """Assignments of each task."""
        return int(np.prod(self.sizes))

    @property
    def fresh(self) -> NDArray[np.bool_]:
        """Which keys were never asked: bool, shape (K,)."""
        fresh = np.ones(self.tasks * self.assignments, dtype=bool)
        fresh[self.keys] = False
        return fresh

    @property
    def options(self) -> NDArray[np.intp]:
        """The options of every assignment: shape (assignments, groups)."""
        return _options(self.sizes)


class Policy(Protocol):
    """Says which keys to ask next."""

    @property
    def name(self) -> str: ...  # noqa: D102

    def ask(self, asked: Asked, size: int, tasks: np.random.Generator, rng: np.random.Generator) -> Keys:
        """At most ``size`` keys; none where nothing is left.

        Tasks drawn at random are drawn from ``tasks``, which policies that are compared share; all else from ``rng``.
        """
        ...


@dataclass(frozen=True)
class Uniform:
    """Every task and assignment alike; ``repeats`` as in the paper, or none."""

    repeats: bool = False

    @property
    def name(self) -> str:
        """What it is."""
        return "uniform, repeats" if self.repeats else "uniform"

    def ask(self, asked: Asked, size: int, tasks: np.random.Generator, rng: np.random.Generator) -> Keys:
        """Tasks uniformly, then assignments uniformly."""
        return _by_task(asked, size, tasks, rng, np.ones(asked.assignments), self.repeats)


@dataclass(frozen=True)
class Stratified:
    """Without repeats, the tasks in turn: unbiased for how often the model mismatches, and the control."""

    name: ClassVar[str] = "stratified"

    def ask(self, asked: Asked, size: int, tasks: np.random.Generator, rng: np.random.Generator) -> Keys:
        """From the tasks asked least, one unasked key each."""
        fresh = asked.fresh.reshape(asked.tasks, -1)
        chosen: list[int] = []
        for _ in range(min(size, int(fresh.sum()))):
            left = fresh.sum(axis=1)
            task = int(tasks.choice(np.flatnonzero(left == left.max())))
            key = int(rng.choice(np.flatnonzero(fresh[task])))
            fresh[task, key] = False
            chosen.append(task * asked.assignments + key)
        return np.array(chosen, dtype=np.intp)


@dataclass(frozen=True)
class Caps:
    """Component-adaptive prompt sampling, the paper's: scores of options, and a softmax that cools.

    Parameters
    ----------
    repeats : bool
        As in the paper, or none.
    rate : float
        Of the exponential moving average of the signal, in (0, 1].
    start, floor : float
        Temperature of the first batch, and the least: above 0.
    prior : float
        First score of each option but the first of its group: 0 is neutral, above 0 favours stressors.

    Notes
    -----
    The paper's formulas are lost in the text that we have; ours: an option's chance is the softmax of score over
    temperature, the temperature falls linearly, and a chosen option's score moves to (1 - rate) score + rate signal.
    """

    repeats: bool = False
    rate: float = 0.3
    start: float = 1.0
    floor: float = 0.2
    prior: float = 0.0

    def __post_init__(self) -> None:
        if not (0 < self.rate <= 1 and self.floor > 0 and self.start > 0):
            raise PlanError("CAPS needs a rate in (0, 1] and temperatures above 0")

    @property
    def name(self) -> str:
        """What it is."""
        return "caps, repeats" if self.repeats else "caps"

    def scores(self, asked: Asked) -> list[Floats]:
        """The score of each option of each group."""
        chosen = asked.options[asked.keys % asked.assignments]
        return [
            np.array([self._score(asked.mismatch[chosen[:, g] == o], self.prior * (o > 0)) for o in range(size)])
            for g, size in enumerate(asked.sizes)
        ]

    def _score(self, seen: NDArray[np.bool_], first: float) -> float:
        left = (1 - self.rate) ** np.arange(len(seen) + 1)
        return float(first * left[-1] + self.rate * seen @ left[:-1][::-1])

    def ask(self, asked: Asked, size: int, tasks: np.random.Generator, rng: np.random.Generator) -> Keys:
        """Tasks uniformly, then one option of each group by its score."""
        temperature = max(self.floor, self.start * (1 - (asked.batch - 1) / asked.batches))
        weight = np.ones(asked.assignments)
        for group, scores in enumerate(self.scores(asked)):
            chance = np.exp((scores - scores.max()) / temperature)
            weight *= (chance / chance.sum())[asked.options[:, group]]
        return _by_task(asked, size, tasks, rng, weight, self.repeats)


@dataclass(frozen=True)
class Hierarchical:
    """Thompson sampling of a rate for each task and each option, all drawn towards the overall rate; no repeats."""

    weight: float = 2.0
    name: ClassVar[str] = "hierarchical"

    def ask(self, asked: Asked, size: int, tasks: np.random.Generator, rng: np.random.Generator) -> Keys:  # noqa: ARG002
        """For each place in the batch a draw of all rates; the unasked key with the largest sum of log-odds."""
        overall = (asked.mismatch.sum() + 0.5) / (len(asked.keys) + 5)
        task, option = np.divmod(asked.keys, asked.assignments)
        columns = [task, *asked.options[option].T]
        fresh, chosen = asked.fresh, list[int]()
        for _ in range(min(size, int(fresh.sum()))):
            odds = [
                self._draw(column, asked.mismatch, count, overall, rng)
                for column, count in zip(columns, (asked.tasks, *asked.sizes), strict=True)
            ]
            within = sum((o[asked.options[:, g]] for g, o in enumerate(odds[1:])), np.zeros(asked.assignments))
            score = np.where(fresh, (odds[0][:, None] + within).ravel(), -np.inf)
            chosen.append(int(score.argmax()))
            fresh[chosen[-1]] = False
        return np.array(chosen, dtype=np.intp)

    def _draw(
        self, column: Keys, mismatch: NDArray[np.bool_], count: int, overall: float, rng: np.random.Generator
    ) -> Floats:
        tries = np.bincount(column, minlength=count)
        hits = np.bincount(column, weights=mismatch, minlength=count)
        rate = rng.beta(self.weight * overall + hits, self.weight * (1 - overall) + tries - hits)
        rate = np.clip(rate, 1e-9, 1 - 1e-9)
        return np.asarray(np.log(rate / (1 - rate)))


@dataclass(frozen=True)
class GaussianThompson:
    """Thompson sampling of a Gaussian process over prompt keys, without repeats: the default.

    Two keys are alike by 0.5 for the same task, 0.25 times the share of options they have in common, 0.5 times that
    share for the same task again, and 0.25 for the same key.

    Parameters
    ----------
    mean : float
        Of the signal before anything is seen.
    scale : float
        Of the kernel: small, it follows what it saw sooner.
    noise : float
        Variance of the signal that is no function of the key.

    Notes
    -----
    Draws from the posterior by Matheron's rule: a draw of the prior, corrected by what it misses at the keys asked.
    """

    mean: float = 0.1
    scale: float = 0.1
    noise: float = 0.02
    name: ClassVar[str] = "gp"

    def ask(self, asked: Asked, size: int, tasks: np.random.Generator, rng: np.random.Generator) -> Keys:  # noqa: ARG002
        """For each place in the batch a draw of the whole landscape; its highest unasked key."""
        kernel, root = _kernel(asked.tasks, asked.sizes)
        drawn = root @ (np.sqrt(self.scale) * rng.standard_normal((len(kernel), size)))
        if len(asked.keys):
            at = asked.keys
            noise = np.sqrt(self.noise) * rng.standard_normal((len(at), size))
            missed = (asked.mismatch - self.mean)[:, None] - drawn[at] - noise
            seen = self.scale * kernel[np.ix_(at, at)] + self.noise * np.eye(len(at))
            drawn = drawn + kernel[:, at] @ (self.scale * np.linalg.solve(seen, missed))
        fresh, chosen = asked.fresh, list[int]()
        for place in range(min(size, int(fresh.sum()))):
            chosen.append(int(np.where(fresh, drawn[:, place], -np.inf).argmax()))
            fresh[chosen[-1]] = False
        return np.array(chosen, dtype=np.intp)


def _by_task(
    asked: Asked, size: int, tasks: np.random.Generator, rng: np.random.Generator, weight: Floats, repeats: bool
) -> Keys:
    """Tasks uniformly, then an assignment by weight; without repeats among what is left."""
    fresh = asked.fresh.reshape(asked.tasks, -1)
    chosen: list[int] = []
    while len(chosen) < size and (repeats or fresh.any()):
        task = int(tasks.integers(asked.tasks))
        among = weight if repeats else weight * fresh[task]
        if among.sum() > 0:
            ends = np.cumsum(among)
            key = int(np.searchsorted(ends, rng.random() * ends[-1], side="right"))
            fresh[task, key] = False
            chosen.append(task * asked.assignments + key)
    return np.array(chosen, dtype=np.intp)


@lru_cache(maxsize=32)
def _options(sizes: tuple[int, ...]) -> NDArray[np.intp]:
    return np.stack(np.unravel_index(np.arange(int(np.prod(sizes))), sizes), axis=1)


@lru_cache(maxsize=4)
def _kernel(tasks: int, sizes: tuple[int, ...]) -> tuple[Floats, Floats]:
    options = _options(sizes)
    shared = (options[:, None, :] == options[None, :, :]).mean(axis=2)
    same_task, same_key = np.eye(tasks), np.eye(tasks * len(options))
    kernel = np.kron(same_task, 0.5 + 0.5 * shared) + np.tile(0.25 * shared, (tasks, tasks)) + 0.25 * same_key
    return kernel, np.linalg.cholesky(kernel)


POLICIES: dict[str, Policy] = {
    policy.name: policy
    for policy in (
        Uniform(repeats=True),
        Uniform(),
        Stratified(),
        Caps(repeats=True),
        Caps(),
        Hierarchical(),
        GaussianThompson(),
    )
}
"""Policies by name, with their default settings."""
