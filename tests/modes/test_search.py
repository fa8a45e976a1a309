"""The search: it is exhaustive where it says so, and its greedy parts find what is planted."""

from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest

from groundfault.modes.bars import Bars
from groundfault.modes.condition import UnitSet, list_conditions
from groundfault.modes.find import find_modes
from groundfault.modes.rule_space import ModeRule, RuleLanguage
from groundfault.modes.search import score_masks, search, search_inside
from groundfault.modes.strata import Losses, Strata
from groundfault.stats.bits import Layout

N = 400
MOST = {"single": 0.8}
"""Share of the units that a rule of a class may hold for; half for the others."""


def make_table(seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "task": rng.choice(["add", "sort", "map", "find", "split"], N),
            "size": rng.integers(1, 5, N),
            "hard": rng.random(N) < 0.3,
            "part": rng.choice(["x", "y"], N),
        }
    )


def make_world(
    table: pl.DataFrame, rate: np.ndarray, seed: int, depth: int = 3, blocks: int = 1
) -> tuple[RuleLanguage, Strata]:
    """A table's language, and units that fail at given rates."""
    rng = np.random.default_rng(seed)
    layout = Layout(rng.integers(0, blocks, N))
    language = RuleLanguage(list_conditions(table), layout, depth)
    losses = (rng.random(N) < rate).astype(float)
    return language, Strata(layout, Losses.of(losses, layout))


def pay(language: RuleLanguage, strata: Strata) -> Bars:
    """What rules pay for, so that the search can be followed by hand."""
    return Bars(language, strata.losses, 0.1, "bonferroni")


def guarantee(on: np.ndarray, strata: Strata, log_cost: float) -> float:
    """The guaranteed excess on new units, from its formula."""
    on = on & strata.new
    n = on.sum()
    if n == 0:
        return -9.0
    z2 = 2 * max(log_cost, 0.5)
    p = strata.losses.values[on].mean()
    low = (p + z2 / (2 * n) - math.sqrt(z2 * (p * (1 - p) / n + z2 / (4 * n * n)))) / (1 + z2 / n)
    return float((low - strata.expected[on].mean()) * n**0.15)


@pytest.mark.parametrize(
    ("seed", "listed", "blocks", "three"),
    [(1, 0, 1, False), (3, 1, 1, False), (4, 1, 3, False), (5, 0, 1, True), (6, 1, 3, True)],
)
def test_the_best_single_pair_and_triple_are_the_best_there_are(
    seed: int, listed: int, blocks: int, three: bool
) -> None:
    table = make_table(seed).drop("part")
    rate = 0.1 + 0.4 * (table["size"] > 2).to_numpy() * (1 + table["hard"].to_numpy())
    if three:
        task = (table["task"] == "sort").to_numpy()
        rate = 0.02 + 0.95 * ((table["size"] > 2).to_numpy() & table["hard"].to_numpy() & task)
    language, strata = make_world(table, rate, seed, blocks=blocks)
    if listed:
        first = language.layout.pack((table["task"] == "add").to_numpy()[None])
        strata = Strata(language.layout, strata.losses, [first[0]])
    proposals = search(pay(language, strata), strata)
    scores = [p.score for p in proposals]
    assert scores == sorted(scores, reverse=True)
    pair = 0.0
    for kind, size in (("single", 1), ("value pair", 2), ("pair", 2), ("triple", 3)):
        cost = pay(language, strata).log_cost(kind)
        best = -9.0
        for places in itertools.combinations(language.plain.tolist(), size):
            on = np.all([language.literals[i].on for i in places], axis=0)
            most = MOST.get(kind, 0.5)
            score = guarantee(on, strata, cost) if 8 <= on.sum() <= most * N else -9.0
            if score > best and kind in {r.kind for r in language.join([(i,) for i in places])}:
                best = score
        got = [p.score for p in proposals if p.rule.kind == kind]
        # of few values there may be no pair worth saying
        assert best > 0 or (kind == "value pair" and not got)
        pair = max(best, pair) if size == 2 else pair
        if best > 0 and (kind != "triple" or best > 0.5 * pair):
            assert got[0] == pytest.approx(best, abs=1e-9), kind


