"""One thread for the matrix products of policies."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any


@cache
def _pools() -> Any:
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


def one_thread() -> AbstractContextManager[object]:
    """One thread while it lasts: the products are small, and so the last digit is the same on any number of cores."""
    limited: AbstractContextManager[object] = _pools().limit(limits=1)
    return limited
