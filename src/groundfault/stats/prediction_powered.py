"""Means of labels by betting at any time, from few labels and a cheap grade of every unit.

Every unit of a group has a known grade and a label. A few labels are bought, in random order. With
a useful grader, a label minus its forecast from the grade varies less than the label itself, and
the mean of the grades is known exactly. Bets on the mean of the labels use this difference. Wrong
grades cost more labels but never validity: no assumption is made about them.

Shapes: ``R`` samples of equal length side by side, first; ``G`` means, last.

References
----------
Angelopoulos, Bates, Fannjiang, Jordan and Zrnic (2023), Prediction-powered inference,
https://doi.org/10.1126/science.adi6000. Waudby-Smith and Ramdas (2024), Estimating means of bounded
random variables by betting, https://doi.org/10.1093/jrsssb/qkad009; (2020), Confidence sequences
for sampling without replacement, https://doi.org/10.48550/arXiv.2006.04347.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from groundfault.stats.betting import ROUNDING

Floats = NDArray[np.float64]

# a bet may lose this share of the wealth
_MAX_LOSS = 0.75
# times the stake that suits the spread so far
_STAKES = np.array([0.5, 1.0, 2.0])
# sums over labelled units before there are any, of label, grade, their product and the grade
# squared: as if of two units one was graded 1, and labels were half explained by that
_PRIOR = np.array([1.0, 1.0, 0.75, 1.0])
_PRIOR_COUNT = 2  # the two units of `_PRIOR`


@dataclass(frozen=True, eq=False)
class GradedBets:
    """Bets that the mean of a group's labels is above each of several means.

    Attributes
    ----------
    means : (G,) array in [0, 1], ascending
    size : int
        Units in the group, labelled or not.
    grade_sum : (R,) array
        Sum of the grades of units without a label.
    alpha : float in (0, 1)
        Level that the wealth should reach: it affects stakes, not validity.
    horizon : int or None
        Approximate number of labels in the end; None for stakes that suit any number.
    label_count, bet_count : int
        Units with a label, and labelled units that were bet on.
    label_sum : (R,) array
    log_wealth : (R, G) array
        Never increasing along the means: a refuted mean refutes all smaller ones. Infinite where
        the labels so far add up to more than the mean allows.
    log_arms : (R, 2, S, G) array
        Log wealth for each use of the grades (0, and the best share by the labels so far) and each
        stake.
    moments : (R, 4) array
        Sums over labelled units of label, grade, their product, and the grade squared; they begin
        as if a few had been labelled.
    spread, centre : (R, 2) arrays
        Sum of squares and mean of the values that were bet on.

    Guarantee
    ---------
    ``P(wealth at a mean >= 1 / a at any time) <= a`` if the mean of all labels is at most this
    mean, for any grades, if each unit was drawn at random from the units without a label (Ville's
    inequality: the wealth is an average of martingales that begin at 1).
    """

    means: Floats
    size: int
    grade_sum: Floats
    alpha: float
    horizon: int | None
    label_count: int
    bet_count: int
    label_sum: Floats
    log_wealth: Floats
    log_arms: Floats
    moments: Floats
    spread: Floats
    centre: Floats

    @classmethod
    def begin(
        cls,
        means: ArrayLike,
        size: int,
        grade_sum: ArrayLike,
        alpha: float,
        *,
        horizon: int | None = None,
    ) -> GradedBets:
        """Return the state before the first label; ``grade_sum`` sums all units of each sample."""
        grid = np.asarray(means, dtype=float)
        total = np.atleast_1d(np.asarray(grade_sum, dtype=float))
        if not ((total >= 0) & (total <= size * (1 + ROUNDING))).all():
            raise ValueError(f"grades of {size} units cannot add up to {total}")
        rows = len(total)
        arms = np.zeros((rows, 2, len(_STAKES), len(grid)))
        return cls(
            means=grid,
            size=size,
            grade_sum=total,
            alpha=alpha,
            horizon=horizon,
            label_count=0,
            bet_count=0,
            label_sum=np.zeros(rows),
            log_wealth=np.zeros((rows, len(grid))),
            log_arms=arms,
            moments=np.tile(_PRIOR, (rows, 1)),
            spread=np.full((rows, 2), 0.25),
            centre=np.full((rows, 2), 0.5),
        )

    def update(self, label: ArrayLike, grade: ArrayLike, *, bet: bool = True) -> GradedBets:
        """Return the state after one more label.

        Parameters
        ----------
        label, grade : float or (R,) array in [0, 1]
        bet : bool
            False if the unit was not drawn at random from all units of the group without a label:
            it is counted, not bet on.

        Raises
        ------
        ValueError
            If all units have a label already.
        """
        label, grade = (np.broadcast_to(x, self.grade_sum.shape) for x in (label, grade))
        if self.label_count == self.size:
            raise ValueError(f"all {self.size} units have a label already")
        after = self._place_bets(label, grade) if bet else self
        label_sum = self.label_sum + label
        is_refuted = label_sum[:, None] > self.size * self.means + ROUNDING
        return replace(
            after,
            grade_sum=self.grade_sum - grade,
            label_count=self.label_count + 1,
            label_sum=label_sum,
            log_wealth=np.where(is_refuted, np.inf, _average(after.log_arms)),
            moments=self.moments + np.stack([label, grade, label * grade, grade**2], axis=1),
        )

    def estimate(self) -> Floats:
        """Return the mean of the group's labels, (R,): labels so far, corrected by all grades."""
        label, grade = self.label_sum, self.moments[:, 1] - _PRIOR[1]
        whole = (self.grade_sum + grade) / self.size
        mean: Floats = label / self.label_count - self._find_share() * (
            grade / self.label_count - whole
        )
        rate: Floats = np.clip(mean, 0.0, 1.0)
        return rate

    def _place_bets(self, label: Floats, grade: Floats) -> GradedBets:
        left = self.size - self.label_count
        # rounding must not take a mean out of the range of its values
        rest = np.clip(self.grade_sum / left, 0.0, 1.0)
        share = np.stack([np.zeros_like(rest), self._find_share()], axis=1)
        value = label[:, None] - share * (grade - rest)[:, None]
        lowest = -share * (1.0 - rest)[:, None]
        null = (self.size * self.means - self.label_sum[:, None]) / left
        arms = self.log_arms + _grow(value, lowest, np.maximum(null, 0.0), self._find_stakes())
        count = self.bet_count + 1
        centre = self.centre + (value - self.centre) / (count + 1)
        spread = self.spread + (value - centre) ** 2
        return replace(self, log_arms=arms, bet_count=count, spread=spread, centre=centre)

    def _find_share(self) -> Floats:
        """Return share of the grade that forecasts the label best, from 0 to 1."""
        label, grade, product, square = self.moments.T
        count = self.label_count + _PRIOR_COUNT
        share: Floats = np.clip(
            (product - label * grade / count) / (square - grade**2 / count), 0.0, 1.0
        )
        return share

    def _find_stakes(self) -> Floats:
        """Return stakes for each use of the grades; they do not depend on the mean."""
        count = self.bet_count + 1
        length = self.horizon or count * np.log(count + 1)
        variance = self.spread / count
        unit: Floats = np.sqrt(2.0 * np.log(1.0 / self.alpha) / (variance * length))
        stakes: Floats = unit[..., None] * _STAKES
        return stakes


