"""Losses as counts: how many units have each loss, where no unit is at hand.

To permute the losses of units is to draw, without putting back, those that a descriptor's units
have: a multivariate hypergeometric draw of their counts, whatever the number of units is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from groundfault.stats.contingency import ContingencyTables, common_grid

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

# counts that are drawn at a time: 16 MB
_BATCH = 2_000_000


@dataclass(frozen=True)
class LossCounts:
    """Units of each of V losses: all of them, and those of H descriptors.

    Attributes
    ----------
    losses : float64 array, shape (V,)
        In [0, 1].
    units : int64 array, shape (V,)
    defined, on : int64 arrays, shape (V, H)
        Those that each descriptor is true or false for, and true.
    """

    losses: Floats
    units: Counts
    defined: Counts
    on: Counts

    @cached_property
    def denominator(self) -> int:
        """The losses are whole multiples of 1 over it; 0 where they share no grid."""
        return common_grid(self.losses[self.units > 0])

    @cached_property
    def tables(self) -> ContingencyTables:
        """Counts and loss sums of all descriptors."""
        grid = self.denominator
        worth = np.rint(self.losses * grid).astype(np.int64) if grid else self.losses
        sums = worth @ self.defined, worth @ self.on
        return ContingencyTables(self.defined.sum(axis=0), self.on.sum(axis=0), *sums, grid)

    def squares(self) -> tuple[Floats, Floats]:
        """Sums of squared losses where each descriptor is true, and where it is defined."""
        squared = self.losses**2
        return squared @ self.on, squared @ self.defined

    def describe(self) -> tuple[float, float]:
        """Mean and variance of the losses of all units."""
        n = self.units.sum()
        mean = float((self.losses * self.units).sum() / n)
        return mean, float((np.square(self.losses - mean) * self.units).sum() / n)

    def shuffle(self, rng: np.random.Generator) -> LossCounts:
        """The counts after a permutation, of each descriptor by itself."""
        return replace(self, on=deal_losses(self.defined, self.on.sum(axis=0), rng))

    def redraw_robust_lifts(
        self, place: int, draws: int, rng: np.random.Generator
    ) -> Iterator[Floats]:
        """Studentised lifts of one descriptor: first of the data, then of permutations.

        Yields
        ------
        float64 array, shape (b, 1)
            As `groundfault.stats.permutation.redraw_robust_lifts`.
        """
        defined, on = self.defined[:, [place]], self.on[:, [place]]
        n, size = defined.sum(), on.sum()
        residuals = self.losses - (self.losses @ defined) / n
        share, spread = size / n, float(residuals**2 @ defined[:, 0])

        def studentise(counts: Counts) -> Floats:
            gap, squares = residuals @ counts, residuals**2 @ counts
            variance = np.maximum((1 - 2 * share) * squares + share**2 * spread, 0.0)
            # no variance is no difference, but for rounding
            size = gap / np.sqrt(np.maximum(variance, 1e-20))
            return np.asarray(np.where(variance > 1e-20, size, 0.0)[:, None])

        yield studentise(on)
        batch = max(1, _BATCH // len(self.losses))
        for start in range(0, draws, batch):
            drawn = np.full(min(batch, draws - start), size)
            yield studentise(deal_losses(defined, drawn, rng))


def deal_losses(units: Counts, sizes: Counts, rng: np.random.Generator) -> Counts:
    """How many of some units drawn at random have each loss: int64, shape (V, H).

    Parameters
    ----------
    units : int64 array, shape (V, H) or (V, 1)
        Units of each loss; fewer than 10^9 in all.
    sizes : int64 array, shape (H,)
        Units that are drawn.
    rng : numpy.random.Generator
    """
    rest, left = units.sum(axis=0), sizes.copy()
    out = np.zeros((len(units), len(sizes)), dtype=np.int64)
    # the last loss first, which is the failures where there are but two
    for v in range(len(units) - 1, 0, -1):
        rest = rest - units[v]
        out[v] = rng.hypergeometric(units[v], rest, left)
        left = left - out[v]
    out[0] = left
    return out
