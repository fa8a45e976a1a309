"""Graded losses: equal means are alike whatever the variances, and a real difference is found."""

from __future__ import annotations

import numpy as np
import pytest

from groundfault import Plan
from groundfault.judges.confirm import compute_p_values
from groundfault.judges.graded import compute_graded_p_values
from groundfault.stats import permutation
from groundfault.testing import World
from groundfault.testing.worlds import PlantedEffect

PLAN = Plan(permutations=199).resolve(lift_ranked=False, gated=False)


def draw_p_values(world: World, replicates: int = 100) -> np.ndarray:
    p = []
    for seed in range(replicates):
        rng = np.random.default_rng(seed)
        p.append(compute_p_values(world.draw(rng), np.arange(1), PLAN, rng)[0])
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
    assert permutation.has_two_values(np.array([[0, 3, 0, 3]]))
    assert not permutation.has_two_values(np.array([[0, 1, 2]]))
    world = World(units=300, candidates=1, losses="spread")
    low = 0
    for seed in range(100):
        units = world.draw(np.random.default_rng(seed))
        p = permutation.max_t(units.marks.on, units.losses, 99, rng)
        low += p[0, 0] <= 0.1
    assert low <= 19
