"""Confirming with a grader's help: no more false claims, whatever the grades, and fewer labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from groundfault import Candidate, Evidence, InputError, Plan, PlanError
from groundfault.sequential import SequentialConfirmation
from groundfault.sequential.slice_tests import GradedSlice, SliceTests, read_grades

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
ALPHA = 0.1


def confirm(
    losses: Floats, on: Bools, grades: Floats | None, seed: int, budget: int = 150
) -> tuple[Bools, int]:
    """Which slices are confirmed with so many labels, and after how many the first was."""
    rng = np.random.default_rng(seed)
    tests = SliceTests.begin(on, np.ones(len(on), dtype=int), grades=grades, level=ALPHA)
    first = budget + 1
    for step in range(1, budget + 1):
        if tests.confirmed.all():
            break
        free = ~tests.labelled if grades is None else tests.find_units()
        unit = int(rng.choice(np.flatnonzero(free)))
        tests = tests.update(unit, float(losses[unit]), free)
        first = min(first, step) if tests.confirmed.any() else first
    return tests.confirmed, first


def draw(rates: list[float], accuracy: float, seed: int) -> tuple[Floats, Bools, Floats]:
    """Slices that overlap, one for each failure rate; 20 % fail elsewhere."""
    rng = np.random.default_rng([seed, 5])
    on = rng.random((len(rates), 400)) < 0.15
    chance = np.full(400, 0.2)
    for slice_, rate in zip(on, rates, strict=True):
        chance = np.where(slice_, np.maximum(rate, chance), chance)
    losses = (rng.random(400) < chance).astype(float)
    return losses, on, np.where(rng.random(400) < accuracy, losses, 1.0 - losses)


def count_false(replicates: int) -> int:
    """A grader who nearly always calls the first slice wrong, where nothing differs."""
    count = 0
    for seed in range(replicates):
        losses, on, grades = draw([0.2, 0.2], 0.9, seed)
        biased = np.where(on[0] & (np.random.default_rng(seed).random(400) < 0.8), 1.0, grades)
        count += int(confirm(losses, on, biased, seed)[0].any())
    return count


def test_a_grader_who_is_wrong_about_a_slice_misleads_nobody() -> None:
    assert count_false(8) <= 3


@pytest.mark.slow
def test_a_grader_who_is_wrong_about_a_slice_misleads_nobody_in_many_worlds() -> None:
    assert count_false(600) <= 0.1 * 600 + 2.6 * np.sqrt(600 * 0.09)


def bet_on(tests: int) -> GradedSlice:
    """After 20 labels of each side."""
    losses, on, grades = draw([0.65], 0.93, 0)
    one = GradedSlice.begin(grades, on[0], ALPHA, tests)
    for unit in (*np.flatnonzero(on[0])[:20], *np.flatnonzero(~on[0])[:20]):
        one = one.update(losses[unit], grades[unit], high=bool(on[0, unit]))
    return one


def test_half_of_the_level_is_for_the_bets_and_half_for_the_test_of_all_labels() -> None:
    _, on, grades = draw([0.65], 0.93, 0)
    assert GradedSlice.begin(grades, on[0], ALPHA, 1).log_e == -np.log(2)
    one, three = bet_on(1), bet_on(3)
    assert one.log_e == pytest.approx(float(one.bets.log_e[0]) - np.log(2))
    # beside others a test of all labels is stricter: more has to be shown by the same labels
    assert three.log_e < one.log_e


def test_a_good_grader_saves_labels() -> None:
    with_grades, without = [], []
    for seed in range(6):
        losses, on, grades = draw([0.65], 0.93, seed)
        with_grades.append(confirm(losses, on, grades, seed)[1])
        without.append(confirm(losses, on, None, seed)[1])
    assert np.median(with_grades) < 0.7 * np.median(without)


def count_misses(replicates: int) -> int:
    """Intervals of either side, whose grader is wrong about the slice, that miss the rate."""
    misses = 0
    for seed in range(replicates):
        losses, on, grades = draw([0.5], 0.9, seed)
        biased = np.where(on[0] & (np.random.default_rng(seed).random(400) < 0.5), 0.0, grades)
        tests = SliceTests.begin(on, np.ones(1, dtype=int), grades=biased, level=ALPHA)
        rng = np.random.default_rng([seed, 1])
        for _ in range(50):
            free = tests.find_units()
            unit = int(rng.choice(np.flatnonzero(free)))
            tests = tests.update(unit, float(losses[unit]), free)
        (test,) = tests.tests
        assert isinstance(test, GradedSlice)
        for (low, high), side in zip(test.find_rates(ALPHA), (on[0], ~on[0]), strict=True):
            assert high - low < 0.75
            misses += not low <= losses[side].mean() <= high
    return misses


def test_intervals_of_rates_hold_whatever_the_grades() -> None:
    assert count_misses(4) <= 2


@pytest.mark.slow
def test_intervals_of_rates_hold_in_many_worlds() -> None:
    # each misses with a chance of at most .1, twice in each of 200 worlds
    assert count_misses(200) <= 0.1 * 400 + 2.6 * np.sqrt(400 * 0.09)


# ---------------------------------------------------------------------------------- --- the session


def make_world(*, good: bool = False) -> tuple[Evidence, dict[str, float]]:
    """Half the units lack outcomes; all have a grader's score, which is often right."""
    losses, on, grades = draw([0.8], 0.95, seed=3)
    held_out = np.arange(400) % 2 == 1
    scores = np.where(good, 1.0 - losses, losses)
    table = pl.DataFrame(
        {
            "id": [f"u{i}" for i in range(400)],
            "long": on[0],
            "part": np.where(held_out, "holdout", "discovery"),
            "result": pl.Series(scores).set(pl.Series(held_out), None),
            "grade": 1.0 - grades if good else grades,
        }
    )
    evidence = Evidence.from_table(
        table,
        outcome="result",
        id="id",
        split="part",
        null_outcome="missing",
        positive_is_good=good,
    )
    return evidence, {f"u{i}": 1.0 - float(x) for i, x in enumerate(losses)}


