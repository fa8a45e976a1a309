"""Agreement of raters (Cohen, Krippendorff, Gwet), and of two sets of outcomes.

A coefficient of raters is a function of sums over items, so its interval is the percentile
bootstrap over items. Zapf, Castell, Morawietz and Karch (2016, doi:10.1186/s12874-016-0200-9) found
that it keeps its level where asymptotic variances do not. It assumes that items are independent
draws; raters are fixed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groundfault.stats.intervals import wilson

Floats = NDArray[np.float64]
Ratings = NDArray[np.int64]

MISSING = -1
_MAX_UNDEFINED = 0.05  # share of resamples without a value, beyond which there is no interval
_ROUNDING = 1e-12  # sums in another order differ by this: below it a number is 0


@dataclass(frozen=True)
class Agreement:
    """A coefficient with its interval.

    Attributes
    ----------
    value : float
        1 if all raters agree; nan if it is undefined.
    low, high : float
        Ends of the interval; nan without an interval.
    items : int
        Items that at least two raters rated.
    reason : str
        Reason that the value or its interval is missing; empty if both exist.
    """

    value: float
    low: float
    high: float
    items: int
    reason: str = ""


@dataclass(frozen=True)
class Coefficient:
    """A coefficient of raters' agreement; a call with ratings returns its value and interval.

    Attributes
    ----------
    features : callable
        Features of each pattern of ratings, to be summed over items (the last axis).
    value : callable
        The coefficient, computed from the sums.
    undefined : str
        Reason to give if the coefficient is undefined.
    raters : int, optional
        Number of raters that it needs; any number by default.

    Examples
    --------
    >>> first, second = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    >>> alpha = krippendorff(np.array([first, second]).T, 2, np.random.default_rng(0))
    >>> round(alpha.value, 3)
    0.095
    """

    features: Callable[[Ratings, int], Floats]
    value: Callable[[Floats, int], Floats]
    undefined: str
    raters: int | None = None

    def __call__(
        self,
        ratings: Ratings,
        categories: int,
        rng: np.random.Generator,
        *,
        level: float = 0.95,
        resamples: int = 2000,
    ) -> Agreement:
        """Measure the agreement of a table of ratings.

        Parameters
        ----------
        ratings : int array, shape (items, raters)
            Categories ``0 ... categories - 1``; `MISSING` where a rater did not rate.
        categories : int
            Number of categories to choose from, at least 1.
        rng : numpy.random.Generator
        level : float in (0, 1)
            Coverage of the interval.
        resamples : int

        Raises
        ------
        ValueError
            If a rating is not a category, or the table has another number of axes or raters.
        """
        table = np.asarray(ratings, dtype=np.int64)
        is_rating = (table >= MISSING) & (table < categories)
        if table.ndim != 2 or categories < 1 or not is_rating.all():
            raise ValueError(
                f"ratings are a table of items by raters, each in 0 ... {categories - 1} or "
                f"{MISSING}"
            )
        if self.raters not in (None, table.shape[1]):
            raise ValueError("Cohen's kappa is of two raters")
        pairable = int(((table != MISSING).sum(axis=1) >= 2).sum())
        if not pairable:
            return Agreement(np.nan, np.nan, np.nan, 0, "no item was rated by two raters")
        # items with equal ratings are interchangeable: resampling their counts resamples items
        table = table[(table != MISSING).any(axis=1)]
        patterns, counts = np.unique(table, axis=0, return_counts=True)
        features = self.features(patterns, categories)
        value = float(self.value(counts @ features, categories))
        if np.isnan(value):
            return Agreement(np.nan, np.nan, np.nan, pairable, self.undefined)
        size = int(counts.sum())
        sums = rng.multinomial(size, counts / size, size=resamples) @ features
        return Agreement(value, *_interval(self.value(sums, categories), level, pairable))


def _interval(values: Floats, level: float, items: int) -> tuple[float, float, int, str]:
    """Return ends, items, and the reason for a missing interval."""
    defined = values[~np.isnan(values)]
    # resamples without a value are not missing at random: they are the most extreme ones
    if len(defined) < (1 - _MAX_UNDEFINED) * len(values):
        return np.nan, np.nan, items, "no interval: too few items to resample"
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    if np.ptp(defined) < _ROUNDING:
        alike = "the items are all alike, so resampling them shows no doubt"
        return np.nan, np.nan, items, f"no interval: {alike}"
    return float(low), float(high), items, ""


def _counts(ratings: Ratings, categories: int) -> Floats:
    """Return how many raters gave an item each category, shape (items, categories)."""
    return np.asarray((ratings[:, :, None] == np.arange(categories)).sum(axis=1), dtype=np.float64)


def _ratio(top: Floats, bottom: Floats) -> Floats:
    """Return a quotient; nan where the denominator is 0 up to rounding."""
    nonzero = np.abs(bottom) > _ROUNDING
    return np.where(nonzero, top / np.where(nonzero, bottom, 1.0), np.nan)


def _pairs(ratings: Ratings, categories: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return counts, raters, whether there is a pair, and the share of agreeing pairs, for each
    item."""
    # pairs that agree, over all pairs of the item's raters (Fleiss 1971, doi:10.1037/h0031619)
    counts = _counts(ratings, categories)
    raters = counts.sum(axis=1)
    paired = (raters >= 2).astype(np.float64)
    alike = paired * (counts * (counts - 1)).sum(axis=1) / np.maximum(raters * (raters - 1), 1)
    return counts, raters, paired, alike


