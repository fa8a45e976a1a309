"""Changes: whether two ways differ on slices of the same units.

If a 0/1 outcome of a unit is the same under both ways but for chance, the sign of its difference is
as likely to be + as -. Flipping signs at random therefore says what chance does, however much some
units vary and others do not. Graded differences of mean 0 need not be symmetric: a few large gains
beside many small losses are flipped into a finding. There the mean is bet on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from groundfault.stats import bits, multiple
from groundfault.stats.bits import Bits

Floats = NDArray[np.float64]

# differences flipped, and slices unpacked, at a time
_BATCH = 1 << 21
_SLICES = 1 << 22  # cells: 4 MiB of bytes

STAKES = (0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.75, 0.9)
"""Shares of the wealth that bets on a mean stake, averaged: small ones for small changes, and below
1, since a change of -1 would lose all."""


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
        Of the two ways, a unit each.
    draws : int
        Number B of random flips; p-values are (1 + exceedances) / (B + 1).
    rng : numpy.random.Generator
    elsewhere : uint64 array, shape (L, W), optional
        The units that each slice is contrasted with: the null is then that the mean difference is
        the same on the slice and there. None tests the slice alone.

    Returns
    -------
    float64 array, shape (L,)

    Notes
    -----
    The statistic is a sum over its root sum of squares, so that a slice of few differences weighs
    as much as one of many. Without contrast the family-wise error is controlled exactly, and
    strongly: a slice's statistic depends on its own units alone. Assumes independent units, and
    that differences of one size are symmetric about 0 under the null, as those of 0/1 losses of
    equal failure rates are. Graded differences are bet on instead, as in `p_values`, and adjusted
    by Holm's method. A contrast flips what is left of the differences after their mean, which is
    exact only asymptotically.

    References
    ----------
    Westfall and Young, Resampling-Based Multiple Testing, 1993; for the contrast, Wu, Jackknife,
    bootstrap and other resampling methods in regression analysis, 1986.

    Examples
    --------
    >>> slices = bits.pack(np.array([[True] * 8 + [False] * 8, [True, False] * 8]))
    >>> p = max_t(slices, np.repeat([1.0, 0.0], 8), 999, np.random.default_rng(0))
    >>> [bool(x < 0.05) for x in p]
    [True, False]
    """
    if elsewhere is None and is_graded(differences):
        return multiple.holm(_bet(packed, differences, None))
    flips = _Flips(packed, differences, elsewhere)
    null = map(flips.statistics, flips.draw(draws, rng))
    return multiple.step_down(flips.statistics(flips.residuals[None])[0], null, draws)


def p_values(
    packed: Bits,
    differences: Floats,
    direction: NDArray[np.int64] | None = None,
) -> Floats:
    """Return p-values that mean differences are 0 on slices, each for its slice alone.

    Parameters
    ----------
    packed : uint64 array, shape (L, W)
    differences : float64 array, shape (n,)
        In [-1, 1].
    direction : int64 array, shape (L,), optional
        One-sided in these directions; None is two-sided.

    Returns
    -------
    float64 array, shape (L,)

    Notes
    -----
    Where all differences but 0 are of one size, as those of 0/1 losses, this is the sign test:
    exact for independent units of equal chances both ways. Else one over the wealth of a bettor
    who stakes shares of it on each difference, averaged over `STAKES`: valid for independent units
    whose mean differences average at most 0 (at least 0) on the slice, whatever their shapes, since
    a product of independent factors has the product of their means, which is largest where they are
    equal. Waudby-Smith and Ramdas 2024, doi:10.1093/jrsssb/qkad009.

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
    more, fewer = _sign_tail(up, up + down), _sign_tail(down, up + down)
    if direction is None:
        return np.asarray(np.minimum(1.0, 2 * np.minimum(more, fewer)))
    return np.asarray(np.where(direction > 0, more, fewer))


def _sign_tail(wins: NDArray[np.int64], pairs: NDArray[np.int64]) -> Floats:
    """Return probability of so many wins or more among pairs that may go either way."""
    from scipy.special import bdtrc

    return np.where(wins > 0, bdtrc(wins - 1.0, np.maximum(pairs, 1), 0.5), 1.0)


def is_graded(differences: Floats) -> bool:
    """Return whether differences but 0 are of several sizes, so that 0 may be their mean and not
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


class _Flips:
    """Statistics of slices for differences of other signs."""

    def __init__(self, packed: Bits, differences: Floats, elsewhere: Bits | None) -> None:
        n = len(differences)
        # a contrast flips what the overall mean leaves
        center = 0.0 if elsewhere is None or not n else differences.mean()
        self.residuals = differences - center
        self.units = np.flatnonzero(self.residuals)
        self.packed = bits.take(packed, n, self.units)
        self.elsewhere = None if elsewhere is None else bits.take(elsewhere, n, self.units)
        self.count = bits.count(packed)
        self.rest = None if elsewhere is None else bits.count(elsewhere)

    def draw(self, draws: int, rng: np.random.Generator) -> Iterator[Floats]:
        """Yield differences, all n of a row, with signs flipped at random: batches of rows."""
        n, m = len(self.residuals), len(self.units)
        step = max(1, _BATCH // max(1, n))
        for start in range(0, draws, step):
            rows = min(step, draws - start)
            signs = rng.integers(0, 2, (rows, m), dtype=np.int8) * 2.0 - 1.0
            out = np.zeros((rows, n))
            out[:, self.units] = signs * self.residuals[self.units]
            yield out

    def statistics(self, values: Floats) -> Floats:
        """Return the sizes of sums over root sums of squares, shape (rows, L)."""
        rows, m = values[:, self.units], len(self.units)
        squares = self.residuals[self.units] ** 2
        out = np.zeros((len(values), len(self.packed)))
        step = max(1, _SLICES // max(1, m))
        for start in range(0, len(self.packed), step):
            part = slice(start, start + step)
            weights = self._weights(part, m)
            scale = np.sqrt(weights**2 @ squares)
            sums = rows @ weights.T
            with np.errstate(divide="ignore", invalid="ignore"):
                out[:, part] = np.where(scale > 0, sums / scale, 0.0)
        return np.abs(out)

    def _weights(self, part: slice, m: int) -> Floats:
        on = bits.unpack(self.packed[part], m).astype(np.float64)
        if self.elsewhere is None or self.rest is None:
            return on
        off = bits.unpack(self.elsewhere[part], m).astype(np.float64)
        share = np.maximum(self.count[part], 1), np.maximum(self.rest[part], 1)
        return np.asarray(on / share[0][:, None] - off / share[1][:, None])