@pytest.mark.parametrize("good", [False, True])
def test_a_session_with_a_grader_needs_fewer_labels(good: bool, tmp_path: Path) -> None:
    evidence, truth = make_world(good=good)
    long = [Candidate.from_text("long: long")]
    plain = SequentialConfirmation(evidence, Plan(seed=1), long, ledger=False)
    graded = SequentialConfirmation(
        evidence, Plan(seed=1), long, grader="grade", ledger=tmp_path / "ledger.db"
    )
    assert graded.seal != plain.seal
    for audit in (plain, graded):
        assert audit.run(lambda query: truth[query.id]) == ("long",)
    assert graded.labelled < plain.labelled
    assert graded.result.grader == "grade"
    (survivor,) = graded.survivors
    assert survivor.lift == pytest.approx(0.6, abs=0.25)
    held_out = evidence.frame.filter(part="holdout")
    for (low, high), side in zip(graded.find_rates("long"), (True, False), strict=True):
        rate = np.mean([1.0 - truth[unit] for unit in held_out.filter(long=side)["id"]])
        assert 0 <= low <= rate <= high <= 1
        assert high - low < 0.9
    with pytest.raises(PlanError, match="a confirmation with a grader"):
        plain.find_rates("long")
    again = SequentialConfirmation(
        evidence, Plan(seed=1), long, grader="grade", ledger=tmp_path / "ledger.db"
    )
    assert again.result == graded.result


def test_who_labels_does_not_see_the_grade() -> None:
    evidence, _ = make_world()
    audit = SequentialConfirmation(
        evidence, Plan(seed=1), [Candidate.from_text("long: long")], grader="grade", ledger=False
    )
    query = audit.ask()
    assert query is not None
    assert "grade" not in query.case
    assert "long" in query.case


def test_grades_that_are_none_are_refused() -> None:
    evidence, _ = make_world()
    with pytest.raises(InputError, match="no column 'judge'"):
        read_grades(evidence, "judge")
    with pytest.raises(PlanError, match="no numbers"):
        read_grades(evidence, "part")
    long = [Candidate.from_text("long: long")]
    three = Evidence.from_table(
        evidence.frame.with_columns(grade=pl.lit(3)),
        outcome="result",
        id="id",
        split="part",
        null_outcome="missing",
    )
    with pytest.raises(PlanError, match="from 0 to 1"):
        SequentialConfirmation(three, Plan(seed=1), long, grader="grade", ledger=False)


def test_a_unit_without_a_grade_has_the_mean_of_the_others() -> None:
    table = pl.DataFrame({"id": ["a", "b", "c"], "error": [0, 1, 0], "grade": [0.0, 1.0, None]})
    evidence = Evidence.from_table(table, outcome="error", id="id")
    assert read_grades(evidence, "grade").tolist() == [0.0, 1.0, 0.5]
