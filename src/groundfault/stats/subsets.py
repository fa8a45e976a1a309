"""Sums over random subsets of losses on a grid, counted exactly."""

from __future__ import annotations

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# two tables of float64: a gigabyte
_MAX_CELLS = 6e7
_MAX_UPDATES = 3e9
# far below any p-value that is reported, far above the smallest float: nothing turns denormal,
# which is slow
_NEGLIGIBLE = 1e-60


def countable(values: NDArray[np.int64], sizes: NDArray[np.int64]) -> bool:
    """Whether `subset_sums` is affordable: a few seconds and a gigabyte at most."""
    largest = min(int(sizes.max(initial=0)), len(values) // 2)
    top = float(np.sort(values)[::-1][:largest].sum())
    # 34 standard deviations hold all probability above `_NEGLIGIBLE`, which is all that is kept
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
    n, total = len(values), int(values.sum())
    smaller = {int(k): min(int(k), n - int(k)) for k in sizes}
    largest = max(smaller.values(), default=0)
    top = int(np.sort(values)[::-1][:largest].sum())
    table, low, high = _count_subsets(np.sort(values), largest, top)
    out = {}
    for k, small in smaller.items():
        pmf = table[small, low[small] : high[small] + 1].copy()
        start = low[small]
        if small != k:
            pmf, start = pmf[::-1].copy(), total - high[small]
        out[k] = (float(start), 1.0, pmf)
    return out


@njit(parallel=True, cache=True)
def _count_subsets(
    values: NDArray[np.int64], largest: int, top: int
) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:  # pragma: no cover - compiled
    old = np.zeros((largest + 1, top + 1))
    new = np.zeros((largest + 1, top + 1))
    low = np.full(largest + 1, top + 1)
    high = np.full(largest + 1, -1)
    new_low, new_high = low.copy(), high.copy()
    old[0, 0] = 1.0
    low[0], high[0], new_low[0], new_high[0] = 0, 0, 0, 0
    new[0, 0] = 1.0
    # values come sorted, the small ones first, so that windows widen as late as possible
    for i in range(1, len(values) + 1):
        v = values[i - 1]
        # parallel over sizes: row k of the new table reads rows k and k - 1 of the old one only
        for k in prange(1, min(i, largest) + 1):
            keep, add = 1.0 - k / i, k / i
            a = min(low[k], low[k - 1] + v) if high[k - 1] >= 0 else low[k]
            b = max(high[k], high[k - 1] + v) if high[k - 1] >= 0 else high[k]
            b = min(b, top)
            for s in range(a, b + 1):
                p = keep * old[k, s] if low[k] <= s <= high[k] else 0.0
                if low[k - 1] <= s - v <= high[k - 1]:
                    p += add * old[k - 1, s - v]
                new[k, s] = p
            # trimmed on both sides, or the loops above would run over cells that do not matter
            while a < b and new[k, a] < _NEGLIGIBLE:
                a += 1
            while a < b and new[k, b] < _NEGLIGIBLE:
                b -= 1
            new_low[k], new_high[k] = a, b
        old, new = new, old
        low, new_low = new_low, low
        high, new_high = new_high, high
    return old, low, high
