"""Where a record and its recomputation differ."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

_TOLERANCE = 1e-9
"""Relative, which the last digits of another platform stay below."""
_ROUNDING = 1e-10
"""What rates may differ by where they cancel, or are roots; p-values are of no such size."""


def differences_of(a: Any, b: Any, where: str = "") -> Iterator[str]:
    """Yield where two pieces of JSON differ, and how; numbers beyond rounding in the last
    digits."""
    if isinstance(a, dict) and isinstance(b, dict):
        # hashes first: that the evidence is another one explains all the rest
        for key in sorted(set(a) | set(b), key=lambda key: (key != "hashes", key)):
            yield from differences_of(a.get(key), b.get(key), f"{where}.{key}" if where else key)
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            yield from differences_of(x, y, f"{where}[{i}]")
    elif isinstance(a, float) and isinstance(b, float | int):
        name = where.rpartition(".")[2]
        floor = 0.0 if name == "p" or name.startswith("p_") else _ROUNDING
        # NaN is close to nothing
        if not math.isclose(a, b, rel_tol=_TOLERANCE, abs_tol=floor):
            yield f"{where}: {a!r}, {b!r}"
    elif a != b:
        yield f"{where}: {a!r:.120}, {b!r:.120}"
