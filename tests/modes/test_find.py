"""Modes found in small worlds: planted ones are named, and what is not there is not."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray
from scipy.stats import binom

from groundfault.core.candidate import Candidate
from groundfault.core.rules import Rule
from groundfault.modes.find import OwnRule, _find_quantile, find_modes
from groundfault.modes.mode import EVERY_MODEL, Mode

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
N = 900


def make_table(seed: int, n: int = N) -> pl.DataFrame:
    """Attributes that are independent of each other."""
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "task": rng.choice(["add", "lookup", "sort", "subtract", "weekday"], n),
            "digits": rng.integers(1, 7, n),
            "share": np.round(rng.random(n), 3),
            "upper": rng.random(n) < 0.4,
            "topic": rng.choice(["home", "work", "play"], n),
        }
    )


def fail(on: NDArray[np.generic], seed: int, inside: float = 0.85, outside: float = 0.08) -> Floats:
    """Failures, at one rate on and at another off."""
    rng = np.random.default_rng(1000 + seed)
    return (rng.random(len(on)) < np.where(on, inside, outside)).astype(float)


def jaccard(a: NDArray[np.generic], b: NDArray[np.generic]) -> float:
    return float((a & b).sum() / (a | b).sum())


def overlaps(modes: tuple[Mode, ...], table: pl.DataFrame, truth: Bools) -> list[float]:
    return [jaccard(mode.holds(table).to_numpy(), truth) for mode in modes]


def check_numbers(
    modes: tuple[Mode, ...], table: pl.DataFrame, losses: dict[str, Floats], level: float = 0.1
) -> None:
    """Every number of a mode is that of the units its rule marks."""
    earlier: dict[str, Bools] = {name: np.zeros(table.height, bool) for name in losses}
    for mode in modes:
        y = losses[mode.outcome]
        scored = ~np.isnan(y)
        holds = mode.holds(table).to_numpy()
        on, off = holds & scored, ~holds & scored
        new = on & ~earlier[mode.outcome]
        earlier[mode.outcome] |= on
        if mode.context:
            # of the others, those of the context: at most the rest
            assert mode.n_outside < off.sum()
        else:
            assert (mode.n_outside, mode.errors_outside) == (off.sum(), pytest.approx(y[off].sum()))
        assert (mode.n, mode.errors) == (on.sum(), pytest.approx(y[on].sum()))
        assert (mode.n_new, mode.errors_new) == (new.sum(), pytest.approx(y[new].sum()))
        assert 0 <= mode.p_marginal <= level
        assert 0 <= mode.p_conditional <= level
        assert mode.interval[0] <= mode.rate <= mode.interval[1]
        assert mode.conditions
        assert mode.meaning == " and ".join(mode.conditions)
        for other in mode.alternatives:
            same = replace(mode, rule=other.rule).holds(table)
            assert other.overlap == pytest.approx(jaccard(same.to_numpy()[scored], on[scored]))
        for column in {point.column for point in mode.doses}:
            assert sum(p.n for p in mode.doses if p.column == column) <= scored.sum()


def find(table: pl.DataFrame, losses: Floats, **options: object) -> tuple[Mode, ...]:
    """The modes of one outcome, their numbers checked."""
    modes, search = find_modes(table, losses[None], **options)  # type: ignore[arg-type]
    check_numbers(modes, table, {"": losses}, search.level)
    union = np.zeros(table.height, bool)
    for mode in modes:
        union |= mode.holds(table).to_numpy() & ~np.isnan(losses)
    if search.outcomes:
        cover = search.outcomes[0]
        assert cover.n == (~np.isnan(losses)).sum()
        assert cover.errors == pytest.approx(np.nansum(losses))
        assert cover.covered == union.sum()
        assert cover.covered_errors == pytest.approx(np.nansum(losses[union]))
    return modes


def plant(name: str, table: pl.DataFrame) -> Bools:
    """Units of a planted mode."""
    task, digits, share = (table[c].to_numpy() for c in ("task", "digits", "share"))
    truths = {
        "single": task == "sort",
        "pair": (task == "sort") & (digits >= 3),
        "triple": (task == "add") & (digits >= 3) & table["upper"].to_numpy(),
        "set": np.isin(task, ["add", "weekday"]) & table["upper"].to_numpy(),
        "decimals": share > 0.78,
    }
    return np.asarray(truths[name])


@pytest.mark.parametrize("seed", [1, 3])
@pytest.mark.parametrize("name", ["single", "pair", "triple", "set", "decimals"])
def test_one_planted_mode_is_named_first_and_nearly_alone(name: str, seed: int) -> None:
    table = make_table(seed)
    truth = plant(name, table)
    modes = find(table, fail(truth, seed))
    assert overlaps(modes, table, truth)[0] >= 0.8, [mode.rule for mode in modes]
    assert len(modes) <= 2


def test_two_planted_modes_are_two() -> None:
    table = make_table(3)
    first, second = plant("pair", table), plant("decimals", table) & table["upper"].to_numpy()
    modes = find(table, fail(first | second, 3))
    for truth in (first, second):
        assert max(overlaps(modes[:3], table, truth)) >= 0.8, [mode.rule for mode in modes]


def test_an_effect_inside_a_weak_context_is_said_to_be_of_the_context() -> None:
    table = make_table(4, 2000)
    task, upper = table["task"].to_numpy(), table["upper"].to_numpy()
    # all else fails as often as the effect does, so that on all units it is no excess
    rate = np.where(task == "sort", np.where(upper, 0.5, 0.05), 0.4)
    losses = (np.random.default_rng(4).random(2000) < rate).astype(float)
    modes = find(table, losses)
    truth = (task == "sort") & upper
    inside = [mode for mode in modes if mode.context]
    assert inside, [mode.rule for mode in modes]
    mode = inside[0]
    assert mode.context == "task is sort"
    assert jaccard(mode.holds(table).to_numpy(), truth) >= 0.8
    rest = (task == "sort") & ~upper
    assert (mode.n_outside, mode.errors_outside) == (rest.sum(), losses[rest].sum())


@pytest.mark.parametrize("seed", [1, 2])
def test_graded_losses(seed: int) -> None:
    table = make_table(seed)
    truth = plant("pair", table)
    rng = np.random.default_rng(seed)
    losses = rng.binomial(4, np.where(truth, 0.7, 0.2)) / 4
    modes = find(table, losses)
    assert overlaps(modes, table, truth)[0] >= 0.8
    assert len(modes) <= 2


def test_equal_means_of_another_shape_are_no_mode() -> None:
    """Permutations took a slice whose losses are mostly 1 for more failures in 11 of 60 worlds."""
    listed = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        on = rng.random(200) < 0.05
        losses = np.where(on, rng.beta(0.9, 0.1, 200), rng.beta(27, 3, 200))
        flags = {f"t{i}": rng.random(200) < 0.2 for i in range(10)}
        listed += any("s" in m.columns for m in find(pl.DataFrame({**flags, "s": on}), losses))
    assert listed <= 2


@pytest.mark.parametrize("scale", [1.0, 1e-6])
def test_the_scale_of_losses_does_not_matter(scale: float) -> None:
    rng = np.random.default_rng(0)
    on = rng.random(300) < 0.2
    losses = np.minimum(rng.beta(2, 8, 300) + 0.15 * on, 1) * scale
    flags = {f"t{i}": rng.random(300) < 0.2 for i in range(10)}
    assert [m.columns for m in find(pl.DataFrame({**flags, "s": on}), losses)] == [("s",)]


def test_two_models_have_a_shared_mode_and_ones_of_their_own() -> None:
    table = make_table(5, 1500)
    both, own = plant("pair", table), plant("decimals", table)
    losses = np.stack([fail(both, 5), fail(both | own, 6)])
    modes, search = find_modes(table, losses, outcomes=("a", "b"))
    check_numbers(modes, table, {EVERY_MODEL: losses.mean(axis=0), "a": losses[0], "b": losses[1]})
    by_outcome = {name: [m for m in modes if m.outcome == name] for name in (EVERY_MODEL, "a", "b")}
    assert [one.outcome for one in search.outcomes] == [EVERY_MODEL, "a", "b"]
    for name in (EVERY_MODEL, "a", "b"):
        assert max(overlaps(tuple(by_outcome[name]), table, both)) >= 0.8, name
    assert max(overlaps(tuple(by_outcome["b"]), table, own)) >= 0.8
    assert max(overlaps(tuple(by_outcome["a"]), table, own)) < 0.5
    alone, _ = find_modes(table, losses, outcomes=("a", "b"), shared=False)
    assert {mode.outcome for mode in alone} == {"a", "b"}


def test_what_is_held_fixed_is_neither_named_nor_compared() -> None:
    table = make_table(6)
    task, upper = table["task"].to_numpy(), table["upper"].to_numpy()
    rate = np.where(task == "sort", 0.8, 0.2) + np.where(task == "sort", -0.3, 0.3) * upper
    losses = (np.random.default_rng(6).random(N) < rate).astype(float)
    assert any("task" in mode.columns for mode in find(table, losses))
    # proxies of what is held fixed explain nothing either
    proxy = table.with_columns(pl.Series("is_sort", task == "sort"))
    only_task = fail(task == "sort", 6)
    assert find(proxy, only_task)
    assert find(proxy, only_task, within=["task"]) == ()
    modes = find(table, fail(upper | (task == "sort"), 6, 0.8, 0.2), within=["task"])
    assert modes[0].columns == ("upper",)
    assert all("task" not in mode.columns for mode in modes)


def test_strata_of_groups_explain_what_they_explain() -> None:
    table = make_table(7)
    big = np.random.default_rng(7).random(N) < 0.3
    size = table.with_columns(pl.Series("big", big))
    losses = fail(big, 7)
    assert find(size, losses)[0].rule == '"big"'
    assert find(size, losses, strata=big.astype(np.int64)) == ()


def make_own(rule: str, table: pl.DataFrame, tested: Bools | None = None) -> OwnRule:
    on = Rule.parse(rule).holds(table).to_numpy()
    return OwnRule(Candidate("ours", rule, meaning="one of ours", source="mine"), on, tested)


OWN = '"digits" * "share" > 2.2'


def test_a_rule_of_ones_own_may_be_a_mode() -> None:
    table = make_table(8)
    truth = Rule.parse(OWN).holds(table).to_numpy()
    modes = find(table, fail(truth, 8), own_rules=[make_own(OWN, table)])
    assert modes[0].rule == OWN
    assert (modes[0].source, modes[0].meaning) == ("mine", "one of ours")
    assert all(mode.source == "modes" for mode in modes[1:])


def test_a_mined_rule_is_tested_on_the_units_held_out() -> None:
    table = make_table(9)
    mined_on = np.arange(N) < N // 2
    # it holds for the very failures it was mined from, and says nothing of the others
    noise = fail(np.zeros(N, bool), 9, outside=0.3)
    marks = np.where(mined_on, noise == 1, np.random.default_rng(9).random(N) < 0.3)
    rows = table.with_columns(pl.Series("marked", marks.astype(np.int64) * 7 + 1))
    own = make_own("marked > 1", rows, ~mined_on)
    plain = make_own("marked > 1", rows)
    assert find_modes(table, noise[None], own_rules=[plain])[0][0].source == "mine"
    assert find_modes(table, noise[None], own_rules=[own])[0] == ()
    # where it holds for real, its numbers are those of the units held out
    real = fail(marks, 9)
    modes, _ = find_modes(table, real[None], own_rules=[own])
    mode = modes[0]
    on = marks & ~mined_on
    off = ~marks & ~mined_on
    assert (mode.source, mode.n, mode.errors) == ("mine", on.sum(), real[on].sum())
    assert (mode.n_outside, mode.errors_outside) == (off.sum(), real[off].sum())


def test_units_that_were_not_scored_are_left_out() -> None:
    table = make_table(10)
    truth = plant("pair", table)
    losses = fail(truth, 10)
    unscored = np.random.default_rng(10).random(N) < 0.2
    holes = np.where(unscored, np.nan, losses)
    modes = find(table, holes)
    assert overlaps(modes, table, truth)[0] >= 0.8
    alone = find(table.filter(pl.Series(~unscored)), losses[~unscored])
    assert [mode.rule for mode in alone] == [mode.rule for mode in modes]


def test_missing_values_are_a_mode_and_rows_without_values_are_outside() -> None:
    table = make_table(11)
    missing = np.random.default_rng(11).random(N) < 0.15
    table = table.with_columns(pl.when(pl.Series(~missing)).then(pl.col("share")).alias("share"))
    modes = find(table, fail(missing, 11))
    assert modes[0].rule == '"share" IS NULL'
    high = find(table, fail((table["share"] > 0.7).fill_null(False).to_numpy(), 11))
    as_nan = table.with_columns(pl.col("share").fill_null(float("nan")))
    assert high[0].holds(as_nan).equals(high[0].holds(table))
    assert not high[0].holds(as_nan).to_numpy()[missing].any()


def test_one_kind_of_loss_no_columns_and_few_units_have_no_modes() -> None:
    table = make_table(12)
    for same in (0.0, 1.0, 0.25):
        assert find(table, np.full(N, same)) == ()
    assert find(table.select(), fail(plant("pair", table), 12)) == ()
    truth = plant("pair", table)
    alone = OwnRule(make_own(OWN, table).candidate, truth)
    holes = np.where(np.arange(N) < 9, np.nan, fail(truth, 12))
    assert len(find_modes(table.select(), holes[None], own_rules=[alone])[0]) == 1
    few = table[:15]
    modes, search = find_modes(few, np.array([[1.0] * 8 + [0.0] * 7]))
    assert modes == ()
    assert (search.outcomes[0].n, search.outcomes[0].covered) == (15, 0)
    unscored = np.full((1, N), np.nan)
    assert find_modes(table, unscored)[0] == ()


def test_the_order_of_columns_does_not_matter_and_chance_has_no_part() -> None:
    table = make_table(13)
    losses = fail(plant("pair", table) | plant("decimals", table), 13)
    modes, search = find_modes(table, losses[None])
    assert find_modes(table, losses[None]) == (modes, search)
    assert modes
    backwards, _ = find_modes(table.select(reversed(table.columns)), losses[None])
    assert [m.holds(table).to_list() for m in backwards] == [
        m.holds(table).to_list() for m in modes
    ]
    # and neither has the order of units
    order = np.random.default_rng(13).permutation(N)
    mixed, _ = find_modes(table[order], losses[None, order])
    assert {m.rule for m in mixed} == {m.rule for m in modes}


def test_alternatives_with_full_overlap_mark_the_same_rows() -> None:
    table = make_table(14).with_columns(
        pl.when(pl.col("task") == "sort").then(pl.lit("order")).otherwise(pl.lit("rest")).alias("k")
    )
    modes = find(table, fail(plant("single", table), 14))
    assert jaccard(modes[0].holds(table).to_numpy(), plant("single", table)) == 1
    same = [one for one in modes[0].alternatives if one.overlap == 1]
    rules = {modes[0].rule, *(one.rule for one in same)}
    assert {"\"task\" = 'sort'", "\"k\" = 'order'"} <= rules


def make_null(seed: int) -> tuple[pl.DataFrame, Floats, NDArray[np.int64] | None]:
    """A small world whose losses were shuffled: with texts, in strata, or tied."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(200, 401))
    words = ["apple", "bread", "cloud", "river", "stone", "green", "seven", "eight"]
    size = rng.integers(0, 6, n)
    table = pl.DataFrame(
        {
            "size": size,
            "twice": 2 * size + (rng.random(n) < 0.2),
            "kind": rng.choice(["a", "b", "c", "d"], n),
            "share": np.where(rng.random(n) < 0.9, rng.random(n).round(2), np.nan),
        }
    )
    if seed % 2:
        texts = [" ".join([*rng.choice(words, 3), f"no{i}"]) for i in range(n)]
        table = table.with_columns(pl.Series("prompt", texts))
    rate = rng.choice([0.05, 0.3, 0.6])
    graded = seed % 3 == 0
    losses = rng.binomial(4, rate, n) / 4 if graded else (rng.random(n) < rate).astype(float)
    if seed % 4 < 2:
        return table, losses, None
    # strata that fail at rates of their own and that attributes are proxies of
    strata = (size >= 3).astype(np.int64)
    return table, np.where((strata == 1) & (rng.random(n) < 0.5), 1.0, losses), strata


