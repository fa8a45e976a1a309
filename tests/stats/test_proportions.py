"""Proportions against SciPy; paired intervals by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from groundfault.stats.proportions import mcnemar, newcombe_pairs, wilson


@pytest.mark.parametrize(("x", "n"), [(0, 30), (7, 10), (11, 11), (3, 200)])
def test_wilson_is_scipys(x: int, n: int) -> None:
    ends = binomtest(x, n).proportion_ci(0.95, method="wilson")
    low, high = wilson([x], [n])
    assert (low[0], high[0]) == pytest.approx((ends.low, ends.high), abs=1e-12)


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
