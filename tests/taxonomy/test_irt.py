"""The item-response fit: it maximises what it says, finds what was planted, and minds neither order
nor holes.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize
from scipy.special import expit

from groundfault_lab.stats import irt
from groundfault_lab.stats.irt import ItemResponse, OneAbility


def world(
    n: int, m: int, seed: int = 0, holes: float = 0.1
) -> tuple[ItemResponse, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    ability = rng.normal(size=m)
    ability = (ability - ability.mean()) / ability.std()
    truth = ItemResponse(np.exp(rng.normal(0.3, 0.4, n)), rng.normal(0.5, 1.5, n), ability)
    trials = (rng.random((n, m)) >= holes).astype(np.int64)
    passes = (rng.random((n, m)) < truth.probability()) & (trials > 0)
    return truth, passes.astype(np.int64), trials


def test_new_items_maximise_the_penalised_likelihood() -> None:
    truth, passes, trials = world(12, 40)
    like = ItemResponse(truth.slope, truth.intercept, truth.ability, centre=(0.3, 0.5))
    model = irt.fit_items(passes, trials, like)
    for i in range(12):

        def loss(x: np.ndarray, i: int = i) -> float:
            p = expit(np.exp(x[0]) * truth.ability + x[1])
            fit = passes[i] * np.log(p) + (trials[i] - passes[i]) * np.log1p(-p)
            return -fit.sum() + (x[0] - 0.3) ** 2 / (2 * 0.25) + (x[1] - 0.5) ** 2 / (2 * 4.0)

        best = minimize(loss, [0.3, 0.5], tol=1e-12).x
        np.testing.assert_allclose([np.log(model.slope[i]), model.intercept[i]], best, atol=1e-4)


def test_what_was_planted_is_found() -> None:
    truth, passes, trials = world(2000, 30)
    model = irt.fit(passes, trials)
    assert model.converged
    assert model.ability.mean() == pytest.approx(0, abs=1e-9)
    assert model.ability.std() == pytest.approx(1, abs=1e-9)
    assert np.corrcoef(model.ability, truth.ability)[0, 1] > 0.99
    assert np.corrcoef(model.intercept, truth.intercept)[0, 1] > 0.9
    assert np.corrcoef(np.log(model.slope), np.log(truth.slope))[0, 1] > 0.5
    assert np.log(model.slope).mean() == pytest.approx(np.log(truth.slope).mean(), abs=0.1)
    one = irt.fit(passes, trials, parameters=1)
    assert one.converged
    assert np.ptp(one.slope) < 1e-9


def test_a_model_that_passes_everything_has_a_finite_ability() -> None:
    _, passes, trials = world(100, 6)
    passes[:, 0] = trials[:, 0]
    model = irt.fit(passes, trials)
    assert np.isfinite(model.ability).all()
    assert model.ability.argmax() == 0


@settings(max_examples=10)
@given(st.integers(0, 2**31))
def test_order_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    _, passes, trials = world(60, 8, seed)
    rows, columns = rng.permutation(60), rng.permutation(8)
    model = irt.fit(passes, trials, tolerance=1e-7)
    reordered = irt.fit(passes[rows][:, columns], trials[rows][:, columns], tolerance=1e-7)
    np.testing.assert_allclose(model.ability[columns], reordered.ability, atol=1e-6)
    np.testing.assert_allclose(model.slope[rows], reordered.slope, atol=1e-6)


def test_repeats_are_tries_not_items() -> None:
    _, passes, trials = world(50, 8)
    once = irt.fit_items(passes, trials, irt.fit(passes, trials))
    thrice = irt.fit_items(3 * passes, 3 * trials, irt.fit(passes, trials))
    assert (
        np.abs(thrice.intercept - thrice.centre[1]).mean()
        > np.abs(once.intercept - once.centre[1]).mean()
    )


def test_residuals_have_the_spread_that_the_model_gives_them() -> None:
    truth, passes, trials = world(4000, 20)
    residual = irt.compute_residuals(passes, trials, truth)
    assert (residual[trials == 0] == 0).all()
    wide = trials.astype(bool) & (np.abs(truth.probability() - 0.5) < 0.3)
    assert residual[wide].mean() == pytest.approx(0, abs=0.02)
    assert residual[wide].std() == pytest.approx(1, abs=0.02)


def test_a_new_model_is_placed() -> None:
    _, passes, trials = world(400, 20)
    model = irt.fit(passes, trials)
    density = irt.compute_log_posterior(passes, trials, irt.compute_curves(model))
    mean, deviation = irt.compute_moments(density)
    assert np.abs(mean - model.ability).max() < 0.3
    assert ((deviation > 0) & (deviation < 0.3)).all()
    nothing, _ = irt.compute_moments(
        irt.compute_log_posterior(passes[:, :1], 0 * trials[:, :1], irt.compute_curves(model))
    )
    assert nothing[0] == pytest.approx(0, abs=1e-9)


def test_information_is_the_squared_slope_times_the_variance() -> None:
    truth, _, _ = world(30, 5)
    at, step = np.array([-1.0, 0.0, 1.5]), 1e-5
    slope = (truth.probability(at + step) - truth.probability(at - step)) / (2 * step)
    p = truth.probability(at)
    np.testing.assert_allclose(truth.information(at), slope**2 / (p * (1 - p)), rtol=1e-6)


def test_abilities_are_recovered_and_draws_are_alike() -> None:
    rng = np.random.default_rng(0)
    ability = np.linspace(-1.5, 1.5, 12)
    passes = (rng.random((200, 12)) < expit(ability - rng.normal(size=(200, 1)))).astype(np.int64)
    trials = np.ones_like(passes)
    trials[0] = 0
    passes[0] = 0
    model = OneAbility.fit(passes, trials, tolerance=1e-3, max_iterations=20)
    assert np.corrcoef(model.ability, ability)[0, 1] > 0.95
    assert model.share.sum() == pytest.approx(1)
    world = model.draw(np.random.default_rng(1))
    assert world.shape == passes.shape
    assert (world <= trials).all()
    assert world.mean() == pytest.approx(passes.mean(), abs=0.05)


def test_repeated_tries_are_drawn_as_often() -> None:
    rng = np.random.default_rng(2)
    trials = rng.integers(1, 5, (60, 6))
    model = OneAbility.fit(rng.binomial(trials, 0.5), trials, tolerance=1e-2, max_iterations=5)
    world = model.draw(rng)
    assert ((world >= 0) & (world <= trials)).all()
    assert world.max() > 1
