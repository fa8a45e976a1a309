"""How alike two ways of grouping the same things are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]


def adjusted_rand(a: Labels, b: Labels) -> float:
    """Adjusted Rand index of two labellings, without noise (negative labels); NaN of nothing.

    1 for the same groups, about 0 by chance. Hubert and Arabie 1985, doi:10.1007/BF01908075.
    """
    both = (a >= 0) & (b >= 0)
    if not both.any():
        return float("nan")
    table = _table(a[both], b[both])
    joint, rows, columns = (_pairs(x) for x in (table, table.sum(axis=1), table.sum(axis=0)))
    # pairs that two random groupings of these sizes would share (Hubert and Arabie 1985)
    expected = rows * columns / max(_pairs(both.sum()), 1.0)
    largest = (rows + columns) / 2
    # one group each, or all alone: the index is 0/0, and the two groupings are the same
    return 1.0 if largest == expected else (joint - expected) / (largest - expected)


def best_jaccard(a: Labels, b: Labels, clusters: int) -> Floats:
    """For each cluster of ``a``, the Jaccard index with the cluster of ``b`` that is most like it.

    Parameters
    ----------
    a, b : int arrays, shape (n,)
        Labels of the same things; negative is noise.
    clusters : int
        Of ``a``, numbered from 0.

    Returns
    -------
    float64 array, shape (clusters,)
        0 where nothing of ``b`` meets the cluster; NaN where the cluster itself has nothing among
        these things.

    Notes
    -----
    Hennig 2007, doi:10.1016/j.csda.2006.11.025.
    """
    size = np.bincount(a[a >= 0], minlength=clusters).astype(np.float64)
    others = int(b.max(initial=-1)) + 1
    table = np.zeros((clusters, max(others, 1)))
    both = (a >= 0) & (b >= 0)
    np.add.at(table, (a[both], b[both]), 1)
    other = np.bincount(b[b >= 0], minlength=max(others, 1))
    union = size[:, None] + other - table
    best = np.where(union > 0, table / np.maximum(union, 1), 0.0).max(axis=1)
    return np.where(size > 0, best, np.nan)


def _pairs(counts: Floats) -> float:
    return float((counts * (counts - 1) / 2).sum())


def _table(a: Labels, b: Labels) -> Floats:
    _, row = np.unique(a, return_inverse=True)
    _, column = np.unique(b, return_inverse=True)
    table = np.zeros((row.max() + 1, column.max() + 1))
    np.add.at(table, (row, column), 1)
    return table
