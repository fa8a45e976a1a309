"""Policies: which prompt keys to ask next, and with which chances. `get` finds one by its name."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields, replace
from functools import lru_cache
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from groundfault.base.deprecation import rename_attributes, rename_fields
from groundfault.errors import PlanError
from groundfault.probes.policies.history import (
    Bools,
    Floats,
    Keys,
    NamedPolicy,
    PromptHistory,
    PromptPolicy,
    chances_of,
    draw,
    weigh_tasks_equally,
)
from groundfault.probes.policies.thompson import GaussianThompson, Hierarchical

__all__ = [
    "POLICIES",
    "Capped",
    "Caps",
    "Exhaustive",
    "GaussianThompson",
    "Hierarchical",
    "PromptHistory",
    "PromptPolicy",
    "StratifiedPrompts",
    "UniformPrompts",
    "chances_of",
    "get",
]

__getattr__ = rename_attributes(
    __name__,
    {
        "Asked": "groundfault.probes.policies:PromptHistory",
        "Policy": "groundfault.probes.policies:PromptPolicy",
        "Stratified": "groundfault.probes.policies:StratifiedPrompts",
        "Uniform": "groundfault.probes.policies:UniformPrompts",
    },
)

Order = Literal["seeded", "canonical"]
Prior = Literal["neutral", "stressor"]
Schedule = Literal["linear", "geometric", "constant"]

STRESSOR = 0.5
"""What the prior of that name gives each option but the first of its group; no mismatch gives more
than 1.
"""


def _one_of(what: str, value: str, words: tuple[str, ...]) -> None:
    if value not in words:
        raise PlanError(f"{what} must be one of {', '.join(words)}, not {value!r}")


@dataclass(frozen=True)
class UniformPrompts(NamedPolicy):
    """Every task and assignment alike; ``repeats`` as in the paper, or none."""

    repeats: bool = False
    kind: ClassVar[str] = "uniform"

    def ask(
        self,
        history: PromptHistory,
        size: int,
        tasks: np.random.Generator,
        rng: np.random.Generator,
    ) -> Keys:
        """Tasks uniformly, then assignments uniformly."""
        return draw(self, history, size, tasks, rng)

    def chances(self, history: PromptHistory) -> Floats:
        """Each task that has a key left alike, and within it each key that is left."""
        # tasks first, keys second: a task with more options must not be drawn more often
        open_keys = history.open if self.repeats else history.fresh
        return weigh_tasks_equally(open_keys.reshape(history.tasks, -1).astype(float))


@dataclass(frozen=True)
class StratifiedPrompts(NamedPolicy):
    """The tasks in turn, without repeats: unbiased for the mismatch rate, and the control."""

    kind: ClassVar[str] = "stratified"

    def ask(
        self,
        history: PromptHistory,
        size: int,
        tasks: np.random.Generator,
        rng: np.random.Generator,
    ) -> Keys:
        """From the tasks asked least, one unasked key each."""
        return draw(self, history, size, tasks, rng)

    def chances(self, history: PromptHistory) -> Floats:
        """Each task asked least alike, and within it each key that is left."""
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
        _one_of("the order of the policy exhaustive", self.order, get_args(Order))

    def ask(
        self,
        history: PromptHistory,
        size: int,
        tasks: np.random.Generator,
        rng: np.random.Generator,
    ) -> Keys:
        """Any key that is left, or the next."""
        return draw(self, history, size, tasks, rng)

    def chances(self, history: PromptHistory) -> Floats:
        """Each key that is left alike; in canonical order the first is certain."""
        weights = history.fresh.astype(float)
        if self.order == "canonical":
            weights[np.flatnonzero(weights)[1:]] = 0
        return np.asarray(weights / max(1.0, weights.sum()))


@dataclass(frozen=True)
class Caps(NamedPolicy):
    """Component-adaptive prompt sampling, the paper's: scores of options, and a softmax that cools.

    Parameters
    ----------
    repeats : bool
        As in the paper, or none.
    prior : {"neutral", "stressor"}
        First scores: 0 for all, or `STRESSOR` for each option but the first of its group.
    schedule : {"linear", "geometric", "constant"}
        How the temperature falls from ``start``: to 0 behind the last batch but never below
        ``floor``, as in the paper; by one factor from batch to batch, reaching ``floor`` in the
        last; or not at all.
    rate : float
        Rate of the exponential moving average of the signal, in (0, 1].
    start, floor : float
        Temperature of the first batch, and the least: above 0.

    Notes
    -----
    The paper's formulas are lost in the text that we have; ours: an option's chance is the softmax
    of score over temperature, the temperature falls linearly, and a chosen option's score moves to
    (1 - rate) score + rate signal."""

    repeats: bool = False
    prior: Prior = "neutral"
    schedule: Schedule = "linear"
    rate: float = 0.3
    start: float = 1.0
    floor: float = 0.2
    kind: ClassVar[str] = "caps"

    def __post_init__(self) -> None:
        _one_of("the prior of the policy caps", self.prior, get_args(Prior))
        _one_of("the schedule of the policy caps", self.schedule, get_args(Schedule))
        if not (0 < self.rate <= 1 and 0 < self.floor <= self.start < np.inf):
            raise PlanError(
                "CAPS needs a rate in (0, 1], and temperatures above 0 that do not rise"
            )

    def scores(self, history: PromptHistory) -> list[Floats]:
        """The score of each option of each group."""
        options, first = (
            history.options[history.keys % history.assignments],
            STRESSOR * (self.prior == "stressor"),
        )
        return [
            np.array(
                [
                    self._score(history.mismatch[options[:, g] == o], first * (o > 0))
                    for o in range(size)
                ]
            )
            for g, size in enumerate(history.sizes)
        ]

    def _score(self, signals: Bools, first: float) -> float:
        # the moving average in closed form: the last signal has weight rate, and so on back
        decay = (1 - self.rate) ** np.arange(len(signals) + 1)
        return float(first * decay[-1] + self.rate * signals @ decay[:-1][::-1])

    @lru_cache(maxsize=64)  # noqa: B019  (policies are few and frozen, and a batch asks this for each of its draws)
    def _odds(
        self, sizes: tuple[int, ...], keys: bytes, mismatch: bytes, batch: int, batches: int
    ) -> Floats:
        """The logarithm of each assignment's weight."""
        at, signals = np.frombuffer(keys, dtype=np.intp), np.frombuffer(mismatch, dtype=bool)
        history = PromptHistory(0, sizes, at, signals, batch, batches)
        odds = np.zeros(history.assignments)
        for group, scores in enumerate(self.scores(history)):
            odds += (scores / self.temperature(batch, batches))[history.options[:, group]]
        return odds

    def temperature(self, batch: int, batches: int) -> float:
        """The temperature of a batch, counted from 1."""
        if self.schedule == "constant":
            return self.start
        if self.schedule == "geometric":
            return float(
                self.start * (self.floor / self.start) ** ((batch - 1) / max(1, batches - 1))
            )
        return max(self.floor, self.start * (1 - (batch - 1) / batches))

    def ask(
        self,
        history: PromptHistory,
        size: int,
        tasks: np.random.Generator,
        rng: np.random.Generator,
    ) -> Keys:
        """Tasks uniformly, then one option of each group by its score."""
        return draw(self, history, size, tasks, rng)

    def chances(self, history: PromptHistory) -> Floats:
        """Each task that has a key left alike, and within it by the softmax of each group."""
        odds = self._odds(
            history.sizes,
            history.keys.tobytes(),
            history.mismatch.tobytes(),
            history.batch,
            history.batches,
        )
        open_keys = (history.open if self.repeats else history.fresh).reshape(history.tasks, -1)
        # from the best that is left, so that no task that has one ends up without weight
        best = np.where(open_keys, odds, -1e300).max(axis=1, keepdims=True)
        return weigh_tasks_equally(np.where(open_keys, np.exp(np.minimum(odds - best, 0)), 0.0))


