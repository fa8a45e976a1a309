"""Counting passes over rows of bits, and over all pairs and triples of them.

Losses come as bit planes, and what is expected as one rate for each run of words: sums are then
counts of bits, which the processor does many at a time. NumPy does what is small, compiled code
(`compiled`) what is large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groundfault.stats.bits import Bits

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# below so many words to be read NumPy takes some 20 ms, and loading numba and compiling seconds
_WORTH_COMPILING = 1 << 22


def sum_pairs(
    a: Bits,
    b: Bits,
    inside: Bits,
    planes: Bits,
    scale: Floats,
    runs: Ints,
    rates: Floats,
    *,
    upper: bool = False,
) -> Floats:
    """Return units, losses and expected losses of each pair of rows, among the units inside.

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
    upper : bool
        Whether pairs of a row with one before its own place are left out, as 0 or not.

    Returns
    -------
    float64 array, shape (3, A, B)
    """
    if len(a) * b.size * (1 + len(planes)) < _WORTH_COMPILING:
        return _sum((a & inside)[:, None] & b, planes, scale, runs, rates)
    from groundfault.modes import compiled
    from groundfault.stats.row_threads import share_rows

    out = np.zeros((3, a.shape[0], b.shape[0]))
    share_rows(
        lambda first, step: compiled.sum_pairs(
            a, b, inside, planes, scale, runs, rates, upper, out, first, step
        ),
        len(a),
    )
    return out


def _sum(shared: Bits, planes: Bits, scale: Floats, runs: Ints, rates: Floats) -> Floats:
    """Return units, losses and expected losses of rows: uint64, shape (..., W) to float64, (3,
    ...)."""
    counts = np.add.reduceat(np.bitwise_count(shared), runs[:-1], axis=-1, dtype=np.int64)
    out = np.zeros((3, *shared.shape[:-1]))
    out[0] = counts.sum(axis=-1)
    for plane, worth in zip(planes, scale, strict=True):
        out[1] += worth * np.bitwise_count(shared & plane).sum(axis=-1, dtype=np.int64)
    for r, rate in enumerate(rates):
        out[2] += rate * counts[..., r]
    return out


def sum_rows(
    rows: Bits, inside: Bits, planes: Bits, scale: Floats, runs: Ints, rates: Floats
) -> Floats:
    """Return `sum_pairs` of each row with the units inside alone: shape (3, rows)."""
    everything = np.full((1, rows.shape[1]), ~np.uint64(0))
    return sum_pairs(rows, everything, inside, planes, scale, runs, rates)[:, :, 0]


def guarantee(
    units: Floats, losses: Floats, expected: Floats, z: Floats | float, gamma: float
) -> Floats:
    """Return guaranteed excess of rules: how much more often they fail than expected, at least.

    Parameters
    ----------
    units, losses, expected : float64 arrays
        Of each rule; shapes are broadcast together with that of ``z``.
    z : float64 array, or float
        Standard deviations that the lower bound of the failure rate is below it (Wilson).
    gamma : float
        Power of the size that the excess is multiplied with.

    Returns
    -------
    float64 array
        -9 where a rule holds for no unit.
    """
    n = np.maximum(units, 1e-9)
    rate = np.minimum(losses / n, 1.0)
    z2 = np.square(z)
    spread = z * np.sqrt(rate * (1 - rate) / n + z2 / (4 * n * n))
    low = (rate + z2 / (2 * n) - spread) / (1 + z2 / n)
    return np.asarray(np.where(units >= 1, (low - expected / n) * n**gamma, -9.0))


@dataclass(frozen=True)
class _Triples:
    """Triples of rows whose pairs are allowed: three places each, in ascending order."""

    i: NDArray[np.intp]
    j: NDArray[np.intp]
    k: NDArray[np.intp]

    @classmethod
    def of(cls, pairs: Bools) -> _Triples:
        upper = np.triu(pairs, 1)
        i, j = np.nonzero(upper)
        pair, k = np.nonzero(upper[i] & upper[j])
        return cls(i[pair], j[pair], k)

    def join(self, rows: Bits) -> Bits:
        return rows[self.i] & rows[self.j] & rows[self.k]

    def are_rules(self, rows: Bits, support: Ints, least: int) -> Bools:
        """Return which have enough units, and fewer than each of their pairs."""
        n = np.bitwise_count(self.join(rows)).sum(axis=1, dtype=np.int64)
        i, j, k = self.i, self.j, self.k
        smallest = np.minimum(np.minimum(support[i, j], support[i, k]), support[j, k])
        return np.asarray((n >= least) & (n < smallest))


def _are_few(rows: Bits, pairs: Bools) -> bool:
    """Return whether the triples are few enough for NumPy; of those counted here a third is
    left."""
    return int(np.count_nonzero(pairs)) * rows.size < 4 * _WORTH_COMPILING


def count_triples(rows: Bits, pairs: Bools, support: Ints, least: int) -> int:
    """Return how many triples of rows are rules: enough units, and fewer than each of their
    pairs."""
    if _are_few(rows, pairs):
        return int(_Triples.of(pairs).are_rules(rows, support, least).sum())
    from groundfault.modes import compiled
    from groundfault.stats.row_threads import share_rows

    counts = np.zeros(len(rows), dtype=np.int64)
    share_rows(
        lambda first, step: compiled.count_triples(
            rows, pairs, support, least, counts, first, step
        ),
        len(rows),
    )
    return int(counts.sum())


def search_triples(
    rows: Bits,
    pairs: Bools,
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
    """Return the best third row for each pair of rows, and its guarantee: two arrays of shape (A,
    A)."""
    best = np.full((len(rows), len(rows)), -9.0)
    third = np.full((len(rows), len(rows)), -1)
    if _are_few(rows, pairs):
        triples = _Triples.of(pairs)
        sums = _sum(triples.join(rows) & inside, planes, scale, runs, rates)
        scores = guarantee(sums[0], sums[1], sums[2], z, gamma)
        # whether they are rules at all is asked last: few come so far
        some = np.flatnonzero(scores > -9.0)
        some = some[_take(triples, some).are_rules(rows, support, least)]
        # the best of each pair is written last, of equal ones the first
        order = some[np.lexsort((-triples.k[some], scores[some]))]
        i, j = triples.i[order], triples.j[order]
        best[i, j], third[i, j] = scores[order], triples.k[order]
        return best, third
    from groundfault.modes import compiled
    from groundfault.stats.row_threads import share_rows

    words = (inside, planes, scale, runs, rates)
    share_rows(
        lambda first, step: compiled.search_triples(
            rows, pairs, support, least, *words, z, gamma, best, third, first, step
        ),
        len(rows),
    )
    return best, third


def _take(triples: _Triples, index: NDArray[np.intp]) -> _Triples:
    return _Triples(triples.i[index], triples.j[index], triples.k[index])