@pytest.mark.parametrize("worlds", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_on_shuffled_worlds_there_are_hardly_ever_modes(worlds: int) -> None:
    level = 0.10
    found = []
    for seed in range(worlds):
        table, losses, strata = make_null(seed)
        if find_modes(table, losses[None], level=level, depth=2 + seed % 2, strata=strata)[0]:
            found.append(seed)
    # the guarantee is a probability of at most 0.10 a world
    most = int(binom.isf(1e-4, worlds, level))
    assert len(found) <= most, found


def test_an_audit_says_what_it_could_have_seen() -> None:
    _, search = find_modes(make_table(15), fail(np.zeros(N, bool), 15)[None])
    needed = [rate for rate in search.detectable.values() if rate is not None]
    assert needed
    assert all(0.08 < rate <= 1 for rate in needed)
    assert needed == sorted(needed, reverse=True)
    assert math.isclose(sum(one.weight for one in search.classes), 1.0)
    assert search.rules == sum(one.rules for one in search.classes) > 100


@pytest.mark.parametrize("grades", [0, 10])
def test_equal_means_of_unequal_spread_are_no_mode(grades: int) -> None:
    worlds, named, hits = 30, 0, 0
    for seed in range(worlds):
        rng = np.random.default_rng(seed)
        on = rng.random((3, 300)) < np.array([[0.2], [0.4], [0.6]])
        even = rng.binomial(grades, 0.4, 300) / grades if grades else rng.beta(24, 36, 300)
        spread = np.where(on[0], rng.random(300) < 0.4, even)
        table = pl.DataFrame({f"c{i}": row for i, row in enumerate(on)})
        named += bool(find_modes(table, spread[None], depth=2)[0])
        # losses of unequal spread whose means do differ are named all the same
        higher = np.where(on[0], rng.random(300) < 0.75, even)
        hits += any('"c0"' in mode.rule for mode in find_modes(table, higher[None], depth=2)[0])
    assert binom.sf(named - 1, worlds, 0.10) > 0.001
    assert hits >= 0.9 * worlds


@pytest.mark.parametrize("levels", [6, 100])
def test_ranges_end_where_the_rule_does(levels: int) -> None:
    rng = np.random.default_rng(2)
    n = 1500
    size = rng.integers(0, levels, n)
    cut = levels * 4 // 5
    losses = (rng.random(n) < np.where(size > cut, 0.9, 0.1)).astype(float)
    modes, _ = find_modes(pl.DataFrame({"size": size}), losses[None])
    mode = next(mode for mode in modes if mode.doses)
    assert sum(point.n for point in mode.doses) == n
    assert sum(point.errors for point in mode.doses) == losses.sum()
    for point in mode.doses:
        inside = (size >= point.low) & (size <= point.high)
        assert point.n == inside.sum()
        assert point.errors == losses[inside].sum()
        holds = mode.holds(pl.DataFrame({"size": size[inside]}))
        assert holds.n_unique() == 1


@pytest.mark.parametrize("n", [8, 9, 40, 333, 30_000])
def test_the_binomial_quantile_is_that_of_scipy(n: int) -> None:
    rng = np.random.default_rng(n)
    for p in (*rng.random(60), *(10 ** -rng.uniform(0, 6, 30)), 1 - 1e-6, 1.0):
        for share in (0.05, 0.2, 0.8):
            assert _find_quantile(share, n, p) == binom.ppf(share, n, p)


def test_a_condition_drawn_by_chance_joins_no_set_of_values() -> None:
    """The values were picked where it holds: so it has to show beyond all such sets."""
    for seed in (1, 9):
        rng, n = np.random.default_rng([seed, 9]), 900
        path = rng.integers(0, 24, n)
        rates = np.where(np.arange(24) < 4, 0.55, rng.uniform(0.1, 0.3, 24))
        table = pl.DataFrame(
            {
                "path": [f"p{v:02d}" for v in path],
                "hour": rng.integers(0, 24, n),
                "client": rng.choice(list("vwxyz"), n),
                "load": rng.random(n).round(3),
                "day": rng.integers(1, 8, n),
            }
        )
        modes = find(table, (rng.random(n) < rates[path]).astype(float))
        assert modes
        assert {name for mode in modes for name in mode.columns} == {"path"}, seed


def test_a_range_between_two_cuts_needs_to_fail_more_often_to_be_named() -> None:
    rng, n = np.random.default_rng(4), 800
    losses = (rng.random(n) < 0.15).astype(float)[None]
    fine = pl.DataFrame({"x": rng.normal(size=n), "g": rng.random(n) < 0.3})
    whole = fine.with_columns(x=pl.Series(rng.integers(0, 16, n)))
    needed = [find_modes(table, losses)[1].detectable_by["range"] for table in (fine, whole)]
    # whole numbers are cut exactly, others at sixteenths: a fiftieth lies between two cuts
    assert [one["0.02"] is None for one in needed] == [True, False]
    assert needed[0]["0.05"] > needed[1]["0.05"] + 0.05


def test_what_one_model_fails_and_what_another_fails_are_two_modes_of_their_mean() -> None:
    rng, n = np.random.default_rng([0, 3]), 600
    table = pl.DataFrame(
        {
            "language": np.where(rng.random(n) < 0.3, "de", rng.choice(["en", "fr"], n)),
            "table": rng.random(n) < 0.35,
            "topic": rng.choice(list("abcd"), n),
        }
    )
    german, tables = (table["language"] == "de").to_numpy(), table["table"].to_numpy()
    old = rng.random(n) < np.where(tables, 0.8, 0.1)
    new = rng.random(n) < np.where(german, 0.7, 0.1)
    modes, _ = find_modes(table, np.stack([old, new]).astype(float), outcomes=("old", "new"))
    both = [mode.meaning for mode in modes if mode.outcome == EVERY_MODEL]
    assert sorted(both) == ["language is de", "table"]
    # but if both models fail where the two come together, that is one
    joined = (rng.random((2, n)) < np.where(german & tables, 0.8, 0.1)).astype(float)
    modes, _ = find_modes(table, joined, outcomes=("old", "new"))
    assert modes[0].meaning == "language is de and table"


@pytest.mark.parametrize("kind", ["strata", "groups", "graded"])
def test_a_set_inside_a_value_is_named_whatever_the_units(kind: str) -> None:
    rng, n = np.random.default_rng([5, 1]), 1200
    table = pl.DataFrame(
        {
            "topic": rng.choice(list("abcdefgh"), n),
            "language": rng.choice(["en", "de", "fr", "es"], n),
            "size": rng.normal(size=n).round(2),
        }
    )
    on = (table["topic"].is_in(["c", "d"]) & (table["language"] == "de")).to_numpy()
    home = {"strata": table["size"].to_numpy() > 0, "groups": rng.random(n) < 0.5}.get(kind)
    p = np.where(on, 0.6, 0.12 if home is None else 0.1 + 0.05 * home)
    losses = rng.binomial(3, p) / 3 if kind == "graded" else (rng.random(n) < p).astype(float)
    strata = None if home is None else home.astype(np.int64)
    (mode, *_) = find(table, losses, strata=strata)
    holds = mode.holds(table).to_numpy()
    assert (holds & on).sum() > 0.8 * (holds | on).sum()
