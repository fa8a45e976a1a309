"""Where a record and its recomputation differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_TOLERANCE = 1e-9


def differences_of(a: Any, b: Any, where: str = "") -> Iterator[str]:
    """Where two pieces of JSON differ, and how; numbers beyond rounding in the last digits."""
    if isinstance(a, dict) and isinstance(b, dict):
        # hashes first: that the evidence is another one explains all the rest
        for key in sorted(set(a) | set(b), key=lambda key: (key != "hashes", key)):
            yield from differences_of(a.get(key), b.get(key), f"{where}.{key}" if where else key)
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            yield from differences_of(x, y, f"{where}[{i}]")
    elif isinstance(a, float) and isinstance(b, float | int):
        # not "abs > tolerance", which NaN would pass
        if not abs(a - b) <= _TOLERANCE * max(1.0, abs(a)):
            yield f"{where}: {a!r}, {b!r}"
    elif a != b:
        yield f"{where}: {a!r:.120}, {b!r:.120}"
