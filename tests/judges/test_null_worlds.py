"""No judge confirms what is not so more often than it promises, and each finds what is there.

A subset of the contract that `groundfault calibrate` measures in full, with fewer permutations and
splits. Three Monte Carlo standard errors above a level of 0.10 are 0.26 with the 30 replicates of
the fast suite, and 0.19 with the 100 of every night."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groundfault import Plan, judges
from groundfault.testing import World, calibrate, check_judge

QUICK = Plan(permutations=199, splits=10)
REPLICATES = [30, pytest.param(100, marks=pytest.mark.slow)]


@pytest.mark.parametrize("replicates", REPLICATES)
@pytest.mark.parametrize("name", judges.NAMES)
def test_judge_keeps_its_promise(name, replicates):
    card = check_judge(name, plan=QUICK, replicates=replicates)
    assert {row.replicates for row in card.rows} == {replicates}
    assert card.rows[-1].power >= 0.9
    if name == "janus-lite":
        assert card.promise.rate == "none"
        assert max(row.error(card.promise.rate) for row in card.rows if row.null) > 0.2, (
            "worse than any that promise"
        )


@pytest.mark.parametrize("name", ["janus", "split-holm", "holm", "max-t"])
def test_rows_of_one_item_taken_for_units_break_the_promise(name):
    grouped = World(units=60, variants=5, icc=0.4)
    card = calibrate(name, QUICK, worlds=[grouped, replace(grouped, rowwise=True)], replicates=60)
    right, wrong = card.rows
    assert (right.units, wrong.units) == (60, 300)
    assert right.erred / 60 <= 0.1
    assert wrong.erred / 60 >= 0.2
    assert not card.passed
    assert "rows taken for units" in card.failures[0]


@pytest.mark.parametrize("replicates", REPLICATES)
@pytest.mark.parametrize("name", ["janus", "janus-a", "holm", "max-t"])
def test_groups_of_uneven_size_keep_the_promise(name, replicates):
    world = World(units=300, candidates=12, variants=50, icc=0.1, uneven=0.15, rate=0.2)
    assert calibrate(name, QUICK, worlds=[world], replicates=replicates).passed


@pytest.mark.parametrize("replicates", REPLICATES)
@pytest.mark.parametrize("name", ["janus", "split-holm", "holm", "max-t"])
def test_graded_losses_that_only_vary_more_are_no_effect(name, replicates):
    world = World(units=300, candidates=2, losses="spread")
    assert calibrate(name, QUICK, worlds=[world], replicates=replicates).passed


@pytest.mark.parametrize("replicates", REPLICATES)
@pytest.mark.parametrize("name", ["janus", "split-holm", "holm", "max-t"])
def test_small_groups_within_a_size_class_are_no_effect(name, replicates):
    world = World(units=300, candidates=4, variants=15, fewest=8, uneven=0.2, rate=0.2)
    assert calibrate(name, QUICK, worlds=[world], replicates=replicates).passed
