"""Rank statistics against SciPy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import kendalltau, spearmanr
from sklearn.metrics import roc_auc_score

from groundfault_studies import ranks


@given(st.integers(0, 9999), st.integers(3, 30))
def test_correlations_are_scipys(seed: int, n: int) -> None:
    x, y = np.random.default_rng(seed).integers(0, 5, (2, n)).astype(np.float64)
    x[:2], y[:2] = [0, 1], [0, 1]
    assert ranks.tau_b(x, y) == pytest.approx(kendalltau(x, y).statistic, abs=1e-12)
    assert ranks.rho(x, y) == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)


def test_pairs_with_a_missing_value_are_left_out() -> None:
    x, y = np.array([1.0, 2.0, np.nan, 4.0]), np.array([1.0, 3.0, 9.0, 2.0])
    rest = [0, 1, 3]
    assert ranks.tau_b(x, y) == ranks.tau_b(x[rest], y[rest])
    assert np.isnan(ranks.tau_b(np.ones(3), np.arange(3.0)))


@given(st.integers(0, 9999), st.integers(4, 60))
def test_the_area_is_scikit_learns(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    positive, score = rng.random(n) < 0.5, rng.integers(0, 6, n).astype(np.float64)
    positive[:2] = [True, False]
    assert ranks.area(score, positive) == pytest.approx(roc_auc_score(positive, score))
    assert np.isnan(ranks.area(score, np.ones(n, dtype=bool)))


def test_bands_are_symmetric_about_the_mean_and_infinite_for_two_folds() -> None:
    values = np.random.default_rng(0).normal(size=(8, 3))
    mean, low, high = ranks.bootstrap_bands(values)
    assert mean == pytest.approx(values.mean(axis=0))
    assert mean - low == pytest.approx(high - mean)
    assert np.isinf(ranks.bootstrap_bands(values[:2])[1]).all()
