"""Runs that go on are compared: an oracle, worlds without an effect, and worlds with one."""

from __future__ import annotations

from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import pytest

from groundfault.stats import risk_sets
from groundfault.stats.risk_sets import NEVER, RiskContrasts, contrast_runs

LANDMARKS = (1, 2, 3, 5, 8)
World = tuple[Any, Any, Any, Any, Any]


def make_world(
    seed: int, *, tasks: int, models: int, trials: int, cause: float = 0.0, things: int = 20
) -> World:
    """Tasks and models change outcomes and behaviours alike; runs that fail are longer.

    Given task and model, nothing that happens has to do with the outcome, but for the first thing
    in a world with a cause: at step 2, in three runs of ten.
    """
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(tasks), models * trials)
    model = np.tile(np.repeat(np.arange(models), trials), tasks)
    n = len(task)
    hard, weak = rng.normal(0, 1.5, tasks)[task], rng.normal(0, 1, models)[model]
    failed = rng.random(n) < 1 / (1 + np.exp(-(hard + weak)))
    caused = rng.random(n) < (0.3 if cause else 0.0)
    failed |= caused & (rng.random(n) < cause)
    length = np.where(failed, 3 + rng.poisson(5, n), 2 + rng.poisson(2, n))
    own = (
        rng.normal(0, 0.7, (things, tasks))[:, task]
        + rng.normal(0, 0.7, (things, models))[:, model]
    )
    rate = 1 / (1 + np.exp(-(-2.5 + own + 0.4 * hard + 0.4 * weak)))
    first = np.full((things, n), NEVER, dtype=np.int32)
    for step in range(1, 25):
        first[(rng.random(first.shape) < rate) & (first == NEVER) & (length >= step)] = step
    if cause:
        first[0] = np.where(caused, 2, NEVER)
    return first, length.astype(np.int64), failed, task, model


def contrast(world: World, seed: int = 0, **options: Any) -> RiskContrasts:
    return contrast_runs(*world, LANDMARKS, 0.1, np.random.default_rng(seed), **options)


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(risk_sets, "DRAWS", 199)


LAYOUTS = [
    {"tasks": 50, "models": 1, "trials": 4},
    {"tasks": 60, "models": 5, "trials": 1},
    {"tasks": 25, "models": 3, "trials": 3},
]


def count_claims(layout: dict[str, int], worlds: int) -> int:
    claims = 0
    for seed in range(worlds):
        p = contrast(make_world(seed, **layout), seed).p
        claims += bool((p[~np.isnan(p)] <= 0.1).any())
    return claims


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.usefixtures("few_draws")
def test_long_runs_that_fail_announce_nothing(layout: dict[str, int]) -> None:
    # of 30 worlds of 10 %, more than 7 are a chance of 1 %
    assert count_claims(layout, 30) <= 7


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_claim_in_a_tenth_of_null_worlds(layout: dict[str, int]) -> None:
    assert count_claims(layout, 200) <= 20 + 2 * 4.3


@pytest.mark.parametrize(
    "layout", [{"tasks": 60, "models": 1, "trials": 6}, LAYOUTS[1] | {"tasks": 120}]
)
@pytest.mark.usefixtures("few_draws")
def test_a_cause_at_the_second_step_is_found(layout: dict[str, int]) -> None:
    found = [contrast(make_world(s, cause=0.6, **layout), s).p[:, 0] <= 0.1 for s in range(10)]
    told = np.array(found)
    # as what happens, and after the second step; before it, nobody knows
    assert told[:, 0].sum() >= 7
    assert told[:, 2:4].any(axis=1).sum() >= 7
    assert not told[:, 1].any()


def test_length_alone_is_no_behaviour() -> None:
    """What happens for certain at step 6 happens in most runs that fail, and says nothing."""
    first, length, failed, task, model = make_world(1, tasks=60, models=1, trials=5)
    first[0] = np.where(length >= 6, 6, NEVER)
    shown = first[0] < NEVER
    assert failed[shown].mean() > failed[~shown].mean() + 0.3
    result = contrast((first, length, failed, task, model))
    assert np.isnan(result.p[0, 0]) or result.p[0, 0] == 1


