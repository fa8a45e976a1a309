"""Nearest centroid as a rule that can be applied again: to coordinates, or to the answers of the
models fitted.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from groundfault.stats import irt
from groundfault.stats.silhouette import combined

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


def nearest(points: Floats, centroids: Floats, spread: float = 0.0, level: float = 0.0) -> Labels:
    """The nearest centroid of each point; -1 where another is nearly as near.

    Parameters
    ----------
    points : float array, shape (n, d)
    centroids : float array, shape (k, d)
    spread : float
        Variance of points about their centroid, in each direction; 0 leaves no point without a
        centroid.
    level : float
        Least chance, in [0, 1), that a point belongs to its centroid rather than to another, all
        being equally frequent and normal about their centroid.
    """
    away = ((points**2).sum(axis=1)[:, None] - 2 * points @ centroids.T) + (centroids**2).sum(
        axis=1
    )
    label = away.argmin(axis=1)
    if spread > 0 and level > 0:
        weight = np.exp(-(away - away.min(axis=1, keepdims=True)) / (2 * spread))
        label = np.where(1 / weight.sum(axis=1) >= level, label, -1)
    return np.asarray(label, dtype=np.int64)


def of_coordinates(arrays: Mapping[str, Floats], values: Floats) -> Labels:
    """`nearest`, of rows given as coordinates.

    Parameters
    ----------
    arrays : mapping of str to float64 array
        ``centroid`` (k, d), ``number`` (k,) of each centroid's cluster, ``spread`` and ``level``
        (1,).
    values : float array, shape (n, d)
        Scaled to unit length here, as they were when fitted.
    """
    return _numbered(arrays, combined(values))


def of_answers(arrays: Mapping[str, Floats], values: Floats) -> Labels:
    """`nearest`, of rows given as answers: shares of tries that each model passed, -1 where it was
    not asked.

    Parameters
    ----------
    arrays : mapping of str to float64 array
        As for `of_coordinates`, with ``axes`` (m, d), and either the ``ability`` (m,), ``centre``
        (2,) and ``penalty`` (2,) of an item-response fit, whose standardised residuals are
        projected on the axes, or the ``fill`` (m,) of holes in passes scaled to unit length.
    values : float array, shape (n, m)
    """
    asked = (values >= 0).astype(np.int64)
    if "ability" not in arrays:
        points = combined(np.where(asked > 0, values, arrays["fill"]))
        return _numbered(arrays, (points - arrays["origin"]) @ arrays["axes"])
    passed = (values >= 0.5).astype(np.int64) * asked
    a, c = arrays["centre"].tolist()
    slope_sd, intercept_sd = arrays["penalty"].tolist()
    one = np.ones(0)
    like = irt.ItemResponse(
        one, one, arrays["ability"], penalty=(slope_sd, intercept_sd), centre=(a, c)
    )
    residual = irt.residuals(passed, asked, irt.fit_items(passed, asked, like))
    return _numbered(arrays, residual @ arrays["axes"])


def _numbered(arrays: Mapping[str, Floats], points: Floats) -> Labels:
    found = nearest(
        points, arrays["centroid"], float(arrays["spread"][0]), float(arrays["level"][0])
    )
    return np.where(found >= 0, arrays["number"].astype(np.int64)[found], -1)
