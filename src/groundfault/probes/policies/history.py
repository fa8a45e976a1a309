"""The history that a policy may know of a run, and the drawing of keys by known chances."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from groundfault.base.arrays import Bools, Floats, Places

Keys = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class PromptHistory:
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
    blocked : bool array, shape (K,), optional
        Keys that must not be asked, such as structurally invalid ones; None where all may be.
    waiting : intp array, shape (w,)
        Keys chosen for this batch already, whose signals are not known yet.
    """

    tasks: int
    sizes: tuple[int, ...]
    keys: Keys
    mismatch: Bools
    batch: int
    batches: int
    blocked: Bools | None = None
    waiting: Keys = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    @property
    def assignments(self) -> int:
        """Return the number of assignments of each task."""
        return math.prod(self.sizes)

    @property
    def open(self) -> Bools:
        """Return which keys may be asked at all: bool, shape (K,)."""
        if self.blocked is None:
            return np.ones(self.tasks * self.assignments, dtype=bool)
        return ~self.blocked

    @property
    def fresh(self) -> Bools:
        """Return which keys may be asked and never were: bool, shape (K,)."""
        fresh = self.open
        fresh[self.keys] = False
        fresh[self.waiting] = False
        return fresh

    @property
    def per_task(self) -> Places:
        """Return how often each task was asked: shape (tasks,)."""
        tasks = np.append(self.keys, self.waiting) // self.assignments
        return np.bincount(tasks, minlength=self.tasks)

    @property
    def options(self) -> Places:
        """Return the options of every assignment: shape (assignments, groups)."""
        return _list_options(self.sizes)

    def after(self, key: int) -> PromptHistory:
        """Return the history when one more key of this batch is chosen."""
        return replace(self, waiting=np.append(self.waiting, np.intp(key)))


class PromptPolicy(Protocol):
    """Says which keys to ask next: a pure function of the asked prompts and of its generators."""

    @property
    def name(self) -> str:
        """Return its name, settings included."""
        ...

    def ask(self, history: PromptHistory, size: int, tasks: Generator, rng: Generator) -> Keys:
        """Return at most ``size`` keys; an empty list if no key is left.

        Tasks drawn at random are drawn from ``tasks``, which policies that are compared share; all
        else from ``rng``."""
        ...

    def chances(self, history: PromptHistory) -> Floats | None:
        """Return the probability that each key comes next: shape (K,), all 0 if no key is left.

        None if it is unknown: rows of this policy estimate no rate.
        """
        ...


class NamedPolicy:
    """A policy whose name is its kind, with the settings that differ from the defaults.

    A subclass states its `chances`, by which keys are drawn, or asks in another way.
    """

    kind: ClassVar[str]

    @property
    def name(self) -> str:
        """Return the name of which `groundfault.probes.policies.get` makes the policy again."""
        self_: Any = self
        values = {f.name: (getattr(self, f.name), f.default) for f in fields(self_)}
        settings = {key: value for key, (value, default) in values.items() if value != default}
        texts = [key if value is True else f"{key}={value}" for key, value in settings.items()]
        return ", ".join([self.kind, *texts])

    def ask(self, history: PromptHistory, size: int, tasks: Generator, rng: Generator) -> Keys:
        """Draw keys by the chances: first the task, from its stream, then the assignment."""
        keys: list[int] = []
        for _ in range(size):
            chance = self.chances(history)
            if chance is None or not chance.any():
                break
            # two steps with two generators: policies that share the first get the same tasks
            by_task = chance.reshape(history.tasks, -1)
            task = _pick(by_task.sum(axis=1), tasks)
            keys.append(task * history.assignments + _pick(by_task[task], rng))
            history = history.after(keys[-1])
        return np.array(keys, dtype=np.intp)

    def chances(self, history: PromptHistory) -> Floats | None:  # noqa: ARG002
        """Return None: the chances are not known."""
        return None


def chances_of(policy: PromptPolicy, history: PromptHistory, keys: Keys) -> list[float | None]:
    """Return the probability with which a policy drew each key of a batch, given those before.

    None where it is unknown, and where some key that was never asked had probability 0: a rate
    estimated from such chances would leave that key out."""
    chances: list[float | None] = []
    for key in keys:
        chance = policy.chances(history)
        # an inverse-probability estimate is unbiased only if every prompt could have been drawn
        covers_all = chance is not None and bool((chance[history.fresh] > 0).all())
        chances.append(float(chance[key]) if chance is not None and covers_all else None)
        history = history.after(int(key))
    return chances


def weigh_tasks_equally(weights: Floats) -> Floats:
    """Return chances, equal for each task that has any weight, by weight within it: shape (K,).

    Parameters
    ----------
    weights : float64 array, shape (tasks, assignments)
        Weights, at least 0.
    """
    total = weights.sum(axis=1, keepdims=True)
    has_weight = total > 0
    within = np.divide(weights, total, out=np.zeros_like(weights), where=has_weight)
    return np.asarray(within / max(1, int(has_weight.sum()))).ravel()


def _pick(weight: Floats, rng: Generator) -> int:
    ends = np.cumsum(weight)
    # rounding may reach the end, which lies behind the last
    place = int(np.searchsorted(ends, rng.random() * ends[-1], side="right"))
    return min(place, int(np.flatnonzero(weight)[-1]))


@lru_cache(maxsize=32)
def _list_options(sizes: tuple[int, ...]) -> Places:
    return np.stack(np.unravel_index(np.arange(int(np.prod(sizes))), sizes), axis=1)
