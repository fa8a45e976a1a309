"""Counting passes over all pairs and triples of literals, compiled."""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from groundfault.stats.bits import Bits, popcount

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


@njit(parallel=True, cache=True, nogil=True)
def count_pairs(a: Bits, b: Bits, inside: Bits) -> Ints:  # pragma: no cover - compiled
    """Units of each pair of rows, among those inside: shape (A, B)."""
    out = np.empty((a.shape[0], b.shape[0]), dtype=np.int64)
    for i in prange(a.shape[0]):
        row = a[i] & inside
        for j in range(b.shape[0]):
            total = np.uint64(0)
            for w in range(len(row)):
                total += popcount(row[w] & b[j, w])
            out[i, j] = total
    return out


@njit(parallel=True, cache=True, nogil=True)
def sum_pairs(
    a: Bits, b: Bits, inside: Bits, planes: Bits, scale: Floats, rate: Floats
) -> Floats:  # pragma: no cover - compiled
    """Units, losses and expected losses of each pair of rows, among the units inside.

    Parameters
    ----------
    a, b : uint64 arrays, shape (A, W) and (B, W)
    inside : uint64 array, shape (W,)
    planes : uint64 array, shape (P, W)
        Bit planes of the losses, ``scale`` the worth of each.
    scale : float32 array, shape (P,)
    rate : float32 array, shape (W,)
        What is expected of each of a word's units.

    Returns
    -------
    float32 array, shape (3, A, B)
    """
    out = np.empty((3, a.shape[0], b.shape[0]), dtype=np.float32)
    for i in prange(a.shape[0]):
        row = a[i] & inside
        for j in range(b.shape[0]):
            units, losses, expected = 0.0, 0.0, 0.0
            for w in range(len(row)):
                word = row[w] & b[j, w]
                if word:
                    count = float(popcount(word))
                    units += count
                    expected += count * rate[w]
                    for p in range(len(planes)):
                        losses += scale[p] * float(popcount(word & planes[p, w]))
            out[0, i, j], out[1, i, j], out[2, i, j] = units, losses, expected
    return out


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
    return (low - expected / units) * units**gamma


@njit(parallel=True, cache=True, nogil=True)
def count_triples(
    rows: Bits, pairs: NDArray[np.bool_], support: Ints, least: int
) -> int:  # pragma: no cover - compiled
    """How many triples of rows are rules: enough units, and fewer than each of their pairs."""
    counts = np.zeros(len(rows), dtype=np.int64)
    for i in prange(len(rows)):
        for j in range(i + 1, len(rows)):
            if not pairs[i, j]:
                continue
            both = rows[i] & rows[j]
            for k in range(j + 1, len(rows)):
                if pairs[i, k] and pairs[j, k]:
                    total = np.uint64(0)
                    for w in range(len(both)):
                        total += popcount(both[w] & rows[k, w])
                    n = np.int64(total)
                    smallest = min(support[i, j], support[i, k], support[j, k])
                    counts[i] += n >= least and n < smallest
    return counts.sum()


@njit(parallel=True, cache=True, nogil=True)
def search_triples(
    rows: Bits,
    pairs: NDArray[np.bool_],
    support: Ints,
    least: int,
    inside: Bits,
    planes: Bits,
    scale: Floats,
    rate: Floats,
    z: float,
    gamma: float,
) -> tuple[Floats, Ints]:  # pragma: no cover - compiled
    """The best third row for each pair of rows, and its guarantee: two arrays of shape (A, A)."""
    best = np.full((len(rows), len(rows)), np.float32(-9.0))
    third = np.full((len(rows), len(rows)), np.int64(-1))
    for i in prange(len(rows)):
        for j in range(i + 1, len(rows)):
            if not pairs[i, j]:
                continue
            both = rows[i] & rows[j]
            for k in range(j + 1, len(rows)):
                if not (pairs[i, k] and pairs[j, k]):
                    continue
                total, units, losses, expected = 0.0, 0.0, 0.0, 0.0
                for w in range(len(both)):
                    word = both[w] & rows[k, w]
                    if word:
                        total += float(popcount(word))
                        word &= inside[w]
                        count = float(popcount(word))
                        units += count
                        expected += count * rate[w]
                        for p in range(len(planes)):
                            losses += scale[p] * float(popcount(word & planes[p, w]))
                smallest = min(support[i, j], support[i, k], support[j, k])
                if total < least or total >= smallest:
                    continue
                score = guarantee(units, losses, expected, z, gamma)
                if score > best[i, j]:
                    best[i, j], third[i, j] = score, k
    return best, third
