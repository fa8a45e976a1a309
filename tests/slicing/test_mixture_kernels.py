"""Expectation-maximisation against scikit-learn's diagonal mixtures."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from groundfault_lab.stats import mixture


def draw_points(rows: int = 1200) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(rows, 3)) + 4 * (np.arange(rows) % 2)[:, None]


def fit(points: np.ndarray, jobs: int = 1) -> mixture.MixtureFit:
    start = (
        np.eye(2)[np.arange(rows.start, rows.stop) % 2] for rows in mixture.blocks(len(points))
    )
    return mixture.em(points, np.ones(3), start, tolerance=1e-9, jobs=jobs)


def test_exponents_of_one_give_the_ordinary_mixture() -> None:
    points = draw_points()
    ours = fit(points)
    oracle = GaussianMixture(2, covariance_type="diag", tol=1e-9, random_state=0).fit(points)
    assert ours.history[-1] == pytest.approx(oracle.score(points), abs=1e-4)
    assert np.sort(ours.mixture.mean, axis=0) == pytest.approx(
        np.sort(oracle.means_, axis=0), abs=1e-3
    )
    assert ours.converged
    assert (ours.labels == np.arange(len(points)) % 2).mean() > 0.99


def test_threads_change_no_bit() -> None:
    points = draw_points()
    assert (fit(points).mixture.mean == fit(points, jobs=2).mixture.mean).all()


def test_responsibilities_sum_to_one_and_leave_the_likelihood() -> None:
    joint = np.log(np.array([[0.1, 0.3], [0.2, 0.2]]))
    likelihood = mixture.responsibilities(joint)
    assert np.exp(likelihood) == pytest.approx([0.4, 0.4])
    assert joint == pytest.approx(np.array([[0.25, 0.75], [0.5, 0.5]]))


def test_blocks_cover_all_rows_once() -> None:
    rows = [i for block in mixture.blocks(1300, 7) for i in range(block.start, block.stop)]
    assert rows == list(range(7, 1300))


def test_component_numbers_become_responsibilities() -> None:
    start = np.array([0, 2, 1])
    assert np.concatenate([*mixture.from_array(start, 3)]).argmax(axis=1).tolist() == [0, 2, 1]
    shares = np.full((3, 2), 0.5)
    assert (np.concatenate([*mixture.from_array(shares, 2)]) == shares).all()


def test_noise_is_normalised_and_frozen() -> None:
    first = np.concatenate([*mixture.from_noise(600, 4, seed=3)])
    assert first.shape == (600, 4)
    assert first.sum(axis=1) == pytest.approx(np.ones(600))
    # the legacy stream, so that starts of the reference implementations can be drawn again
    noise = np.random.RandomState(3).rand(4)
    assert first[0] == pytest.approx(noise / noise.sum())


def test_cells_of_the_confusion_matrix() -> None:
    label, probability = np.array([0, 1]), np.array([[0.9, 0.1], [0.2, 0.8]])
    start = np.concatenate([*mixture.from_confusion_cells(label, probability, 4, seed=0)])
    assert start.sum(axis=1) == pytest.approx(np.ones(2))
    assert start == pytest.approx(np.array([[0.9, 0.1, 0, 0], [0, 0, 0.2, 0.8]]), abs=0.01)


def test_clusters_are_those_of_separate_clouds() -> None:
    points = np.repeat([[0.0, 0.0], [9.0, 9.0]], 20, axis=0)
    labels = mixture.find_clusters(points + np.linspace(0, 1, 40)[:, None], 2, seed=0)
    assert len(set(labels[:20])) == len(set(labels[20:])) == 1
    assert labels[0] != labels[-1]
