"""Tests and intervals of pairs: two ways on the same examples or seeds."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def sign_test(wins: int, losses: int) -> float:
    """Return one-sided p-value of this many wins, if wins and losses are equally likely.

    Assumes independent pairs.

    Examples
    --------
    >>> sign_test(4, 1)
    0.1875
    """
    from scipy.special import bdtrc

    return float(bdtrc(wins - 1, wins + losses, 0.5)) if wins > 0 else 1.0


def student(differences: ArrayLike, level: float = 0.95) -> tuple[float, float] | None:
    """Return Student's interval of a mean difference: its ends.

    Parameters
    ----------
    differences : float array, shape (s,)
        Differences of s independent pairs, such as seeds.
    level : float
        Coverage, in (0, 1); exact for normal differences.

    Returns
    -------
    pair of float, or None
        None for fewer than two pairs, and for equal differences, whose interval would have no
        width.

    Examples
    --------
    >>> student([1.0, 1.0, 1.0]) is None
    True
    """
    from scipy.special import stdtrit

    pairs = np.asarray(differences, dtype=np.float64)
    if len(pairs) < 2 or np.ptp(pairs) == 0:
        return None
    # 0.5 + level / 2 is the quantile of a two-sided interval
    half = float(stdtrit(len(pairs) - 1, 0.5 + level / 2) * pairs.std(ddof=1) / np.sqrt(len(pairs)))
    return float(pairs.mean()) - half, float(pairs.mean()) + half


def ratio(
    first: ArrayLike, second: ArrayLike, level: float = 0.95
) -> tuple[float, float, float] | None:
    """Return the ratio of two means over the same cases, and its interval's ends.

    Approximate: Student's interval for the difference of each case's contributions to the
    logarithms of the two means (the delta method).

    Parameters
    ----------
    first, second : float arrays, shape (s,)
        Values of s independent pairs, at least 0.
    level : float
        Coverage, in (0, 1).

    Returns
    -------
    value, low, high : float, or None
        None for fewer than two pairs, for a mean of 0, and if the interval would have no width.

    Examples
    --------
    >>> [round(x, 2) for x in ratio([4.0, 5.0, 6.0], [2.0, 3.0, 2.0])]
    [2.14, 0.97, 4.72]
    """
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if not (len(x) > 1 and x.mean() > 0 and y.mean() > 0):
        return None
    ends = student(x / x.mean() - y / y.mean(), level)
    value = float(x.mean() / y.mean())
    return (
        None
        if ends is None
        else (value, value * float(np.exp(ends[0])), value * float(np.exp(ends[1])))
    )


def mcnemar(first_only: int, second_only: int) -> float:
    """Return exact two-sided p-value that two ways succeed equally often on the same cases.

    Parameters
    ----------
    first_only, second_only : int
        Cases on which only one of the ways succeeds.

    Notes
    -----
    Twice the smaller binomial tail, at most 1. Assumes independent cases. McNemar 1947,
    doi:10.1007/BF02295996.

    Examples
    --------
    >>> mcnemar(0, 9)
    0.00390625
    """
    from scipy.special import bdtr

    total = first_only + second_only
    # bdtr sums the binomial tail exactly; a normal tail is too small for the few pairs there are
    return min(1.0, 2 * float(bdtr(min(first_only, second_only), total, 0.5))) if total else 1.0
