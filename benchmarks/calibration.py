"""A loop that does a fixed amount of work, in proportions of an audit: what other times are held
against, so that a busy or a slower machine shows in both."""

from __future__ import annotations

import json
import time

import numpy as np

LOOP_SECONDS = 1.0
"""CPU seconds of the loop on two cores of an AMD EPYC, the machine that aims are meant for."""

_WORDS, _PASSES, _SORTS, _LINES = 1 << 15, 9_600, 16, 200_000


def run() -> float:
    """Return CPU seconds of the loop: bits counted in the cache, a sort, and Python objects."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2**63, (2, _WORDS), dtype=np.uint64)
    numbers = rng.normal(size=1 << 20)
    line = json.dumps({f"key {i}": [i, str(i), i / 7] for i in range(8)})
    start = time.process_time()
    for _ in range(_PASSES):
        np.bitwise_count(a & b).sum(dtype=np.int64)
    for _ in range(_SORTS):
        np.sort(numbers)
    for _ in range(_LINES):
        json.loads(line)
    return time.process_time() - start


if __name__ == "__main__":
    print(run())
