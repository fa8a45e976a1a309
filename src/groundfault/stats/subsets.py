"""Sums over random subsets of losses on a grid, counted exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# two tables of float64: a gigabyte
_MAX_CELLS = 6e7
_MAX_UPDATES = 3e9


def countable(values: NDArray[np.int64], sizes: NDArray[np.int64]) -> bool:
    """Whether `subset_sums` is affordable: a few seconds and a gigabyte at most."""
    largest = min(int(sizes.max(initial=0)), len(values) // 2)
    top = float(np.sort(values)[::-1][:largest].sum())
    # 34 standard deviations hold all probability above 1e-60, which is all that is kept
    window = min(
        top, 34.0 * float(values.std()) * np.sqrt(largest) + 2.0 * float(values.max(initial=1))
    )
    return largest * top <= _MAX_CELLS and len(values) * largest * window / 2 <= _MAX_UPDATES


def subset_sums(
    values: NDArray[np.int64], sizes: NDArray[np.int64]
) -> dict[int, tuple[float, float, Floats]]:
    """Exact distributions of sums over random subsets, by size: start, step 1, probabilities.

    Units are added one at a time: after i of them, a random k-subset holds the new one with
    probability k/i. Every term is positive, so nothing cancels. A subset of more than half the
    units is the complement of a smaller one."""
    from groundfault.stats.null_kernels import count_subsets

    n, total = len(values), int(values.sum())
    smaller = {int(k): min(int(k), n - int(k)) for k in sizes}
    largest = max(smaller.values(), default=0)
    top = int(np.sort(values)[::-1][:largest].sum())
    table, low, high = count_subsets(np.sort(values), largest, top)
    out = {}
    for k, small in smaller.items():
        pmf = table[small, low[small] : high[small] + 1].copy()
        start = low[small]
        if small != k:
            pmf, start = pmf[::-1].copy(), total - high[small]
        out[k] = (float(start), 1.0, pmf)
    return out
