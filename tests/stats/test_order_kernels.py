"""Compiled shuffles: NumPy's own, number for number, and its generator left in the same state."""

from __future__ import annotations

import numpy as np
import pytest

from groundfault.stats.order_kernels import shuffle


# one below, at and above powers of two, where NumPy masks its random words anew
@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 63, 64, 65, 1000])
@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
@pytest.mark.parametrize("source", [np.random.PCG64, np.random.Philox])
def test_rows_are_shuffled_as_numpy_does(size: int, dtype: type, source: type) -> None:
    ours = np.tile(np.arange(size) % 251, (3, 1)).astype(dtype)
    peer = ours.copy()
    first, second = (np.random.Generator(source(7)) for _ in range(2))
    shuffle(first, ours)
    for row in peer:
        second.shuffle(row)
    np.testing.assert_array_equal(ours, peer)
    assert first.integers(2**32, dtype=np.uint32) == second.integers(2**32, dtype=np.uint32)