def test_chances_are_those_of_all_ways_to_deal_failures_out() -> None:
    odds = np.array([0.5, 1.0, 3.0])
    failed, levels = np.array([True, True, False, False]), np.array([0, 1, 2, 2])
    one = risk_sets._RiskSet(np.arange(4), np.zeros(4, dtype=np.int64), failed, levels, odds)
    one.odds = odds
    one._find_chances()
    ways = list(combinations(range(4), 2))
    weight = np.array([prod(odds[levels[i]] for i in way) for way in ways])
    hoped = [sum(w for w, way in zip(weight, ways, strict=True) if i in way) for i in range(4)]
    assert one.expected == pytest.approx(np.array(hoped) / weight.sum())
    _, dealt = one.draw(20_000, np.random.default_rng(0))
    assert (dealt.sum(axis=0) == 2).all()
    assert dealt.mean(axis=1) == pytest.approx(one.expected, abs=0.02)


def test_fitted_levels_give_each_as_many_failures_as_it_has() -> None:
    _, _, failed, task, model = make_world(3, tasks=80, models=4, trials=2)
    order = np.flatnonzero(
        np.isin(task, [t for t in range(80) if 0 < failed[task == t].mean() < 1])
    )
    one = risk_sets._RiskSet(order, task[order], failed[order], model[order], np.ones(4))
    hoped = np.bincount(model[order], one.expected)
    assert hoped == pytest.approx(np.bincount(model[order], failed[order]), abs=0.01)


def test_one_model_is_the_permutation_test_of_its_tasks() -> None:
    first, length, failed, task, model = make_world(5, tasks=40, models=1, trials=4, things=3)
    length[:] = 4
    first = np.where(first <= 4, 1, NEVER).astype(np.int32)
    result = contrast((first, length, failed, task, model))
    mixed = np.isin(task, [t for t in range(40) if 0 < failed[task == t].mean() < 1])
    shares = np.array([failed[task == t].mean() for t in task])
    on = first[:, mixed] == 1
    assert result.runs[0] == pytest.approx(on.sum(axis=1))
    assert result.expected[0] == pytest.approx(on @ shares[mixed])
    # the variance of Mantel and Haenszel
    variance = np.zeros(3)
    for t in np.unique(task[mixed]):
        rows, m = first[:, task == t] == 1, failed[task == t].mean()
        n, k = rows.shape[1], rows.sum(axis=1)
        variance += k * (n - k) / (n - 1) * m * (1 - m)
    z = (result.failed[0] - result.expected[0]) / np.sqrt(variance)
    assert result.z[0] == pytest.approx(z, rel=0.1)


def test_few_or_like_runs_are_not_tested() -> None:
    first, length, failed, task, model = make_world(2, tasks=12, models=1, trials=4)
    for outcome in (np.ones_like(failed), np.zeros_like(failed)):
        result = contrast((first, length, outcome, task, model))
        assert np.isnan(result.p).all()
        assert result.bar == np.inf
    assert contrast((first[:0], length, failed, task, model)).p.shape == (6, 0)
    alone = np.arange(len(task))
    assert np.isnan(contrast((first, length, failed, alone, model)).p).all()
    result = contrast((first, length, failed, model, model), sums=False)
    assert np.isnan(result.p[0]).all()
    assert not np.isnan(result.p[1:]).all()


def test_a_long_stratum_is_permuted_as_short_ones_are(monkeypatch: pytest.MonkeyPatch) -> None:
    first, length, failed, _, model = make_world(4, tasks=80, models=1, trials=4)
    world = (first, length, failed, model, model)
    fast = contrast(world, sums=False)
    monkeypatch.setattr(risk_sets, "_MANY", 10_000)
    slow = contrast(world, sums=False)
    assert np.nanmax(np.abs(fast.z - slow.z)) < 0.6
    assert fast.bar == pytest.approx(slow.bar, abs=0.2)
