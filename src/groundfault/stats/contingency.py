"""Contingency tables: counts and loss sums of descriptors against outcomes, and effect sizes.

Errors that are permuted within strata have an exact tail (`log_tail`)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import count

import numpy as np
from numpy.typing import NDArray

from groundfault.stats import bits
from groundfault.stats.bits import Bits

EFFECTS = ("risk_difference", "risk_ratio", "odds_ratio")
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
_Counts = tuple[int, ...]

LOG_FLOOR = math.log(1e-30)
"""Floor for probabilities: smaller ones are returned as this value."""
# atoms further out weigh less than `LOG_FLOOR` together, also for skewed distributions
_DEVIATIONS = 12.0
_ATOMS = 48  # and so many more, for strata where the deviation is below one
# this many tails in one process take as long without a compiler as loading and compiling; both
# ways agree to the last bit
_WORTH_COMPILING = 20_000
_tails = count()
# convolutions of more strata take long at any rate
_FEW_STRATA = 32


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
        """Return the number that turns a sum into a loss by division."""
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
        """Return size of an effect: |lift|, or |log ratio| with one half added to each cell.

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

    def _rows(self) -> list[tuple[int, int, int, int]]:
        columns = (self.n, self.on, self.on_sum, self.total)
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

    # compiled, like sizes of decoys: another library's logarithms differ in the last bit
    return np.asarray(score_each(effect, n, on, total, on_sum, unit))


def common_grid(values: NDArray[np.float64], largest: int = 100) -> int:
    """Return the least k <= ``largest`` so that every value is a multiple of 1/k, or 0.

    Parameters
    ----------
    values : float64 array, any shape
        Losses in [0, 1]; NaN is skipped.
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


def lift(
    on: Bools,
    losses: NDArray[np.int64] | Floats,
    strata: NDArray[np.int64],
    defined: Bools | None = None,
    weights: NDArray[np.int64] | None = None,
) -> tuple[Floats, Floats]:
    """Return mean loss on minus off a descriptor within strata, and its z-score.

    Parameters
    ----------
    on : bool array, shape (L, n)
        Descriptors; false where not defined.
    losses : array, shape (n,)
    strata : int64 array, shape (n,)
    defined : bool array, shape (L, n), optional
        Units that count; all by default.
    weights : int64 array, shape (n,), optional
        Number of units that each stands for; one by default.

    Returns
    -------
    lift : float64 array, shape (L,)
        A mean of the strata's lifts, each weighed by on * off / n of the stratum; 0 where no
        stratum has both sides.
    z : float64 array, shape (L,)
        The lift over its standard deviation under permutations of losses within strata; 0 where
        this is 0.

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


# weights of units held at a time; more than that are made anew for every batch
_CELLS = 1 << 24


def centre_losses(
    losses: NDArray[np.int64] | Floats,
    has_loss: NDArray[np.bool_] | None = None,
    strata: NDArray[np.int64] | None = None,
) -> Floats:
    """Return losses minus the mean of their stratum; 0 for units without a loss.

    Parameters
    ----------
    losses : array, shape (M, n)
    has_loss : bool array, shape (M, n), optional
    strata : int64 array, shape (n,), optional
    """
    scored = np.ones(losses.shape, dtype=np.bool_) if has_loss is None else has_loss
    home = np.zeros(losses.shape[1], dtype=np.intp)
    if strata is not None:
        _, home = np.unique(strata, return_inverse=True)
    out = np.zeros(losses.shape)
    for row, values, present in zip(out, losses, scored, strict=True):
        totals = np.bincount(home, weights=np.where(present, values, 0))
        counts = np.bincount(home, weights=present)
        row[present] = (values - (totals / np.maximum(counts, 1))[home])[present]
    return out


