"""The exact decoy floor against 1,000 shuffled decoys computed the plain NumPy way, in one run.

    python benchmarks/exact_floor.py [--units 20000] [--candidates 2000] [--decoys 1000]

Prints CPU seconds of each, their ratio, and how far the shuffled floor is from the exact one. Aim:
a ratio over 100."""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

from groundfault.stats import decoys, null_distributions
from groundfault.stats.contingency import ContingencyTables


def plain(
    columns: np.ndarray, error: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Shuffle a column, take two means, as anybody would write it down."""
    lifts = np.empty(count)
    for i in range(count):
        decoy = rng.permutation(columns[i % len(columns)])
        lifts[i] = abs(error[decoy].mean() - error[~decoy].mean())
    return lifts


def exact(margins: ContingencyTables, levels: np.ndarray) -> np.ndarray:
    distinct, _, counts = null_distributions.find_distinct(margins)
    return null_distributions.from_errors(distinct, pooled=True).pool_tail(counts, levels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--units", type=int, default=20_000)
    parser.add_argument("--candidates", type=int, default=2_000)
    parser.add_argument("--decoys", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="end with the ratios as JSON")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    n, size = options.units, options.candidates
    error = rng.random(n) < 0.36
    columns = rng.random((size, n)) < rng.uniform(0.1, 0.9, size)[:, None]
    on, on_sum = columns.sum(axis=1), (columns & error).sum(axis=1)
    margins = ContingencyTables(np.full(size, n), on, np.full(size, error.sum()), on_sum)
    scores = margins.score()
    levels = np.unique(scores)
    exact(margins, levels)  # compiled once, kept on disk
    fast, slow = [], []
    for _ in range(options.runs):
        start = time.process_time()
        expected = exact(margins, levels)
        fast.append(time.process_time() - start)
        start = time.process_time()
        shuffles = plain(columns, error, options.decoys, rng)
        slow.append(time.process_time() - start)
    sampled = decoys.scale_counts(shuffles, levels, size)
    print(f"units {n}, candidates {size}, decoys {options.decoys}, median of {options.runs}")
    print(f"exact floor      {1e3 * np.median(fast):10.2f} ms")
    print(f"shuffled decoys  {1e3 * np.median(slow):10.2f} ms")
    print(f"ratio            {np.median(slow) / np.median(fast):10.1f}")
    print(f"largest error of the shuffled counts: {np.abs(sampled - expected).max():.1f} of {size}")
    if options.json:
        peer, ours = float(np.median(slow)), float(np.median(fast))
        result = {"peer": peer, "ours": ours, "ratio": peer / ours, "limit": 100}
        print(json.dumps({"exact floor": result}))


if __name__ == "__main__":
    main()
