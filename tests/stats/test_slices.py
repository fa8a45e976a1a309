"""Scores of slices and their bounds, against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundfault.stats import bits
from groundfault.stats.slices import Errors, Predicates, score_exactly


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
