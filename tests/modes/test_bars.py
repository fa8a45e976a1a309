"""The bars of classes of rules: what permutations show, and the level that they keep together."""

from __future__ import annotations

import math
from itertools import combinations
from types import ModuleType

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, hypergeom

from groundfault.modes import bars as bars_module, compiled, kernels
from groundfault.modes.bars import PERMUTATIONS, PERMUTED, SHARES, Bars, Permuter
from groundfault.modes.condition import FEW, MAX_SET, MAX_WORDS, TOP_VALUES, list_conditions
from groundfault.modes.kernels import look_up, tabulate_tails
from groundfault.modes.rule_space import ModeRule, RuleLanguage
from groundfault.modes.selection import Selection
from groundfault.modes.strata import Losses, Scores, Strata
from groundfault.stats import bits
from groundfault.stats.bits import Layout

Floats = NDArray[np.float64]
LEVEL = 0.10


def make(
    table: pl.DataFrame, losses: Floats, strata: int = 1, depth: int = 1
) -> tuple[RuleLanguage, Losses]:
    layout = Layout(np.arange(table.height) % strata)
    return RuleLanguage(list_conditions(table), layout, depth), Losses.of(losses, layout)


def draw_flags(rng: np.random.Generator, n: int, columns: int) -> pl.DataFrame:
    return pl.DataFrame({f"c{i}": rng.random(n) < 0.4 for i in range(columns)})


def draw_mixed(rng: np.random.Generator, n: int) -> pl.DataFrame:
    words = np.array(["apple", "pear", "plum", "fig", "lime", "kiwi"])
    return pl.DataFrame(
        {
            "flag": rng.random(n) < 0.4,
            "task": rng.choice(list("abcdef"), n),
            "length": rng.normal(size=n).round(2),
            "prompt": [" ".join(rng.choice(words, 9)) + "." for _ in range(n)],
        }
    )


@pytest.mark.parametrize(("units", "errors"), [(115, 41), (300, 240), (64, 3)])
def test_tails_are_those_of_the_hypergeometric_distribution(units: int, errors: int) -> None:
    table, rate = tabulate_tails(units, errors), errors / units
    for support in range(8, len(table), 7):
        expected = hypergeom.logsf(np.arange(errors + 1) - 1, units, errors, support)
        for k in range(int(support * rate) + 1, min(support, errors) + 1):
            counts = (np.float32([value]) for value in (support, k))
            (value,) = look_up(table, rate, *counts)
            # the smallest are not told apart
            assert value == pytest.approx(max(expected[k], value), rel=1e-4)
            assert value < -30 or value == pytest.approx(expected[k], rel=1e-4)


