"""What a search could have seen: the quantile that its power rests on."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from groundfault.modes.detectable import _find_quantile


@pytest.mark.parametrize("n", [8, 9, 40, 333, 30_000])
def test_the_binomial_quantile_is_that_of_scipy(n: int) -> None:
    rng = np.random.default_rng(n)
    for p in (*rng.random(60), *(10 ** -rng.uniform(0, 6, 30)), 1 - 1e-6, 1.0):
        for share in (0.05, 0.2, 0.8):
            assert _find_quantile(share, n, p) == binom.ppf(share, n, p)
