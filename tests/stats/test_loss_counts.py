"""Losses as counts: sums, permutations and studentised lifts are those of the units."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from groundfault.stats import bits, multiple
from groundfault.stats.contingency import centre_losses
from groundfault.stats.loss_counts import LossCounts, deal_errors, deal_losses, max_t


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
        multiple.redraw_robust_lifts(bits.pack(on), residuals, 4000, np.random.default_rng(1))
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


def make_strata() -> tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.int64], LossCounts]:
    """The same units in two strata, the second failing less and oftener on the slices."""
    on, losses, _ = make_both()
    strata = (np.arange(60) % 3 == 0).astype(np.int64)
    losses, on = np.where(strata, losses / 3, losses), on | (strata[None] & (np.arange(60) % 2)) > 0
    kinds = sorted(set(zip(strata.tolist(), losses.tolist(), strict=True)))
    masks = [(strata == stratum) & (losses == loss) for stratum, loss in kinds]
    units = np.array([mask.sum() for mask in masks])
    counts = np.stack([(on & mask).sum(axis=1) for mask in masks])
    defined = np.repeat(units[:, None], 2, axis=1)
    values, home = np.array([loss for _, loss in kinds]), np.array([s for s, _ in kinds])
    return on, losses, strata, LossCounts(values, units, defined, counts, home)


def test_permutations_within_strata_are_those_of_the_units() -> None:
    on, losses, strata, counts = make_strata()
    packed, rng = bits.pack(on), np.random.default_rng(1)
    residuals = centre_losses(losses[None], strata=strata)[0]
    here = list(multiple.redraw_robust_lifts(packed, residuals, 4000, rng, strata))
    whole = np.rint(losses * counts.denominator).astype(np.int64)
    expected = np.where(on, multiple.compute_stratum_means(whole, strata), 0).sum(axis=1)
    assert counts.expect_sums() == pytest.approx(expected)
    sums = np.concatenate(list(multiple.redraw_sums(packed, whole, 4000, rng, strata)))
    levels = [0.1, 0.5, 0.9, 0.97]
    for place in range(2):
        there = list(counts.redraw_robust_lifts(place, 4000, np.random.default_rng(2)))
        assert there[0][0, 0] == pytest.approx(here[0][0, place])
        ours, theirs = (np.concatenate(x[1:]) for x in (there, here))
        ours_at, theirs_at = (np.quantile(x, levels) for x in (ours, theirs[:, place]))
        np.testing.assert_allclose(ours_at, theirs_at, atol=0.12)
        dealt = np.concatenate(list(counts.redraw_sums(place, 4000, np.random.default_rng(3))))
        assert dealt.mean() == pytest.approx(expected[place], rel=0.02)
        assert dealt.std() == pytest.approx(sums[:, place].std(), rel=0.06)


def test_a_null_world_keeps_the_margins_of_strata() -> None:
    *_, counts = make_strata()
    world = counts.shuffle(np.random.default_rng(0))
    assert counts.strata is not None
    for stratum in (0, 1):
        part = counts.strata == stratum
        np.testing.assert_array_equal(world.on[part].sum(axis=0), counts.on[part].sum(axis=0))


def make_rows(gaps: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(6)
    on = rng.random((5, 240)) < 0.4
    on[3] = on[0] ^ (rng.random(240) < 0.1)
    loss = (rng.random(240) < 0.2 + 0.2 * on[0]).astype(np.int64)
    defined = np.ones_like(on)
    if gaps:
        defined[2] = rng.random(240) < 0.8
    return on & defined, defined, loss


def fold(on: np.ndarray, defined: np.ndarray, loss: np.ndarray) -> tuple[np.ndarray, ...]:
    """The cells of rows."""
    patterns, cell = np.unique(np.vstack([on, defined]), axis=1, return_inverse=True)
    sizes = np.bincount(cell.reshape(-1))
    errors = np.bincount(cell.reshape(-1), weights=loss).astype(np.int64)
    return patterns[: len(on)], patterns[len(on) :], sizes.astype(np.int64), errors


@pytest.mark.parametrize("gaps", [False, True])
def test_adjusted_p_values_are_those_of_permuted_rows(gaps: bool) -> None:
    on, defined, loss = make_rows(gaps)
    by_cells = max_t(*fold(on, defined, loss), 4000, np.random.default_rng(1))
    by_rows = multiple.max_t(
        bits.pack(on), loss[None], 4000, np.random.default_rng(2), valid=bits.pack(defined)
    )[:, 0]
    # the difference of two shares of 4,000 draws, at four deviations
    slack = 4 * np.sqrt(2 * np.maximum(by_rows * (1 - by_rows), 0.002) / 4000)
    assert (np.abs(by_cells - by_rows) <= slack).all()
    assert by_rows.min() < 0.3
    assert by_rows.max() > 0.5


def test_dealt_failures_keep_their_number_and_are_hypergeometric() -> None:
    sizes = np.array([5, 50, 0, 45], dtype=np.int64)
    dealt = np.concatenate(list(deal_errors(sizes, 30, 3000, np.random.default_rng(0))))
    assert dealt.shape == (3000, 4)
    assert (dealt.sum(axis=1) == 30).all()
    assert (dealt <= sizes).all()
    expected = stats.hypergeom(100, 50, 30).pmf(np.arange(31)) * 3000
    observed = np.bincount(dealt[:, 1], minlength=31)
    common = expected > 10
    assert (
        stats.chisquare(
            observed[common], expected[common] * observed[common].sum() / expected[common].sum()
        ).pvalue
        > 1e-4
    )


def test_what_cannot_vary_is_no_effect() -> None:
    on = np.array([[True, True], [True, False]])
    defined = np.ones_like(on)
    p = max_t(on, defined, np.array([4, 4]), np.array([4, 0]), 99, np.random.default_rng(0))
    assert p[0] == 1.0
    assert p[1] < 0.2


def test_the_data_count_among_the_draws() -> None:
    """No draw of 99 puts all 50 failures into one cell of 50 again, and still p is not 0."""
    on, defined = np.array([[True, False]]), np.ones((1, 2), dtype=np.bool_)
    p = max_t(on, defined, np.array([50, 50]), np.array([50, 0]), 99, np.random.default_rng(0))
    assert p.tolist() == [1 / 100]
