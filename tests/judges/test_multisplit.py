"""Multi-split e-values: selected by e-BH, and fair under the null."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from groundfault import Plan, judges
from groundfault.core.units import Marks, Units
from groundfault.judges.multisplit import (
    SplitEvidence,
    _compute_split_e_values,
    _weigh,
    make_find_level,
)
from groundfault.stats import bits, multiple
from groundfault_lab.testing import World

HYPOTHESES = np.arange(10)


def test_the_planted_candidate_survives(planted: Units, plan: Plan) -> None:
    judge = judges.get("multisplit-e")
    screening = judge.screen(planted, HYPOTHESES, plan, np.random.default_rng(0))
    assert screening.survives[0]
    again = judge.screen(planted, HYPOTHESES, replace(plan), np.random.default_rng(0))
    assert again.p_adjusted == pytest.approx(screening.p_adjusted)


def test_null_e_values_sum_to_their_number_at_most(planted: Units) -> None:
    """Compound e-values: over random losses their sum has a mean of at most the number of them."""
    rng, sums = np.random.default_rng(1), []
    for _ in range(150):
        losses = (rng.random(300) < 0.3).astype(np.float64)
        units = Units.of(planted.marks, losses[None])
        half = np.zeros(300, dtype=np.bool_)
        half[rng.permutation(300)[:150]] = True
        sums.append(
            _compute_split_e_values(
                units.select_units(half), units.select_units(~half), HYPOTHESES
            ).sum()
        )
    assert np.mean(sums) <= 10 + 4 * np.std(sums) / np.sqrt(len(sums))
    assert multiple.e_benjamini_hochberg(np.full(10, 10.0), 0.1).all()


def test_over_all_orders_of_the_holdout_e_values_sum_to_their_number_exactly() -> None:
    """Each order is as likely as any other under the null, so this mean is the expectation."""
    on = np.array([[1, 1, 1, 1, 0, 0, 0, 0], [1, 0, 1, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0, 1, 0]])
    marks = Marks(8, bits.pack(on.astype(np.bool_)), None, ("",) * 3)
    discovery = Units.of(marks, np.array([[1.0, 1, 1, 1, 0, 0, 0, 0]]))
    sums = []
    for failures in combinations(range(8), 3):
        losses = np.isin(np.arange(8), failures).astype(np.float64)
        e = _compute_split_e_values(discovery, Units.of(marks, losses[None]), np.arange(3))
        sums.append(e.sum())
    assert np.mean(sums) == pytest.approx(3)


def test_a_smaller_p_on_discovery_weighs_more_and_a_large_one_nothing() -> None:
    assert _weigh(np.array([0.01, 0.04, 0.2, 0.25])).tolist() == pytest.approx(
        [10, 5, 0.2**-0.5, 0]
    )


def weigh(p: np.ndarray) -> np.ndarray:
    return np.where(p <= 0.2, np.maximum(p, 1e-300) ** -0.5, 0.0)


def make_evidence(size: int = 20, errors: int = 60) -> SplitEvidence:
    rivals = np.full(4, 0.9 * size)
    rng = np.random.default_rng(0)
    return SplitEvidence(200, errors, size, 30, rivals, weigh, np.log((2.0, 5.0)), rng)


def test_a_larger_library_asks_for_a_smaller_p() -> None:
    levels = [make_evidence(size).find_level(60, 0.1) for size in (5, 50, 500)]
    assert levels == sorted(levels, reverse=True)
    assert 0 < levels[2] < levels[0] < 0.01


def test_where_no_count_is_enough_no_level_is() -> None:
    assert make_evidence(errors=2).find_level(60, 0.1) == 0.0


def test_others_beside_it_make_it_easier_and_answers_stay_the_same() -> None:
    find_level = make_find_level(make_evidence(), 0.1)
    assert find_level(60, 3) > find_level(60, 0)
    assert find_level(60, 0) == find_level(61, 0)


def test_the_judge_confirms_where_its_bar_says_so() -> None:
    """A planted slice well above the level is confirmed, and one well below it is not."""
    judge = judges.get("multisplit-e")
    plan = Plan(judge="multisplit-e", splits=20).resolve(lift_ranked=False, gated=False)
    units = World(units=300, candidates=12).draw(np.random.default_rng(0))
    bar = judge.find_bar(units, np.arange(12), plan, np.random.default_rng(0))
    assert bar.level is not None
    level = bar.level(90, 0)
    assert 1e-7 < level < 1e-2


def test_half_of_a_slice_is_seen_on_discovery() -> None:
    """Where all 60 failures are on a slice of 60, discovery's p is what weighing is called with."""
    seen = []

    def note(p: np.ndarray) -> np.ndarray:
        seen.append(p)
        return weigh(p)

    rng = np.random.default_rng(0)
    evidence = SplitEvidence(200, 60, 5, 30, np.full(4, 1.0), note, np.log((2.0, 5.0)), rng)
    assert evidence._average(60, 60) > 1e3
    # of 100 units on discovery some 30 fail, and all of these are on the slice
    assert np.median(seen[0]) < 1e-20
    assert evidence._average(60, 18) < 2
