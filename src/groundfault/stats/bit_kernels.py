"""Counting passes over packed rows, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from groundfault.stats.row_threads import share_rows

Bits = NDArray[np.uint64]
Counts = NDArray[np.int32]
_CACHED = 1 << 15
"""Words of bits that are read again while they are in the processor's second cache."""
_MANY = 16  # rows from which turning them takes less than it saves


# numba has no popcount: this is the LLVM intrinsic, one instruction where the processor has it
@intrinsic
def popcount(_: Any, word: Any) -> Any:
    """Count the bits of a word; only compiled code may call it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return builder.ctpop(args[0])

    return types.uint64(word), codegen


def count_shared(bits: Bits, planes: Bits) -> Counts:
    """`groundfault.stats.bits.count_and`, for large matrices."""
    out = np.zeros((len(bits), len(planes)), dtype=np.int32)
    same, words = bits is planes, bits.shape[1]
    everything = np.full(words, ~np.uint64(0))
    share_rows(
        lambda first, step: count_pairs(bits, planes, everything, 0, words, same, first, step, out),
        len(bits),
    )
    for place in range(len(bits) if same else 0):
        out[place + 1 :, place] = out[place, place + 1 :]
    return out


# cache: compiled once per machine, not once per process
@njit(cache=True, nogil=True)
def count_pairs(
    a: Bits,
    b: Bits,
    mask: Bits,
    start: int,
    stop: int,
    upper: bool,
    first: int,
    step: int,
    counts: Counts,
) -> None:  # pragma: no cover - compiled
    """Add the bits of a mask that each pair of rows shares in a run of words: of every ``step``-th
    row of ``a``, with all of ``b``, or with those from the same place on. Counts are of all rows,
    or of these alone.

    Elements are assigned one by one: for slices numba compiles its error messages, for a second.
    Rows are read some words at a time, which stay in the cache while they are paired. Of many rows
    the same word is next to each other, so that one instruction counts it in several.
    """
    many = b.shape[0] >= _MANY
    tile = max(8, min(_CACHED // max(1, b.shape[0]), stop - start + 7) // 8 * 8)
    row, turned = np.zeros(tile, np.uint64), np.zeros((tile, b.shape[0] if many else 0), np.uint64)
    for w in range(start, stop, tile):
        end = min(w + tile, stop)
        for j in range(turned.shape[1]):
            for v in range(end - w):
                turned[v, j] = b[j, w + v]
        for i, place in enumerate(range(first, a.shape[0], step)):
            i = place if counts.shape[0] == a.shape[0] else i
            for v in range(tile):
                row[v] = a[place, w + v] & mask[w + v] if w + v < end else np.uint64(0)
            if many:
                total, last = counts[i], np.uint64(b.shape[0])
                for v in range(0, end - w, 8):
                    words, others = row[v : v + 8], turned[v : v + 8]
                    # unsigned places: of signed ones each is asked whether it is negative
                    for j in range(np.uint64(place if upper else 0), last):
                        both = np.uint64(0)
                        for k in range(8):  # unrolled
                            both += np.uint64(popcount(words[k] & others[k, j]))
                        total[j] += np.int32(both)
                continue
            for j in range(place if upper else 0, b.shape[0]):
                other, shared = b[j, w:end], np.int32(0)
                # signed: only so do processors count several words at once
                for v in range(len(other)):
                    shared += np.int32(popcount(row[v] & other[v]))
                counts[i, j] += shared
