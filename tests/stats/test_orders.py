"""Random orders: those that NumPy gives to row numbers, and rows that stay whole."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from groundfault.stats import multiple, order_kernels
from groundfault.stats.multiple import count_runs

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
    tables = np.concatenate(list(multiple.deal(rows, 7, np.random.default_rng(4), blocks)))
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
    whole = np.concatenate(list(multiple.deal(rows, 9, np.random.default_rng(0))))
    monkeypatch.setattr(multiple, "_BATCH", 45)
    batches = list(multiple.deal(rows, 9, np.random.default_rng(0)))
    assert [len(batch) for batch in batches] == [2, 2, 2, 2, 1]
    np.testing.assert_array_equal(np.concatenate(batches), whole)


def test_equal_keys_are_sorted_as_they_came() -> None:
    keys, blocks = np.array([0.5, 0.2, 0.5, 0.5, 0.2]), np.array([1, 0, 1, 0, 0], dtype=np.uint8)
    np.testing.assert_array_equal(multiple._sort_within(keys, blocks), np.lexsort((keys, blocks)))


def test_runs_of_a_random_order_have_the_exact_mean() -> None:
    orders = [np.array(order) for order in set(permutations([True] * 3 + [False] * 4))]
    runs = [count_runs([order]) for order in orders]
    assert np.mean([one.runs for one in runs]) == pytest.approx(runs[0].expected)


def test_p_values_of_random_orders_are_uniform() -> None:
    rng = np.random.default_rng(0)
    p = np.array([count_runs([rng.random(200) < 0.3]).p for _ in range(400)])
    assert (p <= 0.1).mean() == pytest.approx(0.1, abs=0.05)


def test_sequences_are_added_up_and_blocks_are_few_runs() -> None:
    blocks = np.repeat(np.arange(40) % 2 == 0, 5)
    one, two = count_runs([blocks]), count_runs([blocks[:100], blocks[100:]])
    assert (one.runs, two.runs) == (40, 40)
    assert max(one.p, two.p) < 1e-9
    # alternating is many runs, and no sign of neighbours that are alike
    assert count_runs([np.arange(50) % 2 == 0]).p > 0.999


def test_a_sequence_of_one_kind_says_nothing() -> None:
    assert count_runs([np.ones(30, dtype=bool), np.zeros(1, dtype=bool)]).p == 0.5
