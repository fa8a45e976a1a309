"""Packed boolean matrices against the plain ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from groundfault.stats import bits


def draw_matrix(seed: int, rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(seed).random((rows, columns)) < 0.4


@given(st.integers(0, 999), st.integers(1, 4), st.integers(1, 200))
def test_packing_and_counting(seed: int, rows: int, columns: int) -> None:
    matrix = draw_matrix(seed, rows, columns)
    packed = bits.pack(matrix)
    assert packed.shape == (rows, bits.words(columns))
    assert (bits.unpack(packed, columns) == matrix).all()
    assert (bits.count(packed) == matrix.sum(axis=1)).all()
    plain = matrix.astype(np.int64)
    assert (bits.count_and(packed, packed) == plain @ plain.T).all()


@given(st.integers(0, 999), st.integers(1, 150))
def test_columns_are_taken_in_the_order_of_the_index(seed: int, columns: int) -> None:
    matrix = draw_matrix(seed, 3, columns)
    index = np.random.default_rng(seed).permutation(columns)[: columns // 2 + 1]
    packed = bits.take(bits.pack(matrix), columns, index)
    assert (bits.unpack(packed, len(index)) == matrix[:, index]).all()


@pytest.mark.parametrize("whole", [True, False])
def test_sums_over_rows(whole: bool) -> None:
    matrix, rng = draw_matrix(0, 5, 130), np.random.default_rng(1)
    values = rng.integers(0, 1000, (2, 130)) if whole else rng.random((2, 130))
    assert bits.sums(bits.pack(matrix), values) == pytest.approx(matrix @ values.T)


@given(st.integers(0, 999), st.integers(1, 200))
def test_rows_are_joined_where_they_are_read(seed: int, columns: int) -> None:
    matrix = draw_matrix(seed, 4, columns)
    one, two, three, four = bits.pack(matrix)
    rows = bits.JoinedRows([(one,), (one, two), (two, three, four)], bits.words(columns))
    joined = np.array([matrix[0], matrix[0] & matrix[1], matrix[1:].all(axis=0)])
    assert (bits.unpack(rows[:], columns) == joined).all()
    assert (bits.unpack(rows[[2, 0]], columns) == joined[[2, 0]]).all()
    either = rows.list_sides((0, 2))
    assert (bits.unpack(either[0][None], columns)[0] == joined[[0, 2]].any(axis=0)).all()
    assert rows.list_sides((1,)) == (one, two)
