"""Procedure A by hand, and the three corrections of sampled decoys."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from groundfault.stats import decoys

SCORES = np.array([0.5, 0.3, 0.3, 0.1])


def test_levels_count_scores_at_or_above() -> None:
    levels, counts = decoys.count_levels(SCORES)
    assert levels.tolist() == [0.5, 0.3, 0.1]
    assert counts.tolist() == [1, 3, 4]
    assert decoys.count_levels(np.array([0.5, 0.1, 0.1]))[1].tolist() == [1, 3]


def test_the_floor_is_the_smallest_score_with_few_enough_decoys() -> None:
    # expected decoys at or above 0.1, 0.3 and 0.5: proportions 0.5, 0.1 and 0.2
    floor = decoys.procedure_a(SCORES, np.array([2.0, 0.3, 0.2]), 0.1)
    assert (floor.threshold, floor.inclusive) == (0.3, True)
    assert floor.fdp == pytest.approx(0.1)
    assert floor.survives(SCORES).tolist() == [True, True, True, False]


def test_a_proportion_that_equals_q_but_for_rounding_is_low_enough() -> None:
    decoy = 0.1 + 0.2
    assert decoy / 3 > 0.1
    floor = decoys.procedure_a(SCORES, np.array([2.0, decoy, 0.2]), 0.1)
    assert floor.threshold == 0.3


def test_where_two_scores_are_low_enough_the_smaller_is_the_floor() -> None:
    # proportions 0.5, 0.3 and 0.1 of thresholds 0.1, 0.3 and 0.5; then 0.1, 0.3 and 0.1
    assert decoys.procedure_a(SCORES, np.array([2.0, 0.9, 0.1]), 0.1).threshold == 0.5
    assert decoys.procedure_a(SCORES, np.array([0.4, 0.9, 0.1]), 0.1).threshold == 0.1


def test_only_an_inclusive_floor_is_survived_by_its_equals() -> None:
    nothing = np.zeros(0)
    floor = decoys.Floor(0.3, None, False, nothing, nothing.astype(np.int64), nothing)
    assert floor.survives(SCORES).tolist() == [True, False, False, False]
    assert replace(floor, inclusive=True).survives(SCORES).tolist() == [True, True, True, False]


def test_the_curve_has_a_row_for_each_level() -> None:
    floor = decoys.procedure_a(SCORES, np.array([2.0, 0.3, 0.2]), 0.1)
    assert [tuple(row.values()) for row in floor.curve] == [
        (0.5, 1, 0.2, pytest.approx(0.2)),
        (0.3, 3, 0.3, pytest.approx(0.1)),
        (0.1, 4, 2.0, pytest.approx(0.5)),
    ]


def test_without_a_floor_nothing_survives() -> None:
    floor = decoys.procedure_a(SCORES, np.array([4.0, 3.0, 0.2]), 0.1)
    assert (floor.threshold, floor.inclusive) == (None, True)
    assert not floor.survives(SCORES).any()
    assert [row["real"] for row in floor.curve] == [1, 3, 4]


@pytest.mark.parametrize(
    ("correction", "counts"),
    [("none", [10, 4, 2, 0]), ("paper", [11, 5, 3, 1]), ("inside", [10, 5, 10 / 3, 5 / 3])],
)
def test_corrections_of_five_two_one_and_no_decoy(
    correction: decoys.Correction, counts: list[float]
) -> None:
    """Ten descriptors and five decoys: 10/5 * D, one more, and 10/6 * (1 + D)."""
    sample = np.array([0.4, 0.0, 0.3, 0.2, 0.1])
    thresholds = np.array([0.0, 0.3, 0.35, 0.5])
    assert decoys.scale_counts(sample, thresholds, 10, correction) == pytest.approx(counts)
