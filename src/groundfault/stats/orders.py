"""Random orders of units: shuffled rows of a table, and the runs test of an order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

# cells that are held at a time
_BATCH = 1 << 20
# below so many rows to deal NumPy does it: that takes a quarter of a second at most, as loading
# numba does
_WORTH_COMPILING = 1 << 24
# types of cells that a kernel is compiled for: losses of 0 and 1, and any others
_COMPILED = (np.dtype(np.uint8), np.dtype(np.float64))


def deal(
    units: NDArray[Any],
    draws: int,
    rng: np.random.Generator,
    blocks: NDArray[np.int64] | None = None,
) -> Iterator[NDArray[Any]]:
    """Yield rows of a table in random orders, in batches.

    Parameters
    ----------
    units : array, shape (n, k)
        Rows stay whole.
    draws : int
        Random orders in all.
    rng : numpy.random.Generator
        The same seed gives the same orders on every code path: the orders of ``rng.shuffle`` and,
        within blocks, of sorting ``rng.random``.
    blocks : int64 array, shape (n,), optional
        Deal only among units of the same block.

    Yields
    ------
    array, shape (b, n, k)

    Examples
    --------
    >>> (batch,) = deal(np.array([[1], [2], [3]]), 4, np.random.default_rng(0))
    >>> batch.shape, sorted(batch[0, :, 0].tolist())
    ((4, 3, 1), [1, 2, 3])
    """
    n, width = units.shape
    table = np.ascontiguousarray(units)
    if blocks is not None:
        # few blocks as small numbers, which NumPy sorts by their digits
        _, blocks = np.unique(blocks, return_inverse=True)
        blocks = blocks.astype(np.min_scalar_type(blocks.max(initial=0)))
        home = np.argsort(blocks, kind="stable")
    shuffle = _choose_shuffle(table, draws)
    step = max(1, _BATCH // max(1, n * width))
    for start in range(0, draws, step):
        out = np.empty((min(step, draws - start), n, width), dtype=table.dtype)
        if blocks is None:
            out[:] = table
            shuffle(rng, out)
        else:
            for order in out:
                order[home] = table[_sort_within(rng.random((n,)), blocks)]
        yield out


def _choose_shuffle(
    table: NDArray[Any], draws: int
) -> Callable[[np.random.Generator, NDArray[Any]], None]:
    is_loaded = "groundfault.stats.order_kernels" in sys.modules
    is_large = is_loaded or draws * len(table) >= _WORTH_COMPILING
    if table.shape[1] != 1 or table.dtype not in _COMPILED or not is_large:
        return _shuffle
    from groundfault.stats.order_kernels import shuffle

    return lambda rng, out: shuffle(rng, out[:, :, 0])


def _shuffle(rng: np.random.Generator, out: NDArray[Any]) -> None:
    """Shuffle the rows of each table, shape (b, n, k), in place."""
    _, n, width = out.shape
    # a row is one record, and records are dealt themselves: a table of bytes stays in the
    # processor's cache where a column of numbers does not
    for records in out.view(f"V{out.itemsize * width}").reshape(len(out), n):
        rng.shuffle(records)


def _sort_within(keys: NDArray[np.float64], blocks: NDArray[Any]) -> NDArray[np.intp]:
    """Return rows by block, and by key within each: a faster ``np.lexsort((keys, blocks))``."""
    order = np.argsort(keys)
    values = keys[order]
    if (values[1:] == values[:-1]).any():  # equal keys: where they go, only a stable sort says
        return np.lexsort((keys, blocks))
    return order[np.argsort(blocks[order], kind="stable")]


@dataclass(frozen=True)
class RunsTest:
    """Runs of high and of low values, and their expected number in a random order.

    Attributes
    ----------
    runs, expected : float
        Sums over all sequences.
    p : float
        One-sided normal p-value for this few runs.
    """

    runs: float
    expected: float
    p: float


def count_runs(sequences: Iterable[NDArray[np.bool_]]) -> RunsTest:
    """Return Wald-Wolfowitz test of one or several sequences, each against its own random order.

    Parameters
    ----------
    sequences : iterable of bool arrays
        Whether each value is high, in order.

    Notes
    -----
    Wald and Wolfowitz 1940, doi:10.1214/aoms/1177731909. The normal approximation is good from
    about ten values of each kind on.

    Examples
    --------
    >>> ordered = np.repeat([True, False], 20)
    >>> result = count_runs([ordered])
    >>> result.runs, result.expected, result.p < 0.001
    (2.0, 21.0, True)
    """
    from scipy.special import ndtr

    runs = expected = variance = 0.0
    for high in sequences:
        n, ones = len(high), int(high.sum())
        if n < 2:
            continue
        both = 2 * ones * (n - ones)
        runs += 1 + int((high[1:] != high[:-1]).sum())
        expected += 1 + both / n
        variance += both * (both - n) / (n**2 * (n - 1))
    z = (runs - expected) / sqrt(variance) if variance > 0 else 0.0
    return RunsTest(runs, expected, float(ndtr(z)))
