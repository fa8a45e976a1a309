"""Passes over rows of bits, and over all pairs and triples of them, compiled: see `kernels`."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from groundfault.stats.bit_kernels import popcount
from groundfault.stats.bits import Bits

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@njit(cache=True, nogil=True)
def _count(a: Bits, b: Bits, start: int, stop: int) -> np.uint64:  # pragma: no cover - compiled
    """Bits that two rows share in a run of words."""
    total = np.uint64(0)
    for w in range(start, stop):
        total += popcount(a[w] & b[w])
    return total


@njit(cache=True, nogil=True)
def _sum(
    a: Bits, b: Bits, planes: Bits, scale: Floats, runs: Ints, rates: Floats
) -> tuple[float, float, float]:  # pragma: no cover - compiled
    """Units that two rows share, their losses, and what is expected of them."""
    units, losses, expected = 0.0, 0.0, 0.0
    for r in range(len(rates)):
        count = float(_count(a, b, runs[r], runs[r + 1]))
        units += count
        expected += rates[r] * count
    for p in range(len(scale)):
        total = np.uint64(0)
        for w in range(len(a)):
            total += popcount(a[w] & b[w] & planes[p, w])
        losses += scale[p] * float(total)
    return units, losses, expected


@njit(cache=True, nogil=True)
def sum_pairs(
    a: Bits,
    b: Bits,
    inside: Bits,
    planes: Bits,
    scale: Floats,
    runs: Ints,
    rates: Floats,
    out: Floats,
    first: int,
    step: int,
) -> None:  # pragma: no cover - compiled
    """`kernels.sum_pairs`, for every ``step``-th row from ``first`` on."""
    for i in range(first, a.shape[0], step):
        row = a[i] & inside
        for j in range(b.shape[0]):
            out[0, i, j], out[1, i, j], out[2, i, j] = _sum(row, b[j], planes, scale, runs, rates)


@njit(cache=True, nogil=True)
def guarantee(
    units: float, losses: float, expected: float, z: float, gamma: float
) -> float:  # pragma: no cover - compiled
    """Lower bound of the loss rate, less what is expected, times a weak power of the size."""
    if units < 1:
        return -9.0
    rate = min(losses / units, 1.0)
    z2 = z * z
    spread = z * math.sqrt(rate * (1 - rate) / units + z2 / (4 * units * units))
    low = (rate + z2 / (2 * units) - spread) / (1 + z2 / units)
    return float((low - expected / units) * units**gamma)


@njit(cache=True, nogil=True)
def count_triples(
    rows: Bits,
    pairs: NDArray[np.bool_],
    support: Ints,
    least: int,
    counts: Ints,
    first: int,
    step: int,
) -> None:  # pragma: no cover - compiled
    """`kernels.count_triples`, for every ``step``-th row from ``first`` on."""
    for i in range(first, len(rows), step):
        for j in range(i + 1, len(rows)):
            if not pairs[i, j]:
                continue
            both = rows[i] & rows[j]
            for k in range(j + 1, len(rows)):
                if pairs[i, k] and pairs[j, k]:
                    n = np.int64(_count(both, rows[k], 0, len(both)))
                    smallest = min(support[i, j], support[i, k], support[j, k])
                    counts[i] += n >= least and n < smallest


@njit(cache=True, nogil=True)
def search_triples(
    rows: Bits,
    pairs: NDArray[np.bool_],
    support: Ints,
    least: int,
    inside: Bits,
    planes: Bits,
    scale: Floats,
    runs: Ints,
    rates: Floats,
    z: float,
    gamma: float,
    best: Floats,
    third: Ints,
    first: int,
    step: int,
) -> None:  # pragma: no cover - compiled
    """`kernels.search_triples`, for every ``step``-th row from ``first`` on."""
    for i in range(first, len(rows), step):
        for j in range(i + 1, len(rows)):
            if not pairs[i, j]:
                continue
            both = rows[i] & rows[j]
            new = both & inside
            for k in range(j + 1, len(rows)):
                if not (pairs[i, k] and pairs[j, k]):
                    continue
                units, losses, expected = _sum(new, rows[k], planes, scale, runs, rates)
                score = guarantee(units, losses, expected, z, gamma)
                if score <= best[i, j]:
                    continue
                # whether it is a rule at all is asked last: few come so far
                n = np.int64(_count(both, rows[k], 0, len(both)))
                smallest = min(support[i, j], support[i, k], support[j, k])
                if least <= n < smallest:
                    best[i, j], third[i, j] = score, k
