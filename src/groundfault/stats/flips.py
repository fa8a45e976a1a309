"""Changes: test whether two ways differ on slices of units, the same units or others.

If a unit's 0/1 outcome differs between the two ways only by chance, the sign of its difference is +
or - with equal chances. Random sign flips then show the effect of chance, even if some units vary
more than others. Graded differences of mean 0 need not be symmetric: flips would turn a few large
gains and many small losses into a finding. Graded differences are tested by bets on the mean.

`Samples` compares two ways on different units: each unit with similar units. Units are similar if
their conditions make them equally likely to belong to the second way. If failing depends only on
the conditions, it is then chance which of these units the second way has (Rosenbaum and Rubin 1983,
doi:10.1093/biomet/70.1.41). Another mix of units is not a change; other failure rates are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from groundfault.stats import bits, multiple
from groundfault.stats.bits import Bits

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Singles = NDArray[np.float32]

# differences flipped, and slices unpacked, at a time
_BATCH = 1 << 21
_SLICES = 1 << 22  # cells: 4 MiB of bytes

STAKES = (0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.75, 0.9)
"""Shares of the wealth that bets on a mean stake, averaged: small shares for small changes, and all
below 1, since a change of -1 would lose all."""

_DEVIATIONS = 12.0
"""Standard deviations above half up to which tails are tabulated: e^-72, beyond any bar."""
_FOLDS = 5  # a fifth at a time is left out: rates of the rest are nearly those of all
_PENALTIES = (3.0, 30.0, 300.0, 3000.0)
"""Examples at which a condition keeps half its apparent effect: chosen on the folds left out."""
_CLASSES = 10
"""Classes of alike examples: five take nine tenths of a bias (Cochran 1968), ten nearly all."""
_LEAST = 0.002
"""Share of the run's variance that conditions must predict; else all examples count as similar.
Even if the same conditions told every failure, less moves a difference by .045 deviations
(the root of .002) at most."""
_TELLS = 0.95
"""Share of one run under a condition, and of all units under these conditions, from which a column
counts as the run's name or date: of 50 similar units, two would be of the other run, too few to
compare with."""
_MOST = 500
"""Number of conditions to predict rates from: the ones that divide the examples most evenly."""
_PAIRS = 50
"""Most pairs of conditions beside them: cuts next to each other make many of one cell."""


def max_t(
    packed: Bits,
    differences: Floats,
    draws: int,
    rng: np.random.Generator,
    *,
    elsewhere: Bits | None = None,
) -> Floats:
    """Return step-down max-T adjusted p-values that mean differences are 0 on slices, two-sided.

    Parameters
    ----------
    packed : uint64 array, shape (L, W)
        Slices of n units, packed.
    differences : float64 array, shape (n,)
        Differences of the two ways, one a unit.
    draws : int
        Number B of random flips; p-values are (1 + exceedances) / (B + 1).
    rng : numpy.random.Generator
    elsewhere : uint64 array, shape (L, W), optional
        Units to contrast each slice with: the null is then that the mean difference is the same on
        the slice and on these units. None tests the slice alone.

    Returns
    -------
    float64 array, shape (L,)

    Notes
    -----
    The statistic is a sum over its root sum of squares, so that slices with few and with many
    differences count alike. Without contrast the family-wise error is controlled exactly and
    strongly, since a slice's statistic depends only on its own units. The test assumes independent
    units and differences of one size that are symmetric about 0 under the null, which holds for 0/1
    losses with equal failure rates. Graded differences are tested by bets, as in `p_values`, and
    adjusted by Holm's method. A contrast puts changes on units at random, and is exact only
    asymptotically where some units change more than others.

    References
    ----------
    Westfall and Young, Resampling-Based Multiple Testing, 1993.

    Examples
    --------
    >>> slices = bits.pack(np.array([[True] * 8 + [False] * 8, [True, False] * 8]))
    >>> p = max_t(slices, np.repeat([1.0, 0.0], 8), 999, np.random.default_rng(0))
    >>> [bool(x < 0.05) for x in p]
    [True, False]
    """
    if elsewhere is not None:
        return _compare_rests(packed, packed | elsewhere, differences, draws, rng)
    if is_graded(differences):
        return multiple.holm(_bet(packed, differences, None))
    n, units = len(differences), np.flatnonzero(differences)
    on, changes = bits.take(packed, n, units), differences[units]
    scale = np.sqrt(bits.sums(on, changes[None] ** 2))

    def measure(drawn: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(scale > 0, np.abs(bits.sums(on, drawn)) / scale, 0.0).T

    signs = (rng.integers(0, 2, (rows, len(units)), dtype=np.int8) for rows in _split(draws, n))
    null = (measure((each * 2.0 - 1.0) * changes) for each in signs)
    return multiple.step_down(measure(changes[None])[0], null, draws)


def _split(draws: int, n: int) -> Iterator[int]:
    """Yield numbers of draws of n units that are held at a time."""
    size = max(1, _BATCH // max(1, n))
    return (min(size, draws - start) for start in range(0, draws, size))


def p_values(
    packed: Bits, differences: Floats, direction: NDArray[np.int64] | None = None
) -> Floats:
    """Return p-values that mean differences are 0 on slices, unadjusted.

    Parameters
    ----------
    packed : uint64 array, shape (L, W)
    differences : float64 array, shape (n,)
        Differences in [-1, 1].
    direction : int64 array, shape (L,), optional
        One-sided in these directions; None is two-sided.

    Returns
    -------
    float64 array, shape (L,)

    Notes
    -----
    If all differences other than 0 have one size, as for 0/1 losses, this is the sign test, which
    is exact for independent units with equal chances both ways. Otherwise p is one over the wealth
    of a bettor who stakes a share of the wealth on each difference, averaged over `STAKES`. It is
    valid for independent units whose mean differences average at most 0 (at least 0) on the slice,
    for any distributions: the mean of a product of independent factors is the product of their
    means, which is largest for equal means. Waudby-Smith and Ramdas 2024,
    doi:10.1093/jrsssb/qkad009.

    Examples
    --------
    >>> p_values(bits.pack(np.ones((1, 5), dtype=bool)), np.ones(5))
    array([0.0625])
    """
    if is_graded(differences):
        return _bet(packed, differences, direction)
    up, down = (
        bits.sums(packed, (sign * differences > 0).astype(np.int64)[None])[:, 0] for sign in (1, -1)
    )
    more, fewer = _tail(up, up + down, 0.5), _tail(down, up + down, 0.5)
    if direction is None:
        return np.asarray(np.minimum(1.0, 2 * np.minimum(more, fewer)))
    return np.asarray(np.where(direction > 0, more, fewer))


def _tail(up: Floats | Ints, changed: Floats | Ints, chance: float | Floats) -> Floats:
    """Return the probability of at least this many up among units that changed."""
    from scipy.special import bdtrc

    pairs = np.maximum(changed, 1).astype(np.int64)
    return np.where(up > 0, bdtrc(np.maximum(up - 1.0, 0), pairs, chance), 1.0)


def is_graded(differences: Floats) -> bool:
    """Return whether differences other than 0 have several sizes, so 0 may be their mean but not
    their centre."""
    sizes = np.abs(differences[differences != 0])
    return len(sizes) > 0 and bool(np.ptp(sizes) > 1e-9 * sizes[0])


def _bet(packed: Bits, differences: Floats, direction: NDArray[np.int64] | None) -> Floats:
    """Return one over the wealth of bets that differences are above 0, below it, or either."""
    units = np.flatnonzero(differences)
    on = bits.take(packed, len(differences), units)

    def doubt(side: int) -> Floats:
        factors = np.log1p(side * np.outer(STAKES, differences[units]))
        wealth = np.logaddexp.reduce(bits.sums(on, factors), axis=1) - np.log(len(STAKES))
        return np.asarray(np.exp(-np.maximum(wealth, 0.0)))

    if direction is None:
        return np.asarray(np.minimum(1.0, 2 * np.minimum(doubt(1), doubt(-1))))
    return np.asarray(np.where(direction > 0, doubt(1), doubt(-1)))


def _compare_rests(
    on: Bits, among: Bits, differences: Floats, draws: int, rng: np.random.Generator
) -> Floats:
    n = len(differences)
    step = max(1, _SLICES // max(1, n))

    def measure(drawn: Singles) -> Floats:
        out = np.zeros((drawn.shape[1], len(on)))
        for i in range(0, len(on), step):
            part = (bits.unpack(rows[i : i + step], n) for rows in (on, among))
            out[:, i : i + step] = np.abs(measure_rests(drawn, *part)).T
        return out

    null = (measure(shuffle(differences, rows, rng)[:, 1:]) for rows in _split(draws, n))
    return multiple.step_down(measure(differences[:, None].astype(np.float32))[0], null, draws)


def tabulate_signs(units: int, likely: float) -> NDArray[np.float32]:
    """Return log P(K >= k) for K heads of s coins: a row for each s, a column for each k from half.

    Parameters
    ----------
    units : int
        Coins, at most.
    likely : float
        Log P above which it is 0: such a rule stands out at no level.
    """
    from scipy.special import bdtrc

    width = int(_DEVIATIONS * math.sqrt(units) / 2) + 2
    s = np.arange(units + 1)[:, None]
    k = np.minimum(s // 2 + np.arange(width), s)
    tail = np.where(k > 0, bdtrc(np.maximum(k - 1.0, 0), np.maximum(s, 1), 0.5), 1.0)
    tail[tail > math.exp(likely)] = 1.0
    return np.log(np.maximum(tail, 1e-300)).astype(np.float32)


def contrast(
    on: Bools, d: Floats, listed: Sequence[Bools], *, counts: bool
) -> tuple[Floats, Floats]:
    """Return log p that rules changed no more than the rest did, by two tails.

    The first is normal in the difference, as `measure_rests` has it. The second is the larger one:
    for changes that are counts, the tail of the changed units at the odds of the change elsewhere
    may be.

    Parameters
    ----------
    on : bool array, shape (rules, units)
    d : float64 array, shape (units,)
        Changes.
    listed : sequence of bool array, shape (units,)
        Rules that are known to have changed: units are compared with units under the same first
        rule of these, or under no rule.
    counts : bool
        Whether all changes other than 0 have one size: then only their signs count.
    """
    from scipy.special import log_ndtr

    d = np.sign(d) if counts else d
    first = np.zeros(len(d), dtype=np.int64)
    for i in range(len(listed) - 1, -1, -1):
        first[listed[i]] = i + 1
    strata = np.eye(len(listed) + 1)[first]
    inside, total, squares = (on @ (strata * x[:, None]) for x in (np.ones_like(d), d, d**2))
    known, variance = _expect(inside, total, squares, strata.sum(0), d @ strata, d**2 @ strata)
    expected, variance = known.sum(axis=1), variance.sum(axis=1)
    net, changed = total.sum(axis=1), squares.sum(axis=1)
    normal = log_ndtr(-(net - expected) / np.sqrt(np.maximum(variance, 1e-9)))
    if not counts:
        return normal, normal
    tilt = np.clip((1 + expected / np.maximum(changed, 1)) / 2, 0, 1)
    odds = _tail(np.rint((changed + net) / 2), np.rint(changed), tilt)
    return normal, np.maximum(normal, np.log(np.maximum(odds, 1e-300)))


def _expect(
    inside: Floats, total: Floats, squares: Floats, size: Floats, every: Floats, square: Floats
) -> tuple[Floats, Floats]:
    """Return the changes expected inside rules from those elsewhere, and their variance.

    Of few units, maybe none changed by chance: no side counts as less variable than all units.
    """
    rest = size - inside
    known = (inside > 0) & (rest > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, pooled = (every - total) / rest, square / size - (every / size) ** 2
        within = np.maximum(squares / inside - (total / inside) ** 2, pooled)
        spread = np.maximum((square - squares) / rest - mean**2, pooled) / np.maximum(rest - 1, 1)
        variance = within * inside + inside**2 * spread
    # without units outside, only the units inside are known
    return np.where(known, inside * mean, total), np.where(known, variance, 0.0)


def shuffle(d: Floats, draws: int, rng: np.random.Generator) -> Singles:
    """Return changes as they are, and of units at random: shape (units, 1 + draws)."""
    return np.stack([d, *(rng.permutation(d) for _ in range(draws))], axis=1).astype(np.float32)


def measure_rests(drawn: Singles, on: Bools, among: Bools | None = None) -> Floats:
    """Return the normal deviates of rules from the rest, of all units or some, in draws."""
    sums = []
    for mask in (on, np.ones((1, len(drawn)), dtype=np.bool_) if among is None else among):
        rows = mask.astype(np.float32)
        sums += [rows.sum(axis=1, keepdims=True), rows @ drawn, rows @ drawn**2]
    expected, variance = _expect(*(each.astype(np.float64) for each in sums))
    return np.asarray((sums[1] - expected) / np.sqrt(np.maximum(variance, 1e-9)))


def tells_runs(on: Bools, second: Bools) -> bool:
    """Return whether conditions on one column tell for nearly all units in which run they are.

    Parameters
    ----------
    on : bool array, shape (conditions, units)
    second : bool array, shape (units,)
    """
    size = np.maximum(on.sum(axis=1), 1)
    mostly = np.abs((on & second).sum(axis=1) / size - 0.5) >= _TELLS - 0.5
    return bool(on[mostly].any(axis=0).mean() >= _TELLS)


class Samples:
    """Contributions of each example of two runs to the change inside any rule that matches it.

    Parameters
    ----------
    on : bool array, shape (conditions, units)
        Conditions that decide which examples are similar.
    losses : float64 array, shape (units,)
        Losses in [0, 1].
    second : bool array, shape (units,)
        Whether an example is in the second run.
    rng : numpy.random.Generator
        Draws the folds.

    Attributes
    ----------
    home : int64 array, shape (units,)
        Class of similar examples.
    changes : float64 array, shape (units,)
        The mean inside a rule is the change there, comparing similar examples; 0 for an example
        without a similar one in the other run.
    unlike : int
        Number of examples without a similar one.
    """

    def __init__(self, on: Bools, losses: Floats, second: Bools, rng: np.random.Generator) -> None:
        order = np.argsort(np.abs(on.mean(axis=1) - 0.5), kind="stable")
        rows = on[np.sort(order[:_MOST])].astype(np.float32)
        fold, run = rng.permutation(len(losses)) % _FOLDS, second.astype(np.float64)
        usual, chance = _predict(rows, np.stack([losses, run]), fold)
        pairs = _find_pairs(rows, run - chance)
        if len(pairs):
            usual, chance = _predict(np.concatenate([rows, pairs]), np.stack([losses, run]), fold)
        known = 1 - np.mean((run - chance) ** 2) / max(run.var(), 1e-9)
        self.home = np.zeros(len(losses), dtype=np.int64)
        if known >= _LEAST:
            ends = np.quantile(chance, np.arange(1, _CLASSES) / _CLASSES)
            self.home = np.searchsorted(ends, chance)
        self.share = self._average(run)
        both = (self.share > 0) & (self.share < 1)
        rest = losses - usual
        self.rest = np.where(both, rest - self._average(rest), 0.0)
        self.spread = np.where(both, self.share * (1 - self.share), 1.0)
        self.second, self.unlike = second, int((~both).sum())
        self.changes = self.weigh(run)

    def _average(self, values: Floats) -> Floats:
        size = np.bincount(self.home)
        return np.asarray((np.bincount(self.home, values) / np.maximum(size, 1))[self.home])

    def weigh(self, run: Floats) -> Floats:
        """Return the changes if the second run had other examples."""
        return np.asarray(self.rest * (run - self.share) / self.spread)

    def log_tail(self, on: Bools, changes: Floats) -> Floats:
        """Return the log p that changes inside rules sum to more than 0: a normal tail."""
        from scipy.special import log_ndtr

        return np.asarray(log_ndtr(-(on @ changes) / np.sqrt(np.maximum(on @ self.variance, 1e-9))))

    def find_lowest(
        self, drawn: NDArray[np.float32], on: Bools, least: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Return the lowest normal deviates of rules in draws, then of changes the other way."""
        rows = on.astype(np.float32)
        scale = np.sqrt(np.maximum(rows @ self.variance.astype(np.float32), 1e-9))[:, None]
        z = rows @ drawn / scale
        lowest = np.concatenate([-z.max(axis=0, initial=0), z.min(axis=0, initial=0)])
        return np.asarray(np.minimum(least, lowest))

    @property
    def variance(self) -> Floats:
        """Return each example's part of the variance of a rule's sum of changes by chance."""
        return np.asarray(self.rest**2 / self.spread)

    def permute(self, draws: int, rng: np.random.Generator) -> NDArray[np.float32]:
        """Return changes as they are, and with runs permuted within classes: (units, 1 + draws)."""
        run = np.sort(self.home + self.second / 2) % 1 > 0
        drawn = np.empty((len(run), 1 + draws), dtype=np.float32)
        drawn[:, 0] = self.changes
        for column in drawn.T[1:]:
            mixed = np.empty(len(run))
            mixed[np.argsort(self.home + rng.random(len(run)))] = run
            column[:] = self.weigh(mixed)
        return drawn