def _grow(value: Floats, lowest: Floats, null: Floats, stakes: Floats) -> Floats:
    """Return the log of one bet's factor, for each use of grades, stake and mean.

    A larger null loses more, even with a bounded stake, so wealth falls along the means.
    """
    level = null[:, None, None, :]
    room = np.maximum(level - lowest[:, :, None, None], ROUNDING)
    bet = np.minimum(stakes[..., None], _MAX_LOSS / room)
    result: Floats = np.log1p(bet * (value[:, :, None, None] - level))
    return result


def _average(log_arms: Floats) -> Floats:
    top = log_arms.max(axis=(1, 2), keepdims=True)
    result: Floats = np.log(np.exp(log_arms - top).mean(axis=(1, 2))) + top[:, 0, 0]
    return result


@dataclass(frozen=True, eq=False)
class GradedDifference:
    """Bets that one group's mean exceeds another's, by more than a null allows.

    Attributes
    ----------
    inside, outside : GradedBets
        Bets on the first group, and on the second with 1 minus its labels and grades.
    """

    inside: GradedBets
    outside: GradedBets

    @classmethod
    def begin(
        cls,
        sizes: tuple[int, int],
        grade_sums: tuple[ArrayLike, ArrayLike],
        alpha: float,
        edge: tuple[Floats, Floats],
        *,
        horizon: int | None = None,
    ) -> GradedDifference:
        """Return the state before the first label.

        Parameters
        ----------
        sizes : (int, int)
            Units inside and outside.
        grade_sums : pair of floats, or of (R,) arrays
            Sums over all units inside and outside.
        alpha, horizon
            As in `GradedBets`; each group has this horizon.
        edge : pair of (G,) arrays in [0, 1], ascending
            The largest mean inside that the null allows for each least mean outside, for example
            from `allow_chance`.
        """
        above, below = edge
        inner = GradedBets.begin(above, sizes[0], grade_sums[0], alpha, horizon=horizon)
        total = sizes[1] - np.asarray(grade_sums[1], dtype=float)
        return cls(inner, GradedBets.begin(1.0 - below, sizes[1], total, alpha, horizon=horizon))

    def update(
        self, label: ArrayLike, grade: ArrayLike, *, inside: bool, bet: bool = True
    ) -> GradedDifference:
        """Return the state after one more label, whose group may depend on all earlier labels."""
        if inside:
            return replace(self, inside=self.inside.update(label, grade, bet=bet))
        label, grade = (1.0 - np.asarray(x, dtype=float) for x in (label, grade))
        return replace(self, outside=self.outside.update(label, grade, bet=bet))

    @property
    def log_e(self) -> Floats:
        """Return log e-value of each sample: the least over the means that the null allows."""
        least: Floats = (self.inside.log_wealth + self.outside.log_wealth).min(axis=1)
        return least


