"""Boolean matrices packed 64 to a word, the counting pass over them, and layouts by strata.

Row ``j`` of a packed matrix holds one descriptor over ``m`` units, unit ``i`` in bit ``i % 64`` of
word ``i // 64``; the bits beyond ``m`` are zero."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint64]
Counts = NDArray[np.int32]
Bools = NDArray[np.bool_]
# cells that are unpacked to bytes at a time: 64 MiB to be multiplied, or as many as stay in the
# processor's cache
_BLOCK, _CACHED = 1 << 26, 1 << 20
# below so many words to be read in one call, or in many to come, NumPy counts: that takes 15 ms
# and .2 s at most, loading numba .3 s and compiling a second
_WORTH_COMPILING = 1 << 23
_WORTH_LOADING = 1 << 27  # the words to come, of which the comment above speaks
# below this many words NumPy is as fast as loaded, compiled code
_SMALL = 1 << 12
_KERNELS = "groundfault.stats.bit_kernels"


def pack(matrix: NDArray[np.bool_]) -> Bits:
    """Pack a boolean matrix.

    Parameters
    ----------
    matrix : bool array, shape (L, m)

    Returns
    -------
    uint64 array, shape (L, ceil(m / 64))
    """
    rows, m = matrix.shape
    packed = np.zeros((rows, 8 * words(m)), dtype=np.uint8)
    packed[:, : (m + 7) // 8] = np.packbits(matrix, axis=1, bitorder="little")
    # little-endian by name: on any machine bit i of word w is unit 64 w + i
    return packed.view("<u8").astype(np.uint64, copy=False)


def words(m: int) -> int:
    """Return words that a row over ``m`` units takes."""
    return (m + 63) // 64


def unpack(bits: Bits, m: int) -> NDArray[np.bool_]:
    """Return the boolean matrix, shape (L, m), that `pack` packed."""
    return np.unpackbits(bits.view(np.uint8), axis=1, count=m, bitorder="little").view(np.bool_)


def take(bits: Bits, m: int, index: NDArray[np.intp]) -> Bits:
    """Return the packed columns ``index`` of a packed matrix over ``m`` units, in that order."""
    step = max(1, _CACHED // max(m, 1))
    blocks = [
        pack(unpack(bits[i : i + step], m).take(index, axis=1)) for i in range(0, len(bits), step)
    ]
    return np.concatenate(blocks) if blocks else np.zeros((0, words(len(index))), dtype=np.uint64)


def count(bits: Bits) -> NDArray[np.int64]:
    """Return how many bits each row has: shape (L,)."""
    return np.asarray(np.bitwise_count(bits).sum(axis=1, dtype=np.int64))


def count_and(bits: Bits, planes: Bits) -> Counts:
    """Return how many bits each row shares with each plane.

    Parameters
    ----------
    bits : uint64 array, shape (L, W)
    planes : uint64 array, shape (P, W)

    Returns
    -------
    int32 array, shape (L, P)
        Of thousands of rows these take more memory than all else.
    """
    if not _use_kernels(bits.size * len(planes)):
        shared = [np.bitwise_count(bits & plane).sum(axis=1, dtype=np.int32) for plane in planes]
        return np.stack(shared, axis=1) if shared else np.zeros((len(bits), 0), dtype=np.int32)
    from groundfault.stats.bit_kernels import count_shared

    counts: Counts = count_shared(bits, planes)
    return counts


def expect(words: int) -> None:
    """Load the compiled pass where so many words are to be read, in however many calls."""
    if words >= _WORTH_LOADING:
        import_module(_KERNELS)


def _use_kernels(words: int) -> bool:
    return words >= (_SMALL if _KERNELS in sys.modules else _WORTH_COMPILING)


def sums(bits: Bits, values: NDArray[Any]) -> NDArray[Any]:
    """Return sum of each value vector over each row's units, exactly for whole numbers.

    Whole numbers are split into bit planes, so that a sum is a weighted count of shared bits;
    others are summed in double precision.

    Parameters
    ----------
    bits : uint64 array, shape (L, W)
    values : array of non-negative whole numbers or of floats, shape (M, m)

    Returns
    -------
    int64 or float64 array, shape (L, M)
    """
    if not np.issubdtype(values.dtype, np.integer):
        step = max(1, _BLOCK // max(values.shape[1], 1))
        blocks = [
            unpack(bits[i : i + step], values.shape[1]) @ values.T
            for i in range(0, len(bits), step)
        ]
        return np.concatenate(blocks) if blocks else np.zeros((0, len(values)))
    # the sum over bit planes of 2^b times a popcount: whole numbers, without rounding
    top = int(values.max(initial=0)).bit_length()
    if top == 1:
        return count_and(bits, pack(values != 0)).astype(np.int64)
    out = np.zeros((len(bits), len(values)), dtype=np.int64)
    for b in range(top):
        plane = pack((values >> b) & 1 == 1)
        if plane.any():
            out += count_and(bits, plane).astype(np.int64) << b
    return out


class JoinedRows:
    """Rows of bits, joined where they are read: ranges of a column are what two ends share, and
    there are few ends.

    Parameters
    ----------
    parts : sequence of tuple of uint64 arrays, shape (words,)
        Each row has the bits that all of its parts have.
    words : int
    """

    def __init__(self, parts: Sequence[tuple[Bits, ...]], words: int) -> None:
        self.parts, self.words = list(parts), words

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, places: slice | Sequence[int] | NDArray[np.intp]) -> Bits:
        some = self.parts[places] if isinstance(places, slice) else [self.parts[i] for i in places]
        out = np.empty((len(some), self.words), dtype=np.uint64)
        for row, parts in zip(out, some, strict=True):
            np.bitwise_and(parts[0], parts[-1], out=row)
            for part in parts[1:-1]:
                row &= part
        return out

    def unite(self, places: Sequence[int]) -> Bits:
        """Return the bits that any of some rows have."""
        return np.asarray(np.bitwise_or.reduce(self[places], axis=0))

    def list_inside(self, row: Bits) -> list[int]:
        """Return the places of rows that have no bit outside another."""
        step = max(1, _CACHED // max(8 * self.words, 1))
        starts = range(0, len(self), step)
        outside = [(self[i : i + step] & ~row).any(axis=1) for i in starts]
        return np.flatnonzero(~np.concatenate(outside)).tolist() if outside else []

    def list_sides(self, places: Sequence[int]) -> tuple[Bits, ...]:
        """Return rows that share the bits that any of some rows have."""
        return self.parts[places[0]] if len(places) == 1 else (self.unite(places),)


class Layout:
    """Place each unit in a row of bits, where every stratum begins a new word.

    All units of a word then have the same expected loss.

    Parameters
    ----------
    strata : int64 array, shape (units,)
        Numbers from 0.
    """

    def __init__(self, strata: NDArray[np.int64]) -> None:
        self.strata = strata
        sizes = np.bincount(strata)
        self.words = np.repeat(np.arange(len(sizes)), (sizes + 63) // 64)
        start = np.concatenate([[0], np.cumsum((sizes + 63) // 64 * 64)[:-1]])
        order = np.argsort(strata, kind="stable")
        offset = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self.place = np.empty(len(strata), dtype=np.intp)
        within = np.arange(len(strata)) - offset[strata[order]]
        self.place[order] = start[strata[order]] + within
        self.width = 64 * len(self.words)
        # where the words of each stratum begin, and where the last ones end
        self.runs = np.searchsorted(self.words, np.arange(len(sizes) + 1)).astype(np.int64)

    def pack(self, rows: Bools) -> Bits:
        """Pack rows of one value a unit: bool, shape (R, units) to (R, words)."""
        wide = np.zeros((len(rows), self.width), dtype=np.bool_)
        wide[:, self.place] = rows
        return pack(wide)

    def arrange(self, row: Bits) -> Bits:
        """Return a packed row in the order of this layout; a single stratum keeps its order."""
        alike = len(self.runs) == 2
        return row if alike else np.asarray(self.pack(unpack(row[None], len(self.strata)))[0])

    def unpack(self, rows: Bits) -> Bools:
        """Return the rows that `pack` packed."""
        return unpack(rows, self.width)[:, self.place]
