"""Doses: failures along a column, in ranges of which none is inside the rule in part."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from groundfault.modes.find import find_modes


@pytest.mark.parametrize("levels", [6, 100])
def test_ranges_end_where_the_rule_does(levels: int) -> None:
    rng = np.random.default_rng(2)
    n = 1500
    size = rng.integers(0, levels, n)
    cut = levels * 4 // 5
    losses = (rng.random(n) < np.where(size > cut, 0.9, 0.1)).astype(float)
    modes, _ = find_modes(pl.DataFrame({"size": size}), losses[None])
    mode = next(mode for mode in modes if mode.doses)
    assert sum(point.n for point in mode.doses) == n
    assert sum(point.errors for point in mode.doses) == losses.sum()
    for point in mode.doses:
        inside = (size >= point.low) & (size <= point.high)
        assert point.n == inside.sum()
        assert point.errors == losses[inside].sum()
        holds = mode.holds(pl.DataFrame({"size": size[inside]}))
        assert holds.n_unique() == 1
