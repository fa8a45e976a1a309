"""Counting passes over rows of bits, and over all pairs and triples of them, compiled.

Losses come as bit planes, and what is expected as one rate for each run of words: sums are then
counts of bits, which the processor does many at a time.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from groundfault.stats.bit_kernels import popcount
from groundfault.stats.bits import Bits, count_and
from groundfault.stats.row_threads import share_rows

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


def sum_pairs(
    a: Bits, b: Bits, inside: Bits, planes: Bits, scale: Floats, runs: Ints, rates: Floats
) -> Floats:
    """Units, losses and expected losses of each pair of rows, among the units inside.

    Parameters
    ----------
    a, b : uint64 arrays, shape (A, W) and (B, W)
    inside : uint64 array, shape (W,)
    planes : uint64 array, shape (P, W)
        Bit planes of the losses, ``scale`` the worth of each.
    scale : float64 array, shape (P,)
    runs : int64 array, shape (R + 1,)
        Where runs of words begin and end; ``rates`` is what is expected of each of a run's units.
    rates : float64 array, shape (R,)

    Returns
    -------
    float64 array, shape (3, A, B)
    """
    out = np.empty((3, a.shape[0], b.shape[0]), dtype=np.float64)
    share_rows(
        lambda first, step: _sum_pairs(a, b, inside, planes, scale, runs, rates, out, first, step),
        len(a),
    )
    return out


def sum_rows(
    rows: Bits, inside: Bits, planes: Bits, scale: Floats, runs: Ints, rates: Floats
) -> Floats:
    """`sum_pairs` of each row with the units inside alone: shape (3, rows)."""
    everything = np.full((1, rows.shape[1]), ~np.uint64(0))
    return sum_pairs(rows, everything, inside, planes, scale, runs, rates)[:, :, 0]


@njit(cache=True, nogil=True)
def _sum_pairs(
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


def count_pairs(a: Bits, b: Bits) -> Ints:
    """Units of each pair of rows: shape (A, B)."""
    return count_and(a, b)


def count_triples(rows: Bits, pairs: NDArray[np.bool_], support: Ints, least: int) -> int:
    """How many triples of rows are rules: enough units, and fewer than each of their pairs."""
    counts = np.zeros(len(rows), dtype=np.int64)
    share_rows(
        lambda first, step: _count_triples(rows, pairs, support, least, counts, first, step),
        len(rows),
    )
    return int(counts.sum())


@njit(cache=True, nogil=True)
def _count_triples(
    rows: Bits,
    pairs: NDArray[np.bool_],
    support: Ints,
    least: int,
    counts: Ints,
    first: int,
    step: int,
) -> None:  # pragma: no cover - compiled
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
) -> tuple[Floats, Ints]:
    """The best third row for each pair of rows, and its guarantee: two arrays of shape (A, A)."""
    best = np.full((len(rows), len(rows)), -9.0)
    third = np.full((len(rows), len(rows)), -1)
    words = (inside, planes, scale, runs, rates)
    share_rows(
        lambda first, step: _search_triples(
            rows, pairs, support, least, *words, z, gamma, best, third, first, step
        ),
        len(rows),
    )
    return best, third


@njit(cache=True, nogil=True)
def _search_triples(
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
