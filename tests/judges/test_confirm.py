"""Confirmation: which part of the rule a survivor fails, and the p-values it rests on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from groundfault import Plan, Verdict
from groundfault.core.units import Marks, Units
from groundfault.judges.confirm import (
    compute_p_values,
    confirm,
    has_support,
    is_at_most,
    is_big_enough,
    keeps_sign_within_strata,
)
from groundfault.judges.max_t import MaxT
from groundfault.judges.rule import rule
from groundfault.stats import bits
from groundfault.testing import World

PLAN = Plan(min_lift=0.1, alpha=0.1).resolve(lift_ranked=True, gated=True)


def draw_units(units: int = 200) -> Units:
    return World(units=units, candidates=6).draw(np.random.default_rng(0))


def test_each_failure_is_named() -> None:
    units = draw_units()
    hypotheses = np.arange(6)
    tables = units.tables[hypotheses]
    survives = np.array([True] * 5 + [False])
    result = confirm(
        units, hypotheses, survives, -tables.sign, PLAN, exact_p=True, rng=np.random.default_rng(0)
    )
    assert set(result.failure[:5]) == {"sign"}
    assert result.failure[5] == ""
    assert not result.passes.any()
    assert np.isnan(result.p_adjusted[5])
    result = confirm(
        units, hypotheses, survives, tables.sign, PLAN, exact_p=True, rng=np.random.default_rng(0)
    )
    enough = is_big_enough(tables, PLAN)
    for i in range(5):
        significant = result.p_adjusted[i] <= 0.1
        expected = "p" if not significant else "" if enough[i] else "min_effect"
        assert result.failure[i] == expected


def test_a_small_effect_beyond_chance_is_too_small_and_not_a_failure_to_replicate() -> None:
    """20,000 units, a lift of 0.06: p is tiny, and 0.1 was asked for."""
    on = np.arange(20_000) % 2 == 0
    rate = np.where(on, 0.33, 0.27)
    losses = (np.random.default_rng(0).random(20_000) < rate).astype(float)
    marks = Marks(20_000, bits.pack(on[None]), None, ("",))
    units, ones = Units.of(marks, losses[None]), np.ones(1, dtype=np.int64)
    for exact_p in (True, False):
        result = confirm(
            units,
            np.arange(1),
            np.ones(1, bool),
            ones,
            PLAN,
            exact_p=exact_p,
            rng=np.random.default_rng(0),
        )
        assert result.failure == ("min_effect",)
        assert result.too_small.tolist() == [True]
        assert not result.passes.any()
    half = units.take(np.arange(300))
    result = confirm(
        half,
        np.arange(1),
        np.ones(1, bool),
        half.tables.sign,
        PLAN,
        exact_p=False,
        rng=np.random.default_rng(0),
    )
    assert result.failure == ("min_effect",)
    assert result.p[0] > 0.1
    assert not result.too_small.any()


def test_a_lift_of_nothing_has_no_sign_to_repeat() -> None:
    """No lift on discovery and none on the holdout is no replication, however little is asked."""
    on = np.arange(40) % 2 == 0
    marks = Marks(40, bits.pack(on[None]), None, ("",))
    units = Units.of(marks, (np.arange(40) < 10).astype(float)[None])
    assert units.tables.sign.tolist() == [0]
    nothing = np.zeros(1, dtype=np.int64)
    plan = replace(PLAN, min_lift=0)
    rng = np.random.default_rng(0)
    result = confirm(units, np.arange(1), np.ones(1, bool), nothing, plan, exact_p=False, rng=rng)
    assert result.failure == ("sign",)
    assert not result.passes.any()


@pytest.mark.parametrize("direction", [None, 1, -1])
def test_sampled_p_are_near_those_that_are_counted(direction: int | None) -> None:
    units, hypotheses = draw_units(), np.arange(6)
    # one stratum of all units: the same law, but drawn
    stratum = Units.of(units.marks, units.losses.astype(float), np.zeros(200, dtype=np.int64))
    ways = None if direction is None else np.full(6, direction)
    plan = replace(PLAN, permutations=4000)
    p, sample = (
        compute_p_values(one, hypotheses, plan, np.random.default_rng(1), direction=ways)
        for one in (units, stratum)
    )
    assert sample == pytest.approx(p, abs=4 * 0.5 / np.sqrt(4000))


@pytest.mark.parametrize("direction", [None, np.array([1])])
def test_a_sampled_p_counts_the_data_among_the_draws(direction: np.ndarray | None) -> None:
    """No draw of 199 puts all 50 failures on the slice again, and still p is not 0."""
    strata = np.arange(200) % 2
    on = np.arange(200) < 50
    marks = Marks(200, bits.pack(on[None]), None, ("",))
    units = Units.of(marks, on[None].astype(float), strata)
    plan = replace(PLAN, permutations=199)
    rng = np.random.default_rng(0)
    p = compute_p_values(units, np.arange(1), plan, rng, direction=direction)
    assert p.tolist() == [1 / 200]


def test_p_values_of_both_sides_are_at_least_those_of_one() -> None:
    units, hypotheses, rng = draw_units(), np.arange(6), np.random.default_rng(0)
    direction = units.tables[hypotheses].sign
    one = compute_p_values(units, hypotheses, PLAN, rng, direction=direction)
    both = compute_p_values(units, hypotheses, PLAN, rng)
    assert (one <= both + 1e-12).all()


def test_a_level_is_met_but_for_rounding() -> None:
    assert is_at_most(np.array([0.1 * (1 + 1e-15), 0.1001]), 0.1).tolist() == [True, False]


@pytest.mark.parametrize("effect", ["risk_ratio", "odds_ratio"])
def test_ratios_count_in_both_directions(effect: str) -> None:
    tables = draw_units().tables[np.arange(6)]
    plan = replace(PLAN, effect=effect, min_ratio=1.2)
    ratio = tables.ratio(effect)
    assert (is_big_enough(tables, plan) == (np.abs(np.log(ratio)) >= np.log(1.2))).all()


def test_support_is_asked_for_on_both_sides() -> None:
    tables = draw_units().tables[np.arange(6)]
    plan = replace(PLAN, hold_min_on=int(tables.on.max()) + 1)
    assert not has_support(tables, plan).any()
    assert has_support(tables, replace(PLAN, hold_min_on=1, hold_min_off=1)).all()
    least = {"hold_min_on": int(tables.on.min()), "hold_min_off": int(tables.off.min())}
    assert has_support(tables, replace(PLAN, **least)).all()


def test_a_direction_that_turns_within_strata_is_noticed() -> None:
    """Simpson's paradox: on the slice errors are rarer in each stratum, more frequent overall."""
    strata = np.repeat([0, 1], 100)
    on = np.concatenate([np.arange(100) < 20, np.arange(100) < 80])
    # 0: 0 of 20 on, 16 of 80 off; 1: 48 of 80 on, 16 of 20 off
    errors = np.concatenate([np.arange(100) >= 84, (np.arange(100) < 48) | (np.arange(100) >= 84)])
    marks = Marks(200, bits.pack(np.stack([on, ~on])), None, ("", ""))
    units = Units.of(marks, errors[None].astype(float), strata)
    assert units.tables.sign.tolist() == [1, -1]
    assert not keeps_sign_within_strata(units, np.arange(2)).any()
    alone = Units.of(marks, errors[None].astype(float), np.zeros(200, dtype=np.int64))
    assert keeps_sign_within_strata(alone, np.arange(2)).all()
    verdicts = rule(MaxT(), PLAN, units, None, marks).verdicts
    assert verdicts == (Verdict.BELOW_FLOOR,) * 2
    assert rule(MaxT(), PLAN, alone, None, marks).verdicts == (Verdict.CONFIRMED,) * 2