@cache
def allow_chance(sizes: tuple[int, int], level: float, steps: int = 200) -> tuple[Floats, Floats]:
    """Return edge of the null that labels of all units would not tell the groups apart.

    The labels of two equal groups differ by chance. The null allows all pairs of means that
    Fisher's one-sided exact test of all labels would not reject.

    Parameters
    ----------
    sizes : (int, int)
        Units inside and outside, each labelled 0 or 1.
    level : float in (0, 1)
        Level of that test.
    steps : int
        Most means outside to try; each step takes the edge of its worse end.
    """
    from scipy.stats import hypergeom

    inside, outside = sizes
    first = np.unique(np.linspace(0, outside + 1, min(steps, outside + 1) + 1).astype(np.int64))
    last = first[1:] - 1
    # the p-value falls as more inside fail: halve the range until one count is left
    low, high = np.zeros_like(last), np.full_like(last, inside)
    while (low < high).any():
        middle = (low + high + 1) // 2
        p = hypergeom.sf(middle - 1, inside + outside, middle + last, inside)
        low, high = np.where(p > level, middle, low), np.where(p > level, high, middle - 1)
    edge = low / inside, first[:-1] / outside
    for means in edge:
        means.flags.writeable = False  # a repeated call returns the same arrays
    return edge


def find_interval(
    labels: ArrayLike,
    grades: ArrayLike,
    size: int,
    grade_sum: ArrayLike,
    alpha: float,
    *,
    fair: ArrayLike = True,
    horizon: int | None = None,
    steps: int = 1000,
) -> tuple[Floats, Floats]:
    """Return interval of the mean of a group's labels, valid at every number of labels.

    Parameters
    ----------
    labels, grades : (T,) or (R, T) arrays in [0, 1]
        Labels and grades of the labelled units, in the order of their draws.
    size : int
        Units in the group, labelled or not.
    grade_sum : float or (R,) array
        Sum of the grades of all units.
    alpha : float in (0, 1)
        Largest chance that the mean is ever outside, half at each end.
    fair : bool, or (T,) bool array
        Whether each unit was drawn at random from all units of the group without a label; others
        are counted, not bet on.
    horizon : int, optional
        Approximate number of labels in the end: the interval is narrower near it, and always valid.
    steps : int
        Number of means between 0 and 1 to try; ends are rounded outwards to these.

    Returns
    -------
    low, high : (R,) arrays

    Raises
    ------
    ValueError
        If there are more labels than units, or the grades cannot add up to their sum.
    """
    y, g = (np.atleast_2d(np.asarray(x, dtype=float)) for x in (labels, grades))
    total = np.broadcast_to(np.asarray(grade_sum, dtype=float), len(y))
    is_fair = np.broadcast_to(np.asarray(fair, dtype=bool), y.shape[1])
    grid = np.linspace(0.0, 1.0, steps + 1)
    ends = []
    for one, two, whole in ((y, g, total), (1.0 - y, 1.0 - g, size - total)):
        bets = GradedBets.begin(grid, size, whole, alpha / 2, horizon=horizon)
        best = bets.log_wealth
        for label, grade, bet in zip(one.T, two.T, is_fair, strict=True):
            bets = bets.update(label, grade, bet=bool(bet))
            best = np.maximum(best, bets.log_wealth)
        # wealth falls along the means, so refuted means come first
        count = (best >= np.log(2.0 / alpha)).sum(axis=1)
        ends.append(grid[np.maximum(count - 1, 0)])
    return ends[0], 1.0 - ends[1]
