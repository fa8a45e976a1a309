"""Studentised lifts beside the formula unit by unit, with gaps, strata and many descriptors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from statsmodels.stats.contingency_tables import StratifiedTable

from groundfault.stats import bits, contingency
from groundfault.stats.contingency import RobustLifts, centre_losses, condition_on_passing, lift


def compute_by_hand(
    on: np.ndarray, losses: np.ndarray, strata: np.ndarray, defined: np.ndarray
) -> float:
    """Mantel-Haenszel like excess over its sandwich standard error, without matrices."""
    excess, variance = 0.0, 0.0
    for stratum in np.unique(strata):
        members = (strata == stratum) & defined
        share = on[members].mean()
        residuals = losses[members] - losses[strata == stratum].mean()
        excess += ((on[members] - share) * residuals).sum()
        variance += ((on[members] - share) ** 2 * residuals**2).sum()
    return excess / np.sqrt(variance)


@pytest.mark.parametrize("strata", [None, np.arange(60) % 3])
def test_a_lift_is_an_excess_over_its_sandwich_standard_error(strata: np.ndarray | None) -> None:
    rng = np.random.default_rng(0)
    on, losses = rng.random((5, 60)) < 0.4, rng.random(60)
    lifts = RobustLifts(bits.pack(on), 60, strata=strata)
    statistics = lifts(centre_losses(losses[None], strata=strata))[0]
    home = np.zeros(60) if strata is None else strata
    everywhere = np.ones(60, dtype=bool)
    expected = [compute_by_hand(row, losses, home, everywhere) for row in on]
    assert statistics == pytest.approx(expected)


def test_a_slice_is_measured_against_the_mean_of_the_units_where_it_is_defined() -> None:
    rng = np.random.default_rng(1)
    on, defined = rng.random((4, 80)) < 0.5, rng.random((4, 80)) < 0.6
    losses, has_loss = rng.random(80) + defined[0], rng.random(80) < 0.7
    losses = np.where(has_loss, losses, 0)
    lifts = RobustLifts(bits.pack(on & defined), 80, bits.pack(defined))
    residuals = centre_losses(losses[None], has_loss[None])
    statistics = lifts(residuals, has_loss[None].astype(float))[0]
    for row, where, statistic in zip(on & defined, defined, statistics, strict=True):
        members, part = where & has_loss, row - row[where].mean()
        gaps = losses - losses[members].mean()
        expected = (part * gaps)[members].sum() / np.sqrt(
            (part * gaps)[members] @ (part * gaps)[members]
        )
        assert statistic == pytest.approx(expected)


def test_no_variance_is_no_difference_and_chunks_change_nothing(monkeypatch) -> None:
    rng = np.random.default_rng(2)
    on, losses = bits.pack(rng.random((7, 50)) < 0.3), rng.random((3, 50))
    assert (RobustLifts(on, 50)(np.zeros((1, 50))) == 0).all()
    whole = RobustLifts(on, 50)(centre_losses(losses))
    monkeypatch.setattr(contingency, "_CELLS", 100)
    parts = RobustLifts(on, 50)(centre_losses(losses))
    assert whole.shape == (3, 7)
    np.testing.assert_allclose(parts, whole)


def test_centred_losses_sum_to_nothing_in_every_stratum() -> None:
    rng = np.random.default_rng(3)
    losses, has_loss, strata = rng.random((2, 40)), rng.random((2, 40)) < 0.8, np.arange(40) % 4
    residuals = centre_losses(losses, has_loss, strata)
    assert (residuals[~has_loss] == 0).all()
    for row in residuals:
        assert np.bincount(strata, weights=row) == pytest.approx(np.zeros(4), abs=1e-12)


Z = 1.6448536269514722


def condition(estimate: float, bar: float, error: float = 1.0) -> tuple[float, float]:
    center, low = condition_on_passing(
        np.array([estimate]), np.array([estimate - Z * error]), np.array([bar]), 0.9
    )
    return float(center[0]), float(low[0])


@pytest.mark.parametrize("effect", [0.0, 0.5, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("draws", [100_000, pytest.param(400_000, marks=pytest.mark.slow)])
def test_of_what_passed_nine_in_ten_intervals_cover_and_half_of_the_estimates_are_too_large(
    draws: int, effect: float
) -> None:
    rng = np.random.default_rng(0)
    estimates = effect + rng.standard_normal(draws)
    passed = estimates[estimates >= 1.5]
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


def test_one_stratum_gives_the_plain_lift() -> None:
    rng = np.random.default_rng(0)
    on, losses = rng.random((3, 80)) < 0.4, rng.random(80)
    value, _ = lift(on, losses, np.zeros(80, dtype=np.int64))
    assert value == pytest.approx([losses[row].mean() - losses[~row].mean() for row in on])


def test_z_is_the_root_of_the_mantel_haenszel_statistic() -> None:
    rng = np.random.default_rng(1)
    on, strata = rng.random(300) < 0.5, rng.integers(0, 4, 300)
    losses = (rng.random(300) < 0.2 + 0.15 * strata + 0.1 * on).astype(np.int64)
    tables = [
        [[(cell & (losses == y)).sum() for y in (1, 0)] for cell in (on & inside, ~on & inside)]
        for inside in (strata == s for s in range(4))
    ]
    oracle = StratifiedTable([np.array(table) for table in tables]).test_null_odds()
    _, z = lift(on[None], losses, strata)
    assert z[0] ** 2 == pytest.approx(oracle.statistic)


def test_a_descriptor_that_only_names_the_stratum_has_no_lift() -> None:
    strata = np.repeat([0, 1], 50)
    losses = np.concatenate([np.zeros(50), np.ones(50)])
    value, z = lift((strata == 1)[None], losses, strata)
    assert (value[0], z[0]) == (0, 0)


def test_weights_are_so_many_units_of_a_kind() -> None:
    rng = np.random.default_rng(2)
    on, losses, strata = rng.random((3, 40)) < 0.5, rng.integers(0, 2, 40), rng.integers(0, 3, 40)
    defined, weights = on | (rng.random((3, 40)) < 0.7), rng.integers(0, 5, 40)
    repeated = lift(
        np.repeat(on, weights, axis=1),
        np.repeat(losses, weights),
        np.repeat(strata, weights),
        np.repeat(defined, weights, axis=1),
    )
    np.testing.assert_allclose(lift(on, losses, strata, defined, weights), repeated, rtol=1e-12)
