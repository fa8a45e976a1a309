"""Conditional estimates: against simulation, and in their limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundfault.stats.conditional import condition_on_passing

Z = 1.6448536269514722


def condition(estimate: float, bar: float, error: float = 1.0) -> tuple[float, float]:
    center, low = condition_on_passing(
        np.array([estimate]), np.array([estimate - Z * error]), np.array([bar]), 0.9
    )
    return float(center[0]), float(low[0])


@pytest.mark.parametrize("effect", [0.0, 0.5, 1.0, 2.0, 3.0])
def test_of_what_passed_nine_in_ten_intervals_cover_and_half_of_the_estimates_are_too_large(
    effect: float,
) -> None:
    rng = np.random.default_rng(0)
    draws = effect + rng.standard_normal(400_000)
    passed = draws[draws >= 1.5]
    center, low = condition_on_passing(passed, passed - Z, np.full(len(passed), 1.5), 0.9)
    error = 4 * (0.25 / len(passed)) ** 0.5
    assert np.mean(low > effect) == pytest.approx(0.05, abs=error)
    assert np.mean(center > effect) == pytest.approx(0.5, abs=error)
    # the ordinary upper end misses less often than among all
    assert np.mean(passed + Z < effect) <= 0.05 + error
    if effect <= 0.5:
        # the ordinary interval, which is what was reported before
        assert np.mean(np.abs(passed - effect) <= Z) < 0.7


def test_a_bar_far_below_changes_nothing() -> None:
    assert condition(2.0, -50.0) == pytest.approx((2.0, 2.0 - Z), abs=1e-9)


def test_at_the_bar_itself_nothing_is_known_but_that_it_passed() -> None:
    assert condition(2.0, 2.0) == (-np.inf, -np.inf)
    assert condition(2.0, 2.5) == (-np.inf, -np.inf)


@given(st.floats(0.1, 5), st.floats(-3, 4), st.floats(0.01, 3), st.floats(0.2, 3))
def test_a_higher_bar_lowers_both(estimate: float, bar: float, higher: float, error: float) -> None:
    center, low = condition(estimate, bar, error)
    assert low <= center <= estimate + 1e-9
    assert low <= estimate - Z * error + 1e-9
    closer = condition(estimate, bar + higher, error)
    assert closer[0] <= center + 1e-9
    assert closer[1] <= low + 1e-9
