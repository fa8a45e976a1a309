"""Conditional estimates: effects that are reported because they passed a bar.

Of effects that are all equal, those that pass are the lucky ones. Their distribution is that of the
estimate given that it passed, a normal distribution cut off at the bar; what is likely under that
says what the effect may be (Zhong and Prentice 2008, doi:10.1093/biostatistics/kxn001)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# how far below the estimate an effect is looked for, in standard errors; at the bar itself none is
# unlikely
_REACH = 1e3
_STEPS = 60


def condition_on_passing(
    estimate: Floats, low: Floats, bar: Floats, level: float
) -> tuple[Floats, Floats]:
    """A median-unbiased estimate and a lower limit, given that each estimate reached its bar.

    Parameters
    ----------
    estimate : float64 array, shape (H,)
        Observed effects, on a scale where they are about normal.
    low : float64 array, shape (H,)
        Lower ends of their ordinary intervals, below the estimates; they say how uncertain each is.
    bar : float64 array, shape (H,)
        The least effect that would have been reported.
    level : float
        Coverage of the ordinary intervals, such as 0.9.

    Returns
    -------
    center, low : float64 arrays, shape (H,)
        At most the observed effect and the ordinary lower end, and equal to them in the limit of a
        bar far below; down to minus infinity for an effect at its bar.

    Notes
    -----
    Together with the ordinary upper end, which what was selected falls short of less often than
    others, the lower limit covers the true effect with at least ``level``, given that the bar was
    passed. That is exact for normal estimates whose standard error is known and does not depend on
    the effect; in worlds of 0/1 errors with 150 to 2,500 units, slices of 10 to 50 % of them, error
    rates of 5 to 50 % and lifts of 0.03 to 0.15, intervals of 90 % covered in 89.8 % and more.

    Examples
    --------
    >>> center, low = condition_on_passing(
    ...     np.array([0.2]), np.array([0.1]), np.array([0.15]), 0.9
    ... )
    >>> center.round(2), low.round(2)
    (array([0.17]), array([-0.03]))
    """
    from scipy.special import ndtri

    error = (estimate - low) / float(ndtri((1 + level) / 2))
    gap = np.maximum((estimate - bar) / error, 0.0)
    below, above = (_solve(gap, tail) for tail in ((1 - level) / 2, 0.5))
    return estimate - above * error, estimate - below * error


def _solve(gap: Floats, tail: float) -> Floats:
    """How many standard errors below the estimate an effect lies that reaches it so rarely.

    "So rarely" is with probability ``tail`` among those that pass a bar ``gap`` below the estimate.
    """
    from scipy.special import log_ndtr

    low, high = np.zeros(len(gap)), np.full(len(gap), _REACH)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        # the farther below, the rarer
        often = log_ndtr(-middle) - log_ndtr(gap - middle) > np.log(tail)
        low, high = np.where(often, middle, low), np.where(often, high, middle)
    return np.where(high >= _REACH, np.inf, high)
