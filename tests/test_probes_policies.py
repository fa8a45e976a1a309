"""Policies for prompt keys: pure, without repeats where they say so, CAPS by hand, and the arena's matched runs."""

from __future__ import annotations

import numpy as np
import pytest

from groundfault.errors import PlanError
from groundfault.plan import Plan
from groundfault.probes.arena import SIZES, TASKS, WORLDS, arena, landscape, run
from groundfault.probes.policies import POLICIES, Asked, Caps, GaussianThompson, Stratified, Uniform
from groundfault.probes.thompson import _kernel, _respects

FRESH = [name for name in POLICIES if "repeats" not in name]


def asked(keys: list[int], mismatch: list[bool], *, batch: int = 1, batches: int = 8) -> Asked:
    return Asked(TASKS, SIZES, np.array(keys, dtype=np.intp), np.array(mismatch, dtype=bool), batch, batches)


def ask(policy, seen: Asked, size: int = 3, seed: int = 0) -> list[int]:
    return policy.ask(seen, size, np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])).tolist()


@pytest.mark.parametrize("name", list(POLICIES))
def test_a_policy_is_a_pure_function(name: str) -> None:
    seen = asked([3, 100, 400], [True, False, True], batch=2)
    assert ask(POLICIES[name], seen) == ask(POLICIES[name], seen)
    assert len({tuple(ask(POLICIES[name], seen, seed=seed)) for seed in range(8)}) > 1


@pytest.mark.parametrize("name", FRESH)
def test_without_repeats_every_key_is_asked_once_and_then_none(name: str) -> None:
    keys = np.empty(0, dtype=np.intp)
    rng = np.random.default_rng(0)
    for turn in range(1, 10):
        seen = Asked(4, (2, 3), keys, keys % 5 == 0, turn, 9)
        keys = np.concatenate([keys, POLICIES[name].ask(seen, 3, rng, rng)])
    assert sorted(keys.tolist()) == list(range(24))


