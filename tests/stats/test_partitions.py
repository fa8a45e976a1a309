"""Agreement of partitions: scikit-learn's index, and an example by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from groundfault.stats.partitions import adjusted_rand, best_jaccard


@settings(max_examples=20)
@given(st.integers(0, 2**31))
def test_rand_is_scikit_learns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(-1, 4, (2, 60))
    a[0] = b[0] = 0
    both = (a >= 0) & (b >= 0)
    assert adjusted_rand(a, b) == pytest.approx(adjusted_rand_score(a[both], b[both]), abs=1e-12)
    assert np.isnan(adjusted_rand(np.array([-1]), np.array([0])))


def test_jaccard_of_the_cluster_most_alike() -> None:
    a, b = np.array([0, 0, 0, 1, 1, -1]), np.array([1, 1, 0, 0, -1, 1])
    np.testing.assert_allclose(best_jaccard(a, b, 3), [2 / 4, 1 / 3, np.nan])
    np.testing.assert_allclose(best_jaccard(a, np.full(6, -1), 2), [0, 0])
