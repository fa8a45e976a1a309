"""Policies: which prompt keys to ask next, and with which chances. `get` finds one by its name."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.random import Generator

from groundfault.base.arrays import Floats
from groundfault.base.registry import load_object
from groundfault.errors import PlanError, require_name, require_word
from groundfault.probes.policies.history import (
    Keys,
    NamedPolicy,
    PromptHistory as PromptHistory,
    PromptPolicy as PromptPolicy,
    chances_of as chances_of,
    weigh_tasks_equally,
)

Order = Literal["seeded", "canonical"]


@dataclass(frozen=True)
class UniformPrompts(NamedPolicy):
    """Every task and assignment alike; ``repeats`` as in the paper, or without repeats."""

    repeats: bool = False
    kind: ClassVar[str] = "uniform"

    def chances(self, history: PromptHistory) -> Floats:
        """Return equal chances for tasks that have a key left, and within each for its keys."""
        # tasks first, keys second: a task with more options must not be drawn more often
        open_keys = history.open if self.repeats else history.fresh
        return weigh_tasks_equally(open_keys.reshape(history.tasks, -1).astype(float))


@dataclass(frozen=True)
class StratifiedPrompts(NamedPolicy):
    """The tasks in turn, without repeats: unbiased for the mismatch rate, and the control."""

    kind: ClassVar[str] = "stratified"

    def chances(self, history: PromptHistory) -> Floats:
        """Return equal chances for tasks asked least, and within each for the keys left."""
        open_keys = history.fresh.reshape(history.tasks, -1)
        # tasks without an open key never have their turn
        turns = np.where(open_keys.any(axis=1), history.per_task, np.iinfo(np.intp).max)
        return weigh_tasks_equally((open_keys & (turns == turns.min())[:, None]).astype(float))


@dataclass(frozen=True)
class Exhaustive(NamedPolicy):
    """Every key once, in random order or the bank's; it gives the exact rate of failures."""

    order: Order = "seeded"
    kind: ClassVar[str] = "exhaustive"

    def __post_init__(self) -> None:
        require_word("the order of the policy exhaustive", self.order, get_args(Order))

    def chances(self, history: PromptHistory) -> Floats:
        """Return equal chances for the keys left; in canonical order the first is certain."""
        weights = history.fresh.astype(float)
        if self.order == "canonical":
            weights[np.flatnonzero(weights)[1:]] = 0
        return np.asarray(weights / max(1.0, weights.sum()))


@dataclass(frozen=True)
class Capped:
    """Any policy, with at most so many queries of one task."""

    policy: PromptPolicy
    max_queries: int

    def __post_init__(self) -> None:
        if self.max_queries < 1:
            raise PlanError(f"most must be at least 1 query of a task, not {self.max_queries}")

    @property
    def name(self) -> str:
        """Return the policy's name, and the cap."""
        # "most" and not max_queries: names are in manifests and folders of stored runs
        return f"{self.policy.name}, most={self.max_queries}"

    def ask(self, history: PromptHistory, size: int, tasks: Generator, rng: Generator) -> Keys:
        """Ask the policy for one key at a time, from the tasks that are below the cap."""
        keys: list[int] = []
        # one at a time, for the cap may be reached inside a batch
        while len(keys) < size and len(one := self.policy.ask(self._below(history), 1, tasks, rng)):
            keys.append(int(one[0]))
            history = history.after(keys[-1])
        return np.array(keys, dtype=np.intp)

    def chances(self, history: PromptHistory) -> Floats | None:
        """Return the policy's chances, where only tasks below the cap are open."""
        return self.policy.chances(self._below(history))

    def _below(self, history: PromptHistory) -> PromptHistory:
        full = np.repeat(history.per_task >= self.max_queries, history.assignments)
        return replace(history, blocked=~history.open | full)


_LEARNED = "groundfault_lab.probes.policies"
_PLACES = {
    "uniform": f"{__name__}:UniformPrompts",
    "stratified": f"{__name__}:StratifiedPrompts",
    "caps": f"{_LEARNED}:Caps",
    "hierarchical": f"{_LEARNED}:Hierarchical",
    "diverse": f"{_LEARNED}:Diverse",
    "gp": f"{_LEARNED}:GaussianThompson",
    "exhaustive": f"{__name__}:Exhaustive",
}
"""Classes by the name of their kind; those that learn are part of groundfault-lab."""

DEFAULT = "diverse"
"""Finds more prompts and more tasks than `UniformPrompts` on real networks (page on the papers)."""


def get(name: str) -> PromptPolicy:
    """Return the policy of a name: a kind, and settings after commas; ``most`` caps each task.

    Raises
    ------
    PlanError
        If the policy, setting or value does not exist.

    Examples
    --------
    >>> get("caps, repeats, prior=stressor").schedule
    'linear'
    >>> get("gp, most=5").name
    'gp, most=5'
    """
    kind, *parts = (part.strip() for part in name.split(","))
    require_name("policy", kind, _PLACES)
    maker = load_object(_PLACES[kind])
    # the types of the defaults say how a setting's text is read
    types = {f.name: type(f.default) for f in fields(maker) if f.default is not MISSING}
    settings: dict[str, Any] = {}
    for part in parts:
        key, equals, value = (each.strip() for each in part.partition("="))
        if key in settings:
            raise PlanError(f"the policy {name!r} sets {key!r} twice")
        if key not in {*types, "most"}:
            raise PlanError(
                f"the policy {kind} has no setting {key!r}; it has {', '.join([*types, 'most'])}"
            )
        settings[key] = _value(name, key, value if equals else None, types.get(key, int))
    max_queries = settings.pop("most", None)
    policy: PromptPolicy = maker(**settings)
    return policy if max_queries is None else Capped(policy, max_queries)


def _value(name: str, key: str, value: str | None, kind: type) -> object:
    if (value is None) != (kind is bool):
        how = (
            f"{key!r} without a value" if kind is bool else f"a value for {key!r}, as in {key}=..."
        )
        raise PlanError(f"the policy {name!r} needs {how}")
    try:
        return value is None or kind(value)
    except ValueError:
        raise PlanError(f"the policy {name!r}: {key} must be a number, not {value!r}") from None
