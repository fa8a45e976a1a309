"""Scores of slices and their bounds, against exact fractions."""

from __future__ import annotations

from fractions import Fraction
from math import fsum

import numpy as np
import pytest
from hypothesis import given, strategies as st

from groundfault.stats import bits
from groundfault_lab.stats.slices import (
    BestSlices,
    Errors,
    Extendable,
    Parents,
    Predicates,
    score_exactly,
    sum_exactly,
)


@given(st.lists(st.integers(0, 5), min_size=4, max_size=200).filter(any), st.data())
def test_scores_are_the_exact_ones_to_within_the_slack(
    errors: list[int], data: st.DataObject
) -> None:
    loss = np.array(errors, dtype=np.float64)
    objective = Errors.of(loss).objective(0.95, 1)
    size = data.draw(st.integers(1, len(errors)))
    inside = float(loss[:size].sum())
    exact = score_exactly(size, inside, len(errors), float(loss.sum()), Fraction("0.95"))
    score = objective.score(np.array([size]), np.array([int(inside)]))[0]
    assert score == pytest.approx(float(exact), abs=objective.slack)
    top = np.array([int(loss[:size].max())])
    bound = objective.bound(np.array([size]), np.array([int(inside)]), top)[0]
    assert bound >= score - 2 * objective.slack or inside == 0


def test_the_score_of_all_rows_is_zero() -> None:
    assert score_exactly(10, 4.0, 10, 4.0, Fraction(9, 10)) == 0


def test_graded_errors_are_quanta_rounded_up() -> None:
    loss = np.array([0.0, 0.3, 0.7, 0.7])
    errors = Errors.of(loss)
    assert errors.fineness > 0
    assert errors.order[errors.order >= 0].tolist() == [2, 3, 1]
    quantum = 0.7 / errors.quanta.max()
    assert (errors.quanta * quantum >= loss * (1 - 1e-15)).all()


def test_predicates_without_support_are_left_out() -> None:
    codes = np.array([[0, 0, 0, 0, 1, 1], [0, 1, 0, 1, 0, 2]], dtype=np.uint8)
    errors = Errors.of(np.array([1.0, 1, 0, 0, 0, 1]))
    predicates = Predicates.of(codes, np.array([2, 3]), errors.objective(0.95, 2))
    assert (predicates.column[0], predicates.level[0]) == (0, 0)
    assert (predicates.size >= 2).all()
    rows = bits.unpack(predicates.bits, 6)
    for column, level, row in zip(predicates.column, predicates.level, rows, strict=True):
        assert (row == (codes[column] == level)).all()


@pytest.mark.parametrize("n", [0, 1, 2, 63, 4_000])
@pytest.mark.parametrize("spread", [0, 3, 60, 290])
@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_sums_are_those_of_fsum(n: int, spread: int, size: float) -> None:
    rng = np.random.default_rng(n)
    values = size * rng.random(n) * 10.0 ** rng.uniform(-spread, 0, n)
    values[rng.random(n) < 0.1] = 0.0
    assert sum_exactly(values) == fsum(values.tolist())


@pytest.mark.parametrize("values", [[1e300, 1.0], [1e-300] * 7, [2.0**53, 1.0, 1.0], [0.1] * 10])
def test_sums_at_the_edges(values: list[float]) -> None:
    assert sum_exactly(np.array(values)) == fsum(values)


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
