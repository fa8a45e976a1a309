"""Starts of mixtures are responsibilities, block by block, and the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from groundfault.stats import mixture_init


def test_component_numbers_become_responsibilities() -> None:
    start = np.array([0, 2, 1])
    assert np.concatenate([*mixture_init.from_array(start, 3)]).argmax(axis=1).tolist() == [0, 2, 1]
    shares = np.full((3, 2), 0.5)
    assert (np.concatenate([*mixture_init.from_array(shares, 2)]) == shares).all()


def test_noise_is_normalised_and_frozen() -> None:
    first = np.concatenate([*mixture_init.from_noise(600, 4, seed=3)])
    assert first.shape == (600, 4)
    assert first.sum(axis=1) == pytest.approx(np.ones(600))
    # the legacy stream, so that starts of the reference implementations can be drawn again
    noise = np.random.RandomState(3).rand(4)
    assert first[0] == pytest.approx(noise / noise.sum())


def test_cells_of_the_confusion_matrix() -> None:
    label, probability = np.array([0, 1]), np.array([[0.9, 0.1], [0.2, 0.8]])
    start = np.concatenate([*mixture_init.from_confusion_cells(label, probability, 4, seed=0)])
    assert start.sum(axis=1) == pytest.approx(np.ones(2))
    assert start == pytest.approx(np.array([[0.9, 0.1, 0, 0], [0, 0, 0.2, 0.8]]), abs=0.01)


def test_clusters_are_those_of_separate_clouds() -> None:
    points = np.repeat([[0.0, 0.0], [9.0, 9.0]], 20, axis=0)
    labels = mixture_init.find_clusters(points + np.linspace(0, 1, 40)[:, None], 2, seed=0)
    assert len(set(labels[:20])) == len(set(labels[20:])) == 1
    assert labels[0] != labels[-1]
