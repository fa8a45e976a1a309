"""Max-T against all permutations of a small table; redrawn sums keep margins and strata."""

from __future__ import annotations

import numpy as np
import pytest

from groundfault.stats import bits, multiple
from groundfault.stats.contingency import ContingencyTables
from groundfault.stats.null_distributions import from_errors


def test_p_of_one_descriptor_is_near_the_exact_one() -> None:
    rng = np.random.default_rng(0)
    on, losses = np.arange(40) < 15, (rng.random(40) < 0.4).astype(np.int64)
    p = multiple.max_t(bits.pack(on[None]), losses[None], 4000, rng)[0, 0]
    table = [np.array([v]) for v in (40, 15, losses.sum(), losses[on].sum())]
    null = from_errors(ContingencyTables(*table), pooled=False)
    exact = null.two_sided(np.array([0]), np.array([float(losses[on].sum())]))[0]
    assert p == pytest.approx(exact, abs=0.04)


def test_the_data_count_among_the_permutations() -> None:
    """No permutation of 99 puts all failures on the slice again, and still p is not 0."""
    on = np.arange(100) < 40
    rng = np.random.default_rng(0)
    p = multiple.max_t(bits.pack(on[None]), on[None].astype(np.int64), 99, rng)
    assert p.tolist() == [[1 / 100]]


def test_adjusted_p_rise_with_the_family_and_pairs_may_be_left_out() -> None:
    rng = np.random.default_rng(1)
    packed = bits.pack(rng.random((6, 50)) < 0.4)
    losses = rng.integers(0, 2, (2, 50))
    everything = multiple.max_t(packed, losses, 300, np.random.default_rng(2))
    one = np.zeros((6, 2), dtype=bool)
    one[3, 1] = True
    alone = multiple.max_t(packed, losses, 300, np.random.default_rng(2), hypotheses=one)
    assert alone[3, 1] <= everything[3, 1]
    assert everything.min() >= 1 / 301


def test_a_permutation_within_blocks_leaves_what_blocks_explain() -> None:
    strata = np.repeat([0, 1], 20)
    packed = bits.pack((strata == 1)[None])
    losses = (strata == 1).astype(np.int64)
    rng = np.random.default_rng(3)
    sums = np.concatenate([*multiple.redraw_sums(packed, losses, 50, rng, strata)])
    assert (sums == 20).all()
    means = multiple.compute_stratum_means(losses, strata)
    assert (means == strata).all()


def test_redrawn_sums_have_the_mean_of_sampling_without_replacement() -> None:
    rng = np.random.default_rng(4)
    values, packed = rng.random(30), bits.pack(np.arange(30)[None] < 12)
    sums = np.concatenate([*multiple.redraw_sums(packed, values, 4000, rng)])
    deviation = values.std() * np.sqrt(12 * 18 / 29)
    assert sums.mean() == pytest.approx(12 * values.mean(), abs=4 * deviation / np.sqrt(4000))
    assert sums.std() == pytest.approx(deviation, rel=0.05)


def test_gaps_and_outcomes_move_together() -> None:
    """A unit without a loss of one model keeps the gap, and the loss of the other, in any order."""
    rng = np.random.default_rng(3)
    packed = bits.pack(rng.random((4, 60)) < 0.4)
    scored = rng.random((2, 60)) < 0.7
    losses = np.where(scored, rng.integers(0, 2, (2, 60)), 0)
    whole = multiple.max_t(packed, losses, 200, np.random.default_rng(1), has_loss=scored)
    graded = multiple.max_t(
        packed, losses.astype(float), 200, np.random.default_rng(1), has_loss=scored
    )
    large = multiple.max_t(packed, 300 * losses, 200, np.random.default_rng(1), has_loss=scored)
    np.testing.assert_array_equal(whole, graded)
    np.testing.assert_array_equal(whole, large)
