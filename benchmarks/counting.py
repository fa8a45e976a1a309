"""The counting pass over packed candidates against reading the same bits once, in one run.

    python benchmarks/counting.py [--units 1000000] [--candidates 1000]

Aim: a ratio of at most 3.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
from numba import njit, prange

from groundfault.stats import bits


@njit(parallel=True)
def read(packed: np.ndarray) -> int:
    """Add up all words: as little as a pass over them can do."""
    total = np.uint64(0)
    for j in prange(packed.shape[0]):
        part = np.uint64(0)
        for w in range(packed.shape[1]):
            part += packed[j, w]
        total += part
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--units", type=int, default=1_000_000)
    parser.add_argument("--candidates", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--json", action="store_true", help="end with the ratios as JSON")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    width = bits.words(options.units)
    packed = rng.integers(0, 2**64, (options.candidates, width), dtype=np.uint64)
    error = bits.pack(rng.random((1, options.units)) < 0.2)
    packed[:, -1] &= error[0, -1] | ~error[0, -1]
    bits.count_and(packed, error)
    read(packed)
    passes, once = [], []
    for _ in range(options.runs):
        start = time.perf_counter()
        bits.count_and(packed, error)
        passes.append(time.perf_counter() - start)
        start = time.perf_counter()
        read(packed)
        once.append(time.perf_counter() - start)
    print(
        f"units {options.units}, candidates {options.candidates}, {packed.nbytes / 1e6:.0f} MB, "
        f"median of {options.runs}"
    )
    print(f"counting pass   {1e3 * np.median(passes):8.2f} ms")
    print(f"reading once    {1e3 * np.median(once):8.2f} ms")
    print(f"ratio           {np.median(passes) / np.median(once):8.2f}")
    if options.json:
        print(json.dumps({"counting pass": np.median(once) / np.median(passes)}))


if __name__ == "__main__":
    main()
