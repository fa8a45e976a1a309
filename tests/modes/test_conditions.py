"""Literals: what is read off each kind of column, and that each rule marks the units it says."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from groundfault.core.rules import Rule
from groundfault.modes.condition import MIN_SUPPORT, Condition, Tier, _pick, list_conditions

N = 240
INF = math.inf


def check_rules(table: pl.DataFrame, literals: list[Condition]) -> None:
    """The SQL of each literal, and of its other names, marks the units that it is on for."""
    for literal in literals:
        assert MIN_SUPPORT <= literal.on.sum() <= table.height - MIN_SUPPORT
        for one in (literal, *literal.aliases):
            marked = Rule.parse(one.rule).holds(table).to_numpy()
            assert np.array_equal(marked, literal.on), one.rule
            assert one.meaning


def read(values: list[object] | pl.Series, name: str = "x") -> dict[str, Condition]:
    """Literals of a table of one column with their aliases, by rule; the rules are checked."""
    table = pl.DataFrame({name: values})
    literals = list_conditions(table)
    check_rules(table, literals)
    return {one.rule: one for literal in literals for one in (literal, *literal.aliases)}


def draw(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_a_flag_is_on_or_off_and_neither_where_it_is_missing() -> None:
    values = [True, False, None] * (N // 3)
    literals = read(values)
    assert set(literals) == {'"x"', 'NOT "x"', '"x" IS NULL'}
    assert literals['"x"'].on.tolist() == [v is True for v in values]
    assert literals['NOT "x"'].on.tolist() == [v is False for v in values]
    assert [literals[r].meaning for r in ('"x"', 'NOT "x"')] == ["x", "not x"]


@pytest.mark.parametrize("dtype", [pl.Int64, pl.UInt8, pl.Float64])
def test_zeros_and_ones_are_a_flag(dtype: pl.DataType) -> None:
    values = pl.Series([0, 1, 1, None] * (N // 4), dtype=dtype)
    literals = read(values)
    assert set(literals) == {'"x" = 1', '"x" = 0', '"x" IS NULL'}
    assert literals['"x" = 1'].on.sum() == N // 2
    assert literals['"x" = 0'].on.sum() == N // 4


def test_whole_numbers_have_cuts_values_and_ranges() -> None:
    literals = read([0, 1, 2, 3, 4, 5] * (N // 6))
    assert {'"x" >= 3', '"x" <= 2', '"x" = 4', '"x" BETWEEN 1 AND 3'} <= set(literals)
    assert literals['"x" BETWEEN 1 AND 3'].on.sum() == N // 2
    assert literals['"x" BETWEEN 1 AND 3'].bounds == (1, 3)
    assert literals['"x" >= 3'].bounds == (3, INF)
    # the ends of the scale say nothing of their own
    assert '"x" >= 0' not in literals
    assert '"x" <= 5' not in literals


def test_days_read_as_dates() -> None:
    days = [20260101.0, 20260201, 20260301, 20260401] * 20
    told = {one.meaning for one in list_conditions(pl.DataFrame({"sent.day": days}))}
    assert {"sent is 2026-03-01 or later", "sent is 2026-02-01 or earlier"} <= told
    assert "sent is 2026-02-01 to 2026-03-01" in told


def test_many_whole_numbers_are_cut_at_quantiles() -> None:
    literals = read([i // 3 for i in range(N)])
    joined = [rule for rule, one in literals.items() if one.grain == 0]
    assert 20 < len(joined) < 80
    assert not any(" = " in rule for rule in literals)


@pytest.mark.parametrize("size", [1, 2, 9, 240, 2001])
def test_quantiles_are_those_of_numpy(size: int) -> None:
    values = np.sort(draw(size).normal(size=size))
    shares = np.append(np.linspace(0, 1, 65), [0.01, 0.98])
    np.testing.assert_array_equal(
        _pick(values, shares), np.quantile(values, shares, method="nearest")
    )


def test_fine_cuts_say_tails_and_ranges_and_join_less() -> None:
    literals = read(draw(6).normal(size=2000).tolist())
    for low, high in ((0, 0.02), (0.96, 1), (0.25, 0.375), (0.5, 0.6)):
        x = np.sort(draw(6).normal(size=2000))[int(2000 * low) : int(2000 * high)]
        hits = [
            min(1, len(x) / n) * min(1, n / len(x))
            for one in literals.values()
            if (n := int(one.on.sum()))
            and one.bounds
            and np.isin(x[len(x) // 2], x[(x >= one.bounds[0]) & (x <= one.bounds[1])])
            and abs(n - len(x)) < 0.2 * len(x)
        ]
        assert max(hits) > 0.8, (low, high)
    grains = {one.grain: one.rule for one in literals.values()}
    assert grains.keys() == {0, 1, 2}
    assert "AND" in grains[2]


def test_each_value_of_a_column_with_few_and_heavy_values_stand_alone() -> None:
    hours = read([i % 24 for i in range(480)])
    assert {'"x" = 3', '"x" BETWEEN 2 AND 4'} <= set(hours)
    inflated = [0 if i % 2 else 5 + i * 7 % 1009 for i in range(2000)]
    literals = read(inflated)
    assert literals['"x" = 0'].grain == 0
    light = np.sort([x for x in inflated if x])
    # an eighth of those that are not zero has ends of its own
    sizes = [int(one.on.sum()) for one in literals.values() if one.bounds and one.bounds[0] > 0]
    assert min(abs(n - len(light) / 8) for n in sizes) < 0.25 * len(light) / 8


def test_decimals_are_cut_between_neighbours_in_few_digits() -> None:
    values = np.round(draw().normal(size=N), 9)
    literals = read(values.tolist())
    assert literals
    cuts = [w for rule in literals for w in rule.split() if w[-1].isdigit()]
    assert all(len(cut) <= 9 for cut in cuts), cuts


def test_decimals_next_to_each_other_are_told_apart() -> None:
    x = 0.1
    above = np.nextafter(x, 1)
    literals = read([x, above, 0.3] * (N // 3))
    assert {tuple(one.bounds or ()) for one in literals.values()} >= {(-INF, x), (above, INF)}


@pytest.mark.parametrize("low", [1e15, -4e15, 1e300, -1e300, 1e-300, 2.0**53])
def test_huge_and_tiny_numbers(low: float) -> None:
    step = max(abs(low) * 1e-3, 1e-302)
    assert read([low + step * float(i) for i in draw(1).integers(0, 9, N)])
    assert read([low + step * float(x) for x in draw(1).random(N)])


def test_whole_numbers_as_large_as_times_in_nanoseconds() -> None:
    assert read(pl.Series([2**62 + 2**40 * int(i) for i in draw(2).integers(0, 99, N)]))


def test_negative_numbers() -> None:
    literals = read([int(i) - 4 for i in draw(3).integers(0, 6, N)])
    assert {'"x" >= -2', '"x" <= -3', '"x" = -4', '"x" BETWEEN -3 AND -1'} <= set(literals)
    assert read((-draw(3).random(N)).tolist())


@pytest.mark.parametrize("extra", [None, INF, -INF])
@pytest.mark.parametrize("make", [lambda x: float(round(6 * x)), float])
def test_missing_and_infinite_numbers(extra: float | None, make: Callable[[float], float]) -> None:
    x = draw(4).random(N)
    values = [extra if u < 0.2 else make(u * 1.2) for u in x]
    literals = read(values)
    assert any('"x" >' in rule for rule in literals)
    assert any('"x" <=' in rule for rule in literals)
    assert ('"x" IS NULL' in literals) == (extra is None)


@pytest.mark.parametrize("make", [lambda x: float(round(6 * x)), float])
def test_what_is_not_a_number_is_missing(make: Callable[[float], float]) -> None:
    x = draw(4).random(N)
    values = [math.nan if u < 0.2 else make(u * 1.2) for u in x]
    literals = list_conditions(pl.DataFrame({"x": values}))
    table = pl.DataFrame({"x": [None if u < 0.2 else v for u, v in zip(x, values, strict=True)]})
    check_rules(table, literals)
    rules = [one.rule for one in literals]
    assert rules == [one.rule for one in list_conditions(table)]
    assert '"x" IS NULL' in rules


def test_single_precision() -> None:
    values = draw(5).random(N).astype(np.float32)
    assert read(pl.Series(values))
    near = np.float32(0.1)
    above = np.nextafter(near, np.float32(1))
    assert read(pl.Series(np.array([near, above, 0.3] * (N // 3), dtype=np.float32)))


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(["a", "b", "c d"])])
def test_categories_are_told_by_their_values(dtype: pl.DataType) -> None:
    literals = read(pl.Series(["a", "b", "c d", None] * (N // 4), dtype=dtype))
    assert set(literals) == {"\"x\" = 'a'", "\"x\" = 'b'", "\"x\" = 'c d'", '"x" IS NULL'}
    assert literals["\"x\" = 'c d'"].value == "c d"
    assert literals["\"x\" = 'c d'"].meaning == "x is c d"


@pytest.mark.parametrize("name", ['it"s', "a'b", "two words", "Über", "select", "a.b", "%"])
def test_names_and_values_are_quoted(name: str) -> None:
    values = ["it's", 'a "b"', "--", "\\", "%_", " ", "", "NULL", ";"]
    assert len(read([values[i % 9] for i in range(N)], name)) == 9
    assert len(read([i % 7 for i in range(N)], name)) > 7
    assert len(read([i % 2 == 0 for i in range(N)], name)) == 2


def test_of_many_values_the_sixty_most_frequent_are_read() -> None:
    sizes = {f"v{i:02}": 8 + i for i in range(59)} | {"rare": 7}
    values = [name for name, size in sizes.items() for _ in range(size)]
    literals = read(values)
    assert {one.value for one in literals.values()} == set(sizes) - {"rare"}
    # words of more values are a code: each is read while there are enough of it
    more = [f"v{i:02}" for i in range(70) for _ in range(8 + i)]
    kept = {one.value for one in read(more).values()}
    assert kept == {f"v{i:02}" for i in range(10, 70)}


def test_units_that_several_conditions_hold_for_are_one_literal_with_other_names() -> None:
    size = [i % 4 for i in range(N)]
    table = pl.DataFrame(
        {
            "size": size,
            "big": [s >= 2 for s in size],
            "kind": ["x" if s >= 2 else "y" for s in size],
        }
    )
    literals = list_conditions(table)
    check_rules(table, literals)
    extents = [one.on.tobytes() for one in literals]
    assert len(set(extents)) == len(extents)
    big = next(one for one in literals if one.on.tolist() == [s >= 2 for s in size])
    rules = {big.rule, *(one.rule for one in big.aliases)}
    assert {'"big"', '"size" >= 2', "\"kind\" = 'x'"} <= rules
    # the cheapest to read is the name
    assert all(big.cost <= one.cost for one in big.aliases)


def test_attributes_come_before_texts_and_texts_before_words() -> None:
    rng = draw(6)
    words = ["apple", "bread", "cloud", "river", "stone", "green", "seven", "eight", "house"]
    table = pl.DataFrame(
        {
            "prompt": [" ".join(rng.choice(words, rng.integers(2, 8))) + "?" for _ in range(N)],
            "size": rng.integers(0, 5, N),
            "note": [None if u < 0.2 else "said so twice" for u in rng.random(N)],
        }
    )
    literals = list_conditions(table)
    check_rules(table, literals)
    tiers = [one.tier for one in literals]
    assert tiers == sorted(tiers)
    assert {Tier.ATTRIBUTE, Tier.WORD} <= set(tiers)
    assert {one.column for one in literals if one.tier == Tier.WORD} == {"prompt"}
    assert len([one for one in list_conditions(table, max_words=2) if one.tier == Tier.WORD]) < len(
        [one for one in literals if one.tier == Tier.WORD]
    )


def test_what_holds_for_few_or_for_nearly_all_is_no_literal() -> None:
    values = ["a"] * (N - 15) + ["b"] * 8 + ["c"] * 7
    assert set(read(values)) == {"\"x\" = 'b'", "\"x\" = 'a'"}
    assert read(["a"] * (N - 7) + ["b"] * 7) == {}
    assert read([1.5] * N) == {}
    assert read([None] * N) == {}


def test_scoring_scripts_find_conditions_under_their_name() -> None:
    from groundfault.modes.literals import list_literals

    (one, *_) = list_literals(pl.DataFrame({"a": [True, False] * 20}))
    assert (one.rule, one.family, int(one.on.sum())) == ('"a"', "a", 20)
