"""The best slices so far, and which slices are extended."""

from __future__ import annotations

import numpy as np

from groundfault.stats.slice_frontier import BestSlices, Extendable, Parents


def number(*members: int) -> np.ndarray:
    return np.array([[member] for member in members], dtype=np.int32)


def test_the_floor_is_the_kth_best_score_less_the_rounding() -> None:
    best = BestSlices(2, 0.01, number()[:0].reshape(0, 1))
    assert best.floor == -0.01
    best.offer(number(0, 1, 2), np.array([0.5, 0.3, 0.9]))
    assert best.floor == 0.5 - 0.02
    assert best.members.ravel().tolist() == [0, 2]


def test_slices_that_rounding_cannot_tell_from_the_kth_stay() -> None:
    best = BestSlices(1, 0.01, number()[:0].reshape(0, 1))
    best.offer(number(0, 1), np.array([0.5, 0.49]))
    assert len(best.scores) == 2


def test_runs_of_parents_share_all_but_the_last_predicate() -> None:
    members = np.array([[1, 4], [0, 2], [0, 3]], dtype=np.int32)
    parents = Parents.of(members, np.zeros((3, 3), dtype=np.int64), np.arange(3.0))
    assert parents.members.tolist() == [[0, 2], [0, 3], [1, 4]]
    assert parents.ends().tolist() == [2, 2, 3]


def test_the_slices_of_best_bound_are_extended() -> None:
    slices = Extendable(2)
    slices.add(number(0, 1, 2), np.zeros((3, 3), dtype=np.int64), np.array([0.3, 0.9, 0.6]))
    parents = slices.parents(0.1)
    assert parents is not None
    assert parents.members.ravel().tolist() == [1, 2]
    assert (slices.dropped, slices.missed) == (1, 0.3)
    # what was dropped below the present floor is no loss
    assert slices.parents(0.5) is not None
    assert slices.dropped == 0
    assert Extendable(None).parents(0.0) is None
