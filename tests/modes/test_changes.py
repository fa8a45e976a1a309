"""Modes of a change: what flips say, what bets say, and which rule is named."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

from groundfault import Candidate
from groundfault.core.pairs import clip_changes
from groundfault.modes import changes, compiled, kernels
from groundfault.modes.changes import NO_BAR, find_changes
from groundfault.modes.find import OwnRule
from groundfault.modes.mode import Mode
from groundfault.stats import flips

TOPICS = ["billing", "refund", "shipping", "login", "legal"]


def make_table(rng: np.random.Generator, n: int = 1500) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "topic": rng.choice(TOPICS, n),
            "lang": rng.choice(["en", "de", "ar", "fr"], n, p=[0.5, 0.27, 0.13, 0.1]),
            "vip": rng.random(n) < 0.2,
            "words": rng.integers(5, 300, n),
        }
    )


def run_twice(rng: np.random.Generator, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Two independent runs of these failure rates."""
    return np.stack([rng.random(len(rate)) < rate for rate in (first, second)]).astype(float)


def mark_planted(table: pl.DataFrame) -> np.ndarray:
    return ((table["topic"] == "refund") & (table["lang"] == "de")).to_numpy()


def says_worse(table: pl.DataFrame, losses: np.ndarray) -> bool:
    modes, search, _ = find_changes(table, losses)
    assert search.overall is not None
    return any(mode.outcome == "worse" for mode in modes) or search.overall[0] <= 0.1


def overlap(mode: Mode, table: pl.DataFrame, on: np.ndarray) -> float:
    inside = mode.holds(table).to_numpy()
    return float((inside & on).sum() / (inside | on).sum())


