"""Means over a finite population from draws whose chances are known, also where they follow from earlier draws."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def hansen_hurwitz(values: ArrayLike, chances: ArrayLike, size: int) -> float:
    """Estimate the mean of a population from draws with repeats.

    Parameters
    ----------
    values : float array, shape (n,)
        Of the members drawn, in their order.
    chances : float array, shape (n,)
        With which each was drawn at its place, in (0, 1]; at every place those of the whole population sum to 1.
    size : int
        Of the population.

    Returns
    -------
    float
        Unbiased where each chance is above 0 for all members and depends on nothing but earlier draws; it may lie
        outside the range of the values.

    References
    ----------
    Hansen and Hurwitz 1943, doi:10.1214/aoms/1177731356.

    Examples
    --------
    >>> hansen_hurwitz([1.0, 0.0], [0.5, 0.25], 4)
    0.25
    """
    y, p = np.asarray(values, dtype=np.float64), np.asarray(chances, dtype=np.float64)
    return float((y / p).mean() / size)


def des_raj(values: ArrayLike, chances: ArrayLike, size: int) -> float:
    """Estimate the mean of a population from draws without repeats.

    Parameters
    ----------
    values, chances, size
        As for `hansen_hurwitz`; the chances at a place sum to 1 over the members that are left.

    Returns
    -------
    float
        The mean over places of what was drawn before plus value over chance. Unbiased where, at each place, all
        members left have a chance above 0 that depends on nothing but earlier draws.

    References
    ----------
    Des Raj 1956, doi:10.1080/01621459.1956.10501326.

    Examples
    --------
    >>> des_raj([1.0, 0.0], [0.25, 1 / 3], 4)
    0.625
    """
    y, p = np.asarray(values, dtype=np.float64), np.asarray(chances, dtype=np.float64)
    before = np.cumsum(y) - y
    return float((before + y / p).mean() / size)
