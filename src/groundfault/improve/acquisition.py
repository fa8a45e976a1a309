"""Acquisition policies: which unlabelled examples a model should learn from next.

A policy is a name and a `rank`; one of your own is a few lines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from groundfault.errors import PlanError
from groundfault.improve.selective import Slicer
from groundfault.sequential import policies
from groundfault.sequential.policies import History

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Order = NDArray[np.intp]

_EXAMPLES_A_SLICE = 20
_LOWEST = 0.05


@dataclass(frozen=True, eq=False)
class Round:
    """All that a policy may know: what the model says of the unlabelled pool, and of labelled
    validation examples.

    Attributes
    ----------
    embedding, probability : float64 arrays, shapes (n, d) and (n, c)
        Of the n examples that are left in the pool.
    seen_embedding, seen_probability : float64 arrays, shapes (v, d) and (v, c)
        Of the validation examples, which the model never learns from.
    seen_label : int64 array, shape (v,)
    batch : int
        How many examples will be learnt from next.
    """

    embedding: Floats
    probability: Floats
    seen_embedding: Floats
    seen_probability: Floats
    seen_label: Ints
    batch: int

    @property
    def seen_wrong(self) -> NDArray[np.bool_]:
        """Where the model errs on the validation examples."""
        return np.asarray(self.seen_probability.argmax(axis=1) != self.seen_label)


class Acquisition(Protocol):
    """Says what to learn from next."""

    @property
    def name(self) -> str:
        """What it is called in curves and tables."""

    def rank(self, seen: Round, rng: np.random.Generator) -> Order:
        """Rows of the pool, what to label first in front: a pure function of round and generator,
        shape (n,).
        """


@dataclass(frozen=True)
class Random:
    """Any example."""

    name: str = "random"

    def rank(self, seen: Round, rng: np.random.Generator) -> Order:
        """By chance."""
        return rng.permutation(len(seen.embedding))


@dataclass(frozen=True)
class Confidence:
    """The examples of least confidence."""

    name: str = "confidence"

    def rank(self, seen: Round, rng: np.random.Generator) -> Order:
        """By rising confidence."""
        return _falling(-seen.probability.max(axis=1), rng)


@dataclass(frozen=True, eq=False)
class Slices:
    """The examples that a slicer, fitted to the validation examples, calls error-prone.

    They come first, the most suspected in front, and after them the others by suspicion. At most
    one slice is fitted for every twenty validation examples. Where the model makes no errors there,
    or nothing else, chance decides.

    Parameters
    ----------
    slicer : Slicer
        Such as `groundfault.finders.Edisa` or `groundfault.finders.Domino`; it is copied.
    """

    slicer: Slicer

    @property
    def name(self) -> str:
        """The slicer's."""
        return self.slicer.name

    def rank(self, seen: Round, rng: np.random.Generator) -> Order:
        """Error-prone first, then by suspicion."""
        parameters = self.slicer.get_params()
        slices = min(parameters["n_slices"], len(seen.seen_label) // _EXAMPLES_A_SLICE)
        wrong = seen.seen_wrong
        if (
            slices < 2
            or wrong.all()
            or not wrong.any()
            or (seen.seen_label == seen.seen_label[0]).all()
        ):
            return Random().rank(seen, rng)
        slicer: Slicer = type(self.slicer)(**parameters | {"n_slices": slices})
        slicer.fit(seen.seen_embedding, seen.seen_label, seen.seen_probability)
        prone = slicer.error_prone(seen.embedding, seen.probability)
        return _falling(prone + slicer.error_probability(seen.embedding, seen.probability), rng)


@dataclass(frozen=True)
class Auditor:
    """What an adaptive auditor would ask about next: where it expects failures from the failures it
    has seen.

    The policy of a sequential audit is shown the model's hits and misses on the validation
    examples, and asked to name at least the lowest 5 % of the pool. The batch is drawn among the
    cases it names, as an audit draws its cases, and the rest of the order is chance.

    Parameters
    ----------
    policy : str or groundfault.sequential.policies.Policy
        Name or policy; see `groundfault.sequential.policies.get`.
    shown : int, optional
        So many validation examples, drawn anew each round, are shown to it; all, where left out. A
        policy that trains again after each score wants few.

    Notes
    -----
    Nothing is tested here: an audit's guarantees are about claims made before labels are seen, and
    a model that learns from the labels is another model in the next round."""

    policy: str | policies.Policy = "prelearned"
    shown: int | None = None
    name: str = "auditor"

    def __post_init__(self) -> None:
        if self.shown is not None and self.shown < 2:
            raise PlanError(
                f"shown={self.shown!r} must be at least 2: an auditor learns from what it has seen"
            )

    def rank(self, seen: Round, rng: np.random.Generator) -> Order:
        """What the policy names, in random order, then the rest."""
        chosen = policies.get(self.policy) if isinstance(self.policy, str) else self.policy
        if self.shown is not None:
            some = rng.permutation(len(seen.seen_label))[: self.shown]
            views = ("seen_embedding", "seen_probability", "seen_label")
            seen = replace(seen, **{view: getattr(seen, view)[some] for view in views})
        rows, known = len(seen.embedding), len(seen.seen_label)
        least = min(rows, max(seen.batch, math.ceil(_LOWEST * rows)))
        query = chosen.ask(_history(seen, least), rng)
        named = np.zeros(rows, dtype=np.bool_)
        if query is not None and query.items is not None:
            named = query.items[known:]
        elif query is not None and query.group is not None:
            named = _groups(seen)[query.group][known:]
        return _falling(named.astype(np.float64), rng)


def _falling(score: Floats, rng: np.random.Generator) -> Order:
    """Rows by falling score; of equals, any may come first."""
    order = rng.permutation(len(score))
    return np.asarray(order[np.argsort(-score[order], kind="stable")])


def _history(seen: Round, least: int) -> History:
    """The validation examples as cases asked about, and the pool as cases on offer."""
    known, rows = len(seen.seen_label), len(seen.embedding)
    groups = _groups(seen)
    right = (~seen.seen_wrong).astype(np.float64)
    views = (
        np.vstack(v)
        for v in ((seen.seen_embedding, seen.embedding), (seen.seen_probability, seen.probability))
    )
    threshold = float(right.mean())
    return History(
        threshold=threshold,
        groups=tuple(groups),
        members=np.stack(list(groups.values())),
        embedding=np.hstack([_scaled(view) for view in views]),
        offered=np.arange(known + rows) >= known,
        anywhere=True,
        least=least,
        needed=np.full(len(groups), threshold),
        asked=np.arange(known),
        scores=right,
        drawn_from=np.full(known, -1),
        claimed=np.zeros(known, dtype=np.bool_),
        staked=np.zeros(known, dtype=np.bool_),
    )


def _groups(seen: Round) -> Mapping[str, NDArray[np.bool_]]:
    """Validation and pool examples by predicted class."""
    predicted = np.concatenate([seen.seen_probability, seen.probability]).argmax(axis=1)
    return {f"class {number}": predicted == number for number in np.unique(predicted).tolist()}


def _scaled(view: Floats) -> Floats:
    """Centred, with a mean squared length of one, so that no view drowns the other."""
    view = view - view.mean(axis=0)
    length = np.sqrt((view**2).sum(axis=1).mean())
    return np.asarray(view / length) if length > 0 else view
