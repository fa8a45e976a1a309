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
    out = np.empty((len(bits), len(planes)), dtype=np.int64)
    share_rows(lambda first, step: _count_and(bits, planes, out, first, step), len(bits))
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
def _count_and(
    bits: Bits, planes: Bits, out: Ints, first: int, step: int
) -> None:  # pragma: no cover - compiled
    for j in range(first, bits.shape[0], step):
        for p in range(planes.shape[0]):
            total = np.int64(0)  # signed: only so do processors count several words at once
            for w in range(bits.shape[1]):
                total += np.int64(popcount(bits[j, w] & planes[p, w]))
            out[j, p] = total
