"""Nearest centroid as a rule that can be applied again, to coordinates or to answers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from groundfault_lab.stats import irt
from groundfault_lab.stats.silhouette import combine

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


def find_nearest(
    points: Floats, centroids: Floats, variance: float = 0.0, level: float = 0.0
) -> Labels:
    """Return the nearest centroid of each point; -1 where another is nearly as near.

    Parameters
    ----------
    points : float array, shape (n, d)
    centroids : float array, shape (k, d)
    variance : float
        Variance of points about their centroid, in each direction; 0 leaves no point without a
        centroid.
    level : float
        Least chance, in [0, 1), that a point belongs to its centroid rather than to another, all
        being equally frequent and normal about their centroid.
    """
    # |x - c|^2 by one matrix product: the difference of all pairs would need n * k * d numbers
    away = ((points**2).sum(axis=1)[:, None] - 2 * points @ centroids.T) + (centroids**2).sum(
        axis=1
    )
    label = away.argmin(axis=1)
    if variance > 0 and level > 0:
        # the nearest distance is taken off first: of large distances alone, every exponential would
        # be 0
        weight = np.exp(-(away - away.min(axis=1, keepdims=True)) / (2 * variance))
        label = np.where(1 / weight.sum(axis=1) >= level, label, -1)
    return np.asarray(label, dtype=np.int64)


def label_coordinates(arrays: Mapping[str, Floats], values: Floats) -> Labels:
    """Label rows of coordinates by their nearest centroid.

    Parameters
    ----------
    arrays : mapping of str to float64 array
        ``centroid`` (k, d), ``number`` (k,) of each centroid's cluster, ``spread`` and ``level``
        (1,).
    values : float array, shape (n, d)
        Scaled to unit length here, as they were when fitted.
    """
    return _number_clusters(arrays, combine(values))


def label_answers(arrays: Mapping[str, Floats], values: Floats) -> Labels:
    """Label rows of pass rates by their nearest centroid; -1 where a model was not tried.

    Parameters
    ----------
    arrays : mapping of str to float64 array
        As for `label_coordinates`, with ``axes`` (m, d), and either the ``ability`` (m,),
        ``centre`` (2,) and ``penalty`` (2,) of an item-response fit, whose standardised residuals
        are projected on the axes, or the ``fill`` (m,) of holes in passes scaled to unit length.
    values : float array, shape (n, m)
    """
    trials = (values >= 0).astype(np.int64)
    if "ability" not in arrays:
        points = combine(np.where(trials > 0, values, arrays["fill"]))
        return _number_clusters(arrays, (points - arrays["origin"]) @ arrays["axes"])
    passes = (values >= 0.5).astype(np.int64) * trials
    a, c = arrays["centre"].tolist()
    slope_sd, intercept_sd = arrays["penalty"].tolist()
    one = np.ones(0)
    like = irt.ItemResponse(
        one, one, arrays["ability"], penalty=(slope_sd, intercept_sd), centre=(a, c)
    )
    residual = irt.compute_residuals(passes, trials, irt.fit_items(passes, trials, like))
    return _number_clusters(arrays, residual @ arrays["axes"])


def _number_clusters(arrays: Mapping[str, Floats], points: Floats) -> Labels:
    nearest = find_nearest(
        points, arrays["centroid"], float(arrays["spread"][0]), float(arrays["level"][0])
    )
    return np.where(nearest >= 0, arrays["number"].astype(np.int64)[nearest], -1)
