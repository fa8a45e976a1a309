"""Features of slices: permutation tests, and how well slices and features fit each other."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from profiles import count_examples

from groundfault_lab.stats.slice_features import (
    average_v,
    compare_means,
    mark_features,
    measure_fit,
    v_measure,
)


def test_p_values_are_those_of_all_permutations() -> None:
    values = np.array([[0, 1, 0, 2, 3, 5.0, 1, 0], [1, 0, 1, 1, 0, 1, 0, 0]])
    members = np.array([[0, 0, 0, 1, 1, 1, 0, 0]], dtype=bool)
    result = compare_means(members, values, 20_000, np.random.default_rng(0))
    for f in range(2):
        means = [values[f, list(subset)].mean() for subset in combinations(range(8), 3)]
        exact = np.mean(np.array(means) >= values[f, 3:6].mean() - 1e-12)
        assert result.p[0, f] == pytest.approx(
            exact, abs=4 * np.sqrt(exact * (1 - exact) / 20_000) + 1e-4
        )
    np.testing.assert_allclose(result.inside[0], values[:, 3:6].mean(axis=1))
    np.testing.assert_allclose(result.outside[0], values[:, [0, 1, 2, 6, 7]].mean(axis=1))
    assert (result.p_adjusted >= result.p).all()


def test_the_correction_keeps_the_family_of_tests_at_its_level() -> None:
    """Forty correlated features of five slices dealt at random: without correction some p is nearly
    always small.
    """
    raw = corrected = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        base = rng.random((10, 60)) < 0.3
        values = np.concatenate(
            [base, base & (rng.random((10, 60)) < 0.9), rng.normal(size=(20, 60))]
        ).astype(float)
        members = np.zeros((5, 60), dtype=bool)
        for row in members:
            row[rng.choice(60, 12, replace=False)] = True
        result = compare_means(members, values, 99, rng)
        raw += bool((result.p <= 0.05).any())
        corrected += bool((result.p_adjusted <= 0.05).any())
    assert raw > 140
    assert corrected <= 150 * 0.05 + 3 * np.sqrt(150 * 0.05 * 0.95)


def test_a_planted_feature_is_found_and_one_that_does_not_vary_is_not() -> None:
    rng = np.random.default_rng(1)
    members = np.zeros((2, 200), dtype=bool)
    members[0, :50], members[1, 100:] = True, True
    values = (rng.random((4, 200)) < 0.2).astype(float)
    values[1, :50] = rng.random(50) < 0.7
    values[3] = 1.0
    result = compare_means(members, values, 499, rng)
    assert result.p[0, 1] == result.p_adjusted[0, 1] == 1 / 500
    assert result.p[:, 3].tolist() == result.p_adjusted[:, 3].tolist() == [1, 1]
    assert result.p[1, 1] > 0.5  # larger outside


def test_rare_features_of_small_slices_do_not_drown_a_large_one() -> None:
    """Among forty slices of 12 examples, some feature that one example in a hundred shows is always
    far out.
    """
    for seed in range(5):
        rng = np.random.default_rng(seed)
        slices = np.concatenate([np.zeros(120), 1 + np.arange(480) // 12])
        lead = rng.random(600) < np.where(slices == 0, 0.5, 0.27)
        values = np.vstack([lead, rng.random((40, 600)) < 0.01]).astype(float)
        result = compare_means(slices == np.arange(41)[:, None], values, 199, rng)
        assert result.p_adjusted[0, 0] <= 0.05


@pytest.mark.parametrize("odd", [1.0, 5_000.0])
def test_one_odd_example_and_a_tiny_slice_do_not_drown_a_large_feature(odd: float) -> None:
    """In a slice of 8 of 6,000 examples the law of a feature that one example shows has a skew of
    27.
    """
    slices, row = np.repeat([0, 1, 2], [300, 8, 5_692]), np.arange(6_000)
    lead = np.where(slices == 0, row < 110, row % 100 < 27)
    result = compare_means(
        slices == np.arange(2)[:, None],
        np.array([lead, odd * (row == 999)], float),
        199,
        np.random.default_rng(0),
    )
    assert result.p_adjusted[0, 0] <= 0.05


def test_equal_values_tie_whatever_the_skew() -> None:
    """So the adjusted p-value is never below the other."""
    for n, size, seed in [(12, 10, 0), (40, 37, 1), (9, 2, 2)]:
        rng = np.random.default_rng(seed)
        values = np.array(
            [np.arange(n) == 0, np.arange(n) > 0, (np.arange(n) < 3) / 3, np.exp(-np.arange(n))],
            float,
        )
        result = compare_means(np.arange(n)[None] < size, values, 199, rng)
        assert (result.p_adjusted >= result.p).all()


@pytest.mark.parametrize("members", [[[False] * 4], [[True] * 4]])
def test_a_slice_of_nothing_or_all_is_refused(members: Any) -> None:
    with pytest.raises(ValueError, match="some, not all, of the examples"):
        compare_means(np.array(members), np.zeros((1, 4)), 9, np.random.default_rng(0))


def test_homogeneity_completeness_and_v_by_hand() -> None:
    members = np.array([[1, 1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1, 1]], dtype=bool)
    wrong = np.array([1, 1, 1, 0, 1, 0, 0, 0], dtype=bool)
    marks = np.array([[1, 1, 0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0, 1, 0]], dtype=bool)
    result = measure_fit(members, wrong, marks)
    np.testing.assert_allclose(result.homogeneity, [[2 / 4, 0], [0, 0]])
    np.testing.assert_allclose(result.completeness, [[2 / 3, np.nan], [0, np.nan]])
    np.testing.assert_allclose(
        result.v, [[2 * (1 / 2) * (2 / 3) / (1 / 2 + 2 / 3), np.nan], [0, np.nan]]
    )


def test_edisa_in_table_10_is_the_harmonic_mean_of_its_columns() -> None:
    """The paper's own numbers: homogeneity, completeness and V of Edisa on its nine data sets, in
    percent.
    """
    rows = [
        (13.18, 78.80, 22.58),
        (3.78, 60.12, 7.11),
        (3.87, 68.31, 7.23),
        (2.44, 57.34, 4.68),
        (10.12, 53.22, 17.00),
        (14.23, 67.78, 23.52),
        (26.88, 54.23, 35.94),
        (16.54, 36.20, 22.71),
        (41.23, 52.35, 46.13),
    ]
    homogeneity, completeness, v = np.array(rows).T
    np.testing.assert_allclose(
        v_measure(homogeneity, completeness), v, atol=0.1
    )  # of QQP; the others by 0.02
    proportions = [0.8125, 0.5, 0.5, 0.5, 0.6875, 0.8125, 1.0, 0.75, 1.0]
    assert average_v(proportions, v) == pytest.approx(17.5, abs=0.1)  # the paper prints 21.74


@settings(max_examples=count_examples(50))
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 30),
    slices=st.integers(1, 4),
    features=st.integers(1, 4),
)
def test_laws(seed: int, n: int, slices: int, features: int) -> None:
    rng = np.random.default_rng(seed)
    members = rng.random((slices, n)) < 0.5
    members[:, 0], members[:, -1] = True, False
    values = rng.integers(0, 3, (features, n)).astype(float)
    wrong = rng.random(n) < 0.4
    marks = mark_features(values, [False] * features)
    assert (marks == (values > 0)).all()
    result = measure_fit(members, wrong, marks)
    for share in (result.homogeneity, result.completeness, result.v):
        assert ((share >= 0) & (share <= 1) | np.isnan(share)).all()
    whole = measure_fit(np.ones((1, n), dtype=bool), wrong, marks)
    np.testing.assert_array_equal(whole.completeness[whole.completeness == whole.completeness], 1.0)
    first = compare_means(members, values, 19, np.random.default_rng(1))
    shifted = compare_means(members, 10 + 2 * values, 19, np.random.default_rng(1))
    np.testing.assert_array_equal(first.p, shifted.p)
    np.testing.assert_array_equal(first.p_adjusted, shifted.p_adjusted)
    assert (first.p_adjusted >= first.p).all()


def test_of_degree_means_clearly_above_the_mean() -> None:
    values = np.array([[0.0, 1, 2, 3, 10], [0, 0, 1, 1, 1]])
    assert mark_features(values, [True, False]).tolist() == [
        [False] * 4 + [True],
        [False, False, True, True, True],
    ]
