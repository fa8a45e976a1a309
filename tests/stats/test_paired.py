"""Tests of pairs against SciPy and enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import fisher_exact, norm

from groundfault.stats import paired


def test_more_errors_is_fishers_exact_test() -> None:
    table = [[7, 13], [11, 69]]
    oracle = fisher_exact(table, alternative="greater").pvalue
    assert paired.more_errors(7, 20, 18, 100) == pytest.approx(oracle)


def test_sign_flips_are_all_flips() -> None:
    differences = np.random.default_rng(1).normal(0.4, 1, 7)
    sums = [abs(np.dot(signs, differences)) for signs in product([1, -1], repeat=7)]
    share = np.mean(np.array(sums) >= abs(differences.sum()) * (1 - 1e-12))
    assert paired.sign_flips(differences[:, None])[0] == pytest.approx(share)


def test_the_data_count_among_the_flips_that_are_drawn() -> None:
    """40 pairs are too many to count all flips, and none that is drawn is like the data."""
    p = paired.sign_flips(np.ones((40, 1)))
    assert p.tolist() == [2.0**-paired.MAX_EXACT_PAIRS]


def test_adjusted_p_is_at_least_the_single_one() -> None:
    differences = np.random.default_rng(2).normal(0.3, 1, (8, 3))
    single = [paired.sign_flips(differences[:, [j]])[0] for j in range(3)]
    assert (paired.sign_flips(differences) >= np.array(single) - 1e-12).all()
    assert paired.sign_flips(np.zeros((5, 1)))[0] == 1


@pytest.mark.parametrize(
    ("worse", "better", "same"), [(0, 0, 30), (16, 4, 80), (7, 0, 1), (3, 9, 0)]
)
def test_a_change_has_walds_interval_of_pairs_with_half_a_pair_of_each_kind_added(
    worse: int, better: int, same: int
) -> None:
    # half a pair of each of the four outcomes of a pair, two of which are no change
    values, weights = np.array([1, -1, 0]), np.array([worse + 0.5, better + 0.5, same + 1])
    mean = np.average(values, weights=weights)
    error = np.sqrt(np.average((values - mean) ** 2, weights=weights) / weights.sum())
    ends = norm.interval(0.9, mean, error)
    pairs = worse + better + same
    low, high = paired.change([worse - better], [worse + better], [pairs], 0.9)
    assert (low[0], high[0]) == pytest.approx(np.clip(ends, -1, 1))
