"""Estimates of prevalence are unbiased over all draws, and exact where everything was drawn."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from groundfault.stats import prevalence

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
