"""Structured decoys: nothing confounded is confirmed within strata, and copies cost nothing."""

from __future__ import annotations

import pytest

from groundfault_studies.janus_structured import (
    LARGE,
    SMALL,
    compare_decoys,
    draw_confounded,
    draw_correlated,
)


def test_what_a_confounder_explains_is_confirmed_by_single_decoys_alone() -> None:
    worlds = [draw_confounded(seed, 0.0) for seed in range(4)]
    assert all(any(world.count("janus-a", within=False, holdout=True)) for world in worlds)
    assert sum(any(world.count("janus-a", within=True, holdout=True)) for world in worlds) <= 1


def test_what_holds_within_strata_is_confirmed_by_decoys_within_them() -> None:
    worlds = [draw_confounded(seed, LARGE) for seed in range(4)]
    assert sum(world.count("janus-a", within=True, holdout=True)[1] for world in worlds) >= 3


def test_decoys_that_are_permuted_together_know_that_copies_are_alike() -> None:
    planted = [draw_correlated(seed, SMALL) for seed in range(8)]
    joint, single = (
        sum(world.count(judge, within=False, holdout=False)[1] for world in planted)
        for judge in ("max-t", "holm")
    )
    assert joint >= single
    nulls = [draw_correlated(seed, 0.0) for seed in range(8)]
    assert sum(any(world.count("max-t", within=False, holdout=False)) for world in nulls) <= 3


@pytest.mark.slow
def test_levels_and_power_of_structured_decoys() -> None:
    """At a level of .10, with three standard errors of 100 worlds."""
    confounded, planted, correlated, weak = (
        row.here for row in compare_decoys(100, lambda message: None).rows
    )
    assert confounded["paper"] > 0.9
    assert confounded["ours"] <= 0.19
    assert planted["ours"] > 0.7
    assert correlated["ours"] <= 0.19
    assert weak["ours"] > weak["paper"]
