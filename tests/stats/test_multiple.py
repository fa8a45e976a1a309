"""Adjusted p-values against statsmodels; e-values and effective tests against their definitions."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from groundfault.stats import multiple

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
