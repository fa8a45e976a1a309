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
    """Have all rows done, by as many threads as numba may use in the caller's.

    Parameters
    ----------
    run : callable
        Does the rows ``range(first, rows, step)``, the arguments being ``first`` and ``step``. Rows
        must not depend on each other.
    rows : int
    """
    threads = min(numba.get_num_threads(), rows)
    if threads <= 1:
        run(0, 1)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(run, range(threads), [threads] * threads))
