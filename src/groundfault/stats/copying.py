"""Copying: whether two sets of outcomes agree so well that one has to be taken from the other."""

from __future__ import annotations

from scipy.special import bdtrc

MOST_CHANCE = 1e-6
"""Chance of a false alarm, for outcomes that know nothing of each other."""
LEAST_EXCESS = 0.8
"""Of the agreement that chance leaves open, the share that has to be there."""


def are_copies(agreeing: int, shared: int, commonest: int) -> bool:
    """Whether outcomes that two sources have of the same cases are one source's, copied.

    They are if they agree beyond what chance explains, and almost wherever chance leaves room.
    The second condition is what tells a copy from another run of the same cases, whose outcomes
    agree beyond chance, too, since some cases are hard for everybody.

    Parameters
    ----------
    agreeing : int
        Cases with the same outcome in both, 0 to ``shared``.
    shared : int
        Cases in both.
    commonest : int
        Of these, how many have the most frequent outcome of the first source.

    Returns
    -------
    bool
        If the outcomes of the second source are independent of the first's and of one another,
        given which cases there are, it is true with probability of at most `MOST_CHANCE`.

    Notes
    -----
    Whatever a source without knowledge of the first says, the expected number of agreements is at
    most ``commonest``. Among sums of independent 0/1 variables with at most that mean the upper
    tail is largest for the binomial one (Hoeffding 1956, doi:10.1214/aoms/1177728178). Where the
    outcomes are all alike, nothing can be told.

    Examples
    --------
    >>> are_copies(agreeing=199, shared=200, commonest=150)
    True
    >>> are_copies(agreeing=170, shared=200, commonest=150)
    False
    """
    if commonest >= shared or agreeing - commonest < LEAST_EXCESS * (shared - commonest):
        return False
    # P(X >= agreeing) of a binomial variable
    return bool(bdtrc(agreeing - 1, shared, commonest / shared) <= MOST_CHANCE)
