"""Confirmation: which part of the rule a survivor fails, and the p-values it rests on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from groundfault import Candidate, Evidence, Plan, Verdict, audit, judges
from groundfault.core.units import Marks, Units
from groundfault.judges.max_t import MaxT
from groundfault.judges.rule import (
    compute_graded_p_values,
    compute_p_values,
    confirm,
    find_gaps_by_outcome,
    has_support,
    is_at_most,
    is_big_enough,
    keeps_sign_within_strata,
    rule,
)
from groundfault.stats import bits, multiple
from groundfault_lab.testing import World, calibrate
from groundfault_lab.testing.worlds import PlantedEffect

PLAN = Plan(min_lift=0.1, alpha=0.1).resolve(lift_ranked=True, gated=True)
PLAN_graded = Plan(permutations=199).resolve(lift_ranked=False, gated=False)
PLAN_gaps = Plan(min_lift=0.1, permutations=199).resolve(lift_ranked=False, gated=True)


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
    assert not has_support(tables.on, tables.off, plan).any()
    assert has_support(tables.on, tables.off, replace(PLAN, hold_min_on=1, hold_min_off=1)).all()
    least = {"hold_min_on": int(tables.on.min()), "hold_min_off": int(tables.off.min())}
    assert has_support(tables.on, tables.off, replace(PLAN, **least)).all()


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


def draw_p_values(world: World, replicates: int = 100) -> np.ndarray:
    p = []
    for seed in range(replicates):
        rng = np.random.default_rng(seed)
        p.append(compute_p_values(world.draw(rng), np.arange(1), PLAN_graded, rng)[0])
    return np.array(p)


def test_a_slice_that_varies_more_has_no_smaller_p() -> None:
    """Of the plain lift nearly half are at most .10, which three standard errors rule out."""
    p = draw_p_values(World(units=300, candidates=1, losses="spread"))
    assert (p <= 0.1).mean() <= 0.19


def test_small_groups_of_a_size_class_have_no_smaller_p() -> None:
    world = World(units=300, candidates=1, variants=15, fewest=8, uneven=0.2, rate=0.2)
    assert (draw_p_values(world, 60) <= 0.1).mean() <= 0.21


def test_a_difference_of_means_has_a_small_p() -> None:
    world = World(units=300, candidates=1, losses="grid", effects=(PlantedEffect(0, 0.15, 0.3),))
    assert (draw_p_values(world, 40) <= 0.1).mean() >= 0.9


@pytest.mark.parametrize("strata", [None, np.arange(120) % 2])
def test_one_side_is_counted_in_its_direction(strata: np.ndarray | None) -> None:
    units = World(
        units=120, candidates=3, losses="grid", effects=(PlantedEffect(0, 0.4, 0.4),)
    ).draw(np.random.default_rng(0))
    units = type(units)(units.marks, units.losses, units.scored, units.denominator, strata)
    up, down = (
        compute_graded_p_values(
            units, np.arange(3), 199, np.random.default_rng(1), np.full(3, side)
        )
        for side in (1, -1)
    )
    assert up[0] == 1 / 200
    assert down[0] > 0.9
    both = compute_graded_p_values(units, np.arange(3), 199, np.random.default_rng(1))
    assert both[0] == 1 / 200
    assert (up + down >= 1).all()


def test_permutations_of_a_slice_within_strata_and_by_order_agree() -> None:
    """One stratum for all is no stratum: two ways to draw the same distribution."""
    rng = np.random.default_rng(5)
    units = World(units=80, candidates=2, losses="real").draw(rng)
    one, many = (
        compute_graded_p_values(
            type(units)(units.marks, units.losses, None, 0, strata), np.arange(2), 4000, rng
        )
        for strata in (None, np.zeros(80, dtype=np.int64))
    )
    assert one == pytest.approx(many, abs=0.04)


def test_max_t_studentises_only_what_is_graded() -> None:
    rng = np.random.default_rng(6)
    assert multiple.has_two_values(np.array([[0, 3, 0, 3]]))
    assert not multiple.has_two_values(np.array([[0, 1, 2]]))
    world = World(units=300, candidates=1, losses="spread")
    low = 0
    for seed in range(100):
        units = world.draw(np.random.default_rng(seed))
        p = multiple.max_t(units.marks.on, units.losses, 99, rng)
        low += p[0, 0] <= 0.1
    assert low <= 19


def make_units(empty: np.ndarray, losses: np.ndarray, on: np.ndarray | None = None) -> Units:
    n = len(losses)
    on = np.arange(n) % 2 == 0 if on is None else on
    marks = Marks(n, bits.pack((on & ~empty)[None]), None, ("",), bits.pack(empty[None]))
    return Units.of(marks, losses[None].astype(float))


@pytest.mark.parametrize("name", ["janus", "split-holm", "holm", "max-t"])
@pytest.mark.parametrize("lost", [0.1, 0.3])
def test_values_lost_by_failing_confirm_nothing(name: str, lost: float) -> None:
    """Nothing is related to the losses but the gaps: without the test, up to 1.00 of audits."""
    world = World(units=300, candidates=10, lost=lost)
    assert calibrate(name, PLAN_gaps, worlds=[world], replicates=30).passed


def test_gaps_are_tested_in_each_part_and_for_each_outcome() -> None:
    rng = np.random.default_rng(0)
    losses, empty = (rng.random(400) < 0.4), rng.random(400) < 0.2
    harmless = make_units(empty, losses)
    harmful = make_units(losses & (rng.random(400) < 0.5), losses)
    for parts, answer in (
        ([harmless], False),
        ([harmful], True),
        ([harmless, harmless], False),
        ([harmful, harmless], True),
        ([harmless, harmful], True),
        ([replace(harmful, marks=replace(harmful.marks, empty=None))], False),
    ):
        assert find_gaps_by_outcome(parts, PLAN_gaps, rng).tolist() == [answer]
    two = replace(harmful, losses=np.stack([harmful.losses[0], rng.permutation(losses)]))
    assert find_gaps_by_outcome([two], PLAN_gaps, rng)[0]


def test_only_the_copy_with_gaps_is_refused() -> None:
    """A flag that is off wherever the value is missing is another rule, and has no gaps."""
    rng = np.random.default_rng(1)
    losses = rng.random(400) < 0.4
    empty = losses & (rng.random(400) < 0.5)
    on = ~empty & (rng.random(400) < 0.8)
    packed = bits.pack(np.stack([on, on]))
    nowhere = np.zeros_like(empty)
    marks = Marks(400, packed, None, ("", ""), bits.pack(np.stack([empty, nowhere])))
    units = Units.of(marks, losses[None].astype(float))
    plan = replace(PLAN_gaps, min_lift=0)
    ruling = rule(judges.get("holm"), plan, units, None, marks)
    assert ruling.verdicts == (Verdict.UNTESTABLE, Verdict.CONFIRMED)
    assert ruling.reasons == (("missing_by_outcome",), ())


@pytest.mark.parametrize("missing", ["drop", "off"])
def test_the_finding_says_it(missing: str) -> None:
    rng = np.random.default_rng(2)
    failed = rng.random(600) < 0.4
    tool = rng.random(600) < 0.5
    lost = failed & (rng.random(600) < np.where(tool, 0.6, 0.1))
    values = [None if gone else bool(used) for gone, used in zip(lost, tool, strict=True)]
    table = pl.DataFrame({"error": failed.astype(int), "tool": values})
    evidence = Evidence.from_table(table, outcome="error")
    candidates = [Candidate("tool", "tool", missing=missing)]
    (finding,) = audit(evidence, Plan(judge="max-t"), candidates, modes=False).findings
    assert finding.verdict is Verdict.UNTESTABLE
    assert finding.reason.startswith("missing_by_outcome: whether it has a value goes with the")
