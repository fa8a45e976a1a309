"""Null worlds: the same candidates and losses, with nothing between them."""

from __future__ import annotations

import numpy as np
import pytest

from groundfault.core.pairs import Pairs
from groundfault.core.units import Marks, Units
from groundfault.judges.rule import draw_null_worlds, standardise
from groundfault.stats import bits
from groundfault_lab.testing import World

ALL = np.arange(6)


def draw(units: Units) -> list[Units]:
    return list(draw_null_worlds(units, ALL, np.random.default_rng(0)))


def test_losses_move_and_margins_stay() -> None:
    units = World(units=200, candidates=6, outcomes=2, icc=0.6).draw(np.random.default_rng(0))
    worlds = draw(units)
    assert 16 <= len(worlds) <= 120
    for world in worlds[:3]:
        assert not np.array_equal(world.losses, units.losses)
        assert np.array_equal(world.losses.sum(axis=1), units.losses.sum(axis=1))
        # both outcomes of a unit move together
        same = np.corrcoef(world.losses)[0, 1]
        assert same == pytest.approx(np.corrcoef(units.losses)[0, 1])


def test_units_stay_in_their_stratum() -> None:
    strata = np.arange(100) % 2
    losses = strata[None].astype(float)
    on = np.random.default_rng(0).random((6, 100)) < 0.4
    units = Units.of(Marks(100, bits.pack(on), None, ("",) * 6), losses, strata)
    assert all(np.array_equal(world.losses, units.losses) for world in draw(units)[:3])


def test_pairs_swap_their_models() -> None:
    on = np.random.default_rng(0).random((6, 100)) < 0.4
    marks = Marks(100, bits.pack(on), None, ("",) * 6)
    losses = (np.random.default_rng(1).random((2, 100)) < [[0.2], [0.6]]).astype(float)
    pairs = Pairs.of_models(marks, losses)
    for world in draw(pairs)[:3]:
        assert isinstance(world, Pairs)
        assert np.array_equal(np.abs(world.changes), np.abs(pairs.changes))
    sums = [world.changes.sum() for world in draw(pairs)]
    assert abs(np.mean(sums)) < abs(pairs.changes.sum()) / 2


@pytest.mark.parametrize("losses", ["errors", "grid", "real"])
def test_standardised_lifts_vary_by_one(losses: str) -> None:
    units = World(units=300, candidates=6, losses=losses).draw(np.random.default_rng(0))
    sizes = np.array([standardise(world, ALL) for world in draw(units)])
    assert np.sqrt((sizes**2).mean()) == pytest.approx(1.0, abs=0.15)
