"""Policies: which prompt keys to ask next, and with which chances. `get` finds one by its name."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields, replace
from functools import lru_cache
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from groundfault.errors import PlanError
from groundfault.probes.policies.history import (
    Asked,
    Bools,
    Floats,
    Keys,
    Named,
    Policy,
    chances_of,
    draw,
    each_task_alike,
)
from groundfault.probes.policies.thompson import GaussianThompson, Hierarchical

__all__ = [
    "POLICIES",
    "Asked",
    "Capped",
    "Caps",
    "Exhaustive",
    "GaussianThompson",
    "Hierarchical",
    "Policy",
    "Stratified",
    "Uniform",
    "chances_of",
    "get",
]

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
class Uniform(Named):
    """Every task and assignment alike; ``repeats`` as in the paper, or none."""

    repeats: bool = False
    kind: ClassVar[str] = "uniform"

    def ask(
        self, asked: Asked, size: int, tasks: np.random.Generator, rng: np.random.Generator
    ) -> Keys:
        """Tasks uniformly, then assignments uniformly."""
        return draw(self, asked, size, tasks, rng)

    def chances(self, asked: Asked) -> Floats:
        """Each task that has a key left alike, and within it each key that is left."""
        left = asked.open if self.repeats else asked.fresh
        return each_task_alike(left.reshape(asked.tasks, -1).astype(float))


@dataclass(frozen=True)
class Stratified(Named):
    """Without repeats, the tasks in turn: unbiased for how often the model mismatches, and the
    control.
    """

    kind: ClassVar[str] = "stratified"

    def ask(
        self, asked: Asked, size: int, tasks: np.random.Generator, rng: np.random.Generator
    ) -> Keys:
        """From the tasks asked least, one unasked key each."""
        return draw(self, asked, size, tasks, rng)

    def chances(self, asked: Asked) -> Floats:
        """Each task asked least alike, and within it each key that is left."""
        left = asked.fresh.reshape(asked.tasks, -1)
        turns = np.where(left.any(axis=1), asked.per_task, np.iinfo(np.intp).max)
        return each_task_alike((left & (turns == turns.min())[:, None]).astype(float))


@dataclass(frozen=True)
class Exhaustive(Named):
    """Every key once, which gives the exact rate of failures: in a drawn order, or in the order of
    the bank.
    """

    order: Order = "seeded"
    kind: ClassVar[str] = "exhaustive"

    def __post_init__(self) -> None:
        _one_of("the order of the policy exhaustive", self.order, get_args(Order))

    def ask(
        self, asked: Asked, size: int, tasks: np.random.Generator, rng: np.random.Generator
    ) -> Keys:
        """Any key that is left, or the next."""
        return draw(self, asked, size, tasks, rng)

    def chances(self, asked: Asked) -> Floats:
        """Each key that is left alike; in canonical order the first is certain."""
        left = asked.fresh.astype(float)
        if self.order == "canonical":
            left[np.flatnonzero(left)[1:]] = 0
        return np.asarray(left / max(1.0, left.sum()))


@dataclass(frozen=True)
class Caps(Named):
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
        Of the exponential moving average of the signal, in (0, 1].
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

    def scores(self, asked: Asked) -> list[Floats]:
        """The score of each option of each group."""
        chosen, first = (
            asked.options[asked.keys % asked.assignments],
            STRESSOR * (self.prior == "stressor"),
        )
        return [
            np.array(
                [
                    self._score(asked.mismatch[chosen[:, g] == o], first * (o > 0))
                    for o in range(size)
                ]
            )
            for g, size in enumerate(asked.sizes)
        ]

    def _score(self, seen: Bools, first: float) -> float:
        left = (1 - self.rate) ** np.arange(len(seen) + 1)
        return float(first * left[-1] + self.rate * seen @ left[:-1][::-1])

    @lru_cache(maxsize=64)  # noqa: B019  (policies are few and frozen, and a batch asks this for each of its draws)
    def _odds(
        self, sizes: tuple[int, ...], keys: bytes, mismatch: bytes, batch: int, batches: int
    ) -> Floats:
        """The logarithm of each assignment's weight."""
        at, signals = np.frombuffer(keys, dtype=np.intp), np.frombuffer(mismatch, dtype=bool)
        asked = Asked(0, sizes, at, signals, batch, batches)
        odds = np.zeros(asked.assignments)
        for group, scores in enumerate(self.scores(asked)):
            odds += (scores / self.temperature(batch, batches))[asked.options[:, group]]
        return odds

    def temperature(self, batch: int, batches: int) -> float:
        """Of a batch, counted from 1."""
        if self.schedule == "constant":
            return self.start
        if self.schedule == "geometric":
            return float(
                self.start * (self.floor / self.start) ** ((batch - 1) / max(1, batches - 1))
            )
        return max(self.floor, self.start * (1 - (batch - 1) / batches))

    def ask(
        self, asked: Asked, size: int, tasks: np.random.Generator, rng: np.random.Generator
    ) -> Keys:
        """Tasks uniformly, then one option of each group by its score."""
        return draw(self, asked, size, tasks, rng)

    def chances(self, asked: Asked) -> Floats:
        """Each task that has a key left alike, and within it by the softmax of each group."""
        odds = self._odds(
            asked.sizes, asked.keys.tobytes(), asked.mismatch.tobytes(), asked.batch, asked.batches
        )
        left = (asked.open if self.repeats else asked.fresh).reshape(asked.tasks, -1)
        # from the best that is left, so that no task that has one ends up without weight
        best = np.where(left, odds, -1e300).max(axis=1, keepdims=True)
        return each_task_alike(np.where(left, np.exp(np.minimum(odds - best, 0)), 0.0))


