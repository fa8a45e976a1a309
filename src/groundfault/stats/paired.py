"""Exact tests of pairs: test which of two ways did better on the same examples or seeds."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

MAX_EXACT_PAIRS = 16
"""With more pairs, 2^16 random signs are tried instead of all."""

# equal statistics computed for different signs may differ in the last digits; a tie counts against
_TIE = 1 - 1e-12


def change(
    total: ArrayLike, squares: ArrayLike, pairs: ArrayLike, level: float
) -> tuple[Floats, Floats]:
    """Return interval of a mean change between two ways: its ends.

    The method of Agresti and Min is Wald's interval with half a pair added of each kind, so that it
    has a width even with few or no changes. Approximate, for independent pairs.

    Parameters
    ----------
    total, squares : array, shape (h,)
        Sums of the changes, each in [-1, 1], and of their squares. For 0/1 losses these are the
        pairs that got worse minus the pairs that got better, and all changed pairs.
    pairs : array, shape (h,)
        Number of pairs.
    level : float
        Coverage, in (0, 1).

    Returns
    -------
    low, high : float64 arrays, shape (h,)

    References
    ----------
    Agresti and Min, Simple improved confidence intervals for comparing matched proportions, 2005,
    doi:10.1002/sim.1781.

    Examples
    --------
    >>> [round(float(end[0]), 3) for end in change([12], [20], [100], 0.95)]
    [0.033, 0.203]
    """
    from scipy.special import ndtri

    sums, spread = (np.asarray(a, dtype=np.float64) for a in (total, squares))
    size = np.asarray(pairs, dtype=np.float64) + 2
    middle = sums / size
    half = float(ndtri(0.5 + level / 2)) * np.sqrt(spread + 1 - sums**2 / size) / size
    return np.maximum(middle - half, -1.0), np.minimum(middle + half, 1.0)


def more_errors(errors: int, size: int, all_errors: int, all_size: int) -> float:
    """Return one-sided p-value of at least this many errors among ``size`` random examples.

    Fisher's exact test: hypergeometric, given that ``all_size`` examples have ``all_errors``.
    """
    from scipy.stats import hypergeom

    return min(1.0, float(hypergeom.sf(errors - 1, all_size, all_errors, size)))


def sign_flips(differences: ArrayLike) -> Floats:
    """Return two-sided p-values that mean differences are 0, adjusted for their number.

    The signs of all differences of a pair are flipped together; p is the share of flips in which
    the largest studentised mean is at least as large (step-down max-T). Exact for up to
    `MAX_EXACT_PAIRS` pairs, where p is a multiple of 2^(1 - pairs); with more, signs are drawn and
    p is (1 + exceedances) / (1 + draws).

    Parameters
    ----------
    differences : float array, shape (s, h)
        Differences of s pairs, such as seeds, in h respects, such as points of a curve.

    Returns
    -------
    float64 array, shape (h,)
        Family-wise adjusted p-values. Valid if the two ways are exchangeable within each pair under
        the null; strong control assumes subset pivotality. If all differences are 0, p is 1.

    References
    ----------
    Fisher, The Design of Experiments, 1935, section 21; Westfall and Young, Resampling-Based
    Multiple Testing, 1993.

    Examples
    --------
    >>> sign_flips([[1.0], [2.0], [3.0], [1.0], [2.0]])
    array([0.0625])
    """
    pairs = np.asarray(differences, dtype=np.float64)
    length = np.sqrt((pairs**2).sum(axis=0))
    scaled = pairs / np.where(length > 0, length, 1.0)
    total = np.abs(scaled.sum(axis=0))
    order = np.argsort(-total, kind="stable")
    # one set of signs for all columns keeps their dependence, which max-T uses
    sums = np.abs(_signs(len(pairs)) @ scaled[:, order])
    largest = np.maximum.accumulate(sums[:, ::-1], axis=1)[:, ::-1]  # among it and the smaller ones
    p = np.empty(pairs.shape[1])
    p[order] = np.maximum.accumulate((largest >= total[order] * _TIE).mean(axis=0))
    return p


def _signs(pairs: int) -> Floats:
    """Return signs of all pairs, a row for each flip; the first row leaves all signs."""
    # the first pair's sign stays: flipping all pairs gives the same two-sided statistic
    if pairs > MAX_EXACT_PAIRS:
        # a fixed seed: the same pairs give the same p-value in every run
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (2**MAX_EXACT_PAIRS, pairs))
    else:
        bits = np.arange(2 ** max(0, pairs - 1))[:, None] >> np.arange(pairs - 1, -1, -1)
        signs = 1.0 - 2.0 * (bits & 1)
    signs[0] = 1.0
    return signs
