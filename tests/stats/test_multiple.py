"""Adjusted p-values against statsmodels; e-values and effective tests against their definitions."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given, strategies as st
from statsmodels.stats.multitest import multipletests

from groundfault.stats import multiple
from groundfault.stats.multiple import Joint, SummedBars

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=30).map(np.array)


@given(p=p_values)
def test_adjusted_p_values_are_statsmodels(p: np.ndarray) -> None:
    gc.freeze()  # statsmodels collects garbage at every call: among all tests' objects, 50 ms
    for ours, name in (
        (multiple.holm, "holm"),
        (multiple.benjamini_hochberg, "fdr_bh"),
        (multiple.benjamini_yekutieli, "fdr_by"),
    ):
        assert ours(p) == pytest.approx(multipletests(p, method=name)[1], abs=1e-12)


@given(
    e=st.lists(st.floats(0, 1e6), min_size=1, max_size=20).map(np.array),
    q=st.sampled_from([0.05, 0.1, 0.2]),
)
def test_e_bh_selects_the_largest_set_that_pays(e: np.ndarray, q: float) -> None:
    selection = multiple.e_benjamini_hochberg(e, q)
    sizes = [k for k in range(1, len(e) + 1) if np.sort(e)[-k] * k * q >= len(e)]
    assert selection.sum() >= max(sizes, default=0)
    assert not sizes or (e[selection].min() >= len(e) / (q * selection.sum()) * (1 - 1e-12))
    assert ((multiple.e_adjusted(e) <= q * (1 + 1e-12)) | ~selection).all()


def test_effective_tests_of_copies_and_of_strangers() -> None:
    rng = np.random.default_rng(0)
    strangers = rng.random((20, 5000)) < 0.4
    assert multiple.count_effective_tests(strangers) == pytest.approx(20, rel=0.02)
    assert multiple.count_effective_tests(np.repeat(strangers[:1], 20, axis=0)) == pytest.approx(
        1, abs=1e-3
    )
    assert multiple.count_effective_tests(np.ones((3, 50), dtype=bool)) == 0


_SHARES = np.array([0.5, 0.3, 0.2])


def test_the_level_is_kept_when_the_data_are_one_of_the_draws() -> None:
    rng = np.random.default_rng(0)
    false = 0
    for _ in range(1000):
        least = np.log(rng.random((100, 3)) ** [1, 20, 3])
        false += Joint(least, _SHARES).adjust(least[0], np.arange(3)).min() <= 0.1
    assert 70 <= false <= 130


def test_no_adjusted_value_is_below_one_over_the_rows() -> None:
    least = np.log(np.random.default_rng(1).random((50, 3)))
    adjusted = Joint(least, _SHARES).adjust(np.full(3, -200.0), np.arange(3))
    assert adjusted.min() == pytest.approx(1 / 50)


def test_a_bar_is_where_the_adjusted_value_passes_the_level() -> None:
    least = np.log(np.random.default_rng(2).random((400, 3)))
    joint, summed = Joint(least, _SHARES), SummedBars(np.array([10, 1, 7]), _SHARES)
    for family in (joint, summed):
        for c in range(3):
            bar = family.bar(c, 0.1)
            values = np.array([bar - 1e-6, bar + 1.0])
            below, above = family.adjust(values, np.full(2, c))
            assert below <= 0.1 + 1e-12 < above


def test_a_class_with_less_than_one_draw_of_the_level_has_no_bar() -> None:
    least = np.log(np.random.default_rng(3).random((20, 2)))
    assert Joint(least, np.array([0.99, 0.01])).bar(1, 0.1) == -np.inf


def test_sums_are_bonferroni() -> None:
    family = SummedBars(np.array([10, 2]), np.array([0.5, 0.5]))
    adjusted = family.adjust(np.log([0.001, 0.4]), np.array([0, 1]))
    assert adjusted == pytest.approx([0.02, 1.0])