@dataclass(frozen=True)
class Capped:
    """Any policy, with at most so many queries of one task."""

    policy: Policy
    most: int

    def __post_init__(self) -> None:
        if self.most < 1:
            raise PlanError(f"most must be at least 1 query of a task, not {self.most}")

    @property
    def name(self) -> str:
        """The policy's, and the cap."""
        return f"{self.policy.name}, most={self.most}"

    def ask(
        self, asked: Asked, size: int, tasks: np.random.Generator, rng: np.random.Generator
    ) -> Keys:
        """What the policy asks, one by one, from the tasks that are below the cap."""
        chosen: list[int] = []
        for _ in range(size):
            one = self.policy.ask(self._below(asked), 1, tasks, rng)
            if not len(one):
                break
            chosen.append(int(one[0]))
            asked = asked.after(chosen[-1])
        return np.array(chosen, dtype=np.intp)

    def chances(self, asked: Asked) -> Floats | None:
        """The policy's, where only tasks below the cap are open."""
        return self.policy.chances(self._below(asked))

    def _below(self, asked: Asked) -> Asked:
        full = np.repeat(asked.per_task >= self.most, asked.assignments)
        return replace(asked, blocked=~asked.open | full)


_KINDS: dict[str, Any] = {
    made.kind: made
    for made in (Uniform, Stratified, Caps, Hierarchical, GaussianThompson, Exhaustive)
}

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
        Exhaustive(),
    )
}
"""Policies by name, with their usual settings; `get` knows all others."""


def get(name: str) -> Policy:
    """The policy of a name: its kind, and after commas its settings; ``most`` caps the queries of a
    task.

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
    kind, *told = (part.strip() for part in name.split(","))
    if kind not in _KINDS:
        raise PlanError(f"there is no policy {kind!r}; there are {', '.join(_KINDS)}")
    types = {f.name: type(f.default) for f in fields(_KINDS[kind]) if f.default is not MISSING}
    given: dict[str, Any] = {}
    for part in told:
        key, equals, value = (each.strip() for each in part.partition("="))
        if key in given:
            raise PlanError(f"the policy {name!r} sets {key!r} twice")
        if key not in {*types, "most"}:
            raise PlanError(
                f"the policy {kind} has no setting {key!r}; it has {', '.join([*types, 'most'])}"
            )
        given[key] = _value(name, key, value if equals else None, types.get(key, int))
    most = given.pop("most", None)
    policy: Policy = _KINDS[kind](**given)
    return policy if most is None else Capped(policy, most)


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
