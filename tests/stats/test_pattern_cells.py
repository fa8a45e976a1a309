"""Permutations by cells: the same law as permutations of rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from groundfault.stats import bits, permutation
from groundfault.stats.pattern_cells import deal_errors, max_t


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
    by_rows = permutation.max_t(
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
