"""How many threads compiled passes take: on small inputs, waking the others takes longer than the work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numba

_SMALL = 20_000_000


@contextmanager
def enough_threads(work: int) -> Iterator[None]:
    """One thread for fewer than twenty million descriptor-unit pairs, as many as there are for more.

    No answer depends on it.
    """
    before = numba.get_num_threads()
    if work < _SMALL:
        numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(before)