def test_caps_scores_are_an_exponential_average_of_the_signals_of_an_option() -> None:
    keys, signals = [0, 1, 27 + 13, 26], [True, False, True, True]
    scores = [[0.5 * (option > 0) for option in range(3)] for _ in SIZES]
    for key, signal in zip(keys, signals, strict=True):
        place = key % 27
        for group, option in enumerate((place // 9, place // 3 % 3, place % 3)):
            scores[group][option] = 0.7 * scores[group][option] + 0.3 * signal
    made = Caps(prior="stressor").scores(asked(keys, signals))
    np.testing.assert_allclose(made, scores, atol=1e-12)


def test_caps_cools_and_its_chances_are_the_softmax_of_scores() -> None:
    policy = Caps(repeats=True, start=1.0, floor=0.2)
    for batch, temperature in ((1, 1.0), (5, 0.5), (8, 0.2)):
        seen = asked([0], [True], batch=batch)
        weights = np.exp(np.array([0.3, 0, 0]) / temperature)
        wanted = weights[0] / weights.sum()
        drawn = np.array(ask(policy, seen, size=6000)) % 27 // 9
        assert abs((drawn == 0).mean() - wanted) < 4 * np.sqrt(wanted * (1 - wanted) / 6000)


def test_stratified_keeps_tasks_even_and_every_key_as_likely() -> None:
    keys = run(Stratified(), landscape("diffuse", np.random.default_rng(0)), budget=40, batch=3, plan=Plan(), number=0)
    counts = np.bincount(keys // 27, minlength=TASKS)
    assert counts.max() - counts.min() <= 1


def test_the_kernel_is_what_it_says() -> None:
    kernel = _kernel(_respects(asked([], [])), np.arange(TASKS * 27))
    same_task, shared = 27 * 2, 27 * 2 + 1  # differ in the last option alone
    assert kernel[same_task, same_task] == pytest.approx(0.5 + 0.25 + 0.5 + 0.25)
    assert kernel[same_task, shared] == pytest.approx(0.5 + 0.75 * 2 / 3)
    assert kernel[0, 27] == pytest.approx(0.25)


@pytest.mark.parametrize("name", ["gp", "hierarchical"])
def test_learners_go_where_the_mismatches_are(name: str) -> None:
    keys = [27 * task + place for task in range(TASKS) for place in (0, 13, 26)]
    seen = asked(keys, [key // 27 == 7 for key in keys])
    next_tasks = [key // 27 for seed in range(10) for key in ask(POLICIES[name], seen, seed=seed)]
    assert next_tasks.count(7) > 10  # of 30; chance alone gives fewer than two


def test_runs_are_matched() -> None:
    """Policies that draw tasks share their stream, and no other; budgets are met exactly."""
    land = landscape("diffuse", np.random.default_rng(3))
    settings = {"budget": 47, "batch": 3, "plan": Plan(seed=5), "number": 2}
    one, two = (run(policy, land, **settings) for policy in (Uniform(repeats=True), Caps(repeats=True)))
    assert len(one) == len(two) == 47
    assert (one // 27 == two // 27).all()
    assert (one % 27 != two % 27).any()
    assert (run(Uniform(repeats=True), land, **settings) == one).all()


@pytest.mark.parametrize("world", list(WORLDS))
def test_landscapes_fail_rarely_and_artefacts_are_no_errors(world: str) -> None:
    lands = [landscape(world, np.random.default_rng(seed)) for seed in range(60)]
    assert 0.04 < np.mean([land.wrong.mean() for land in lands]) < 0.17
    assert all((land.mismatch | ~land.wrong).all() for land in lands)
    assert np.mean([(land.mismatch & ~land.wrong).mean() for land in lands]) == pytest.approx(0.1 / 3 * 0.9, abs=0.01)


def test_learning_pays_where_there_is_structure_and_repeats_cost() -> None:
    found = {s.policy: s for s in arena(["uniform, repeats", "stratified", "hierarchical"], ["sparse by task"])}
    assert found["hierarchical"].low > 0
    assert found["uniform, repeats"].high < 0
    assert found["stratified"].gain == found["stratified"].low == found["stratified"].high == 0
    assert found["uniform, repeats"].rows > found["uniform, repeats"].keys


@pytest.mark.slow
def test_gaussian_thompson_finds_more_where_there_is_structure_and_nothing_extra_where_there_is_none() -> None:
    found = {(s.world, s.policy): s for s in arena(["uniform, repeats", "gp"], control="uniform", landscapes=200)}
    for world in WORLDS:
        ratio = found[world, "gp"].keys / found[world, "uniform, repeats"].keys
        assert ratio >= 1.4 or world == "unstructured"
        assert (found[world, "gp"].low > 0) == (world != "unstructured")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"policies": ["magic"]}, "no policy 'magic'"),
        ({"control": "magic"}, "no policy 'magic'"),
        ({"worlds": ["moon"]}, "no landscape 'moon'"),
        ({"budget": 0}, "budget 0"),
        ({"batch": 0}, "batch 0"),
        ({"landscapes": 19}, "at least 20"),
        ({"level": 1.0}, "level"),
    ],
)
def test_an_arena_that_cannot_be(given: dict[str, object], said: str) -> None:
    with pytest.raises(PlanError, match=said):
        arena(**given)


@pytest.mark.parametrize("given", [{"rate": 0}, {"floor": 0}, {"start": 0}])
def test_caps_that_cannot_be(given: dict[str, float]) -> None:
    with pytest.raises(PlanError, match="CAPS needs"):
        Caps(**given)


def test_the_gaussian_policy_has_no_repeats_when_all_but_few_are_asked() -> None:
    seen = asked(list(range(484)), [False] * 484)
    assert sorted(ask(GaussianThompson(), seen)) == [484, 485]
