"""Counting passes over rows of bits, and over all pairs and triples of rows.

Losses are bit planes, and expectations one rate for each run of words. Sums are then counts of
bits, which the processor does many at a time. NumPy counts small inputs, compiled code (`compiled`)
large ones.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groundfault.base.arrays import Bools, Floats, Ints
from groundfault.stats import bits as bitset
from groundfault.stats.bits import Bits

# below so many words to be read NumPy takes some 20 ms, and loading numba and compiling seconds
_WORTH_COMPILING = 1 << 22  # words of bits above which compiled code is faster than NumPy
_WORTH_CALLING = 1 << 18  # the same, once the code is loaded
_FEW_ROWS = 1_000  # rows whose triples are counted by a product of matrices: .1 s


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
        Bit planes of the losses, with the value of each in ``scale``.
    scale : float64 array, shape (P,)
    runs : int64 array, shape (R + 1,)
        Begins and ends of runs of words; ``rates`` has the expected loss of each unit of a run.
    rates : float64 array, shape (R,)
    upper : bool
        Whether pairs of a row with an earlier row may be left out (as 0 or any value).

    Returns
    -------
    float64 array, shape (3, A, B)
    """
    if not _use_compiled(len(a) * b.size * (1 + len(planes))):
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


def _use_compiled(words: int) -> bool:
    return words >= (_WORTH_CALLING if is_loaded() else _WORTH_COMPILING)


def is_loaded() -> bool:
    """Return whether compiled code is loaded."""
    return "groundfault.modes.compiled" in sys.modules


def find_hopeful(sums: Floats, allowed: Bools, z: float) -> Bools:
    """Return allowed pairs whose failure rate has a lower bound (Wilson) that may exceed the
    expected rate.

    Parameters
    ----------
    sums : float64 array, shape (3, A, B)
        As `sum_pairs` returns.
    allowed : bool array, shape (A, B)
    z : float
        Standard deviations from the rate to its bound.
    """
    # the margin is for rounding
    square = z * z * (1 - 1e-9)
    if _use_compiled(allowed.size):
        from groundfault.modes import compiled

        out = np.empty(allowed.shape, dtype=np.bool_)
        compiled.find_hopeful(sums, allowed, square, out)
        return out
    units, losses, expected = sums
    excess = losses - expected
    beyond = excess * np.abs(excess) * units > square * expected * (units - expected)
    return np.asarray(allowed & beyond)


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
    """Return guaranteed excess of rules: the least amount by which they fail more than expected.

    Parameters
    ----------
    units, losses, expected : float64 arrays
        Values of each rule; shapes are broadcast with the shape of ``z``.
    z : float64 array, or float
        Distance of the lower bound (Wilson) from the failure rate, in standard deviations.
    gamma : float
        Power of the size by which the excess is multiplied.

    Returns
    -------
    float64 array
        -9 for a rule that matches no unit.
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

    def are_rules(self, rows: Bits, support: bitset.Counts, least: int) -> Bools:
        """Return which have enough units, and fewer than each of their pairs."""
        n = np.bitwise_count(self.join(rows)).sum(axis=1, dtype=np.int64)
        i, j, k = self.i, self.j, self.k
        smallest = np.minimum(np.minimum(support[i, j], support[i, k]), support[j, k])
        return np.asarray((n >= least) & (n < smallest))


def _are_few(rows: Bits, pairs: Bools) -> bool:
    """Return whether NumPy counts the triples before compiled code is loaded."""
    upper = np.triu(pairs, 1).astype(np.float32)
    # of more rows the product alone takes longer
    triples = np.sum(upper @ upper * upper) if len(rows) <= _FEW_ROWS else np.inf
    return bool(triples * rows.shape[1] < _WORTH_COMPILING)


def count_triples(rows: Bits, pairs: Bools, support: bitset.Counts, least: int) -> int:
    """Return how many triples of rows are rules, with enough units, and fewer than each of their
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
    support: bitset.Counts,
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
