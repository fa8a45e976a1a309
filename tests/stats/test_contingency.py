"""Contingency tables: exact comparison of lifts, and the grid of losses."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from groundfault.stats.contingency import EFFECTS, ContingencyTables, common_grid


@given(k=st.integers(1, 100), seed=st.integers(0, 999))
def test_the_grid_of_losses_is_found(k: int, seed: int) -> None:
    numerators = np.append(np.random.default_rng(seed).integers(0, k + 1, 30), 1 if k > 1 else 0)
    grid = common_grid(numerators / k)
    assert grid
    assert k % grid == 0 or np.allclose(numerators / k * grid, np.rint(numerators / k * grid))
    assert common_grid(np.array([0.1234567, 0.5])) == 0
    assert common_grid(np.array([0.0, 1.0, np.nan])) == 1


def test_lifts_compare_as_the_decimals_they_are() -> None:
    """0.5 - 0.4 is less than 0.1 in floats, and exactly 0.1 in fact."""
    tables = ContingencyTables(*(np.array([v]) for v in (20, 10, 9, 5)))
    assert float(tables.on_rate[0] - tables.off_rate[0]) < 0.1
    assert tables.reaches(Fraction("0.10"))[0]
    assert not tables.reaches(Fraction("0.1000001"))[0]
    assert not tables.reaches(Fraction("0.1") + Fraction(1, 10**30))[0]


@pytest.mark.parametrize("effect", EFFECTS)
def test_a_slice_and_its_complement_have_one_size_of_effect(effect: str) -> None:
    n, total = np.array([50, 50]), np.array([21, 21])
    tables = ContingencyTables(n, np.array([18, 32]), total, np.array([11, 10]))
    assert tables.score(effect)[0] == tables.score(effect)[1]
    assert tables.sign.tolist() == [1, -1]


def test_rates_and_ratios_by_hand() -> None:
    tables = ContingencyTables(*(np.array([v]) for v in (10, 4, 5, 3)))
    assert (tables.on_rate[0], tables.off_rate[0]) == (0.75, 2 / 6)
    assert tables.ratio("risk_ratio")[0] == pytest.approx((3.5 / 5) / (2.5 / 7))
    assert tables.ratio("odds_ratio")[0] == pytest.approx((3.5 / 1.5) / (2.5 / 4.5))
    empty = ContingencyTables(*(np.array([v]) for v in (10, 0, 5, 0)))
    assert np.isnan(empty.lift[0])
    assert not empty.reaches(Fraction(0))[0]
