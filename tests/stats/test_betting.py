"""Bets are fair under the null, and weights of starters add up to one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from groundfault.stats import betting


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99), st.floats(0, 1))
def test_no_bet_gains_on_average_under_the_null(
    forecast: float, threshold: float, excess: float
) -> None:
    mean = threshold + excess * (1 - threshold)
    factors = [
        betting.factor(np.array([score]), np.array([[forecast]]), np.array([threshold]))[0, 0]
        for score in (1.0, 0.0)
    ]
    assert min(factors) >= 0
    assert mean * factors[0] + (1 - mean) * factors[1] <= 1 + 1e-9


def test_a_bet_is_the_likelihood_ratio() -> None:
    score, forecast, threshold = np.array([1.0, 0.0]), np.array([[0.3]]), np.array([0.5])
    assert betting.factor(score, forecast, threshold)[0] == pytest.approx([0.3 / 0.5, 0.7 / 0.5])


def test_the_rest_of_a_group_must_make_up_the_mean() -> None:
    rest = betting.conditional_threshold(0.85, [20, 20, 100], [10, 20, 0], [7, 17, 0])
    assert rest == pytest.approx([1.0, -np.inf, 0.85])
    assert betting.is_refuted(betting.conditional_threshold(0.85, 20, 10, 6))
    with pytest.raises(ValueError, match="labelled"):
        betting.conditional_threshold(0.5, 10, 11, 0)


@pytest.mark.parametrize("rule", ["once", "uniform", "harmonic"])
def test_starters_and_idle_wealth_add_up_to_one(rule: str) -> None:
    weight = 0.0
    for step in range(1, 12):
        weight += betting.start_weight(step, rule, 10)
        assert weight + betting.idle_weight(step, rule, 10) == pytest.approx(1)


def test_the_forecaster_averages_with_the_weights_before_the_round() -> None:
    factors = np.array([[2.0], [0.5]])
    average, log_weights = betting.weigh(np.log([[0.5], [0.5]]), factors, 1.0)
    assert average[0] == pytest.approx(1.25)
    assert np.exp(log_weights).ravel() == pytest.approx([0.8, 0.2])


def test_the_log_of_a_mean_of_zeros_is_minus_infinity() -> None:
    weights = np.log([[0.5, 0.5], [0.5, 0.5]])
    values = np.array([[0.0, -np.inf], [np.log(3.0), -np.inf]])
    assert betting.log_mean(values, weights) == pytest.approx([np.log(2), -np.inf])


def test_observations_keep_count_sum_and_squares() -> None:
    history = np.zeros((3, 1))
    for score in (1.0, 0.0):
        history = betting.observe(history, np.array([score]))
    assert history.ravel() == pytest.approx([2, 1, 0.25**2 + 0.5**2])
    assert 0 < betting.agrapa(history, np.array([0.9]))[0, 0] < 0.9


@pytest.mark.parametrize("shape", [(0.9, 0.1), (0.1, 0.9), (5.0, 5.0)])
def test_evidence_of_an_excess_is_an_e_value(shape: tuple[float, float]) -> None:
    """Its mean under equal means is at most 1, whatever the shapes."""
    rng, (a, b) = np.random.default_rng(3), shape
    on = np.arange(120) < 12
    draws = [
        np.exp(
            betting.log_excess(np.where(on, rng.beta(a, b, 120), rng.beta(9 * a, 9 * b, 120)), on)
        )
        for _ in range(400)
    ]
    # 0 stands for a mean inside that is not larger: e-values of 1, as large as they may be
    assert np.mean(draws) <= 1 + 3 * np.std(draws) / 20
    assert np.mean(np.array(draws) > 10) <= 0.1


def test_evidence_grows_with_an_excess_and_not_without() -> None:
    rng = np.random.default_rng(4)
    on = np.arange(20_000) < 2_000
    losses = rng.random(20_000)
    assert betting.log_excess(losses, on) < 2.3
    assert betting.log_excess(np.minimum(losses + 0.05 * on, 1), on) > 5
    assert betting.log_excess(losses - losses * on, on) == 0
    assert betting.log_excess(np.zeros(5), np.ones(5, dtype=bool)) == 0