class RobustLifts:
    """Studentised lifts of descriptors, for losses in any order of the units.

    The lift is a sum of residuals, each times the difference of its unit's property from its
    stratum's mean; the variance is the sum of the squares of these products. Equal means then look
    equal at any variances. With a plain lift, a rare slice whose losses vary more than the rest has
    a large lift too often. For losses of 0 and 1, equal means have equal variances, and both agree.
    Permutations of this statistic are exact if units are exchangeable, and asymptotically right if
    only the means are equal (DiCiccio and Romano 2017, doi:10.1080/01621459.2016.1202117; Chung and
    Romano 2013, doi:10.1214/13-AOS1090).

    Parameters
    ----------
    packed : uint64 array, shape (L, W)
        Descriptors over n units, packed.
    size : int
        Number n of units.
    valid : uint64 array, shape (L, W), optional
        Units where each descriptor is defined.
    strata : int64 array, shape (n,), optional
        Compute lifts within these strata.
    """

    def __init__(
        self,
        packed: Bits,
        size: int,
        valid: Bits | None = None,
        strata: NDArray[np.int64] | None = None,
    ) -> None:
        self.packed, self.size, self.valid = packed, size, valid
        # units in the order of strata, and where each stratum begins
        self._order = np.arange(size) if strata is None else np.argsort(strata, kind="stable")
        ends = np.ones(size, dtype=np.bool_)
        ordered = np.zeros(size) if strata is None else np.asarray(strata)[self._order]
        ends[1:] = ordered[1:] != ordered[:-1]
        self._starts = np.flatnonzero(ends)
        self._step = max(1, _CELLS // max(1, size))
        self._kept = list(self._chunks()) if len(packed) <= self._step else None

    def __call__(self, residuals: Floats, has_loss: Floats | None = None) -> Floats:
        """Return signed statistics for units in other orders: shape (b, L).

        Parameters
        ----------
        residuals : float64 array, shape (b, n)
            Residuals from `centre_losses`, permuted within strata.
        has_loss : float64 array, shape (b, n), optional
            1 for units with a loss, else 0; permuted together with the residuals.
        """
        chunks = self._chunks() if self._kept is None else self._kept
        parts = [self._studentise(*chunk, residuals, has_loss) for chunk in chunks]
        return np.concatenate(parts, axis=1) if parts else np.zeros((len(residuals), 0))

    def _studentise(
        self, weights: Floats, inside: Floats | None, residuals: Floats, has_loss: Floats | None
    ) -> Floats:
        squares = weights**2
        gap = residuals @ weights.T
        variance = residuals**2 @ squares.T
        if inside is not None or has_loss is not None:
            # where some units have no part, the residuals of the others have a mean of their own
            present = np.ones_like(residuals) if has_loss is None else has_loss
            reach = np.ones_like(weights) if inside is None else inside
            mean = (residuals @ reach.T) / np.maximum(present @ reach.T, 1)
            gap = gap - mean * (present @ weights.T)
            variance = (
                variance - 2 * mean * (residuals @ squares.T) + mean**2 * (present @ squares.T)
            )
        with np.errstate(divide="ignore", invalid="ignore"):
            size = gap / np.sqrt(variance)
        # no variance is no difference, but for rounding
        return np.asarray(np.where(variance > 1e-20, size, 0.0))

    def _chunks(self) -> Iterator[tuple[Floats, Floats | None]]:
        """Yield weights of some descriptors, and where they are defined: shape (l, n) each."""
        for start in range(0, len(self.packed), self._step):
            part = slice(start, start + self._step)
            on = bits.unpack(self.packed[part], self.size).astype(np.float64)
            if self.valid is None:
                yield on - self._compute_shares(on, np.ones((1, self.size))), None
            else:
                defined = bits.unpack(self.valid[part], self.size).astype(np.float64)
                yield (on - self._compute_shares(on, defined)) * defined, defined

    def _compute_shares(self, on: Floats, defined: Floats) -> Floats:
        """Return the share of each unit's stratum that is on the slice, among units where it is
        defined."""
        on_sum, count = (
            np.add.reduceat(rows[:, self._order], self._starts, axis=1) for rows in (on, defined)
        )
        lengths = np.diff(np.append(self._starts, self.size))
        shares = np.empty_like(on)
        shares[:, self._order] = np.repeat(on_sum / np.maximum(count, 1), lengths, axis=1)
        return shares


# search range for an effect below the estimate, in standard errors; at the bar itself no effect is
# unlikely
_REACH = 1e3
_STEPS = 60  # halvings of that interval: to 1e-15 of a standard error


def condition_on_passing(
    estimate: Floats, low: Floats, bar: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return a median-unbiased estimate and a lower limit, given that each estimate reached its
    bar.

    Parameters
    ----------
    estimate : float64 array, shape (H,)
        Observed effects, on a scale where they are about normal.
    low : float64 array, shape (H,)
        Lower ends of their ordinary intervals, below the estimates, which give their uncertainty.
    bar : float64 array, shape (H,)
        The least effect that would have been reported.
    level : float
        Coverage of the ordinary intervals, such as 0.9.

    Returns
    -------
    center, low : float64 arrays, shape (H,)
        At most the observed effect and the ordinary lower end; equal to these in the limit of a bar
        far below, and down to minus infinity for an effect at its bar.

    Notes
    -----
    Among equal effects, estimates pass the bar by luck. An estimate that passed has a normal
    distribution cut off at the bar, and this distribution gives the estimate and limit of the
    effect (Zhong and Prentice 2008, doi:10.1093/biostatistics/kxn001).

    Selected estimates fall below the ordinary upper end less often than others. Together with this
    end, the lower limit covers the true effect with at least ``level``, given that the bar was
    passed. This is exact for normal estimates whose standard error is known and does not depend on
    the effect. In worlds of 0/1 errors with 150 to 2,500 units, slices of 10 to 50 % of all units,
    error rates of 5 to 50 % and lifts of 0.03 to 0.15, intervals of 90 % covered in 89.8 % and
    more.

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
    below, above = _solve(gap, np.log([[(1 - level) / 2], [0.5]]))
    return estimate - above * error, estimate - below * error


def _solve(gap: Floats, log_tails: Floats) -> Floats:
    """Return the distance below the estimate of an effect that rarely reaches it: (tails, gaps).

    The distance is in standard errors. "Rarely" means with the log probability ``log_tails``, given
    that it passes a bar ``gap`` below the estimate.
    """
    from scipy.special import log_ndtr

    low, high = (np.full((len(log_tails), len(gap)), end) for end in (0.0, _REACH))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        # the farther below, the rarer
        often = log_ndtr(-middle) - log_ndtr(gap - middle) > log_tails
        low, high = np.where(often, middle, low), np.where(often, high, middle)
    return np.where(high >= _REACH, np.inf, high)


def log_tail(errors_on: int, on: Ints, errors: Ints, size: Ints) -> float:
    """Return log probability of at least this many errors on a slice.

    Parameters
    ----------
    errors_on : int
        Errors on the slice, over all strata.
    on, errors, size : int64 arrays, shape (H,)
        Units on the slice, errors, and units of each stratum.

    Returns
    -------
    float
        ``log P(K >= errors_on)``, K a sum of independent hypergeometric counts: one stratum gives
        Fisher's exact test, several the exact conditional test of a common odds ratio of one
        (Mehta, Patel and Gray 1985, doi:10.1080/01621459.1985.10478195). At least `LOG_FLOOR`.
    """
    if len(on) > _FEW_STRATA or next(_tails) >= _WORTH_COMPILING:
        from groundfault.stats import tail_kernels

        return float(tail_kernels.log_tail(errors_on, on, errors, size))
    return _compute_log_tail(errors_on, *(tuple(each.tolist()) for each in (on, errors, size)))


@lru_cache(1 << 14)  # searches ask again for rules that they have met: 3 MB
def _compute_log_tail(errors_on: int, on: _Counts, errors: _Counts, size: _Counts) -> float:
    """Return `tail_kernels.log_tail` without a compiler."""
    start, mass, last = 0, np.ones(1), np.ones(1)
    for k, failures, units in zip(on, errors, size, strict=True):
        low, high = max(0, k + failures - units), min(k, failures)
        if low == high:
            start += low
            continue
        mass = _convolve(last, mass) if len(mass) > 1 else last
        first, last = _list_atoms(k, failures, units, low, high)
        start += first
    at = errors_on - start
    if at <= 0:
        return 0.0
    # tails of the last stratum do for its atoms; from the far end, smallest first
    above = np.append(np.add.accumulate(last[::-1])[::-1], 0.0)
    needed = np.clip(at - np.arange(len(mass)), 0, len(last))
    tail = float(np.add.accumulate((mass * above[needed])[::-1])[-1])
    return max(math.log(min(tail, 1.0)), LOG_FLOOR) if tail > 0 else LOG_FLOOR


@lru_cache(1 << 11)  # the same strata are met again: 2 MB
def _list_atoms(on: int, errors: int, size: int, low: int, high: int) -> tuple[int, Floats]:
    """Return the first atom kept, and probabilities from there on, by ratios outward from the
    mode."""
    mean = on * (errors / size)
    deviation = math.sqrt(mean * (1 - errors / size) * (size - on) / max(size - 1, 1))
    reach = int(_DEVIATIONS * deviation) + _ATOMS
    mode = min(max(int((on + 1.0) * (errors + 1.0) / (size + 2.0)), low), high)
    first, last = max(low, mode - reach), min(high, mode + reach)
    x = np.arange(mode + 1.0, last + 1.0)
    above = (errors - x + 1.0) * (on - x + 1.0) / (x * (size - errors - on + x))
    x = np.arange(mode - 1.0, first - 1.0, -1.0)
    below = (x + 1.0) * (size - errors - on + x + 1.0) / ((errors - x) * (on - x))
    p = np.ones(last - first + 1)
    # one after the other, as compiled passes multiply and add
    np.multiply.accumulate(above, out=p[mode - first + 1 :])
    p[: mode - first] = np.multiply.accumulate(below)[::-1]
    outward = np.concatenate([p[mode - first :], p[: mode - first][::-1]])
    return first, p / np.add.accumulate(outward)[-1]


def _convolve(a: Floats, b: Floats) -> Floats:
    out = np.zeros(len(a) + len(b) - 1)
    for i, weight in enumerate(a.tolist()):
        out[i : i + len(b)] += weight * b
    return out


def log_tail_of_losses(
    total: float, step: float, on: Ints, home: Ints, values: Floats, counts: Ints
) -> float:
    """Return log probability of a slice's losses reaching a sum, by a double saddlepoint.

    Parameters
    ----------
    total : float
        Losses summed over the slice.
    step : float
        Losses are whole multiples of this number; 0 without a grid.
    on : int64 array, shape (H,)
        Units on the slice, of each stratum.
    home, values, counts : arrays, shape (V,)
        The population as a histogram: stratum, loss, and number of units.

    Returns
    -------
    float
        Log of P(sum of a random slice >= total); at least `LOG_FLOOR`.

    Notes
    -----
    Sums over samples without replacement are treated as sums of independent indicators, conditional
    on the count of each stratum: Robinson 1982, doi:10.1214/aos/1176345807; the tail is by
    Skovgaard 1987, doi:10.2307/3214216, with a continuity correction of half a step. The relative
    error is a few per cent, and larger near the largest possible sum.
    """
    from groundfault.stats import tail_kernels

    return float(tail_kernels.log_tail_of_losses(total, step, on, home, values, counts))
