"""Losses as counts: sums, permutations and studentised lifts are those of the units."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from groundfault.stats import bits, permutation
from groundfault.stats.loss_counts import LossCounts, deal_losses


def make_both() -> tuple[NDArray[np.bool_], NDArray[np.float64], LossCounts]:
    """Two descriptors of 60 units with losses of 0, a third, two thirds and 1."""
    rng = np.random.default_rng(0)
    losses = rng.integers(0, 4, 60) / 3
    on = np.stack([rng.random(60) < 0.2 + 0.4 * losses, rng.random(60) < 0.4])
    levels = np.arange(4) / 3
    units = np.array([(losses == level).sum() for level in levels])
    counts = np.stack([(on & (losses == level)).sum(axis=1) for level in levels])
    return on, losses, LossCounts(levels, units, np.repeat(units[:, None], 2, axis=1), counts)


def test_sums_are_those_of_the_units() -> None:
    on, losses, counts = make_both()
    assert counts.denominator == 3
    np.testing.assert_array_equal(counts.tables.on_sum, [round(3 * losses[x].sum()) for x in on])
    np.testing.assert_array_equal(counts.tables.total, round(3 * losses.sum()))
    np.testing.assert_array_equal(counts.tables.n, 60)
    np.testing.assert_allclose(counts.squares()[0], [(losses[x] ** 2).sum() for x in on])
    np.testing.assert_allclose(counts.squares()[1], (losses**2).sum())
    assert counts.describe() == pytest.approx((losses.mean(), losses.var()))


def test_losses_without_a_grid_are_summed_as_they_are() -> None:
    losses = np.array([0.0, 0.1234567, 0.71828])
    counts = LossCounts(
        losses, np.array([5, 4, 3]), np.array([[5], [4], [3]]), np.ones((3, 1), int)
    )
    assert counts.denominator == 0
    assert counts.tables.on_sum == pytest.approx([losses.sum()])


def test_studentised_lifts_are_those_of_permuted_units() -> None:
    on, losses, counts = make_both()
    residuals = losses - losses.mean()
    here = list(
        permutation.redraw_robust_lifts(bits.pack(on), residuals, 4000, np.random.default_rng(1))
    )
    for place in range(2):
        there = list(counts.redraw_robust_lifts(place, 4000, np.random.default_rng(2)))
        assert there[0][0, 0] == pytest.approx(here[0][0, place])
        ours, theirs = (np.concatenate(x[1:]) for x in (there, here))
        levels = [0.1, 0.5, 0.9, 0.97]
        ours_at, theirs_at = (np.quantile(x, levels) for x in (ours, theirs[:, place]))
        np.testing.assert_allclose(ours_at, theirs_at, atol=0.12)


def test_what_is_dealt_adds_up_and_is_hypergeometric() -> None:
    units = np.array([[30], [0], [10]])
    dealt = deal_losses(units, np.full(5000, 20), np.random.default_rng(0))
    assert (dealt.sum(axis=0) == 20).all()
    assert (dealt <= units).all()
    assert dealt[2].mean() == pytest.approx(5, abs=0.1)
    assert dealt[2].var() == pytest.approx(20 * 0.25 * 0.75 * 20 / 39, rel=0.1)
    assert (deal_losses(units, np.zeros(2, dtype=np.int64), np.random.default_rng(0)) == 0).all()


def test_a_null_world_keeps_all_margins() -> None:
    counts = make_both()[2]
    world = counts.shuffle(np.random.default_rng(0))
    np.testing.assert_array_equal(world.on.sum(axis=0), counts.on.sum(axis=0))
    assert (world.on <= counts.defined).all()
