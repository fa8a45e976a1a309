"""Studentised lifts beside the formula unit by unit, with gaps, strata and many descriptors."""

from __future__ import annotations

import numpy as np
import pytest

from groundfault.stats import bits, robust_lifts
from groundfault.stats.robust_lifts import RobustLifts, centre_losses


def compute_by_hand(
    on: np.ndarray, losses: np.ndarray, strata: np.ndarray, defined: np.ndarray
) -> float:
    """Mantel-Haenszel like excess over its sandwich standard error, without matrices."""
    excess, variance = 0.0, 0.0
    for stratum in np.unique(strata):
        members = (strata == stratum) & defined
        share = on[members].mean()
        residuals = losses[members] - losses[strata == stratum].mean()
        excess += ((on[members] - share) * residuals).sum()
        variance += ((on[members] - share) ** 2 * residuals**2).sum()
    return excess / np.sqrt(variance)


@pytest.mark.parametrize("strata", [None, np.arange(60) % 3])
def test_a_lift_is_an_excess_over_its_sandwich_standard_error(strata: np.ndarray | None) -> None:
    rng = np.random.default_rng(0)
    on, losses = rng.random((5, 60)) < 0.4, rng.random(60)
    lifts = RobustLifts(bits.pack(on), 60, strata=strata)
    statistics = lifts(centre_losses(losses[None], strata=strata))[0]
    home = np.zeros(60) if strata is None else strata
    everywhere = np.ones(60, dtype=bool)
    expected = [compute_by_hand(row, losses, home, everywhere) for row in on]
    assert statistics == pytest.approx(expected)


def test_a_slice_is_measured_against_the_mean_of_the_units_where_it_is_defined() -> None:
    rng = np.random.default_rng(1)
    on, defined = rng.random((4, 80)) < 0.5, rng.random((4, 80)) < 0.6
    losses, has_loss = rng.random(80) + defined[0], rng.random(80) < 0.7
    losses = np.where(has_loss, losses, 0)
    lifts = RobustLifts(bits.pack(on & defined), 80, bits.pack(defined))
    residuals = centre_losses(losses[None], has_loss[None])
    statistics = lifts(residuals, has_loss[None].astype(float))[0]
    for row, where, statistic in zip(on & defined, defined, statistics, strict=True):
        members, part = where & has_loss, row - row[where].mean()
        gaps = losses - losses[members].mean()
        expected = (part * gaps)[members].sum() / np.sqrt(
            (part * gaps)[members] @ (part * gaps)[members]
        )
        assert statistic == pytest.approx(expected)


def test_no_variance_is_no_difference_and_chunks_change_nothing(monkeypatch) -> None:
    rng = np.random.default_rng(2)
    on, losses = bits.pack(rng.random((7, 50)) < 0.3), rng.random((3, 50))
    assert (RobustLifts(on, 50)(np.zeros((1, 50))) == 0).all()
    whole = RobustLifts(on, 50)(centre_losses(losses))
    monkeypatch.setattr(robust_lifts, "_CELLS", 100)
    parts = RobustLifts(on, 50)(centre_losses(losses))
    assert whole.shape == (3, 7)
    np.testing.assert_allclose(parts, whole)


def test_centred_losses_sum_to_nothing_in_every_stratum() -> None:
    rng = np.random.default_rng(3)
    losses, has_loss, strata = rng.random((2, 40)), rng.random((2, 40)) < 0.8, np.arange(40) % 4
    residuals = centre_losses(losses, has_loss, strata)
    assert (residuals[~has_loss] == 0).all()
    for row in residuals:
        assert np.bincount(strata, weights=row) == pytest.approx(np.zeros(4), abs=1e-12)
