"""Contingency tables: counts and loss sums of descriptors against outcomes, and effect sizes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

EFFECTS = ("risk_difference", "risk_ratio", "odds_ratio")


@dataclass(frozen=True)
class ContingencyTables:
    """Counts and loss sums of H hypotheses, each a descriptor against an outcome.

    Attributes
    ----------
    n, on : int64 arrays, shape (H,)
        Units, and units where the descriptor is true.
    total, on_sum : int64 or float64 arrays, shape (H,)
        Loss summed over all units, and over those where the descriptor is true, in units of
        1/``denominator``.
    denominator : int
        Losses are whole multiples of 1/``denominator``; 0 for losses on no common grid, whose sums
        are floats.
    """

    n: NDArray[np.int64]
    on: NDArray[np.int64]
    total: NDArray[np.int64] | NDArray[np.float64]
    on_sum: NDArray[np.int64] | NDArray[np.float64]
    denominator: int = 1

    def __len__(self) -> int:
        return len(self.n)

    def __getitem__(self, index: NDArray[np.bool_] | NDArray[np.intp]) -> ContingencyTables:
        return ContingencyTables(
            self.n[index], self.on[index], self.total[index], self.on_sum[index], self.denominator
        )

    @property
    def off(self) -> NDArray[np.int64]:
        """Return units where the descriptor is false."""
        return self.n - self.on

    @property
    def unit(self) -> int:
        """Return what a sum is divided by to be a loss."""
        return self.denominator or 1

    @property
    def on_rate(self) -> NDArray[np.float64]:
        """Return mean loss where the descriptor is true; NaN on no unit."""
        return _divide(self.on_sum, self.on * self.unit)

    @property
    def off_rate(self) -> NDArray[np.float64]:
        """Return mean loss where the descriptor is false; NaN on no unit."""
        return _divide(self.total - self.on_sum, self.off * self.unit)

    @property
    def lift(self) -> NDArray[np.float64]:
        """Return mean loss on minus off.

        One rounded quotient of whole numbers, so that equal lifts are equal floats.

        Janus, section 2 (arXiv:2606.09046). NaN where either side is empty.
        """
        # not on_rate - off_rate: two rounded quotients would make equal lifts differ in the last
        # digit
        return _divide(self.n * self.on_sum - self.on * self.total, self.on * self.off * self.unit)

    @property
    def sign(self) -> NDArray[np.int64]:
        """Return the direction of the lift: -1, 0 or 1, exactly."""
        return np.sign(self.n * self.on_sum - self.on * self.total).astype(np.int64)

    def score(self, effect: str = "risk_difference") -> NDArray[np.float64]:
        """Return size of an effect:

        lift

        , or

        log ratio

        with one half added to each cell.

        Parameters
        ----------
        effect : {"risk_difference", "risk_ratio", "odds_ratio"}
        """
        n, on, total, on_sum = (
            np.asarray(a, dtype=np.float64) for a in (self.n, self.on, self.total, self.on_sum)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            return score(EFFECTS.index(effect), n, on, total, on_sum, float(self.unit))

    def ratio(self, effect: str) -> NDArray[np.float64]:
        """Return risk or odds ratio on against off, with one half added to each cell (Haldane)."""
        a, b = self.on_sum / self.unit + 0.5, (self.total - self.on_sum) / self.unit + 0.5
        if effect == "odds_ratio":
            return np.asarray(a * (self.off + 1 - b) / (b * (self.on + 1 - a)))
        return np.asarray(a / (self.on + 1) / (b / (self.off + 1)))

    def reaches(self, min_effect: Fraction) -> NDArray[np.bool_]:
        """Return where |lift| >= ``min_effect``, compared as rationals: exactly 0.10 reaches
        0.10."""
        # reals on no grid have no exact value to compare
        if not self.denominator:
            return np.abs(self.lift) >= float(min_effect)
        # Python's integers, since the products exceed int64 for large n and fine grids
        hits = [
            n
            and abs(n * s - k * t) * min_effect.denominator
            >= min_effect.numerator * k * (n - k) * self.unit
            for n, k, s, t in self._rows()
        ]
        sided = (self.on > 0) & (self.off > 0)
        return np.asarray(hits, dtype=np.bool_).reshape(len(self)) & sided

    def fraction(self, index: int) -> Fraction:
        """Return the lift of one hypothesis as an exact rational."""
        n, k, s, t = self._rows(slice(index, index + 1))[0]
        return Fraction(n * s - k * t, k * (n - k) * self.unit)

    def _rows(self, part: slice = slice(None)) -> list[tuple[int, int, int, int]]:
        columns = (self.n[part], self.on[part], self.on_sum[part], self.total[part])
        return list(zip(*(column.tolist() for column in columns), strict=True))


def _divide(
    a: NDArray[np.int64] | NDArray[np.float64], b: NDArray[np.int64]
) -> NDArray[np.float64]:
    with np.errstate(divide="ignore", invalid="ignore"):
        out = np.asarray(a, dtype=np.float64) / np.asarray(b, dtype=np.float64)
    return np.where(np.asarray(b) == 0, np.nan, out)


def score(
    effect: int,
    n: NDArray[np.float64] | float,
    on: NDArray[np.float64] | float,
    total: NDArray[np.float64] | float,
    on_sum: NDArray[np.float64],
    unit: float,
) -> NDArray[np.float64]:
    """Return sizes of effect from tables of floats; `null_kernels.score_one` of each."""
    if effect == 0:
        # the same products in the same order, and no compiler for the effect nearly all ask for
        return np.asarray(np.abs(n * on_sum - on * total) / (on * (n - on) * unit))
    from groundfault.stats.null_kernels import score_each

    # compiled, as those of decoys are: another library's logarithms differ in the last bit
    return np.asarray(score_each(effect, n, on, total, on_sum, unit))


def common_grid(values: NDArray[np.float64], largest: int = 100) -> int:
    """Return the least k <= ``largest`` such that every value is a multiple of 1/k; 0 if there is
    none.

    Parameters
    ----------
    values : float64 array, any shape
        Losses in [0, 1]; NaN is passed over.
    """
    distinct = np.unique(values[~np.isnan(values)])
    # multiples of 1/k in [0, 1] are at most k + 1
    if len(distinct) > largest + 1:
        return 0
    # the least grid first: it gives the smallest numbers, and the shortest tables of sums
    for k in range(1, largest + 1):
        scaled = distinct * k
        if np.all(np.abs(scaled - np.rint(scaled)) < 1e-9 * k):
            return k
    return 0