def _find_pairs(rows: NDArray[np.float32], rest: Floats) -> NDArray[np.float32]:
    """Return pairs of conditions that became more or less frequent than each of the two tells."""
    of_rest = rows * rest.astype(np.float32)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.abs(np.triu(of_rest @ rows.T, 1)) / np.sqrt(of_rest @ of_rest.T)
    # the largest of so many by chance
    i, j = np.nonzero(z > math.sqrt(2 * math.log(max(2, len(rows)) ** 2 / 2)))
    best = np.argsort(-z[i, j], kind="stable")[:_PAIRS]
    return np.asarray(rows[i[best]] * rows[j[best]])


def _predict(rows: NDArray[np.float32], targets: Floats, fold: NDArray[np.int64]) -> Floats:
    """Return predictions of each target from other folds: ridge regression on conditions."""
    found = np.empty((len(_PENALTIES), *targets.shape))
    ones = np.concatenate([rows, np.ones((1, len(fold)), dtype=np.float32)])
    whole, sums = ones @ rows.T, ones @ targets.T
    for f in range(_FOLDS):
        out = fold == f
        gram, cross = whole - ones[:, out] @ rows[:, out].T, sums - ones[:, out] @ targets[:, out].T
        size = np.count_nonzero(~out)
        middle, mean = gram[-1] / size, cross[-1] / size
        values, vectors = np.linalg.eigh(gram[:-1] - size * np.outer(middle, middle))
        turned = vectors.T @ (cross[:-1] - size * np.outer(middle, mean))
        for i, penalty in enumerate(_PENALTIES):
            weights = vectors @ (turned / (np.maximum(values, 0) + penalty)[:, None])
            found[i][:, out] = weights.T @ rows[:, out] + (mean - middle @ weights)[:, None]
    best = ((found - targets) ** 2).mean(axis=2).argmin(axis=0)
    return np.asarray(np.clip(found[best, np.arange(len(targets))], 0, 1))