@rename_fields(most="max_queries")
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
        """The policy's, and the cap."""
        # "most" and not max_queries: names are in manifests and folders of stored runs
        return f"{self.policy.name}, most={self.max_queries}"

    def ask(
        self,
        history: PromptHistory,
        size: int,
        tasks: np.random.Generator,
        rng: np.random.Generator,
    ) -> Keys:
        """What the policy asks, one by one, from the tasks that are below the cap."""
        keys: list[int] = []
        for _ in range(size):
            # one at a time, for the cap may be reached inside a batch
            one = self.policy.ask(self._below(history), 1, tasks, rng)
            if not len(one):
                break
            keys.append(int(one[0]))
            history = history.after(keys[-1])
        return np.array(keys, dtype=np.intp)

    def chances(self, history: PromptHistory) -> Floats | None:
        """The policy's, where only tasks below the cap are open."""
        return self.policy.chances(self._below(history))

    def _below(self, history: PromptHistory) -> PromptHistory:
        full = np.repeat(history.per_task >= self.max_queries, history.assignments)
        return replace(history, blocked=~history.open | full)


_KINDS: dict[str, Any] = {
    policy_class.kind: policy_class
    for policy_class in (
        UniformPrompts,
        StratifiedPrompts,
        Caps,
        Hierarchical,
        GaussianThompson,
        Exhaustive,
    )
}

POLICIES: dict[str, PromptPolicy] = {
    policy.name: policy
    for policy in (
        UniformPrompts(repeats=True),
        UniformPrompts(),
        StratifiedPrompts(),
        Caps(repeats=True),
        Caps(),
        Hierarchical(),
        GaussianThompson(),
        Exhaustive(),
    )
}
"""Policies by name, with their usual settings; `get` knows all others."""


def get(name: str) -> PromptPolicy:
    """The policy with a name: a kind, and settings after commas; ``most`` caps queries of a task.

    Raises
    ------
    PlanError
        If there is no such policy, setting or value.

    Examples
    --------
    >>> get("caps, repeats, prior=stressor").schedule
    'linear'
    >>> get("gp, most=5").name
    'gp, most=5'
    """
    kind, *parts = (part.strip() for part in name.split(","))
    if kind not in _KINDS:
        raise PlanError(f"there is no policy {kind!r}; there are {', '.join(_KINDS)}")
    # the types of the defaults say how a setting's text is read
    types = {f.name: type(f.default) for f in fields(_KINDS[kind]) if f.default is not MISSING}
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
    policy: PromptPolicy = _KINDS[kind](**settings)
    return policy if max_queries is None else Capped(policy, max_queries)


def _value(name: str, key: str, value: str | None, kind: type) -> Any:
    if (value is None) != (kind is bool):
        how = (
            f"{key!r} without a value" if kind is bool else f"a value for {key!r}, as in {key}=..."
        )
        raise PlanError(f"the policy {name!r} needs {how}")
    try:
        return value is None or kind(value)
    except ValueError:
        raise PlanError(f"the policy {name!r}: {key} must be a number, not {value!r}") from None
