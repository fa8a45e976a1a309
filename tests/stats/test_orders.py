"""Random orders: those that NumPy gives to row numbers, and rows that stay whole."""

from __future__ import annotations

import numpy as np
import pytest

from groundfault.stats import order_kernels, orders

BLOCKS = np.array([0, 1, 1, 0, 2, 0, 1, 2, 0, 0, 1])


@pytest.mark.parametrize("blocks", [None, BLOCKS, BLOCKS * 10**6])
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64, np.float64])
def test_rows_are_dealt_in_the_order_that_their_numbers_would_be(
    dtype: type, width: int, blocks: np.ndarray | None
) -> None:
    """Reports of earlier versions drew permutations of row numbers, and have to verify."""
    assert order_kernels  # loaded, so that columns are dealt by it
    rows = np.arange(11 * width).reshape(11, width).astype(dtype)
    tables = np.concatenate(list(orders.deal(rows, 7, np.random.default_rng(4), blocks)))
    rng = np.random.default_rng(4)
    for table in tables:
        if blocks is None:
            order = rng.permutation(11)
        else:
            order = np.empty(11, dtype=int)
            order[np.argsort(blocks, kind="stable")] = np.lexsort((rng.random(11), blocks))
            np.testing.assert_array_equal(blocks[order], blocks)
        np.testing.assert_array_equal(table, rows[order])


def test_batches_are_one_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.arange(20)[:, None]
    whole = np.concatenate(list(orders.deal(rows, 9, np.random.default_rng(0))))
    monkeypatch.setattr(orders, "_BATCH", 45)
    batches = list(orders.deal(rows, 9, np.random.default_rng(0)))
    assert [len(batch) for batch in batches] == [2, 2, 2, 2, 1]
    np.testing.assert_array_equal(np.concatenate(batches), whole)


def test_equal_keys_are_sorted_as_they_came() -> None:
    keys, blocks = np.array([0.5, 0.2, 0.5, 0.5, 0.2]), np.array([1, 0, 1, 0, 0], dtype=np.uint8)
    np.testing.assert_array_equal(orders._sort_within(keys, blocks), np.lexsort((keys, blocks)))
