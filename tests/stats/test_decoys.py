"""Procedure A by hand, and the three corrections of sampled decoys."""

from __future__ import annotations

import numpy as np
import pytest

from groundfault.stats import decoys

SCORES = np.array([0.5, 0.3, 0.3, 0.1])


def test_levels_count_scores_at_or_above() -> None:
    levels, counts = decoys.count_levels(SCORES)
    assert levels.tolist() == [0.5, 0.3, 0.1]
    assert counts.tolist() == [1, 3, 4]


def test_the_floor_is_the_smallest_score_with_few_enough_decoys() -> None:
    # expected decoys at or above 0.1, 0.3 and 0.5: proportions 0.5, 0.1 and 0.2
    floor = decoys.procedure_a(SCORES, np.array([2.0, 0.3, 0.2]), 0.1)
    assert (floor.threshold, floor.inclusive) == (0.3, True)
    assert floor.fdp == pytest.approx(0.1)
    assert floor.survives(SCORES).tolist() == [True, True, True, False]


def test_without_a_floor_nothing_survives() -> None:
    floor = decoys.procedure_a(SCORES, np.array([4.0, 3.0, 1.0]), 0.1)
    assert floor.threshold is None
    assert not floor.survives(SCORES).any()
    assert [row["real"] for row in floor.curve] == [1, 3, 4]


@pytest.mark.parametrize(("correction", "count"), [("none", 4), ("paper", 5), ("inside", 5)])
def test_corrections_of_two_decoys_in_five(correction: decoys.Correction, count: float) -> None:
    """Ten descriptors: 10/5 * 2, one more, and 10/6 * (1 + 2)."""
    sample = np.array([0.0, 0.1, 0.2, 0.3, 0.4])
    assert decoys.scale_counts(sample, np.array([0.3]), 10, correction)[0] == pytest.approx(count)
