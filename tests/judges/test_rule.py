"""The rule as a whole: a verdict for each hypothesis, and duplicates share theirs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from groundfault import Plan, judges
from groundfault.core.finding import Verdict
from groundfault.core.judge import Screening
from groundfault.core.units import Marks, Units
from groundfault.errors import InternalError
from groundfault.judges.rule import find_duplicates, find_obstacles, rule
from groundfault.stats import bits

PLAN = Plan(min_on=5, min_off=5, permutations=99, splits=4).resolve(lift_ranked=False, gated=False)


def make_marks(*rows: np.ndarray) -> Marks:
    matrix = np.array(rows, dtype=np.bool_)
    return Marks(matrix.shape[1], bits.pack(matrix), None, ("",) * len(matrix))


def draw_rows(size: int = 100) -> np.ndarray:
    return np.random.default_rng(0).random((3, size)) < 0.4


def test_copies_and_complements_are_duplicates() -> None:
    a, b, _ = draw_rows()
    assert find_duplicates(make_marks(a, b, a, ~b, ~a)).tolist() == [0, 1, 0, 1, 0]


def test_too_few_units_on_a_side_are_an_obstacle() -> None:
    a, *_ = draw_rows()
    few = np.arange(100) < 3
    marks = make_marks(a, few, ~few)
    units = Units.of(marks, np.zeros((1, 100)))
    obstacles = find_obstacles(PLAN, units, marks)
    assert obstacles[0] == ()
    assert "min_on" in obstacles[1]
    assert "min_off" in obstacles[2]


def test_as_many_units_as_asked_for_are_enough() -> None:
    marks = make_marks(*(np.arange(100) < count for count in (4, 5, 95, 96)))
    units = Units.of(marks, np.zeros((1, 100)))
    obstacles = find_obstacles(replace(PLAN, min_on_total=5), units, marks)
    assert obstacles == [("min_on", "min_on_total"), (), (), ("min_off",)]


def test_a_prevalence_at_either_bound_is_inside() -> None:
    counts = (9, 10, 50, 51)
    marks = make_marks(*(np.arange(100) < count for count in counts))
    units = Units.of(marks, np.zeros((1, 100)))
    obstacles = find_obstacles(replace(PLAN, prevalence=(0.1, 0.5)), units, marks)
    assert obstacles == [("prevalence",), (), (), ("prevalence",)]


@pytest.mark.parametrize("name", ["holm", "bh", "by", "max-t"])
def test_every_hypothesis_gets_a_verdict_and_duplicates_the_same(name: str) -> None:
    a, b, _ = draw_rows()
    few = np.arange(100) < 3
    marks = make_marks(a, b, ~a, few)
    units = Units.of(marks, (a | (np.arange(100) % 5 == 0)).astype(float)[None])
    judge = judges.get(name)
    ruling = rule(judge, PLAN, units, None, marks)
    assert ruling.verdicts[0] == ruling.verdicts[2] == Verdict.CONFIRMED
    assert ruling.verdicts[3] == Verdict.UNTESTABLE
    assert ruling.hypotheses.tolist() == [0, 1]
    assert ruling.representatives.tolist()[:3] == [0, 1, 0]
    assert ruling.positions() == {0: 0, 1: 1, 2: 0}


@pytest.mark.parametrize("field", ["p", "p_adjusted", "decoys"])
@pytest.mark.parametrize("confirmation", ["none", "exact"])
def test_an_answer_that_is_no_number_stops_the_audit(field: str, confirmation: str) -> None:
    """NaN is below no level, so that it would read as a null: "not beyond chance"."""

    class Broken:
        name, lift_ranked, distinct = "broken", False, True

        def screen(self, units, hypotheses, plan, rng):
            values = np.where(np.arange(len(hypotheses)) == 1, np.nan, 0.01)
            return Screening(np.ones(len(hypotheses), dtype=bool), **{field: values})

    judge = Broken()
    judge.confirmation = confirmation
    marks = make_marks(*draw_rows())
    units = Units.of(marks, (np.arange(100) % 3 == 0).astype(float)[None])
    holdout = None if confirmation == "none" else units
    with pytest.raises(InternalError, match=f"'broken' gave 1 answers .*NaN in {field}"):
        rule(judge, PLAN, units, holdout, marks)


@pytest.mark.parametrize("name", ["holm", "bh", "max-t", "multisplit-e", "split-holm", "janus-a"])
def test_an_effect_beyond_chance_and_smaller_than_asked_for_has_a_verdict_of_its_own(
    name: str,
) -> None:
    """The lift is 0.15 in 4,000 units, and the plan asks for 0.2."""
    on = np.arange(4000) % 4 < 2
    other = np.random.default_rng(1).random(4000) < 0.5
    losses = (np.random.default_rng(0).random(4000) < np.where(on, 0.5, 0.35)).astype(float)[None]
    marks = make_marks(on, other)
    judge = judges.get(name)
    plan = replace(PLAN, min_lift="0.2")
    if judge.confirmation == "none":
        ruling = rule(judge, plan, Units.of(marks, losses), None, marks)
    else:
        # on discovery it is larger, and passes the screen
        parts = [np.flatnonzero(np.arange(4000) % 8 < 4), np.flatnonzero(np.arange(4000) % 8 >= 4)]
        louder = losses.copy()
        louder[:, parts[0]] = np.where(on[parts[0]], 1.0, 0.0)
        units = [Units.of(marks.take(part), louder[:, part]) for part in parts]
        ruling = rule(judge, plan, *units, marks)
    assert ruling.verdicts == (Verdict.TOO_SMALL, Verdict.BELOW_FLOOR)
    assert ruling.reasons == (("min_effect",), ())


def test_where_nothing_can_be_tested_each_hypothesis_says_why() -> None:
    few = np.arange(100) < 3
    marks = make_marks(few, ~few)
    units = Units.of(marks, few.astype(float)[None])
    ruling = rule(judges.get("holm"), PLAN, units, None, marks)
    assert ruling.verdicts == (Verdict.UNTESTABLE,) * 2
    assert all(ruling.reasons)


def test_within_strata_noise_of_one_direction_is_not_confirmed() -> None:
    a, b, _ = draw_rows()
    units = Units.of(make_marks(a, b), np.tile([0.0, 1.0], 50)[None], np.repeat([0, 1], 50))
    ruling = rule(judges.get("holm"), PLAN, units, None, units.marks)
    assert Verdict.CONFIRMED not in ruling.verdicts
