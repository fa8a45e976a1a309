"""Refining: unlike parts are split off, what fails alike is taken in, even parts are left alone."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from groundfault.modes.bars import Bars
from groundfault.modes.condition import list_conditions
from groundfault.modes.rule_space import ModeRule, RuleLanguage
from groundfault.modes.selection import Selection
from groundfault.modes.strata import Losses, Strata
from groundfault.stats.bits import Layout

N = 1200
Bools = NDArray[np.bool_]


def make_table(seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "task": rng.choice(["add", "map", "sort", "split", "find"], N),
            "size": rng.integers(1, 7, N),
            "hard": rng.random(N) < 0.4,
        }
    )


TABLE = make_table()
LANGUAGE = RuleLanguage(list_conditions(TABLE), Layout(np.zeros(N, np.int64)))
TASK, SIZE, HARD = (TABLE[name].to_numpy() for name in TABLE.columns)


def place(rule: str) -> int:
    """Where the literal is that has a rule of its own or as an alias."""
    return next(
        i
        for i, one in enumerate(LANGUAGE.literals)
        if rule in (one.rule, *(alias.rule for alias in one.aliases))
    )


def join(*conditions: str | tuple[str, ...]) -> ModeRule:
    """The rule of literals and of sets of them, by their SQL."""
    parts = [(c,) if isinstance(c, str) else c for c in conditions]
    (rule,) = LANGUAGE.join([tuple(sorted(place(one) for one in part)) for part in parts])
    return rule


def is_task(*names: str) -> tuple[str, ...]:
    return tuple(f"\"task\" = '{name}'" for name in names)


def refine_at(rate: NDArray[np.float64], rule: ModeRule, listed: Bools | None = None) -> Bools:
    """The units of the refined rule in a world with exact rates, so that chance has no part."""
    losses = np.zeros(N)
    cells: dict[tuple[object, ...], list[int]] = {}
    for i, cell in enumerate(zip(TASK, SIZE, HARD, strict=True)):
        cells.setdefault(cell, []).append(i)
    for rows in cells.values():
        losses[rows[: round(float(rate[rows[0]]) * len(rows))]] = 1
    layout = LANGUAGE.layout
    masks = [] if listed is None else [layout.pack(listed[None])[0]]
    bars = Bars(LANGUAGE, Losses.of(losses, layout), 0.1, "bonferroni")
    strata = Strata(layout, bars.losses, masks)
    refined = Selection(bars).refine(strata, rule)
    assert list(LANGUAGE.join(refined.parts)) == [refined]
    return np.asarray(layout.unpack(LANGUAGE.mask(refined)[None])[0])


PAIR = (TASK == "add") & (SIZE >= 3)


def test_a_rule_over_unlike_parts_is_tightened_to_the_part_that_fails() -> None:
    rate = np.where(PAIR, 0.9, 0.1)
    assert np.array_equal(refine_at(rate, join(*is_task("add"))), PAIR)
    # also where it is a set of which one value is to blame
    rule = join('"size" >= 3', is_task("add", "map"))
    assert np.array_equal(refine_at(rate, rule), PAIR)
    # a cut that stops too early
    rule = join(*is_task("add"), '"size" >= 2')
    assert np.array_equal(refine_at(rate, rule), PAIR)


def test_a_rule_is_tightened_to_a_set_of_values() -> None:
    truth = HARD & np.isin(TASK, ["add", "map", "find"])
    rate = np.where(truth, 0.9, 0.1)
    assert np.array_equal(refine_at(rate, join('"hard"')), truth)


@pytest.mark.parametrize(
    "rule",
    [
        join(*is_task("add"), '"size" >= 4'),
        join(*is_task("add"), '"size" >= 3', '"hard"'),
        join(*is_task("add"), '"size" BETWEEN 3 AND 5'),
    ],
    ids=["a cut one step off", "a condition too many", "a range that ends early"],
)
def test_a_rule_that_stops_short_is_widened(rule: ModeRule) -> None:
    assert np.array_equal(refine_at(np.where(PAIR, 0.9, 0.1), rule), PAIR)


def test_a_set_takes_in_the_value_that_it_lacks() -> None:
    truth = HARD & np.isin(TASK, ["add", "map", "find"])
    rate = np.where(truth, 0.9, 0.1)
    assert np.array_equal(refine_at(rate, join('"hard"', is_task("add", "map"))), truth)
    # and a value becomes a set
    two = HARD & np.isin(TASK, ["add", "map"])
    assert np.array_equal(refine_at(np.where(two, 0.9, 0.1), join('"hard"', *is_task("add"))), two)


@pytest.mark.parametrize(
    ("rule", "on"),
    [
        (join(*is_task("add")), TASK == "add"),
        (join(*is_task("add"), '"size" >= 3'), PAIR),
        (join('"hard"', is_task("add", "map")), HARD & np.isin(TASK, ["add", "map"])),
    ],
)
@pytest.mark.parametrize("inside", [0.5, 1.0])
def test_even_parts_are_left_alone(rule: ModeRule, on: Bools, inside: float) -> None:
    assert np.array_equal(refine_at(np.where(on, inside, 0.1), rule), on)


def test_parts_that_differ_a_little_are_of_one_kind() -> None:
    rate = np.where(TASK == "add", np.where(HARD, 0.95, 0.8), 0.1)
    assert np.array_equal(refine_at(rate, join(*is_task("add"))), TASK == "add")


def test_what_a_listed_mode_covers_widens_nothing() -> None:
    # the units that the rule could take in fail because of another mode
    rate = np.where(PAIR | (SIZE >= 5), 0.9, 0.1)
    rule = join(*is_task("add"), '"size" BETWEEN 3 AND 4')
    on = PAIR & (SIZE <= 4)
    wider = refine_at(rate, rule)
    assert not np.array_equal(wider, on)
    assert np.array_equal(refine_at(rate, rule, SIZE >= 5), on)


def test_no_rule_is_widened_beyond_half_of_the_units() -> None:
    rate = np.where(SIZE >= 2, 0.8, 0.1)
    assert refine_at(rate, join('"size" >= 5')).sum() <= N / 2


def test_a_value_that_fails_as_much_without_the_condition_is_no_part_of_a_set() -> None:
    hole = HARD & np.isin(TASK, ["add", "map"])
    rate = np.where(hole, 0.95, np.where(TASK == "sort", 0.9, 0.1))
    inside = refine_at(rate, join('"hard"', is_task("add", "map", "sort")))
    assert (inside == hole).all()