def _raw_features(ratings: Ratings, categories: int) -> Floats:
    _, _, paired, alike = _pairs(ratings, categories)
    return np.column_stack([alike, paired])


def _raw_value(sums: Floats, categories: int) -> Floats:  # noqa: ARG001
    return _ratio(sums[..., 0], sums[..., 1])


def _cohen_features(ratings: Ratings, categories: int) -> Floats:
    both = (ratings != MISSING).all(axis=1)[:, None]
    first, second = ((ratings[:, [rater]] == np.arange(categories)) * both for rater in (0, 1))
    return np.column_stack([first, second, (first & second).sum(axis=1), both]).astype(np.float64)


def _cohen_value(sums: Floats, categories: int) -> Floats:
    size = sums[..., -1]
    agreement = _ratio(sums[..., -2], size)
    first, second = sums[..., :categories], sums[..., categories : 2 * categories]
    # chance agreement of two raters with these marginals (Cohen 1960,
    # doi:10.1177/001316446002000104)
    chance = _ratio((first * second).sum(axis=-1), size**2)
    return _ratio(agreement - chance, 1 - chance)


def _krippendorff_features(ratings: Ratings, categories: int) -> Floats:
    counts, raters, paired, alike = _pairs(ratings, categories)
    return np.column_stack([counts * paired[:, None], raters * alike])


def _krippendorff_value(sums: Floats, categories: int) -> Floats:
    counts, alike = sums[..., :categories], sums[..., -1]
    size = counts.sum(axis=-1)
    # alpha = 1 - observed / expected disagreement; size - 1 is Krippendorff's small-sample factor
    expected = size**2 - (counts**2).sum(axis=-1)
    return 1 - _ratio((size - 1) * (size - alike), expected)


def _gwet_features(ratings: Ratings, categories: int) -> Floats:
    counts, raters, paired, alike = _pairs(ratings, categories)
    return np.column_stack([counts / raters[:, None], np.ones(len(raters)), alike, paired])


def _gwet_value(sums: Floats, categories: int) -> Floats:
    share = _ratio(sums[..., :categories], sums[..., [-3]])
    agreement = _ratio(sums[..., -2], sums[..., -1])
    # Gwet 2008, doi:10.1348/000711006X126600: mean share of a category times one minus it, over
    # categories - 1
    chance = _ratio((share * (1 - share)).sum(axis=-1), np.full(share.shape[:-1], categories - 1.0))
    return _ratio(agreement - chance, 1 - chance)


