"""Policies for prompt keys: pure, without repeats where they say so, CAPS by hand, and the arena's
matched runs.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from groundfault.core.plan import Plan
from groundfault.errors import PlanError
from groundfault.probes.policies import (
    DEFAULT,
    Capped,
    PromptHistory,
    StratifiedPrompts,
    UniformPrompts,
    get,
)
from groundfault_lab.probes.arena import (
    SIZES,
    TASKS,
    WORLDS,
    Landscape,
    arena,
    draw_landscape,
    play,
    play_policy,
)
from groundfault_lab.probes.policies import (
    POLICIES,
    Caps,
    GaussianThompson,
    Hierarchical,
    _compute_kernel,
    _list_respects,
)
from groundfault_lab.testing import check_probe_policy

FRESH = [name for name in POLICIES if "repeats" not in name]


def make_history(
    keys: list[int], mismatch: list[bool], *, batch: int = 1, batches: int = 8
) -> PromptHistory:
    return PromptHistory(
        TASKS, SIZES, np.array(keys, dtype=np.intp), np.array(mismatch, dtype=bool), batch, batches
    )


def ask(policy, history: PromptHistory, size: int = 3, seed: int = 0) -> list[int]:
    return policy.ask(
        history, size, np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    ).tolist()


@pytest.mark.parametrize(
    "name", [*POLICIES, "caps, prior=stressor, schedule=geometric", "gp, most=3"]
)
def test_a_policy_is_a_pure_function_and_goes_on_after_an_interruption(name: str) -> None:
    check_probe_policy(name)
    history = make_history([3, 100, 400], [True, False, True], batch=2)
    assert len({tuple(ask(get(name), history, seed=seed)) for seed in range(8)}) > 1


class Bad:
    """Uniform but for one fault."""

    name = "bad"
    everywhere = np.random.default_rng(0)
    """State that all instances share."""

    def __init__(self, fault: str) -> None:
        self.fault, self.count = fault, 0

    def ask(
        self,
        queries: PromptHistory,
        size: int,
        tasks: np.random.Generator,
        rng: np.random.Generator,
    ) -> np.ndarray:
        self.count += 1
        if self.fault == "remembers":
            rng = np.random.default_rng(self.count)
        if self.fault == "global":
            rng = self.everywhere
        keys = UniformPrompts().ask(queries, size + (self.fault == "greedy"), tasks, rng)
        if self.fault == "stray":
            keys[-1] = 36
        return np.flatnonzero(queries.blocked)[:1] if self.fault == "blocked" else keys

    def chances(self, queries: PromptHistory) -> np.ndarray | None:
        chance = UniformPrompts().chances(queries)
        if self.fault == "unsure":
            return chance / 2
        return StratifiedPrompts().chances(queries) if self.fault == "another" else chance


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("remembers", "called twice with one history"),
        ("global", "keeps state between calls"),
        ("greedy", "asks 5 keys, where 4 were wanted"),
        ("stray", r"asks a key that does not exist: \[36\]"),
        ("blocked", "a key that is blocked"),
        ("unsure", "sum to 0.5, not to 1"),
        ("another", "whose chance is 0"),
    ],
)
def test_a_policy_with_a_fault_is_found_out(fault: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_probe_policy(lambda: Bad(fault))


@pytest.mark.parametrize("name", FRESH)
def test_without_repeats_every_key_is_asked_once_and_then_none(name: str) -> None:
    keys = np.empty(0, dtype=np.intp)
    rng = np.random.default_rng(0)
    for turn in range(1, 10):
        history = PromptHistory(4, (2, 3), keys, keys % 5 == 0, turn, 9)
        keys = np.concatenate([keys, POLICIES[name].ask(history, 3, rng, rng)])
    assert sorted(keys.tolist()) == list(range(24))


def test_caps_scores_are_an_exponential_average_of_the_signals_of_an_option() -> None:
    keys, signals = [0, 1, 27 + 13, 26], [True, False, True, True]
    scores = [[0.5 * (option > 0) for option in range(3)] for _ in SIZES]
    for key, signal in zip(keys, signals, strict=True):
        place = key % 27
        for group, option in enumerate((place // 9, place // 3 % 3, place % 3)):
            scores[group][option] = 0.7 * scores[group][option] + 0.3 * signal
    created = Caps(prior="stressor").scores(make_history(keys, signals))
    np.testing.assert_allclose(created, scores, atol=1e-12)


def test_caps_cools_and_its_chances_are_the_softmax_of_scores() -> None:
    policy = Caps(repeats=True, start=1.0, floor=0.2)
    for batch, temperature in ((1, 1.0), (5, 0.5), (8, 0.2)):
        weights = np.exp(np.array([0.3, 0, 0]) / temperature)
        chance = (
            policy.chances(make_history([0], [True], batch=batch))
            .reshape(TASKS, 3, 9)
            .sum(axis=(0, 2))
        )
        np.testing.assert_allclose(chance, weights / weights.sum())


def test_stratified_keeps_tasks_even_and_every_key_as_likely() -> None:
    keys = play_policy(
        StratifiedPrompts(),
        draw_landscape("diffuse", np.random.default_rng(0)),
        budget=40,
        batch=3,
        plan=Plan(),
        number=0,
    )
    counts = np.bincount(keys // 27, minlength=TASKS)
    assert counts.max() - counts.min() <= 1


def test_the_kernel_is_what_it_says() -> None:
    kernel = _compute_kernel(_list_respects(make_history([], [])), np.arange(TASKS * 27))
    same_task, shared = 27 * 2, 27 * 2 + 1  # differ in the last option alone
    assert kernel[same_task, same_task] == pytest.approx(0.5 + 0.25 + 0.5 + 0.25)
    assert kernel[same_task, shared] == pytest.approx(0.5 + 0.75 * 2 / 3)
    assert kernel[0, 27] == pytest.approx(0.25)


@pytest.mark.parametrize("name", ["gp", "hierarchical"])
def test_learners_go_where_the_mismatches_are(name: str) -> None:
    keys = [27 * task + place for task in range(TASKS) for place in (0, 13, 26)]
    history = make_history(keys, [key // 27 == 7 for key in keys])
    next_tasks = [
        key // 27 for seed in range(10) for key in ask(POLICIES[name], history, seed=seed)
    ]
    assert next_tasks.count(7) > 10  # of 30; chance alone gives fewer than two


def test_runs_are_matched() -> None:
    """Policies that draw tasks share their stream, and no other; budgets are met exactly."""
    land = draw_landscape("diffuse", np.random.default_rng(3))
    settings = {"budget": 47, "batch": 3, "plan": Plan(seed=5), "number": 2}
    one, two = (
        play_policy(policy, land, **settings)
        for policy in (UniformPrompts(repeats=True), Caps(repeats=True))
    )
    assert len(one) == len(two) == 47
    assert (one // 27 == two // 27).all()
    assert (one % 27 != two % 27).any()
    assert (play_policy(UniformPrompts(repeats=True), land, **settings) == one).all()


@pytest.mark.parametrize("world", list(WORLDS))
def test_landscapes_fail_rarely_and_artefacts_are_no_errors(world: str) -> None:
    lands = [draw_landscape(world, np.random.default_rng(seed)) for seed in range(60)]
    assert 0.04 < np.mean([land.wrong.mean() for land in lands]) < 0.17
    assert all((land.mismatch | ~land.wrong).all() for land in lands)
    assert np.mean([(land.mismatch & ~land.wrong).mean() for land in lands]) == pytest.approx(
        0.1 / 3 * 0.9, abs=0.01
    )


def test_learning_pays_where_there_is_structure_and_repeats_cost() -> None:
    result = {
        s.policy: s
        for s in arena(["uniform, repeats", "stratified", "gp"], ["sparse by task"], landscapes=20)
    }
    assert result["gp"].gain_interval[0] > 0
    assert result["gp"].ratio_interval[0] > 1.3
    assert result["uniform, repeats"].gain_interval[1] < 0
    assert (
        result["stratified"].gain,
        result["stratified"].gain_interval,
        result["stratified"].ratio,
    ) == (0, None, 1)
    assert result["uniform, repeats"].rows > result["uniform, repeats"].keys


def test_processes_make_no_difference() -> None:
    settings = {"worlds": ["diffuse"], "budget": 9, "landscapes": 20, "seed": 4}
    message: list[str] = []
    assert arena(["gp", "caps"], jobs=2, progress=message.append, **settings) == arena(
        ["gp", "caps"], **settings
    )
    assert message[-1] == "diffuse: 20 of 20"


@pytest.mark.slow
def test_no_repeats_beat_repeats_and_gaussian_thompson_needs_structure() -> None:
    for control, beaten in (("uniform, repeats", "uniform"), ("uniform", "gp")):
        for each in arena([beaten], control=control, landscapes=60, seed=2, jobs=2):
            structured = each.world != "unstructured"
            if beaten == "uniform":
                assert each.gain_interval[0] > 0, each
            else:
                assert (each.gain_interval[0] > 0) == structured, each
                assert structured or each.gain_interval[1] > 0, each
    for each in arena(["gp"], control="uniform, repeats", landscapes=60, seed=2, jobs=2):
        assert each.ratio >= 1.4 or each.world == "unstructured", each


def test_a_cap_holds_for_every_policy_and_every_task() -> None:
    land = draw_landscape("sparse by task", np.random.default_rng(1))
    for name in FRESH:
        keys = play_policy(
            get(f"{name}, most=4"), land, budget=90, batch=4, plan=Plan(seed=1), number=0
        )
        assert len(keys) == 18 * 4  # and then nothing is left
        assert (np.bincount(keys // 27) == 4).all()


def test_a_cap_that_is_never_reached_changes_no_chance() -> None:
    history = make_history([3, 100, 400], [True, False, True], batch=2)
    for name in ("uniform", "caps", "stratified", "exhaustive"):
        assert (get(f"{name}, most=99").chances(history) == get(name).chances(history)).all()


@pytest.mark.parametrize("name", [*POLICIES, "gp, most=9", "exhaustive, order=canonical"])
def test_blocked_keys_are_never_asked_and_do_not_stop_the_rest(name: str) -> None:
    rng = np.random.default_rng(0)
    blocked = rng.random(24) < 0.4
    blocked[6:12] = True  # a task with nothing to ask
    keys = np.empty(0, dtype=np.intp)
    for turn in range(1, 10):
        history = PromptHistory(4, (2, 3), keys, keys % 5 == 0, turn, 9, blocked)
        keys = np.concatenate([keys, get(name).ask(history, 4, rng, rng)])
    assert not blocked[keys].any()
    if "repeats" in name:
        assert len(keys) == 36
    else:
        assert sorted(keys.tolist()) == np.flatnonzero(~blocked).tolist()


def test_where_everything_is_blocked_nothing_is_asked() -> None:
    history = PromptHistory(
        4,
        (2, 3),
        np.empty(0, dtype=np.intp),
        np.empty(0, dtype=bool),
        1,
        9,
        np.ones(24, dtype=bool),
    )
    assert [ask(policy, history) for policy in (*POLICIES.values(), get("gp, most=1"))] == [[]] * (
        len(POLICIES) + 1
    )


@pytest.mark.parametrize(
    "name", ["uniform", "uniform, repeats", "caps, repeats, prior=stressor", "caps", "stratified"]
)
def test_draws_have_the_chances_that_are_told(name: str) -> None:
    history = PromptHistory(
        2,
        (2,),
        np.array([1, 0, 1]),
        np.array([True, False, True]),
        2,
        5,
        np.array([0, 0, 0, 1], dtype=bool),
    )
    history = (
        history
        if "repeats" in name
        else PromptHistory(2, (2,), np.array([1]), np.array([True]), 2, 5)
    )
    chance = get(name).chances(history)
    assert chance.sum() == pytest.approx(1)
    sample = np.array([ask(get(name), history, size=1, seed=seed)[0] for seed in range(800)])
    expected = np.sqrt(chance * (1 - chance) / 800)
    assert (np.abs(np.bincount(sample, minlength=4) / 800 - chance) <= 4 * expected).all()


def test_exhaustive_in_canonical_order_is_the_order_of_the_bank() -> None:
    policy = get("exhaustive, order=canonical")
    assert ask(policy, make_history([0, 1, 3], [True, False, True]), size=4) == [2, 4, 5, 6]
    assert policy.chances(make_history([0], [True]))[:3].tolist() == [0, 1, 0]


def test_temperatures_follow_their_schedule() -> None:
    linear, geometric, constant = (
        Caps(schedule=schedule) for schedule in ("linear", "geometric", "constant")
    )
    assert [linear.temperature(batch, 8) for batch in (1, 5, 8)] == [1.0, 0.5, 0.2]
    assert [geometric.temperature(batch, 3) for batch in (1, 2, 3)] == pytest.approx(
        [1.0, 0.2**0.5, 0.2]
    )
    assert [constant.temperature(batch, 3) for batch in (1, 3)] == [1.0, 1.0]
    assert geometric.temperature(1, 1) == 1.0


def test_caps_without_any_warmth_still_draws() -> None:
    history = make_history([0] * 9, [True] * 9, batch=8)
    assert len(ask(Caps(start=1e-300, floor=1e-300), history, size=90)) == 90


@pytest.mark.parametrize(
    "name", [*POLICIES, "caps, repeats, prior=stressor, rate=0.5", "gp, scale=0.2, most=7"]
)
def test_a_name_says_all_settings(name: str) -> None:
    assert get(name).name == name
    assert get(get(name).name) == get(name)


def test_a_name_is_told_in_any_order() -> None:
    assert get(" caps ,most=2, prior=stressor,repeats") == Capped(
        Caps(repeats=True, prior="stressor"), 2
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "no policy ''"),
        (
            "thompson",
            "no policy 'thompson'; there are uniform, stratified, caps, hierarchical, "
            "diverse, gp, exhaustive",
        ),
        ("gp, rate=1", "the policy gp has no setting 'rate'; it has mean, scale, noise, most"),
        ("caps, rate", "needs a value for 'rate', as in rate=..."),
        ("caps, repeats=yes", "needs 'repeats' without a value"),
        ("caps, rate=fast", "rate must be a number, not 'fast'"),
        ("caps, rate=0.1, rate=0.2", "sets 'rate' twice"),
        ("caps, prior=bold", "prior of the policy caps must be one of neutral, stressor"),
        (
            "caps, schedule=cold",
            "schedule of the policy caps must be one of linear, geometric, constant",
        ),
        ("caps, floor=2", "temperatures above 0 that do not rise"),
        ("caps, rate=nan", "rate in"),
        (
            "exhaustive, order=random",
            "order of the policy exhaustive must be one of seeded, canonical",
        ),
        ("gp, noise=0", "noise above 0"),
        ("hierarchical, weight=-1", "weight > 0"),
        ("diverse, new_task=-1", "new_task >= 0"),
        ("gp, most=0", "at least 1 query of a task"),
        ("gp, most=1.5", "most must be a number"),
    ],
)
def test_a_policy_that_cannot_be(name: str, message: str) -> None:
    with pytest.raises(PlanError, match=re.escape(message)):
        get(name)


@pytest.mark.parametrize(
    ("arguments", "message"),
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
def test_an_arena_that_cannot_be(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        arena(**arguments)


def test_the_gaussian_policy_has_no_repeats_when_all_but_few_are_asked() -> None:
    history = make_history(list(range(484)), [False] * 484)
    assert sorted(ask(GaussianThompson(), history)) == [484, 485]


def test_the_worth_of_a_new_task_buys_tasks_and_keeps_more_prompts_than_chance() -> None:
    """Eight tasks of 30 fail in every prompt, the others mostly under one option. Pure greed stays
    with the eight."""

    def count(name: str) -> tuple[float, float]:
        found = []
        for number in range(8):
            rng = np.random.default_rng(number)
            wrong = rng.random((30, 16)) < np.where(np.arange(16) < 4, 0.7, 0.25)
            wrong[:8] = True
            over = Landscape(wrong.ravel(), wrong.ravel(), 30, (4, 4))
            keys = play_policy(
                get(name), over, budget=90, batch=3, plan=Plan(seed=0), number=number
            )
            failing = np.unique(keys[over.wrong[keys]])
            found.append((len(failing), len(np.unique(failing // 16))))
        return tuple(np.mean(found, axis=0).tolist())

    uniform, greedy, ours = map(count, ("uniform", "hierarchical", DEFAULT))
    assert greedy[1] < uniform[1] < ours[1]
    assert uniform[0] < ours[0] < greedy[0]


def test_a_task_whose_answer_is_on_its_way_is_no_new_one() -> None:
    history = PromptHistory(3, (2,), np.array([0]), np.array([True]), 2, 9)
    policy, scores = get("hierarchical, new_task=3"), np.zeros(6)
    assert isinstance(policy, Hierarchical)
    before, after = (policy.value_keys(scores, each) for each in (history, history.after(4)))
    low, high = before[0], before[2]
    assert before.tolist() == [low, low, high, high, high, high]
    assert after.tolist() == [low, low, high, high, low, low]
    assert low < high


def test_where_tasks_are_alike_the_default_finds_failures_in_more_of_them() -> None:
    """It learns from the signals that a task that failed is no likelier to fail again."""

    def count(name: str) -> list[float]:
        found = play([name], ["unstructured"], budget=90, landscapes=20, seed=5)["unstructured"]
        return found[name][:, :2].mean(axis=0).tolist()

    uniform, before, ours = map(count, ("uniform", "hierarchical, new_task=0.2", DEFAULT))
    assert before[1] < uniform[1] < ours[1] - 1
    assert ours[0] > 0.8 * uniform[0]  # 20 landscapes: a standard error of 6 %


def test_the_default_learns_which_option_trips_which_task() -> None:
    """Each of eight tasks fails under one option of its own, so no option is worse by itself."""
    wrong = np.zeros((24, 3, 3), dtype=bool)
    for task in range(8):
        wrong[task, task % 3] = True
    over = Landscape(wrong.ravel(), wrong.ravel(), 24, (3, 3))

    def count(name: str) -> float:
        runs = (
            play_policy(get(name), over, budget=100, batch=3, plan=Plan(seed=0), number=number)
            for number in range(6)
        )
        return float(np.mean([over.wrong[keys].sum() for keys in runs]))

    assert count("diverse, new_task=0") > count("hierarchical") + 1
