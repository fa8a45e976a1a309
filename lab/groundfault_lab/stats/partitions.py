"""Agreement of groupings, and of two ways of grouping the same cases."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundfault.stats.intervals import wilson

Floats = NDArray[np.float64]
Labels = NDArray[np.integer[Any]]


def adjusted_rand(a: Labels, b: Labels) -> float:
    """Return adjusted Rand index of two labellings, without noise (negative labels); NaN of
    nothing.

    1 for the same groups, about 0 by chance. Hubert and Arabie 1985, doi:10.1007/BF01908075.
    """
    both = (a >= 0) & (b >= 0)
    if not both.any():
        return float("nan")
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(a[both], b[both]))


def best_jaccard(a: Labels, b: Labels, clusters: int) -> Floats:
    """Return for each cluster of ``a`` the Jaccard index with the cluster of ``b`` that is most
    like it.

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


def newcombe_pairs(
    both: int, first_only: int, second_only: int, neither: int, level: float = 0.95
) -> tuple[float, float]:
    """Return interval of the difference of two proportions of the same cases.

    Newcombe's method 10 for pairs: Wilson's intervals of both, put together with their correlation,
    which is corrected for continuity where positive. Assumes independent cases. Newcombe 1998,
    doi:10.1002/(SICI)1097-0258(19981130)17:22<2635::AID-SIM954>3.0.CO;2-C.

    Parameters
    ----------
    both, first_only, second_only, neither : int
        Cases on which both ways succeed, one alone, and none; one case at least.
    level : float
        Coverage, in (0, 1).
    """
    a, b, c, d = both, first_only, second_only, neither
    n = a + b + c + d
    p, q = (a + b) / n, (a + c) / n
    (p_low, q_low), (p_high, q_high) = wilson([a + b, a + c], [n, n], level)
    product = (a + b) * (c + d) * (a + c) * (b + d)
    # a positive correlation is lowered by n/2 for continuity, a negative one is not (Newcombe 1998)
    cross = a * d - b * c
    phi = (max(cross - n / 2, 0.0) if cross > 0 else cross) / math.sqrt(product) if product else 0.0
    down, up = p - p_low, q_high - q
    # rounding alone can make the sum of squares negative
    below = math.sqrt(max(down**2 - 2 * phi * down * up + up**2, 0.0))
    down, up = p_high - p, q - q_low
    above = math.sqrt(max(down**2 - 2 * phi * down * up + up**2, 0.0))
    return float(max(p - q - below, -1.0)), float(min(p - q + above, 1.0))
