"""Acquisition policies: which unlabelled examples a model should learn from next.

A policy is a name and a `rank`; one of your own is a few lines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from groundfault.base.arrays import Bools, Floats, Ints, Places
from groundfault.errors import PlanError
from groundfault.sequential import policies
from groundfault.sequential.policies import History
from groundfault_lab.improve.selective import Slicer, fit_copy, suspect
from groundfault_lab.slicing.predictions import EXAMPLES_A_SLICE

# share of the pool that a policy has to name at least
_LOWEST = 0.05


@dataclass(frozen=True, eq=False)
class AcquisitionRound:
    """All that a policy may know: the model's outputs on the pool, and on validation examples.

    Attributes
    ----------
    embedding, probability : float64 arrays, shapes (n, d) and (n, c)
        Of the n examples that are left in the pool.
    validation_embedding, validation_probability : float64 arrays, shapes (v, d) and (v, c)
        Of the validation examples, which the model never learns from.
    validation_label : int64 array, shape (v,)
    batch : int
        How many examples will be learnt from next.
    """

    embedding: Floats
    probability: Floats
    validation_embedding: Floats
    validation_probability: Floats
    validation_label: Ints
    batch: int

    @property
    def validation_errors(self) -> Bools:
        """Return where the model errs on the validation examples."""
        return np.asarray(self.validation_probability.argmax(axis=1) != self.validation_label)


class Acquisition(Protocol):
    """Says what to learn from next."""

    @property
    def name(self) -> str:
        """Return its name in curves and tables."""

    def rank(self, state: AcquisitionRound, rng: np.random.Generator) -> Places:
        """Return rows of the pool, first those to label first: shape (n,).

        A pure function of round and generator.
        """


@dataclass(frozen=True)
class RandomOrder:
    """Any example."""

    name: str = "random"

    def rank(self, state: AcquisitionRound, rng: np.random.Generator) -> Places:
        """Rank by chance."""
        return rng.permutation(len(state.embedding))


@dataclass(frozen=True)
class LeastConfident:
    """The examples of least confidence."""

    name: str = "confidence"

    def rank(self, state: AcquisitionRound, rng: np.random.Generator) -> Places:
        """Rank by rising confidence."""
        return _rank_by(-state.probability.max(axis=1), rng)


@dataclass(frozen=True, eq=False)
class SuspectSlices:
    """The examples that a slicer, fitted to the validation examples, calls error-prone.

    They come first, the most suspected in front, and after them the others by suspicion. At most
    one slice is fitted for every twenty validation examples. Where the model makes no errors there,
    or nothing else, chance decides.

    Parameters
    ----------
    slicer : Slicer
        Such as `Edisa` or `Domino`; it is copied.
    """

    slicer: Slicer

    @property
    def name(self) -> str:
        """Return the slicer's name."""
        return self.slicer.name

    def rank(self, state: AcquisitionRound, rng: np.random.Generator) -> Places:
        """Rank error-prone examples first, then by suspicion."""
        slices = min(
            self.slicer.get_params()["n_slices"], len(state.validation_label) // EXAMPLES_A_SLICE
        )
        wrong = state.validation_errors
        is_one_class = len(np.unique(state.validation_label)) < 2
        if slices < 2 or wrong.all() or not wrong.any() or is_one_class:
            return RandomOrder().rank(state, rng)
        parts = (state.validation_embedding, state.validation_label, state.validation_probability)
        slicer = fit_copy(self.slicer, *parts, n_slices=slices)
        error_prone, suspicion = suspect(slicer, state.embedding, state.probability)
        return _rank_by(error_prone + suspicion, rng)


@dataclass(frozen=True)
class Auditor:
    """The next query of an adaptive auditor: where it expects failures after those so far.

    The policy of a sequential audit is shown the model's hits and misses on the validation
    examples, and asked to name at least the lowest 5 % of the pool. The batch is drawn among the
    cases it names, as an audit draws its cases, and the rest of the order is chance.

    Parameters
    ----------
    policy : str or groundfault.sequential.policies.Policy
        Name or policy; see `groundfault.sequential.policies.get`.
    max_validation : int, optional
        Give it so many validation examples, drawn anew each round; all, where left out. A policy
        that trains again after each score needs few.

    Notes
    -----
    Nothing is tested here: an audit's guarantees are about claims made before labels are seen, and
    a model that learns from the labels is another model in the next round.
    """

    policy: str | policies.Policy = "prelearned"
    max_validation: int | None = None
    name: str = "auditor"

    def __post_init__(self) -> None:
        if self.max_validation is not None and self.max_validation < 2:
            raise PlanError(
                f"max_validation={self.max_validation!r} must be at least 2: an auditor learns "
                "from examples"
            )

    def rank(self, state: AcquisitionRound, rng: np.random.Generator) -> Places:
        """Rank the examples that the policy names first, in random order, then the rest."""
        policy = policies.get(self.policy) if isinstance(self.policy, str) else self.policy
        if self.max_validation is not None:
            some = rng.permutation(len(state.validation_label))[: self.max_validation]
            views = ("validation_embedding", "validation_probability", "validation_label")
            state = replace(state, **{view: getattr(state, view)[some] for view in views})
        rows, count = len(state.embedding), len(state.validation_label)
        least = min(rows, max(state.batch, math.ceil(_LOWEST * rows)))
        query = policy.ask(_history(state, least), rng)
        queried = np.zeros(rows, dtype=np.bool_)
        if query is not None and query.items is not None:
            queried = query.items[count:]
        elif query is not None and query.group is not None:
            queried = _groups(state)[query.group][count:]
        return _rank_by(queried.astype(np.float64), rng)


def _rank_by(score: Floats, rng: np.random.Generator) -> Places:
    """Return rows by falling score; of equals, any may come first."""
    # shuffled before a stable sort, so that equals come in random order
    order = rng.permutation(len(score))
    return np.asarray(order[np.argsort(-score[order], kind="stable")])


def _history(state: AcquisitionRound, least: int) -> History:
    """Return the validation examples as labelled cases, and the pool as cases to choose from."""
    count, rows = len(state.validation_label), len(state.embedding)
    groups = _groups(state)
    right = (~state.validation_errors).astype(np.float64)
    embeddings = np.vstack((state.validation_embedding, state.embedding))
    probabilities = np.vstack((state.validation_probability, state.probability))
    # the model's own accuracy: failures are what lies below it
    threshold = float(right.mean())
    return History(
        threshold=threshold,
        groups=tuple(groups),
        members=np.stack(list(groups.values())),
        embedding=np.hstack([_scale(embeddings), _scale(probabilities)]),
        available=np.arange(count + rows) >= count,
        # no stakes and no claims: the policy is used as a ranking
        anywhere=True,
        min_eligible=least,
        rest_targets=np.full(len(groups), threshold),
        positions=np.arange(count),
        scores=right,
        group_indices=np.full(count, -1),
        claimed=np.zeros(count, dtype=np.bool_),
        staked=np.zeros(count, dtype=np.bool_),
    )


def _groups(state: AcquisitionRound) -> Mapping[str, Bools]:
    """Return validation and pool examples by predicted class."""
    classes = np.concatenate([state.validation_probability, state.probability]).argmax(axis=1)
    return {f"class {number}": classes == number for number in np.unique(classes).tolist()}


def _scale(view: Floats) -> Floats:
    """Scale to a mean of 0 and a mean squared length of 1, so that no view drowns the other."""
    view = view - view.mean(axis=0)
    length = np.sqrt((view**2).sum(axis=1).mean())
    return np.asarray(view / length) if length > 0 else view