@pytest.mark.parametrize("n", [1, 7, 60, 333])
def test_tails_of_signs_are_binomial(n: int) -> None:
    table = flips.tabulate_signs(n, NO_BAR)
    for size in {1, n // 2, n}:
        for k in range(size // 2, size + 1):
            exact = stats.binom.logsf(k - 1, size, 0.5)
            counts = exact <= np.log(0.2)
            if k - size // 2 < table.shape[1] - 1:
                value = table[size, k - size // 2]
                assert value == pytest.approx(exact if counts else 0.0, abs=1e-5)


# worlds, and the most false ones: more happen in 1 % of draws at .10
@pytest.mark.parametrize(
    ("worlds", "most"), [(30, 7), pytest.param(60, 12, marks=pytest.mark.slow)]
)
def test_two_runs_of_one_noisy_model_keep_the_level(worlds: int, most: int) -> None:
    """Of unequal difficulty: most changes are where items are neither easy nor hopeless."""
    rng = np.random.default_rng(0)
    false = 0
    for _ in range(worlds):
        table = make_table(rng, 500)
        rate = np.where(table["vip"].to_numpy(), 0.4, rng.beta(0.5, 2.0, 500))
        false += says_worse(table, run_twice(rng, rate, rate))
    assert false <= most


def test_tags_that_go_together_only_where_it_got_worse_keep_the_level() -> None:
    """Flips need no pivotality: each tag alone says nothing of the sign."""
    rng = np.random.default_rng(1)
    false = 0
    for _ in range(60):
        rate = rng.beta(0.5, 1.0, 400)
        losses = run_twice(rng, rate, rate)
        shared, worse = rng.random(400) < 0.3, losses[1] > losses[0]
        values = np.where(worse[:, None], shared[:, None], rng.random((400, 6)) < 0.3)
        own = [OwnRule(Candidate(f"t{i}", f"t{i}"), values[:, i]) for i in range(6)]
        modes, search, _ = find_changes(pl.DataFrame(), losses, own_rules=own)
        assert search.overall is not None
        false += any(mode.outcome == "worse" for mode in modes) or search.overall[0] <= 0.1
    assert false <= 12


def test_a_planted_regression_is_the_first_row() -> None:
    caught = named = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        table = make_table(rng)
        on = mark_planted(table)
        before = rng.random(len(on)) < 0.2
        # the runs share their noise, but for a few examples
        after = np.where(rng.random(len(on)) < 0.03, ~before, before)
        after |= on & (rng.random(len(on)) < 0.39)
        modes, _, _ = find_changes(table, np.stack([before, after]).astype(float))
        worse = [mode for mode in modes if mode.outcome == "worse"]
        caught += bool(worse)
        named += bool(worse) and overlap(worse[0], table, on) >= 0.8
    assert caught == 6
    assert named >= 5


def test_the_purest_part_of_a_region_does_not_hide_it() -> None:
    named = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        table = make_table(rng).with_columns(path=pl.Series(rng.integers(0, 20, 1500)))
        on = (table["lang"] == "de").to_numpy()
        pure = on & (table["topic"] == "refund").to_numpy()
        before = rng.random(len(on)) < 0.2
        after = before | (on & (rng.random(len(on)) < np.where(pure, 0.95, 0.4)))
        modes, _, _ = find_changes(table, np.stack([before, after]).astype(float))
        named += bool(modes) and overlap(modes[0], table, on) >= 0.8
    assert named >= 5


def test_a_bystander_does_not_narrow_a_change_beyond_all_tables() -> None:
    rng = np.random.default_rng(0)
    table = pl.DataFrame(
        {"topic": rng.choice(["a", "b", "c"], 2000), "day": rng.integers(1, 9, 2000)}
    )
    on = (table["topic"] == "c").to_numpy()
    before = rng.random(2000) < 0.1
    after = before | (on & (rng.random(2000) < 0.3))
    modes, _, _ = find_changes(table, np.stack([before, after]).astype(float))
    assert [mode.meaning for mode in modes] == ["topic is c"]


def test_the_numbers_of_a_mode_are_those_of_its_units() -> None:
    rng = np.random.default_rng(3)
    table = make_table(rng)
    on = mark_planted(table)
    losses = run_twice(rng, np.full(len(on), 0.15), np.where(on, 0.7, 0.15))
    losses[0, :20] = np.nan
    modes, search, bar = find_changes(table, losses)
    mode = next(mode for mode in modes if mode.outcome == "worse")
    inside = mode.holds(table).to_numpy() & ~np.isnan(losses[0])
    first, second = losses[:, inside]
    change = mode.change
    assert change is not None
    assert (mode.n, mode.errors, change.before) == (inside.sum(), second.sum(), first.sum())
    assert (change.worse, change.better) == ((second > first).sum(), (second < first).sum())
    assert change.difference == pytest.approx((second - first).mean())
    assert change.interval[0] < change.difference < change.interval[1]
    assert change.interval[0] > 0
    outside = ~inside & ~np.isnan(losses[0])
    assert change.elsewhere == pytest.approx((losses[1] - losses[0])[outside].mean())
    assert max(mode.p_marginal, mode.p_conditional) <= 0.1
    assert [one.outcome for one in search.outcomes] == ["worse", "better"]
    assert {one.n for one in search.outcomes} == {len(on) - 20}
    assert 0 < bar < 0.1


def test_flips_are_counted_alike_by_numpy_and_by_compiled_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(9)
    table = make_table(rng)
    losses = run_twice(rng, np.full(1500, 0.2), np.where(mark_planted(table), 0.6, 0.2))
    results = []
    for code in (compiled, kernels):
        monkeypatch.setattr(changes, "choose_code", lambda _, one=code: one)
        results.append(find_changes(table, losses))
    assert results[0] == results[1]
    assert results[0][0]


def test_the_reverse_is_better() -> None:
    rng = np.random.default_rng(4)
    table = make_table(rng)
    losses = run_twice(rng, np.full(1500, 0.15), np.where(mark_planted(table), 0.7, 0.15))
    there, back = (find_changes(table, each)[0] for each in (losses, losses[::-1]))
    assert [mode.rule for mode in there] == [mode.rule for mode in back]
    assert {mode.outcome for mode in back} == {"better"}
    assert all(mode.is_less_frequent for mode in back)


def test_what_changed_everywhere_is_no_rule() -> None:
    rng = np.random.default_rng(5)
    table = make_table(rng)
    losses = run_twice(rng, np.full(1500, 0.2), np.full(1500, 0.3))
    modes, search, _ = find_changes(table, losses)
    assert search.overall is not None
    assert search.overall[0] <= 0.1
    assert not modes


def test_a_few_changes_anywhere_keep_the_level() -> None:
    """A fiftieth of all examples got worse: which ones is chance, and their signs are all alike."""
    false = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        cells = {f"f{i}": rng.random(800) < share for i, share in enumerate((0.2, 0.5, 0.8))}
        table = pl.DataFrame(cells | {"x": rng.normal(size=800)})
        before = rng.random(800) < 0.1
        losses = np.stack([before, before | (rng.random(800) < 0.03)]).astype(float)
        false += bool(find_changes(table, losses)[0])
    # more happen in 1 % of draws at .10
    assert false <= 5


def test_graded_changes_of_mean_zero_are_no_finding() -> None:
    """Few large rises beside many small falls: flips would take their centre for their mean."""
    false = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        table = pl.DataFrame({"slice": rng.choice([f"s{i}" for i in range(8)], 240)})
        first = np.full(240, 0.5)
        second = first + np.where(rng.random(240) < 0.1, 0.45, -0.05)
        false += bool(find_changes(table, np.stack([first, second]))[0])
    assert false <= 2


def test_a_graded_change_of_the_mean_is_found() -> None:
    rng = np.random.default_rng(6)
    table = pl.DataFrame({"slice": rng.choice([f"s{i}" for i in range(6)], 1200)})
    on = (table["slice"] == "s3").to_numpy()
    first = rng.beta(2, 3, 1200)
    second = np.clip(first + rng.normal(0, 0.1, 1200) + 0.15 * on, 0, 1)
    modes, search, _ = find_changes(table, np.stack([first, second]))
    assert search.bars == "bonferroni"
    assert [mode.meaning for mode in modes] == ["slice is s3"]


def test_a_graded_change_of_one_size_is_found_whole() -> None:
    rng = np.random.default_rng(1)
    table = pl.DataFrame({"lang": rng.choice(["de", "fr", "en"], 600), "n": rng.permutation(600)})
    on = (table["lang"] == "fr").to_numpy()
    first = rng.uniform(0.1, 0.5, 600).round(2)
    modes, _, _ = find_changes(table, np.stack([first, first + 0.25 * on]))
    assert [mode.meaning for mode in modes] == ["lang is fr"]


def test_rules_that_were_picked_by_outcomes_pay_for_all_they_were_picked_from() -> None:
    rng = np.random.default_rng(7)
    on = rng.random(400) < 0.2
    losses = run_twice(rng, np.full(400, 0.2), np.where(on, 0.6, 0.2))
    own = [OwnRule(Candidate("a", "a"), on)]
    p = []
    for named in (1, 10):
        modes, search, _ = find_changes(
            pl.DataFrame(), losses, own_rules=own, bars="bonferroni", named=named
        )
        assert search.classes[-1].rules == named
        p.append(modes[0].p_marginal if modes else 1.0)
    assert p[0] < 0.1
    assert p[1] == pytest.approx(10 * p[0])


def test_without_any_change_there_is_nothing_to_find() -> None:
    table = make_table(np.random.default_rng(8), 100)
    losses = np.tile(np.arange(100) % 2.0, (2, 1))
    modes, search, bar = find_changes(table, losses)
    assert modes == ()
    assert search.overall == (1.0, 1.0)
    assert math.isfinite(bar)


def test_changes_are_clipped_to_one_direction() -> None:
    losses = np.array([[0.0, 1.0, np.nan], [1.0, 0.25, 1.0]])
    assert clip_changes(losses, less=False)[:2].tolist() == [1.0, 0.0]
    assert clip_changes(losses, less=True)[:2].tolist() == [0.0, 0.75]
    assert np.isnan(clip_changes(losses, less=True)[2])


def stack(tables: list[pl.DataFrame], losses: list[np.ndarray]) -> tuple[pl.DataFrame, np.ndarray]:
    """Two runs over different examples: each example has the loss of one of them."""
    n = len(tables[0])
    both = np.full((2, n + len(tables[1])), np.nan)
    both[0, :n], both[1, n:] = losses
    return pl.concat(tables), both


def draw_mix(rng: np.random.Generator, n: int, billing: float) -> tuple[pl.DataFrame, np.ndarray]:
    """Examples of which a share is about billing and long, and how often each fails."""
    topic = np.where(rng.random(n) < billing, "billing", rng.choice(TOPICS[1:], n))
    longer = 1 + (topic == "billing")
    table = make_table(rng, n).with_columns(
        topic=pl.Series(topic), words=pl.Series(rng.integers(5, 300, n) * longer)
    )
    hard = (topic == "billing") * 0.3 + (table["lang"] == "ar").to_numpy() * 0.2
    return table, 0.1 + hard + table["words"].to_numpy() / 3000


# worlds, and the most false ones: more happen in 1.1 and 1.5 % of draws at .10
# 20 worlds notice a level of .4 in 87 of 100 runs, the 40 of every night one of .3 in 89
@pytest.mark.parametrize(("worlds", "most"), [(20, 5), pytest.param(40, 8, marks=pytest.mark.slow)])
@pytest.mark.parametrize("billing", [0.2, 0.5])
def test_another_mix_of_examples_is_no_change(billing: float, worlds: int, most: int) -> None:
    rng = np.random.default_rng(3)
    false = raw = 0
    for _ in range(worlds):
        (then, rates), (now, rates_now) = draw_mix(rng, 400, 0.2), draw_mix(rng, 400, billing)
        losses = [(rng.random(400) < rate).astype(float) for rate in (rates, rates_now)]
        false += says_worse(*stack([then, now], losses))
        raw += bool(losses[1].mean() - losses[0].mean() > 0.05)
    assert false <= most
    # the mix alone raises failures in nearly all
    assert raw >= 0.85 * worlds or billing == 0.2


def test_a_regression_between_different_examples_is_named() -> None:
    """The regression of the issue: 20 to 51 % in about 80 of 1,500 examples of each run."""
    rng = np.random.default_rng(4)
    named = 0
    for _ in range(6):
        then, now = make_table(rng), make_table(rng)
        rates = np.full(1500, 0.2), np.where(mark_planted(now), 0.51, 0.2)
        table, losses = stack([then, now], [(rng.random(1500) < r).astype(float) for r in rates])
        modes, search, _ = find_changes(table, losses)
        assert search.like_for_like is not None
        worse = [mode for mode in modes if mode.outcome == "worse"]
        named += bool(worse) and overlap(worse[0], table, mark_planted(table)) >= 0.8
    assert named >= 4


def test_rates_of_different_examples_are_those_of_each_run() -> None:
    rng = np.random.default_rng(5)
    then, now = make_table(rng, 600), make_table(rng, 900)
    vip, vip_now = then["vip"].to_numpy(), now["vip"].to_numpy()
    losses = [(rng.random(600) < 0.2), (rng.random(900) < np.where(vip_now, 0.7, 0.2))]
    table, both = stack([then, now], [one.astype(float) for one in losses])
    (mode, *_), search, _ = find_changes(table, both)
    assert mode.rule == '"vip"'
    assert mode.change is not None
    assert (mode.n, mode.errors) == (vip_now.sum(), losses[1][vip_now].sum())
    assert (mode.change.n_before, mode.change.before) == (vip.sum(), losses[0][vip].sum())
    assert mode.rate_before == losses[0][vip].mean()
    low, high = mode.change.interval
    assert low < mode.rate - mode.rate_before < high
    assert [one.n for one in search.outcomes] == [900, 600]


def test_a_column_that_tells_the_runs_apart_names_no_change() -> None:
    rng = np.random.default_rng(6)
    tables = [
        make_table(rng, 400).with_columns(
            version=pl.lit(v), day=pl.Series(rng.integers(d, d + 5, 400))
        )
        for v, d in (("1.0", 1), ("2.0", 20))
    ]
    losses = [(rng.random(400) < rate).astype(float) for rate in (0.2, 0.6)]
    modes, search, _ = find_changes(*stack(tables, losses))
    assert search.overall is not None
    assert search.overall[0] <= 0.01
    assert "left out, since they tell the runs apart: version, day" in search.remarks
    assert not [mode for mode in modes if {"version", "day"} & set(mode.columns)]


def test_graded_losses_of_different_examples_are_bet_on() -> None:
    rng = np.random.default_rng(7)
    tables = [make_table(rng, 800), make_table(rng, 800)]
    # the same mean, another shape
    same = [np.full(800, 0.4), (rng.random(800) < 0.4).astype(float)]
    modes, search, _ = find_changes(*stack(tables, same))
    assert not modes
    assert search.bars == "bonferroni"
    vip = tables[1]["vip"].to_numpy()
    worse = [rng.uniform(0.2, 0.4, 800), rng.uniform(0.2, 0.4, 800) + 0.5 * vip]
    modes, _, _ = find_changes(*stack(tables, worse))
    assert [mode.rule for mode in modes if mode.outcome == "worse"] == ['"vip"']
