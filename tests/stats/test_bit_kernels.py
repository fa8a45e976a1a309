"""Compiled counts: those of plain NumPy, with one thread and with several."""

from __future__ import annotations

import sys

import numba
import numpy as np
import pytest

from groundfault.stats import bit_kernels, bits


@pytest.mark.parametrize("threads", [1, min(2, numba.config.NUMBA_NUM_THREADS)])
@pytest.mark.parametrize("count", [3, 20])
@pytest.mark.parametrize(("rows", "columns"), [(0, 70), (1, 64), (5, 200)])
def test_small_and_large_matrices_are_counted_alike(
    rows: int, columns: int, count: int, threads: int
) -> None:
    packed = bits.pack(np.random.default_rng(rows).random((rows, columns)) < 0.4)
    # of few rows words are counted along a row, of many across rows
    planes = bits.pack(np.random.default_rng(1).random((count, columns)) < 0.4)
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(threads)
        shared = bit_kernels.count_shared(packed, planes)
    finally:
        numba.set_num_threads(before)
    np.testing.assert_array_equal(shared, bits.count_and(packed, planes))
    assert shared.dtype == np.int32


def test_matrices_too_large_for_numpy_are_counted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = bits.pack(np.random.default_rng(0).random((4, 130)) < 0.4)
    plain = bits.count_and(packed, packed)
    monkeypatch.setattr(bits, "_SMALL", 0)
    np.testing.assert_array_equal(bits.count_and(packed, packed), plain)


def test_numpy_and_compiled_counts_agree_whichever_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    packed = bits.pack(np.random.default_rng(0).random((4, 130)) < 0.4)
    monkeypatch.setattr(bits, "_SMALL", 0)
    compiled = bits.count_and(packed, packed)
    monkeypatch.delitem(sys.modules, bits._KERNELS)
    np.testing.assert_array_equal(bits.count_and(packed, packed), compiled)
    bits.expect(bits._WORTH_LOADING - 1)
    assert bits._KERNELS not in sys.modules
    bits.expect(bits._WORTH_LOADING)
    assert bits._KERNELS in sys.modules
