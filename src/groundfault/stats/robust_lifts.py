"""Lifts over a standard error that holds however much losses vary on and off the slice."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from groundfault.stats import bits
from groundfault.stats.bits import Bits

Floats = NDArray[np.float64]

# weights of units held at a time; more than that are made anew for every batch
_CELLS = 1 << 24


def centre_losses(
    losses: NDArray[np.int64] | Floats,
    has_loss: NDArray[np.bool_] | None = None,
    strata: NDArray[np.int64] | None = None,
) -> Floats:
    """Losses less the mean of their stratum, 0 where there is none.

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

    The lift is a sum of residuals, each times how far its unit's property is from what is usual in
    its stratum; its variance the sum of the squares of these products. Equal means then look
    alike whatever the variances, which a plain lift does not: a rare slice whose losses vary more
    than the rest has a large lift too often. For losses of 0 and 1 equal means have equal
    variances, and there is nothing to mend. Permutations of this statistic are exact where units
    are exchangeable and asymptotically right where only the means are equal (DiCiccio and Romano
    2017, doi:10.1080/01621459.2016.1202117; Chung and Romano 2013, doi:10.1214/13-AOS1090).

    Parameters
    ----------
    packed : uint64 array, shape (L, W)
        Descriptors over n units, packed.
    size : int
        Number n of units.
    valid : uint64 array, shape (L, W), optional
        Units where each descriptor is defined.
    strata : int64 array, shape (n,), optional
        Lifts are those within strata.
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
        """Signed statistics for units in other orders: shape (b, L).

        Parameters
        ----------
        residuals : float64 array, shape (b, n)
            Of `centre_losses`, permuted within strata.
        has_loss : float64 array, shape (b, n), optional
            1 where there is a loss, else 0; moved along with the residuals.
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
        """Weights of some descriptors, and where they are defined: shape (l, n) each."""
        for start in range(0, len(self.packed), self._step):
            part = slice(start, start + self._step)
            on = bits.unpack(self.packed[part], self.size).astype(np.float64)
            if self.valid is None:
                yield on - self._compute_shares(on, np.ones((1, self.size))), None
            else:
                defined = bits.unpack(self.valid[part], self.size).astype(np.float64)
                yield (on - self._compute_shares(on, defined)) * defined, defined

    def _compute_shares(self, on: Floats, defined: Floats) -> Floats:
        """Share of each unit's stratum that is on the slice, of those where it is defined."""
        on_sum, count = (
            np.add.reduceat(rows[:, self._order], self._starts, axis=1) for rows in (on, defined)
        )
        lengths = np.diff(np.append(self._starts, self.size))
        shares = np.empty_like(on)
        shares[:, self._order] = np.repeat(on_sum / np.maximum(count, 1), lengths, axis=1)
        return shares
