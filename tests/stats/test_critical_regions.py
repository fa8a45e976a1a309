"""Critical regions: the counts that pass are those whose p-value and effect pass."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from groundfault.stats.power import CriticalRegion


@pytest.mark.parametrize("sides", [1, 2])
def test_counts_that_pass_have_a_small_p_and_a_large_effect(sides: Literal[1, 2]) -> None:
    n, on, level, min_effect = 60, 20, 0.05, 0.2
    region = CriticalRegion.of(n, on, 0.3, level=level, sides=sides, min_effect=min_effect)
    for i in range(len(region.low)):
        total = region.first + i
        counts = np.arange(max(0, on + total - n), min(on, total) + 1)
        pmf = hypergeom(n, total, on).pmf(counts)
        lift = (n * counts - on * total) / (on * (n - on))  # one rounding, so that ties are ties
        for count, size in zip(counts, lift, strict=True):
            same_side = np.abs(lift) if sides == 2 else lift * np.sign(size)
            p = pmf[same_side >= abs(size) - 1e-12].sum()
            passes = p <= level and abs(size) >= min_effect
            in_region = count >= region.high[i] or count <= region.low[i]
            assert passes == in_region, (total, count)


def test_chances_are_sums_over_two_binomials() -> None:
    n, on = 40, 15
    region = CriticalRegion.of(n, on, 0.4, level=0.1)
    up = down = 0.0
    on_chances = binom(on, 0.6).pmf(range(on + 1))
    off_chances = binom(n - on, 0.3).pmf(range(n - on + 1))
    for x in range(on + 1):
        for y in range(n - on + 1):
            i = x + y - region.first
            if 0 <= i < len(region.low):
                chance = on_chances[x] * off_chances[y]
                up += chance * (x >= region.high[i])
                down += chance * (x <= region.low[i])
    assert region.chances(0.6, 0.3) == pytest.approx((up, down), abs=1e-9)