def list_masks(language: RuleLanguage, name: str, y: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
    """Return the rules of a class, by enumeration."""
    on = language.unpack()
    if name == "word":
        return [on[i] for i in language.others]
    if name == "mixed":
        return [
            on[language.plain[i]] & on[language.others[j]] for i, j in np.argwhere(language.mixed)
        ]
    if name.endswith("pair"):
        couples = language.plain[np.argwhere(language.pairs)].tolist()
        ones = [(i, language.literals[i]) for i in language.plain]
        plainest = {i for i, one in ones if one.bounds is None and one.cost == 0}
        of_values = [all(i in plainest for i in both) for both in couples]
        kinds = ["value pair" if one else "pair" for one in of_values]
        return [on[i] & on[j] for (i, j), kind in zip(couples, kinds, strict=True) if kind == name]
    masks = []
    for context in language.plain:
        for places in language.values.values():
            index = language.plain[places]
            if language.family[index[0]] == language.family[context]:
                continue
            inside = on[index] & on[context]
            size = inside.sum(axis=1)
            z = ((inside & y).sum(axis=1) - size * y.mean()) / np.sqrt(np.maximum(size, 1))
            z[(size < FEW) | (z <= 0)] = -1
            best = [i for i in np.argsort(-z, kind="stable")[:TOP_VALUES] if z[i] > 0]
            masks += [
                inside[list(some)].any(axis=0)
                for k in range(2, MAX_SET + 1)
                for some in combinations(best, k)
            ]
    return [mask for mask in masks if mask.sum() >= 8]


@pytest.mark.parametrize(
    ("rate", "code", "margin"),
    [(0.3, kernels, 1.0), (0.7, kernels, -3.0), (0.7, compiled, 1.0), (0.3, compiled, -3.0)],
)
def test_minima_of_permutations_are_those_of_an_enumeration(
    rate: float, code: ModuleType, margin: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By NumPy and by compiled code, which count again where a bar is too low."""
    monkeypatch.setattr(bars_module, "choose_code", lambda _: code)
    monkeypatch.setattr(kernels, "_LOOKED_AT", 1)
    monkeypatch.setattr(kernels, "_MARGIN", margin)
    rng, n = np.random.default_rng(4), 150
    language, losses = make(draw_mixed(rng, n), (rng.random(n) < rate).astype(float), depth=3)
    minima = Permuter(language, losses, PERMUTED).find_minima(np.random.default_rng(5), 3)
    order, errors = np.random.default_rng(5), int(losses.values.sum())
    drawn = min(errors, n - errors)
    for b, found in enumerate(minima):
        y = np.zeros(n, dtype=np.bool_)
        if b:
            y[order.permutation(n)[:drawn]] = True
            y = y if drawn == errors else ~y
        else:
            y = losses.values == 1
        for name, value in zip(PERMUTED, found, strict=True):
            if name == "single":
                masks = list(language.layout.unpack(language.bits[language.single]))
                handicaps = language.handicaps
            else:
                masks = [m for m in list_masks(language, name, y) if m.sum() <= n // 2]
                handicaps = np.zeros(len(masks))
            on = np.array(masks)
            tails = hypergeom.logsf((on & y).sum(axis=1) - 1, n, errors, on.sum(axis=1))
            assert value == pytest.approx(min(0, *(tails + handicaps)), abs=1e-3), name


def test_cuts_of_one_column_cost_far_less_than_their_number() -> None:
    rng = np.random.default_rng(1)
    table = pl.DataFrame({"length": rng.normal(size=400)})
    bars = Bars(*make(table, (rng.random(400) < 0.3).astype(float)), LEVEL)
    assert bars.sum_cost("single") - bars.log_cost("single") > math.log(1.4)


STRATIFIED = [(2, [0.0, 1.0]), (1, [0.0, 0.5, 1.0]), (3, [0.0, 0.1, 1.0])]


@pytest.mark.parametrize(("strata", "losses"), STRATIFIED)
def test_strata_and_graded_losses_pay_as_permutations_show(
    strata: int, losses: list[float]
) -> None:
    rng = np.random.default_rng(2)
    language, drawn = make(draw_flags(rng, 200, 5), rng.choice(losses, 200), strata, 2)
    bars = Bars(language, drawn, LEVEL)
    assert bars.lowest.keys() == {"single", "value pair", "pair"}
    # pairs share conditions: the best of them is less so by chance than as many others would be
    assert bars.log_cost("pair") < bars.sum_cost("pair") - 0.1
    paid = Bars(language, drawn, LEVEL, "bonferroni")
    assert not paid.lowest
    assert paid.log_cost("pair") == paid.sum_cost("pair")
    # a condition beside another pays for all that join; of two values, for what permutations show
    most = pytest.approx(np.log(len(language.plain)))
    assert most == bars.cost_beside("pair") == paid.cost_beside("value pair")
    assert bars.cost_beside("value pair") < min(most.expected, bars.log_cost("single"))


@pytest.mark.parametrize(("strata", "losses"), STRATIFIED)
def test_scores_say_how_rare_an_excess_is_among_permutations_within_strata(
    strata: int, losses: list[float]
) -> None:
    layout = Layout(np.arange(300) % strata)
    rng = np.random.default_rng(1)
    values = Losses.of(rng.choice(losses, 300) * (rng.random(300) < 0.6), layout)
    scores = Scores(layout.strata, values.values, graded=not values.binary)
    base = Strata(layout, values)
    permuted = scores.permute(rng, 4000)
    first = np.sort(permuted[: scores.runs[1]], axis=0)
    assert (first == first[:, :1]).all()
    on = rng.random((400, 300)) < 0.1 + 0.1 * layout.strata
    sums = on[:, scores.order].astype(np.float32) @ permuted
    # what is equal counts half
    tail = sum((sums > sums[:, :1] + by).mean(axis=1) for by in (-1e-4, 1e-4)) / 2
    score = np.exp([base.log_score(row) for row in layout.pack(on)])
    rare = tail < 0.1
    assert rare.sum() > 20
    # where losses vary more inside, an excess counts for less
    ratio = score[rare] / tail[rare]
    assert abs(np.log(np.median(ratio))) < 0.2
    assert 0.6 < ratio.min() < ratio.max() < 2.5


def test_a_rule_that_strata_imply_is_no_surprise() -> None:
    rng = np.random.default_rng(3)
    layout = Layout(np.arange(300) % 3)
    for losses in ([0.0, 1.0], [0.0, 0.3, 1.0]):
        base = Strata(layout, Losses.of(rng.choice(losses, 300), layout))
        assert base.log_score(layout.pack(layout.strata[None] == 1)[0]) == pytest.approx(
            -math.log(2)
        )


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_no_more_than_the_level_is_spent(depth: int) -> None:
    rng = np.random.default_rng(9)
    y = (rng.random(300) < 0.3).astype(float)
    bars = Bars(*make(draw_mixed(rng, 300), y, depth=depth), LEVEL, "bonferroni")
    language = bars.language
    assert sum(bars.weights.values()) == pytest.approx(1.0)
    sets = [len(v) for v in language.values.values()]
    words = [len(v) for v in language.word_families.values()]
    pairs = language.counts["value pair"] + language.counts["pair"]
    contexts = {"values": 1, "set": len(language.plain), "set of a pair": pairs}
    spent = 0.0
    for kind, count in language.counts.items():
        if not count:
            continue
        if kind in contexts or kind == "words":
            largest, families = (MAX_WORDS, words) if kind == "words" else (MAX_SET, sets)
            here = sum(
                contexts.get(kind, 1)
                * sum(math.comb(v, size) for v in families)
                * math.exp(-bars.log_cost(kind, size))
                for size in range(2, largest + 1)
            )
        elif kind == "single":
            costs = [bars.cost_of(ModeRule(((int(i),),), kind)) for i in language.single]
            here = sum(math.exp(-cost) for cost in costs)
        else:
            here = count * math.exp(-bars.log_cost(kind))
        assert here <= bars.weights[kind] + 1e-12
        spent += here
    assert spent <= 1 + 1e-12
    assert bars.weights.keys() <= SHARES.keys()


def test_a_set_of_other_values_than_the_worst_pays_for_all_sets() -> None:
    rng, n = np.random.default_rng(7), 800
    table = draw_flags(rng, n, 3).with_columns(task=pl.Series(rng.choice(list("abcdefghij"), n)))
    language, losses = make(table, (rng.random(n) < 0.3).astype(float), depth=2)
    bars = Bars(language, losses, LEVEL)
    values = language.plain[language.values["task"]]
    context = next(int(i) for i in language.plain if language.literals[i].family == "c0")
    rows = language.bits[values] & language.bits[[context]]
    on = language.layout.unpack(rows)
    excess = [(losses.values[row].sum() - row.sum() * losses.values.mean()) for row in on]
    order = np.argsort(-np.array(excess) / np.sqrt(bits.count(rows)))
    for some, cheap in ((order[:2], True), (order[-2:], False)):
        rule = ModeRule(((context,), tuple(sorted(int(values[i]) for i in some))), "set")
        assert (bars.cost_of(rule) < bars.sum_cost("set", 2)) is cheap


# 100 worlds notice a level of 0.25 in 85 of 100 runs, and the 150 of every night in 97
@pytest.mark.parametrize("worlds", [50, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["flags", "cuts", "rare", "graded", "strata"])
def test_the_level_is_kept_and_used(kind: str, worlds: int) -> None:
    named = 0
    for seed in range(worlds):
        rng = np.random.default_rng(seed)
        strata = 3 if kind == "strata" else 1
        table = {
            "cuts": pl.DataFrame({"x": rng.random(120)}),
            "rare": pl.DataFrame({"task": rng.integers(0, 12, 120).astype(str)}),
        }.get(kind, draw_flags(rng, 120, 15))
        rate = 0.35 + 0.2 * (np.arange(120) % strata)
        values = (rng.random(120) < rate) * (rng.choice([0.5, 1.0], 120) ** (kind == "graded"))
        language, losses = make(table, values.astype(float), strata)
        named += bool(Selection(Bars(language, losses, LEVEL)).select())
    assert binom.sf(named - 1, worlds, LEVEL) > 0.001
    # far below the level, power would be thrown away; graded losses are bet on beside it
    assert kind == "graded" or binom.cdf(named, worlds, LEVEL / 2) > 0.05


def test_what_is_plain_to_say_pays_less_than_its_negation() -> None:
    rng = np.random.default_rng(3)
    language, losses = make(draw_flags(rng, 120, 15), (rng.random(120) < 0.35).astype(float))
    bars = Bars(language, losses, LEVEL)
    rules = [ModeRule(((int(i),),), "single") for i in language.single]
    plain, negated = (
        [bars.cost_of(rule) for rule in rules if language.sql(rule).startswith("NOT") is not_so]
        for not_so in (False, True)
    )
    assert len(plain) == len(negated) == 15
    assert np.ptp(plain) == np.ptp(negated) == 0
    assert negated[0] - plain[0] > 1
    # 30 conditions cost those that are plain little more than 15 would
    assert bars.sum_cost("single") < math.log(1.3 * 15 / bars.weights["single"])


def test_permutations_show_no_smaller_p_than_one_in_their_number() -> None:
    rng = np.random.default_rng(8)
    language, losses = make(draw_flags(rng, 120, 15), (rng.random(120) < 0.35).astype(float))
    bars = Bars(language, losses, LEVEL)
    rule = ModeRule(((int(language.single[0]),),), "single")
    between = -math.log(PERMUTATIONS + 1) - bars.sum_cost("single")
    assert bars.adjust(rule, between + 0.1) == pytest.approx(-math.log(PERMUTATIONS + 1), abs=0.11)
    assert bars.adjust(rule, between - 5) == pytest.approx(between - 5 + bars.sum_cost("single"))
