"""Losses as counts: numbers of units with each loss, for data whose units are not in memory.

A permutation of the units' losses draws the losses of a descriptor's units without replacement.
This is one multivariate hypergeometric draw of counts for any number of units. If units are counted
by their pattern of descriptors, failures are dealt to the cells of these patterns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from groundfault.stats.contingency import ContingencyTables, common_grid
from groundfault.stats.multiple import step_down

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# counts that are drawn at a time: 16 MB
_BATCH = 2_000_000
# failures of cells that are drawn at a time: 32 MB
_NUMBERS = 4_000_000


@dataclass(frozen=True)
class LossCounts:
    """Numbers of units with each of V losses, in all and for H descriptors.

    Attributes
    ----------
    losses : float64 array, shape (V,)
        Losses in [0, 1].
    units : int64 array, shape (V,)
    defined, on : int64 arrays, shape (V, H)
        Units on which each descriptor is true or false, and on which it is true.
    strata : int64 array, shape (V,), or None
        Permute only among units of the same stratum; a loss then has one entry for each stratum.
    """

    losses: Floats
    units: Counts
    defined: Counts
    on: Counts
    strata: Counts | None = None

    @cached_property
    def denominator(self) -> int:
        """Return the number k so that losses are multiples of 1/k; 0 if they share no grid."""
        return common_grid(self.losses[self.units > 0])

    @cached_property
    def tables(self) -> ContingencyTables:
        """Return counts and loss sums of all descriptors."""
        sums = self.worth @ self.defined, self.worth @ self.on
        sizes = self.defined.sum(axis=0), self.on.sum(axis=0)
        return ContingencyTables(*sizes, *sums, self.denominator)

    @cached_property
    def worth(self) -> Counts | Floats:
        """Return the losses as multiples of 1 over the denominator; unchanged without one."""
        grid = self.denominator
        return np.rint(self.losses * grid).astype(np.int64) if grid else self.losses

    def squares(self) -> tuple[Floats, Floats]:
        """Return sums of squared losses where each descriptor is true, and where it is defined."""
        squared = self.losses**2
        return squared @ self.on, squared @ self.defined

    def describe(self) -> tuple[float, float]:
        """Return mean and variance of the losses of all units."""
        n = self.units.sum()
        if not n:
            return float("nan"), float("nan")
        mean = float((self.losses * self.units).sum() / n)
        return mean, float((np.square(self.losses - mean) * self.units).sum() / n)

    def shuffle(self, rng: np.random.Generator) -> LossCounts:
        """Return the counts after a permutation, of each descriptor by itself."""
        return replace(self, on=self._deal(self.defined, self.on, rng))

    def expect_sums(self) -> Floats:
        """Return expected loss sums of all descriptors after a permutation, in units of `worth`."""
        sums = np.zeros(self.on.shape[1])
        for part in self._parts:
            n = np.maximum(self.defined[part].sum(axis=0), 1)
            means = self.worth[part] @ self.defined[part] / n
            sums += means * self.on[part].sum(axis=0)
        return sums

    def redraw_sums(self, place: int, draws: int, rng: np.random.Generator) -> Iterator[Floats]:
        """Yield loss sums of one descriptor after permutations, in units of `worth`: shape (b,
        1)."""
        for drawn in self._redraw(place, draws, rng):
            yield np.asarray(self.worth @ drawn, dtype=np.float64)[:, None]

    def redraw_robust_lifts(
        self, place: int, draws: int, rng: np.random.Generator
    ) -> Iterator[Floats]:
        """Yield Studentised lifts of one descriptor: first of the data, then of permutations.

        Yields
        ------
        float64 array, shape (b, 1)
            As `groundfault.stats.multiple.redraw_robust_lifts`.
        """
        defined, on = self.defined[:, place], self.on[:, place]
        residuals, share = np.zeros(len(self.losses)), np.zeros(len(self.losses))
        for part in self._parts:
            n = max(1, defined[part].sum())
            residuals[part] = self.losses[part] - self.losses[part] @ defined[part] / n
            share[part] = on[part].sum() / n
        # weights of units are 1 - share on the slice, and -share off it
        squares, spread = (1 - 2 * share) * residuals**2, float((share * residuals) ** 2 @ defined)

        def studentise(counts: Counts) -> Floats:
            gap, variance = residuals @ counts, np.maximum(squares @ counts + spread, 0.0)
            # no variance is no difference, but for rounding
            size = gap / np.sqrt(np.maximum(variance, 1e-20))
            return np.asarray(np.where(variance > 1e-20, size, 0.0)[:, None])

        yield studentise(on[:, None])
        for drawn in self._redraw(place, draws, rng):
            yield studentise(drawn)

    @cached_property
    def _parts(self) -> list[NDArray[np.intp]]:
        """Return places of the losses of each stratum."""
        home = np.zeros(len(self.losses)) if self.strata is None else self.strata
        return [np.flatnonzero(home == each) for each in np.unique(home)]

    def _redraw(self, place: int, draws: int, rng: np.random.Generator) -> Iterator[Counts]:
        """Yield units of each loss that a descriptor is true for after permutations: shape (V,
        b)."""
        defined, on = self.defined[:, [place]], self.on[:, [place]]
        batch = max(1, _BATCH // len(self.losses))
        for start in range(0, draws, batch):
            size = min(batch, draws - start)
            yield self._deal(defined, np.broadcast_to(on, (len(on), size)), rng)

    def _deal(self, defined: Counts, on: Counts, rng: np.random.Generator) -> Counts:
        """Return the counts of some descriptors after a permutation of losses."""
        dealt = np.zeros(on.shape, dtype=np.int64)
        for part in self._parts:
            dealt[part] = deal_losses(defined[part], on[part].sum(axis=0), rng)
        return dealt


def deal_losses(units: Counts, sizes: Counts, rng: np.random.Generator) -> Counts:
    """Return how many randomly drawn units have each loss: int64, shape (V, H).

    Parameters
    ----------
    units : int64 array, shape (V, H) or (V, 1)
        Units of each loss; fewer than 10^9 in all.
    sizes : int64 array, shape (H,)
        Numbers of units to draw.
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


