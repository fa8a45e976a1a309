"""Sums rounded once are those of `math.fsum`, whatever the sizes of the numbers."""

from __future__ import annotations

from math import fsum

import numpy as np
import pytest

from groundfault.stats.exact_sums import sum_exactly


@pytest.mark.parametrize("n", [0, 1, 2, 63, 4_000])
@pytest.mark.parametrize("spread", [0, 3, 60, 290])
@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_sums_are_those_of_fsum(n: int, spread: int, size: float) -> None:
    rng = np.random.default_rng(n)
    values = size * rng.random(n) * 10.0 ** rng.uniform(-spread, 0, n)
    values[rng.random(n) < 0.1] = 0.0
    assert sum_exactly(values) == fsum(values.tolist())


@pytest.mark.parametrize("values", [[1e300, 1.0], [1e-300] * 7, [2.0**53, 1.0, 1.0], [0.1] * 10])
def test_sums_at_the_edges(values: list[float]) -> None:
    assert sum_exactly(np.array(values)) == fsum(values)
