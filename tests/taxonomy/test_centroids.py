"""Nearest centroids, and points left without one."""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import NearestCentroid

from groundfault_lab.taxonomy import centroids


def test_the_nearest_centroid_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    points, labels = rng.normal(size=(60, 3)), np.arange(60) % 4
    oracle = NearestCentroid().fit(points, labels)
    assert (centroids.find_nearest(points, oracle.centroids_) == oracle.predict(points)).all()


def test_points_between_two_centroids_have_none() -> None:
    places = np.array([[0.0], [1.0]])
    labels = centroids.find_nearest(np.array([[0.1], [0.5], [0.9]]), places, 0.1, 0.9)
    assert labels.tolist() == [0, -1, 1]


def test_coordinates_are_scaled_and_clusters_keep_their_numbers() -> None:
    arrays = {
        "centroid": np.eye(2),
        "number": np.array([7.0, 3.0]),
        "spread": np.zeros(1),
        "level": np.zeros(1),
    }
    labels = centroids.label_coordinates(arrays, np.array([[90.0, 1.0], [0.1, 5.0]]))
    assert labels.tolist() == [7, 3]


def test_holes_in_answers_are_filled() -> None:
    arrays = {
        "centroid": np.eye(2),
        "number": np.array([0.0, 1.0]),
        "spread": np.zeros(1),
        "level": np.zeros(1),
        "axes": np.eye(2),
        "fill": np.array([0.9, 0.1]),
        "origin": np.zeros(2),
    }
    labels = centroids.label_answers(arrays, np.array([[-1.0, -1.0], [0.0, 1.0]]))
    assert labels.tolist() == [0, 1]