_ONE = "not defined: all ratings are of one category, and agreement by chance is certain"
raw = Coefficient(_raw_features, _raw_value, "no item was rated by two raters")
"""Share of pairs of raters who agree, averaged over items that at least two rated."""
cohen = Coefficient(_cohen_features, _cohen_value, _ONE, raters=2)
"""Cohen's kappa of two raters; items rated by only one rater are left out.

Cohen 1960, doi:10.1177/001316446002000104. Undefined if both use a single category throughout.
"""
krippendorff = Coefficient(_krippendorff_features, _krippendorff_value, _ONE)
"""Krippendorff's alpha for nominal data: any number of raters, any ratings missing.

Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability".
"""
gwet = Coefficient(_gwet_features, _gwet_value, "not defined: there is one category to choose from")
"""Gwet's AC1: any number of raters, any ratings missing; steady where one category prevails.

Gwet 2008, doi:10.1348/000711006X126600, in the form for missing ratings of his *Handbook of
Inter-Rater Reliability*: items that only one rater rated still tell how common each category is. It
depends on how many categories there were to choose from, used or not.
"""

Ends = tuple[float, float]


def compare_pairs(
    ratings: Ratings, categories: int, rng: np.random.Generator
) -> tuple[int, int, Ends | None, float | None, Ends | None]:
    """Compare two raters on the items that both rated; None for undefined numbers.

    Returns
    -------
    int, int
        Items that both rated, and the number of these with equal ratings.
    tuple of float or None
        Wilson's interval of the share of equal ratings.
    float or None, tuple of float or None
        Cohen's kappa and its interval.
    """
    both = ratings[(ratings != MISSING).all(axis=1)]
    if not len(both):
        return 0, 0, None, None, None
    same = int((both[:, 0] == both[:, 1]).sum())
    low, high = wilson(same, len(both))
    kappa = cohen(both, categories, rng)
    value = None if np.isnan(kappa.value) else kappa.value
    ends = None if np.isnan([kappa.low, kappa.high]).any() else (kappa.low, kappa.high)
    return len(both), same, (float(low), float(high)), value, ends


MOST_CHANCE = 1e-6
"""Chance of a false alarm for independent outcomes."""
LEAST_EXCESS = 0.8
"""Least agreement of a copy, as a share of the agreement that chance leaves open."""


def are_copies(agreeing: int, shared: int, commonest: int) -> bool:
    """Return whether one source copied the other's outcomes of the same cases.

    Outcomes are copies if they agree more than by chance, and in almost all cases where chance
    leaves room. The second condition tells a copy from another run of the same cases: its outcomes
    also agree more than by chance, since some cases are hard for every model.

    Parameters
    ----------
    agreeing : int
        Cases with the same outcome in both, 0 to ``shared``.
    shared : int
        Cases in both.
    commonest : int
        Cases in both that have the most frequent outcome of the first source.

    Returns
    -------
    bool
        If, given the cases, the outcomes of the second source are independent of the first's and of
        one another, this is true with probability of at most `MOST_CHANCE`.

    Notes
    -----
    A source without knowledge of the first agrees in at most ``commonest`` cases on average. Among
    sums of independent 0/1 variables with at most that mean, the binomial one has the largest upper
    tail (Hoeffding 1956, doi:10.1214/aoms/1177728178). If all outcomes are equal, copies cannot be
    detected.

    Examples
    --------
    >>> are_copies(agreeing=199, shared=200, commonest=150)
    True
    >>> are_copies(agreeing=170, shared=200, commonest=150)
    False
    """
    from scipy.special import bdtrc

    if commonest >= shared or agreeing - commonest < LEAST_EXCESS * (shared - commonest):
        return False
    # P(X >= agreeing) of a binomial variable
    return bool(bdtrc(agreeing - 1, shared, commonest / shared) <= MOST_CHANCE)
