"""Adjusted p-values against statsmodels; e-values and effective tests against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep

from groundfault.stats import intervals, multiple

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=30).map(np.array)


@given(p=p_values)
def test_adjusted_p_values_are_statsmodels(p: np.ndarray) -> None:
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


def test_newcombe_is_statsmodels() -> None:
    for a, n, b, m in ((26, 40, 4, 40), (0, 12, 5, 30), (7, 7, 0, 9), (50, 300, 60, 400)):
        low, high = intervals.newcombe(*(np.array([float(v)]) for v in (a, n, b, m)), 0.9)
        expected = confint_proportions_2indep(a, n, b, m, method="newcomb", alpha=0.1)
        assert (low[0], high[0]) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kind", ["welch", "newcombe", "risk_ratio", "odds_ratio"])
def test_intervals_cover_as_often_as_they_say(kind: str) -> None:
    rng = np.random.default_rng(1)
    count, on, off = 4000, 60, 90
    if kind == "welch":
        a, b = rng.beta(2, 3, (count, on)), rng.beta(1, 4, (count, off))
        low, high = intervals.welch(
            *((np.full(count, float(x.shape[1])), x.sum(1), (x**2).sum(1)) for x in (a, b)), 0.9
        )
        truth = 0.4 - 0.2
    else:
        p, q = 0.35, 0.2
        a, b = rng.binomial(on, p, count).astype(float), rng.binomial(off, q, count).astype(float)
        sizes = np.full(count, float(on)), np.full(count, float(off))
        if kind == "newcombe":
            low, high = intervals.newcombe(a, sizes[0], b, sizes[1], 0.9)
            truth = p - q
        else:
            low, high = intervals.log_ratio(kind, a, sizes[0], b, sizes[1], 0.9)
            truth = p / q if kind == "risk_ratio" else p / (1 - p) / (q / (1 - q))
    assert 0.885 < ((low <= truth) & (truth <= high)).mean() < 0.93


def test_effective_tests_of_copies_and_of_strangers() -> None:
    rng = np.random.default_rng(0)
    strangers = rng.random((20, 5000)) < 0.4
    assert multiple.count_effective_tests(strangers) == pytest.approx(20, rel=0.02)
    assert multiple.count_effective_tests(np.repeat(strangers[:1], 20, axis=0)) == pytest.approx(
        1, abs=1e-3
    )
    assert multiple.count_effective_tests(np.ones((3, 50), dtype=bool)) == 0
