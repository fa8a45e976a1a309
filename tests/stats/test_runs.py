"""The runs test against its exact distribution, and in several sequences."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from groundfault.stats.runs import count_runs


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
