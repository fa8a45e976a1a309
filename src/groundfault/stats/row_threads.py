"""Rows shared among threads.

A kernel that numba itself spreads over threads takes two to four times as long to compile as a
serial one, and its threads spin while they wait. Kernels are serial, let go of the interpreter, and
take every n-th row.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba


def share_rows(run: Callable[[int, int], object], rows: int) -> None:
    """Process all rows with as many threads as numba may use in the calling thread.

    Parameters
    ----------
    run : callable
        Called with ``first`` and ``step``, it processes the rows ``range(first, rows, step)``. Rows
        must not depend on each other.
    rows : int
    """
    threads = min(numba.get_num_threads(), rows)
    if threads <= 1:
        run(0, 1)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(run, range(threads), [threads] * threads))
