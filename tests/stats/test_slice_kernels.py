"""Compiled passes of the slice search against plain NumPy."""

from __future__ import annotations

import numpy as np

from groundfault.stats import bits
from groundfault_lab.stats.slice_kernels import (
    bound_errors,
    bound_means,
    count_rows,
    set_bits,
    sum_errors,
)

ROWS = 200
RNG = np.random.default_rng(0)
MATRIX = RNG.random((5, ROWS)) < 0.5
PARENTS = np.array([[0], [1]], dtype=np.int32)
PARENT, LAST = np.array([0, 0, 1], dtype=np.int32), np.array([2, 3, 4], dtype=np.int32)
SLICES = MATRIX[PARENTS[PARENT, 0]] & MATRIX[LAST]


def test_rows_are_counted() -> None:
    counts = np.empty(3, dtype=np.int64)
    count_rows(bits.pack(MATRIX), PARENTS, PARENT, LAST, counts)
    assert (counts == SLICES.sum(axis=1)).all()


def test_error_sums_are_exact_and_below_their_bounds() -> None:
    quanta = np.sort(RNG.integers(1, 100, ROWS))[::-1].copy()
    sums, bound, top = (np.empty(3, dtype=np.int64) for _ in range(3))
    packed = bits.pack(MATRIX)
    sum_errors(packed, quanta, PARENTS, PARENT, LAST, sums)
    assert (sums == SLICES @ quanta).all()
    # the largest error of each word of 64 rows stands for all of them
    bound_errors(packed, quanta[::64].copy(), PARENTS, PARENT, LAST, bound, top)
    assert (bound >= sums).all()
    assert (top >= (SLICES * quanta).max(axis=1)).all()


def test_means_are_those_of_the_largest_errors() -> None:
    """No rows of a slice, at least so many, have a larger mean; where a slice has fewer, the others
    have no error.
    """
    quanta = np.sort(RNG.integers(1, 100, ROWS))[::-1].copy()
    inside = SLICES * quanta
    for least in (1, 7, 40, 150):
        means = np.empty(3, dtype=np.int64)
        weights = quanta[::64].copy()
        bound_means(bits.pack(MATRIX), weights, least, PARENTS, PARENT, LAST, means)
        assert (means * least >= np.sort(inside, axis=1)[:, -least:].sum(axis=1)).all()
        assert (means <= weights[0]).all()
    shares = (SLICES * np.repeat(weights, 64)[:ROWS]).sum(axis=1) / 150
    assert means.tolist() == np.ceil(shares).tolist()


def test_bits_are_set_by_code() -> None:
    codes = np.array([0, 1, 2, 1], dtype=np.uint8)
    packed = np.zeros((2, 1), dtype=np.uint64)
    set_bits(codes, np.array([0, 1, -1], dtype=np.int32), packed)
    expected = [[True, False, False, False], [False, True, False, True]]
    assert bits.unpack(packed, 4).tolist() == expected
