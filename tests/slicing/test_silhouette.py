"""Silhouettes equal scikit-learn's; shuffles keep columns and labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.metrics import silhouette_score

from groundfault_lab.stats.silhouette import (
    _deal_bits,
    _deal_floats,
    _shuffle_bits,
    _shuffle_floats,
    combine,
    shuffle_silhouettes,
    silhouette,
)


def binary(n: int, m: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    values = (rng.random((n, m)) < rng.uniform(0.1, 0.8, m)).astype(np.float64)
    return values, rng.integers(-1, 4, n)


@settings(max_examples=15)
@given(st.integers(0, 2**31), st.integers(8, 300), st.integers(1, 6))
def test_silhouette_is_scikit_learns(seed: int, n: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    points, labels = rng.normal(size=(n, d)), rng.integers(-1, 4, n)
    labels[:4] = [0, 0, 1, 1]
    inside = labels >= 0
    assert silhouette(points, labels) == pytest.approx(
        silhouette_score(points[inside], labels[inside]), abs=1e-9
    )


def test_equal_points_are_at_no_distance() -> None:
    points = np.repeat(np.random.default_rng(0).normal(size=(2, 5)) * 1e3, 10, axis=0)
    assert silhouette(points, np.repeat([0, 1], 10)) == pytest.approx(1.0, abs=1e-12)


def test_one_cluster_is_none() -> None:
    points = np.random.default_rng(0).normal(size=(9, 2))
    assert silhouette(points, np.zeros(9, dtype=np.int64)) == -1
    assert silhouette(points, np.full(9, -1)) == -1


def test_shuffled_bits_are_the_silhouettes_of_shuffles() -> None:
    """Each draw, dealt again from its seed, has the silhouette that the plain path gives it."""
    values, labels = binary(157, 18)
    order = np.argsort(labels, kind="stable")
    order = order[labels[order] >= 0]
    place = np.full(len(labels), -1)
    place[order] = np.arange(len(order))
    starts = np.r_[0, np.flatnonzero(np.diff(labels[order])) + 1, len(order)]
    columns, seeds = np.ascontiguousarray(values.T == 1), np.arange(5, dtype=np.uint64)
    silhouettes = _shuffle_bits(columns, place, starts, seeds)
    for seed, value in zip(seeds, silhouettes, strict=True):
        words = _deal_bits(columns, place, len(order), seed)
        rows = (words[:, None] >> np.arange(18, dtype=np.uint32) & 1).astype(np.float64)
        assert silhouette(combine(rows), labels[order]) == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("m", [4, 18])
@pytest.mark.parametrize("n", [150, 159, 160])
def test_shuffled_floats_are_the_silhouettes_of_shuffles(n: int, m: int) -> None:
    """Holes filled with column means, with and without what examples say, which stays with its
    row.
    """
    values, labels = binary(n, m)
    rng = np.random.default_rng(1)
    filled = np.where(rng.random(values.shape) < 0.5, values.mean(axis=0), values)
    order = np.argsort(labels, kind="stable")
    order = order[labels[order] >= 0]
    starts = np.r_[0, np.flatnonzero(np.diff(labels[order])) + 1, len(order)]
    fixed = combine(rng.normal(size=(n, 3)))[order]
    apart = ((fixed[:, None] - fixed) ** 2).sum(axis=2) * 0.3**2
    columns, seeds = np.ascontiguousarray(filled.T, dtype=np.float32), np.arange(3, dtype=np.uint64)
    for share, still in ((1.0, np.zeros((1, len(order)))), (0.7, apart)):
        wide = np.pad(still, ((0, 0), (0, 8 - len(order) % 8))).astype(np.float32)
        silhouettes = _shuffle_floats(columns, share, wide, order, starts, seeds)
        for seed, value in zip(seeds, silhouettes, strict=True):
            rows = _deal_floats(columns, share, order, seed)[:m, : len(order)].T.astype(np.float64)
            np.testing.assert_allclose(
                np.sqrt((rows**2).sum(axis=1))[rows.any(axis=1)], share, rtol=1e-6
            )
            points = rows if share == 1.0 else np.hstack([rows, 0.3 * fixed])
            assert silhouette(points, labels[order]) == pytest.approx(value, abs=1e-6)


def test_dealt_floats_keep_columns_and_are_uniform() -> None:
    columns = np.array([[3.0, 4.0, 0, 0, 0, 0], [4.0, 4.0, 4.0, 4.0, 4.0, 4.0]], dtype=np.float32)
    counts = np.zeros(6)
    for seed in range(3000):
        slope = np.divide(*_deal_floats(columns, 1.0, np.arange(6), np.uint64(seed))[:2, :6])
        assert sorted(slope.round(5).tolist()) == [0, 0, 0, 0, 0.75, 1.0]
        counts += slope > 0
    np.testing.assert_allclose(counts / 3000, 1 / 3, atol=0.04)


def test_dealing_keeps_columns_and_is_uniform() -> None:
    columns = np.zeros((2, 6), dtype=np.bool_)
    columns[0, :2], columns[1, :5] = True, True
    place = np.arange(6)
    counts = np.zeros((2, 6))
    for seed in range(3000):
        words = _deal_bits(columns, place, 6, np.uint64(seed))
        bits = words[None] >> np.arange(2, dtype=np.uint32)[:, None] & 1
        assert bits.sum(axis=1).tolist() == [2, 5]
        counts += bits
    np.testing.assert_allclose(counts / 3000, [[1 / 3] * 6, [5 / 6] * 6], atol=0.04)


def test_both_paths_draw_from_one_distribution() -> None:
    values, labels = binary(150, 12)
    rng = np.random.default_rng(0)
    bits = shuffle_silhouettes(values, labels, 400, rng)
    floats = shuffle_silhouettes(
        np.hstack([values, np.full((150, 1), 1e-9)]), labels, 400, rng
    )  # no longer zeros and ones
    assert abs(bits.mean() - floats.mean()) < 4 * floats.std() / np.sqrt(200)
    assert bits.std() == pytest.approx(floats.std(), rel=0.25)


def test_what_examples_say_stays_where_it_is() -> None:
    values, labels = binary(120, 6)
    fixed = combine(np.random.default_rng(1).normal(size=(120, 3)))
    all_fixed = shuffle_silhouettes(
        values, labels, 3, np.random.default_rng(0), side_values=fixed, weight=1.0
    )
    np.testing.assert_allclose(all_fixed, silhouette(fixed, labels), atol=1e-9)
