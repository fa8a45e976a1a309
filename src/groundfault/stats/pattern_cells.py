"""Permutations of units that are known by pattern: failures dealt to cells, not to rows.

To permute the outcomes of n units is to draw, without putting back, which of them fail. How many
fail in each cell of units that are alike in every descriptor is then multivariate hypergeometric,
whatever n is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from groundfault.stats.multiple import step_down

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Bools = NDArray[np.bool_]

# numbers that are held at a time: 32 MB
_BATCH = 4_000_000


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
    batch = max(1, _BATCH // max(1, len(sizes)))
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
        Units of each cell, and those of them that fail.
    permutations : int
        Number B of random permutations; p-values are (1 + exceedances) / (B + 1).
    rng : numpy.random.Generator

    Returns
    -------
    float64 array, shape (J,)

    Notes
    -----
    The statistic, the step-down and what they guarantee are those of
    `groundfault.stats.permutation.max_t` for 0/1 losses, and so is the distribution: a
    permutation of rows deals failures to cells as these draws do."""
    weights_on, weights = (on & defined).T.astype(np.float64), defined.T.astype(np.float64)
    support, n = sizes @ weights_on, sizes @ weights

    def measure(dealt: Counts) -> Floats:
        return _standardise(dealt @ weights_on, dealt @ weights, support, n)

    null = map(measure, deal_errors(sizes, int(errors.sum()), permutations, rng))
    return step_down(measure(errors[None])[0], null, permutations)


def _standardise(on_sum: Floats, total: Floats, on: Floats, n: Floats) -> Floats:
    """Return sizes of lifts over what they vary by in permutations; 0 where they cannot vary."""
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = on_sum - on * total / n
        variance = on * (n - on) / n * (total - total**2 / n) / (n - 1)
        size = np.abs(gap) / np.sqrt(variance)
    return np.asarray(np.nan_to_num(size, nan=0.0, posinf=0.0))
