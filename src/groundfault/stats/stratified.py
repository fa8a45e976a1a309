"""Lifts among units of one stratum: what a descriptor adds where another one is fixed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def lift(
    on: Bools,
    losses: NDArray[np.int64] | Floats,
    strata: NDArray[np.int64],
    defined: Bools | None = None,
    weights: NDArray[np.int64] | None = None,
) -> tuple[Floats, Floats]:
    """Mean loss on minus off a descriptor within strata, and its z-score.

    Parameters
    ----------
    on : bool array, shape (L, n)
        Descriptors; false where not defined.
    losses : array, shape (n,)
    strata : int64 array, shape (n,)
    defined : bool array, shape (L, n), optional
        Units that count; left out, all.
    weights : int64 array, shape (n,), optional
        How many units each stands for; left out, one.

    Returns
    -------
    lift : float64 array, shape (L,)
        A mean of the strata's lifts, each weighed by on * off / n of the stratum; 0 where no
        stratum has both sides.
    z : float64 array, shape (L,)
        The same over its standard deviation had losses been permuted within the strata; 0 where
        that is 0.

    Notes
    -----
    Mantel and Haenszel 1959, doi:10.1093/jnci/22.4.719; for losses that are not 0 or 1 Mantel 1963.
    One stratum gives the plain lift."""
    there: Bools | Floats = np.ones_like(on) if defined is None else defined
    inside_of: Bools | Floats = on
    if weights is not None:
        there, inside_of = there * weights.astype(np.float64), on * weights.astype(np.float64)
    home = (strata[:, None] == np.unique(strata)).astype(np.float64)
    # matrix products over one-hot strata sum all descriptors at once, without a loop over strata
    value = losses.astype(np.float64)
    size, inside = there @ home, inside_of @ home
    total, squares, on_sum = (
        (rows * value**power) @ home for rows, power in ((there, 1), (there, 2), (inside_of, 1))
    )
    size_or_1 = np.maximum(size, 1.0)
    weight = inside * (size - inside) / size_or_1
    gap = (on_sum - inside * total / size_or_1).sum(axis=1)
    # variance of the sum on the descriptor, given each stratum's losses (Mantel 1963)
    variance = (weight * (squares - total**2 / size_or_1) / np.maximum(size - 1, 1.0)).sum(axis=1)
    return _over(gap, weight.sum(axis=1)), _over(gap, np.sqrt(np.maximum(variance, 0.0)))


def _over(a: Floats, b: Floats) -> Floats:
    return np.where(b > 0, a / np.where(b > 0, b, 1.0), 0.0)
