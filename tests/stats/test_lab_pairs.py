"""The lab's tests of pairs and rates from draws, against SciPy and enumeration."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import binomtest, ttest_1samp

from groundfault_lab.stats import paired, prevalence
from groundfault_lab.stats.paired import mcnemar
from groundfault_lab.stats.partitions import newcombe_pairs


@given(st.integers(0, 30), st.integers(0, 30))
def test_the_sign_test_is_a_binomial_test(wins: int, losses: int) -> None:
    n = wins + losses
    oracle = binomtest(wins, n, alternative="greater").pvalue if n else 1.0
    assert paired.sign_test(wins, losses) == pytest.approx(oracle)


def test_students_interval_is_scipys() -> None:
    differences = np.random.default_rng(0).normal(0.3, 1, 12)
    ends = ttest_1samp(differences, 0).confidence_interval(0.9)
    assert paired.student(differences, 0.9) == pytest.approx((ends.low, ends.high))
    assert paired.student([1.0]) is None


@pytest.mark.parametrize(("b", "c"), [(0, 9), (3, 8), (5, 5), (0, 0), (40, 20)])
def test_mcnemar_is_the_binomial_test(b: int, c: int) -> None:
    assert mcnemar(b, c) == pytest.approx(binomtest(b, b + c).pvalue if b + c else 1.0, abs=1e-12)


def test_paired_intervals_cover() -> None:
    rng = np.random.default_rng(0)
    shares = np.array([0.5, 0.2, 0.1, 0.2])
    hits = 0
    for table in rng.multinomial(50, shares, 800):
        low, high = newcombe_pairs(*table.tolist())
        hits += low <= 0.1 <= high
    assert 0.93 <= hits / 800 <= 0.98
    assert newcombe_pairs(0, 30, 0, 0)[1] == 1.0
    low, high = newcombe_pairs(5, 0, 9, 6)
    assert (low, high) == pytest.approx(tuple(-x for x in newcombe_pairs(5, 9, 0, 6)[::-1]))


VALUES = np.array([1.0, 0.0, 0.0, 1.0, 0.0])
WEIGHTS = np.array([3.0, 1.0, 1.0, 2.0, 1.0])


def test_draws_without_repeats_are_unbiased() -> None:
    """The mean over every order of two draws, each weighted by its probability."""
    mean = 0.0
    for i, j in permutations(range(5), 2):
        first, second = WEIGHTS[i] / WEIGHTS.sum(), WEIGHTS[j] / (WEIGHTS.sum() - WEIGHTS[i])
        estimate = prevalence.estimate_without_repeats(VALUES[[i, j]], [first, second], 5)
        mean += first * second * estimate.value
    assert mean == pytest.approx(VALUES.mean())


def test_draws_with_repeats_are_unbiased() -> None:
    chances = WEIGHTS / WEIGHTS.sum()
    mean = sum(
        chances[i] * prevalence.estimate_with_repeats(VALUES[[i]], chances[[i]], 5).value
        for i in range(5)
    )
    assert mean == pytest.approx(VALUES.mean())


def test_everything_drawn_leaves_no_doubt() -> None:
    chances = 1 / np.arange(5, 0, -1)
    result = prevalence.estimate_without_repeats(VALUES, chances, 5)
    assert (result.value, result.error, result.low, result.high) == (0.4, 0, 0.4, 0.4)
