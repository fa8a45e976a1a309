"""How many threads compiled passes and matrix products take; no answer depends on it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

# on smaller inputs, waking the other threads takes longer than the work
_SMALL = 20_000_000


@contextmanager
def enough_threads(work: int) -> Iterator[None]:
    """One compiled thread below twenty million descriptor-unit pairs, all of them above."""
    if work < _SMALL and "numba" not in sys.modules:
        # nothing is compiled yet, and of what is small nothing will be: loading numba takes a
        # second
        yield
        return
    import numba

    # restored afterwards: the number is global, and callers may have set it
    before = numba.get_num_threads()
    if work < _SMALL:
        numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(before)


def enough_openmp_threads(work: int) -> AbstractContextManager[object]:
    """`enough_threads`, for what scikit-learn compiled.

    Its threads wait by spinning: where a second one shares its core with other work, a fit of a
    thousand rows took thirty times as long as with one.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    limit: AbstractContextManager[object] = threadpool_limits(
        1 if work < _SMALL else None, "openmp"
    )
    return limit


def one_thread() -> AbstractContextManager[object]:
    """One thread for many small products, so that no digit depends on the number of cores.

    The libraries are looked up once a process: cheap enough to be entered at every step.
    """
    limit: AbstractContextManager[object] = _libraries().limit(limits=1)
    return limit


def one_blas_thread() -> AbstractContextManager[object]:
    """One thread for matrix products of small blocks, where a pool of our own uses the cores."""
    from threadpoolctl import threadpool_limits

    limit: AbstractContextManager[object] = threadpool_limits(1, "blas")
    return limit


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
