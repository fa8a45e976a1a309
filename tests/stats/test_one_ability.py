"""Worlds of one ability: abilities are recovered, and draws keep tries and difficulty."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from groundfault.stats.one_ability import OneAbility


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