def test_every_proposal_is_a_rule_with_its_mask_and_score() -> None:
    table = make_table(4)
    rate = 0.1 + 0.6 * ((table["size"] > 2) & table["task"].is_in(["add", "map"])).to_numpy()
    language, strata = make_world(table, rate, 4)
    proposals = search(pay(language, strata), strata)
    assert len({p.rule for p in proposals}) == len(proposals)
    assert {"single", "pair", "triple", "set"} <= {p.rule.kind for p in proposals}
    for p in proposals:
        assert list(language.join(p.rule.parts)) == [p.rule]
        on = np.all(
            [np.any([language.literals[i].on for i in part], 0) for part in p.rule.parts], 0
        )
        assert np.array_equal(language.layout.unpack(p.mask[None])[0], on)
        cost = pay(language, strata).cost_of(p.rule)
        assert p.score == pytest.approx(guarantee(on, strata, cost), abs=1e-9)
        assert 0 < on.sum() <= N * MOST.get(p.rule.kind, 0.5)
        assert score_masks(p.mask[None], strata, np.array([cost]))[0] == p.score


@pytest.mark.parametrize(("listed", "blocks"), [(0, 1), (1, 1), (1, 3)])
def test_failing_units_that_are_counted_alone_give_the_same_rules(
    listed: int, blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table(7)
    hard = ((table["size"] > 2) & table["hard"] & (table["task"] == "sort")).to_numpy()
    language, strata = make_world(table, 0.02 + 0.9 * hard, 7, blocks=blocks)
    masks = language.layout.pack((table["task"] == "add").to_numpy()[None])[:listed]
    strata = Strata(language.layout, strata.losses, masks)
    whole, bars = search(pay(language, strata), strata), pay(language, strata)
    assert bars.failing is None
    assert "triple" in {p.rule.kind for p in whole}
    # as on a large table
    monkeypatch.setattr("groundfault.modes.bars.WORTH_TAKING", 0)
    monkeypatch.setattr("groundfault.modes.kernels._WORTH_COMPILING", 0)
    bars, again = pay(language, strata), Strata(strata.layout, strata.losses, masks)
    assert bars.failing is not None
    taken = search(bars, again)
    assert [p.rule for p in taken] == [p.rule for p in whole]
    assert [p.score for p in taken] == pytest.approx([p.score for p in whole], abs=1e-12)


def test_of_nothing_but_a_level_rate_nothing_is_proposed() -> None:
    language, strata = make_world(make_table(5), np.full(N, 1.0), 5)
    assert search(pay(language, strata), strata) == []


def test_depth_one_has_single_conditions_alone() -> None:
    table = make_table(6)
    language, strata = make_world(table, 0.1 + 0.5 * (table["size"] > 2).to_numpy(), 6, depth=1)
    assert {p.rule.kind for p in search(pay(language, strata), strata)} == {"single"}


@pytest.mark.parametrize("pair", [False, True])
def test_a_set_of_values_is_found_in_its_context(pair: bool) -> None:
    table = make_table(7)
    truth = table["task"].is_in(["add", "map", "split"]) & table["hard"]
    truth = truth & (table["size"] >= 3) if pair else truth
    truth = truth.to_numpy()
    language, strata = make_world(table, np.where(truth, 0.95, 0.05), 7)
    best = search(pay(language, strata), strata)[0]
    assert best.rule.kind == ("set of a pair" if pair else "set")
    assert np.array_equal(language.layout.unpack(best.mask[None])[0], truth)


def test_words_are_joined_that_fail_alike() -> None:
    rng = np.random.default_rng(8)
    # unlike enough to be no topic, no phrase and no template
    words = [f"{a}{b}{c}" for a in "bdfgklmprt" for b in "aeiou" for c in "nst"][:60]
    texts = [" ".join(rng.choice(words, 4, replace=False)) + f" q{i}z" for i in range(N)]
    bad = {words[3], words[20], words[41]}
    truth = np.array([bool(bad & set(text.split())) for text in texts])
    table = pl.DataFrame({"text": texts, **{c: make_table(8)[c] for c in ("task", "size", "hard")}})
    language, strata = make_world(table, np.where(truth, 0.95, 0.03), 8)
    best = search(pay(language, strata), strata)[0]
    assert best.rule.kind == "words"
    assert np.array_equal(language.layout.unpack(best.mask[None])[0], truth)
    assert all(f'"{word}"' in language.conditions(best.rule)[0] for word in bad)


def test_an_effect_inside_a_context_is_found_there() -> None:
    table = make_table(9)
    inside = (table["part"] == "x").to_numpy()
    hard = table["hard"].to_numpy()
    language, strata = make_world(table, np.where(inside, np.where(hard, 0.9, 0.1), 0.6), 9)
    proposals = search_inside(pay(language, strata), strata)
    best = proposals[0]
    assert best.rule.kind == "inside"
    assert language.sql(best.rule) == '"part" = \'x\' AND "hard"'
    assert np.array_equal(language.layout.unpack(best.mask[None])[0], inside & hard)
    # each is one of those that the level was shared out among
    for p in proposals:
        (context,), (condition,) = p.rule.parts
        assert language.literals[context].bounds is None
        pair = [r.kind for r in language.join([(context,), (condition,)])]
        assert pair[0].endswith("pair")
    # a context is compared with its own units: where it fails as a whole there is no effect
    whole, level = make_world(table, np.where(inside, 1.0, 0.1), 9)
    assert not any(
        np.array_equal(p.rule.parts[0], (i,))
        for p in search_inside(pay(whole, level), level)
        for i in whole.plain
        if whole.literals[i].rule == "\"part\" = 'x'"
    )


def test_rules_of_ones_own_are_among_the_singles() -> None:
    from dataclasses import replace

    from groundfault.modes.condition import Tier

    table = make_table(10)
    truth = np.random.default_rng(10).random(N) < 0.2
    literals = list_conditions(table)
    own = replace(
        literals[0],
        tier=Tier.OWN,
        family="own 0",
        units=UnitSet.of(truth),
        rule='"mine"',
        bounds=None,
    )
    layout = Layout(np.zeros(N, np.int64))
    language = RuleLanguage([*literals, own], layout)
    losses = (np.random.default_rng(11).random(N) < np.where(truth, 0.9, 0.1)).astype(float)
    strata = Strata(layout, Losses.of(losses, layout))
    best = search(pay(language, strata), strata)[0]
    assert best.rule == ModeRule(((len(literals),),), "own")


@pytest.mark.parametrize("attributes", [[], ["task", "language"]])
def test_a_word_that_attributes_name_joins_no_set_of_words(attributes: list[str]) -> None:
    rng = np.random.default_rng(8)
    task, language = rng.choice(["add", "month", "count", "sort"], N), rng.choice(["en", "es"], N)
    is_month = (task == "month") & (language == "es")
    is_letter = (task == "count") & (language == "en") & (rng.random(N) < 0.8)
    others = rng.choice(["so", "or", "if", "by", "up"], N)
    words = np.where(is_month, "de", np.where(is_letter, "e", others))
    prompts = [f"what {word} is {i % 2} no {i}" for i, word in enumerate(words)]
    table = pl.DataFrame({"task": task, "language": language, "prompt": prompts})
    table = table.select(*attributes, "prompt")
    space, strata = make_world(table, np.where(is_month | is_letter, 0.8, 0.1), 8)
    joined = [space.sql(p.rule) for p in search(pay(space, strata), strata)]
    both = r"""("prompt" ~* '\bde\b' OR "prompt" ~* '\be\b')"""
    assert space.list_named(np.zeros(0, dtype=np.intp)).dtype == np.bool_
    # where texts are all there is, a set of words is the best that can be said
    assert (both in joined) is (not attributes)
    modes, _ = find_modes(table, strata.losses.values[None])
    told = """"task" = 'month' AND "language" = 'es'"""
    assert (told in [mode.rule for mode in modes]) is bool(attributes)
