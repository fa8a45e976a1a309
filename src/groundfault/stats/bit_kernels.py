"""Counting passes over packed rows, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from groundfault.stats.row_threads import share_rows

Bits = NDArray[np.uint64]
Ints = NDArray[np.int64]
_CACHED = 1 << 15
"""Words of bits that are read again while they are in the processor's second cache."""


# numba has no popcount: this is the LLVM intrinsic, one instruction where the processor has it
@intrinsic
def popcount(_: Any, word: Any) -> Any:
    """Count the bits of a word; only compiled code may call it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return builder.ctpop(args[0])

    return types.uint64(word), codegen


def count_each(bits: Bits) -> Ints:
    """`groundfault.stats.bits.count`, for large matrices."""
    out = np.empty(len(bits), dtype=np.int64)
    share_rows(lambda first, step: _count(bits, out, first, step), len(bits))
    return out


def count_shared(bits: Bits, planes: Bits) -> Ints:
    """`groundfault.stats.bits.count_and`, for large matrices."""
    out = np.zeros((len(bits), len(planes)), dtype=np.int64)
    same, words = bits is planes, bits.shape[1]
    everything = np.full(words, ~np.uint64(0))
    share_rows(
        lambda first, step: count_pairs(
            bits, planes, everything, 0, words, same, first, step, out[first::step]
        ),
        len(bits),
    )
    for place in range(len(bits) if same else 0):
        out[place + 1 :, place] = out[place, place + 1 :]
    return out


# cache: compiled once per machine, not once per process
@njit(cache=True, nogil=True)
def _count(bits: Bits, out: Ints, first: int, step: int) -> None:  # pragma: no cover - compiled
    for j in range(first, bits.shape[0], step):
        total = np.int64(0)
        for w in range(bits.shape[1]):
            total += np.int64(popcount(bits[j, w]))
        out[j] = total


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
    counts: Ints,
) -> None:  # pragma: no cover - compiled
    """Add the bits of a mask that each pair of rows shares in a run of words: of every ``step``-th
    row of ``a``, with all of ``b``, or with those from the same place on.

    Rows are read some words at a time, which stay in the cache while they are paired.
    """
    tile = max(1, _CACHED // max(1, b.shape[0]))
    for w in range(start, stop, tile):
        end = min(w + tile, stop)
        for i in range(counts.shape[0]):
            place = first + i * step
            row = a[place, w:end] & mask[w:end]
            for j in range(place if upper else 0, b.shape[0]):
                other, total = b[j, w:end], np.int64(0)
                # signed: only so do processors count several words at once
                for v in range(len(row)):
                    total += np.int64(popcount(row[v] & other[v]))
                counts[i, j] += total
