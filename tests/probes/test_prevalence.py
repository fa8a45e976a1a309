"""Rates from adaptive draws: unbiased by exact enumeration of tiny worlds; intervals that cover on
simulated ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from groundfault.core.plan import Plan
from groundfault.probes.policies import get
from groundfault.probes.policies.history import PromptHistory, PromptPolicy, chances_of
from groundfault_lab.probes.arena import draw_landscape
from groundfault_lab.stats.prevalence import (
    Prevalence,
    estimate_with_repeats,
    estimate_without_repeats,
)

TASKS, SIZES = 2, (3,)
WRONG = np.array([1, 0, 0, 1, 1, 0], dtype=bool)  # of two tasks by three options
MISMATCH = np.array(
    [1, 0, 1, 1, 0, 0], dtype=bool
)  # what the policy learns from: artefacts, and an error unseen


def courses(
    policy: PromptPolicy, budget: int, blocked: np.ndarray | None = None
) -> Iterator[tuple[float, list[int], list[float]]]:
    """Every course that a run in batches of two can take: its probability, its keys, and the chance
    of each.
    """

    def go(keys: list[int], chances: list[float]) -> Iterator[tuple[float, list[int], list[float]]]:
        if len(keys) == budget:
            yield float(np.prod(chances)), keys, chances
            return
        content = len(keys) // 2 * 2
        at, waiting = (
            np.array(keys[:content], dtype=np.intp),
            np.array(keys[content:], dtype=np.intp),
        )
        chance = policy.chances(
            PromptHistory(TASKS, SIZES, at, MISMATCH[at], content // 2 + 1, 3, blocked, waiting)
        )
        assert chance is not None
        assert chance.sum() == pytest.approx(1)
        for key in np.flatnonzero(chance):
            yield from go([*keys, int(key)], [*chances, float(chance[key])])

    return go([], [])


def moments(
    policy: str,
    budget: int,
    estimate: Callable[[list[int], list[float]], Prevalence | None],
    **more: np.ndarray,
) -> tuple[float, float, float]:
    """Mean of the estimate, its variance, and the mean of the variance it tells."""
    weight, value, content = np.array(
        [
            (weight, result.value, result.error**2)
            for weight, keys, chances in courses(get(policy), budget, **more)
            if (result := estimate(keys, chances)) is not None
        ]
    ).T
    assert weight.sum() == pytest.approx(1)
    mean = float(weight @ value)
    return mean, float(weight @ (value - mean) ** 2), float(weight @ content)


@pytest.mark.parametrize(
    "policy",
    [
        "uniform",
        "exhaustive",
        "caps",
        "caps, prior=stressor, schedule=geometric, start=0.5, rate=0.9",
    ],
)
@pytest.mark.parametrize("budget", [2, 3, 5])
def test_without_repeats_the_mean_of_all_courses_is_the_rate(policy: str, budget: int) -> None:
    mean, variance, content = moments(
        policy, budget, lambda keys, p: estimate_without_repeats(WRONG[keys], p, 6)
    )
    assert mean == pytest.approx(WRONG.mean(), abs=1e-12)
    if policy == "exhaustive" or budget < 5:  # of six keys
        assert content == pytest.approx(
            variance, abs=1e-12 if policy == "exhaustive" else 0.2 * variance
        )


@pytest.mark.parametrize("policy", ["uniform, repeats", "caps, repeats, rate=0.9"])
def test_with_repeats_the_mean_of_all_courses_is_the_rate(policy: str) -> None:
    mean, variance, content = moments(
        policy, 4, lambda keys, p: estimate_with_repeats(WRONG[keys], p, 6)
    )
    assert mean == pytest.approx(WRONG.mean(), abs=1e-12)
    assert content == pytest.approx(
        variance, abs=1e-12
    )  # exact: the places are uncorrelated and weigh the same


def test_a_plain_mean_of_adaptive_draws_is_biased() -> None:
    plain = lambda keys, p: Prevalence(float(WRONG[keys].mean()), 0, 0, 1, 1)  # noqa: E731
    assert abs(moments("caps, rate=0.9, start=0.2", 4, plain)[0] - WRONG.mean()) > 0.01


def test_blocked_keys_are_no_part_of_the_population() -> None:
    blocked = np.array([0, 0, 1, 1, 0, 0], dtype=bool)
    mean, _, _ = moments(
        "caps", 3, lambda keys, p: estimate_without_repeats(WRONG[keys], p, 4), blocked=blocked
    )
    assert mean == pytest.approx(WRONG[~blocked].mean(), abs=1e-12)


def test_all_members_give_the_exact_rate() -> None:
    result = estimate_without_repeats([1, 0, 0, 1], [0.25, 1 / 3, 0.5, 1], 4)
    assert (result.value, result.error, result.low, result.high) == (0.5, 0, 0.5, 0.5)


def test_equal_chances_give_the_plain_mean() -> None:
    values = [1, 0, 0, 1, 0]
    assert estimate_without_repeats(
        values, [1 / (9 - m) for m in range(5)], 9
    ).value == pytest.approx(0.4)
    assert estimate_with_repeats(values, [1 / 9] * 5, 9).value == pytest.approx(0.4)


def test_where_nothing_fails_an_interval_still_has_a_width() -> None:
    for result in (
        estimate_without_repeats([0] * 30, [1 / (486 - m) for m in range(30)], 486),
        estimate_with_repeats([0] * 30, [1 / 486] * 30, 486),
    ):
        assert (result.value, result.error, result.low) == (0, 0, 0)
        assert 0.08 < result.high < 0.15


def test_the_chance_of_a_draw_is_told_only_where_every_key_could_have_come() -> None:
    queries = PromptHistory(TASKS, SIZES, np.array([0]), np.array([True]), 2, 3)
    keys = np.array([1, 5])
    assert chances_of(get("uniform"), queries, keys) == pytest.approx([1 / 4, 1 / 6])
    assert chances_of(get("uniform, repeats"), queries, keys) == pytest.approx([1 / 6, 1 / 6])
    for silent in ("gp", "hierarchical", "stratified", "exhaustive, order=canonical"):
        assert chances_of(get(silent), queries, keys)[0] is None
    assert chances_of(get("uniform, most=1"), queries, keys) == [None, None]


@pytest.mark.parametrize("policy", ["uniform", "caps", "caps, repeats, prior=stressor"])
def test_intervals_cover_on_simulated_landscapes(policy: str) -> None:
    coverage, values = 0, []
    worlds, runs, budget = ("sparse by task", "task by component", "diffuse"), 20, 50
    for world in worlds:
        for number in range(runs):
            land = draw_landscape(world, Plan().rng(world, number))
            keys, chances = draw_run(get(policy), land.mismatch, budget, Plan(seed=1), number)
            y = land.wrong[keys]
            estimate = estimate_with_repeats if "repeats" in policy else estimate_without_repeats
            result = estimate(y, chances, 486)
            coverage += result.low <= land.wrong.mean() <= result.high
            values.append(result.value - land.wrong.mean())
    n = runs * len(worlds)
    assert coverage >= 0.95 * n - 3 * np.sqrt(0.95 * 0.05 * n)
    assert abs(np.mean(values)) < 3 * np.std(values) / np.sqrt(n)


def draw_run(
    policy: PromptPolicy, mismatch: np.ndarray, budget: int, plan: Plan, number: int
) -> tuple[np.ndarray, list[float | None]]:
    """Keys and their chances, in batches of ten."""
    keys, chances = np.empty(0, dtype=np.intp), list[float | None]()
    for turn in range(1, budget // 10 + 1):
        queries = PromptHistory(18, (3, 3, 3), keys, mismatch[keys], turn, budget // 10)
        counter = number * 100 + turn
        more = policy.ask(queries, 10, plan.rng("tasks", counter), plan.rng("components", counter))
        chances += chances_of(policy, queries, more)
        keys = np.append(keys, more)
    return keys, chances