def test_each_candidate_is_held_against_its_own_size() -> None:
    """All 16 units of the third fail; beside what is expected of 40 units that were few."""
    few = np.arange(200) % 100 < 20
    some = np.stack([few, ~few, np.arange(200) >= 184])
    errors = np.arange(200) >= 120
    marks = Marks(200, bits.pack(some), None, ("",) * 3)
    units = Units.of(marks, errors[None].astype(float), np.repeat([0, 1], 100))
    assert units.tables.sign.tolist() == [-1, 1, 1]
    assert keeps_sign_within_strata(units, np.arange(3)).tolist() == [True, True, True]


def test_of_several_outcomes_each_hypothesis_is_held_against_its_own_candidate() -> None:
    """Two candidates turn within strata and the third does not, of either outcome."""
    strata = np.repeat([0, 1], 100)
    on = np.concatenate([np.arange(100) < 20, np.arange(100) < 80])
    errors = np.concatenate([np.arange(100) >= 84, (np.arange(100) < 48) | (np.arange(100) >= 84)])
    last = np.tile(np.arange(100) >= 90, 2)
    marks = Marks(200, bits.pack(np.stack([on, ~on, last])), None, ("",) * 3)
    units = Units.of(marks, np.stack([errors, errors]).astype(float), strata)
    assert keeps_sign_within_strata(units, np.arange(6)).tolist() == [False] * 4 + [True] * 2
