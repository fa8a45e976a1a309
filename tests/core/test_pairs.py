"""Pairs: two models on the same units, and tables of their errors on slices."""

from __future__ import annotations

import numpy as np
import pytest

from groundfault.core.pairs import Pairs
from groundfault.core.units import Marks
from groundfault.stats import bits

ON = np.array([[True, True, True, False, False, False], [True, False, True, False, True, False]])
LOSSES = np.array([[0, 0, 1, 1, np.nan, 0], [1, 1, 1, 0, 1, np.nan]])


def make_pairs(losses: np.ndarray = LOSSES) -> Pairs:
    return Pairs.of_models(Marks(6, bits.pack(ON), None, ("", "")), losses)


def test_tables_are_of_two_models_on_a_slice() -> None:
    pairs = make_pairs()
    assert pairs.present.tolist() == [True] * 4 + [False] * 2
    assert pairs.changes.tolist() == [1, 1, 0, -1, 0, 0]
    tables = pairs.tables
    assert tables.on.tolist() == tables.off.tolist() == [3, 2]
    assert tables.on_sum.tolist() == [3, 2]
    assert (tables.total - tables.on_sum).tolist() == [1, 1]
    np.testing.assert_allclose(tables.lift, [2 / 3, 1 / 2])
    assert [a.tolist() for a in pairs.support] == [[4, 4], [3, 2]]
    assert [a.tolist() for a in pairs.change_sums()] == [[2, 1], [2, 1]]


def test_a_unit_that_one_model_lacks_counts_for_neither() -> None:
    pairs = make_pairs()
    assert pairs.first[0].tolist() == [0, 0, 1, 1, 0, 0]
    assert pairs.losses[0].tolist() == [1, 1, 1, 0, 0, 0]
    whole = make_pairs(np.nan_to_num(LOSSES))
    assert whole.scored is None
    assert whole.present.all()


def test_parts_keep_both_models() -> None:
    pairs = make_pairs()
    part = pairs.take(np.array([3, 0]))
    assert isinstance(part, Pairs)
    assert part.changes.tolist() == [-1, 1]
    only = pairs.select_units(np.array([True, False, False, True, True, True]))
    assert isinstance(only, Pairs)
    assert only.changes.tolist() == [1, 0, 0, -1, 0, 0]
    assert only.tables.on.tolist() == [1, 1]
    assert pairs.select(np.array([1])).tables.on.tolist() == [2]


@pytest.mark.parametrize("fraction", [0.25, 1 / 7, 0.123456])
def test_graded_losses_keep_their_size(fraction: float) -> None:
    pairs = make_pairs(np.vstack([np.zeros(6), np.full(6, fraction)]))
    np.testing.assert_allclose(pairs.changes, fraction)
    np.testing.assert_allclose(pairs.tables.lift, fraction)