def deal_errors(
    sizes: Counts, errors: int, draws: int, rng: np.random.Generator
) -> Iterator[Counts]:
    """Yield failures of each cell when outcomes are permuted, in batches.

    Parameters
    ----------
    sizes : int64 array, shape (C,)
        Units of each cell; fewer than 10^9 in all.
    errors : int
        Failures in all cells together.
    draws : int
    rng : numpy.random.Generator

    Yields
    ------
    int64 array, shape (b, C)
    """
    batch = max(1, _NUMBERS // max(1, len(sizes)))
    for start in range(0, draws, batch):
        size = min(batch, draws - start)
        yield rng.multivariate_hypergeometric(sizes, errors, size=size, method="marginals")


def max_t(
    on: Bools,
    defined: Bools,
    sizes: Counts,
    errors: Counts,
    permutations: int,
    rng: np.random.Generator,
) -> Floats:
    """Return step-down max-T adjusted p-values of descriptors, from the cells of their
    combinations.

    Parameters
    ----------
    on, defined : bool arrays, shape (J, C)
        Whether each descriptor is true, and true or false, in each cell.
    sizes, errors : int64 arrays, shape (C,)
        Units of each cell, and failing units of each cell.
    permutations : int
        Number B of random permutations; p-values are (1 + exceedances) / (B + 1).
    rng : numpy.random.Generator

    Returns
    -------
    float64 array, shape (J,)

    Notes
    -----
    Statistic, step-down, guarantee and distribution are the same as for
    `groundfault.stats.multiple.max_t` with 0/1 losses: a permutation of rows deals failures to
    cells like these draws."""
    weights_on, weights = (on & defined).T.astype(np.float64), defined.T.astype(np.float64)
    support, n = sizes @ weights_on, sizes @ weights

    def measure(dealt: Counts) -> Floats:
        return _standardise(dealt @ weights_on, dealt @ weights, support, n)

    null = map(measure, deal_errors(sizes, int(errors.sum()), permutations, rng))
    return step_down(measure(errors[None])[0], null, permutations)


def _standardise(on_sum: Floats, total: Floats, on: Floats, n: Floats) -> Floats:
    """Return |lift| over its standard deviation in permutations; 0 where that is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = on_sum - on * total / n
        variance = on * (n - on) / n * (total - total**2 / n) / (n - 1)
        size = np.abs(gap) / np.sqrt(variance)
    return np.asarray(np.nan_to_num(size, nan=0.0, posinf=0.0))
