"""Grader: draw where a cheap grade of every case, and the labels, say that the test gains most."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from groundfault.base.arrays import Floats
from groundfault.base.long_work import one_thread
from groundfault.errors import PlanError
from groundfault.sequential.policies import History, Query
from groundfault.sequential.policies.learned import (
    Cache,
    LabelledData,
    compute_gain,
    logistic,
    predict_group_rests,
)

_RIGHT = 0.9  # a grade counts at first as one that is right nine times in ten; labels correct that
_CUTS = 20  # parts of a group that are weighed: its doubted 5 %, 10 %, ...


@dataclass(frozen=True)
class Grader:
    """Draw from the cases of a group that a cheap grade doubts, as long as that gains most.

    The pool's embedding is the grade: one column, from 0 to 1, which points where scores do. If the
    doubted part of a group fails so much that the group falls short even if all its other cases
    pass, a few labels of that part refute the null. Which part it is follows from grades and
    earlier labels by the logistic regression of `logistic`, which learns how far to trust grades.
    Where no part gains more than the whole group does, for either verdict, the draw is from the
    whole group: only such draws count against the auditor's null, so that a sound model can pass.

    Grades choose where to look: wrong grades leave the error rate as it is."""

    name: ClassVar[str] = "grader"
    _features: Cache = field(default_factory=Cache, init=False, repr=False, compare=False)

    def ask(self, history: History, rng: np.random.Generator) -> Query | None:
        """Return the part of a group, or the group, of largest gain.

        Raises
        ------
        PlanError
            If the pool has no grades.
        """
        draws = self._predict(history, rng)
        useful, means = predict_group_rests(history, self._features.of(history), draws)
        if not len(useful):
            return None
        targets = history.rest_targets[useful]
        gains = compute_gain(means, targets).mean(axis=0)
        expected = means.mean(axis=0)
        value = gains if gains.any() else targets - expected
        first = int(value.argmax())
        # draws from the whole group may also show that it passes, as far as it is expected to
        best, items = gains[first] + compute_gain(1.0 - expected, 1.0 - targets)[first], None
        group = int(useful[first])
        order = np.argsort(draws.mean(axis=0), kind="stable")
        for place, target in zip(useful, targets, strict=True):
            rest = order[(history.members[place] & history.available)[order]]
            gain, size = _find_part(draws[:, rest], float(target))
            if gain > best:
                best, group, items = gain, int(place), rest[:size]
        if items is None:
            return Query(history.groups[group], claim=True)
        mask = np.zeros_like(history.available)
        mask[items] = True
        return Query(history.groups[group], mask, claim=True)

    def _predict(self, history: History, rng: np.random.Generator) -> Floats:
        """Return draws of each case's chance of a pass, shape (K, N)."""
        grades = history.embedding
        is_grade = grades is not None and grades.shape[1] == 1 and not history.anywhere
        if grades is None or not is_grade or grades.min() < 0 or grades.max() > 1:
            raise PlanError(
                "the policy grader needs one column of grades from 0 to 1 as the embedding of the "
                "pool, as in --embedding judge_score, and the claim declared-groups"
            )
        chances = _RIGHT * grades[:, 0] + (1 - _RIGHT) * (1 - grades[:, 0])
        odds = np.log(chances / (1 - chances))
        has_score = ~np.isnan(history.scores)
        positions, scores = history.positions[has_score], history.scores[has_score]
        labels = LabelledData(
            self._features.of(history), positions, scores, history.threshold, odds - odds.mean()
        )
        with one_thread():
            return logistic(labels, rng)


def _find_part(draws: Floats, target: float) -> tuple[float, int]:
    """Return the largest gain of a part of a group's rest, the most doubted cases, and its size."""
    count = draws.shape[1]
    sizes = np.unique(np.ceil(count * np.arange(1, _CUTS) / _CUTS).astype(np.intp))
    totals = np.add.reduceat(draws[:, : sizes[-1]], [0, *sizes[:-1]], axis=1).cumsum(axis=1)
    # the part must bring the whole rest below its target though all others of it pass
    gains = compute_gain(totals / sizes, 1.0 - (1.0 - target) * count / sizes).mean(axis=0)
    best = int(gains.argmax())
    return float(gains[best]), int(sizes[best])
