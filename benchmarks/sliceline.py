"""Time SliceLine beside the PyPI package ``sliceline`` on the same tables, and against what the
machine can count.

Run with ``python benchmarks/sliceline.py --peer PYTHON``, where PYTHON is an interpreter that has
the package (any version of NumPy will do; ``pip install sliceline numba`` into an environment of
its own). Without one the package is looked for here, and where it is absent only our own times are
shown. All times are CPU seconds of all threads, from the table to the named slices; best of several
for ours, one run for the other, after a warm-up each. ``--large`` adds a million rows of 60
columns, and the package at 20 columns and level 3, which takes it minutes and 14 GB."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from groundfault.finders import SliceLine
from groundfault.stats.bit_kernels import popcount
from groundfault_lab.stats.slice_search import search
from groundfault_lab.stats.slices import Errors, Predicates
from groundfault_studies.charts import lines

PEER = """
import json, sys, time
import numpy as np
from sliceline.slicefinder import Slicefinder
def fit(X, errors, levels):
    start = time.process_time()
    settings = dict(alpha=0.95, k=10, max_l=levels, min_sup=len(X) // 100, verbose=False)
    finder = Slicefinder(**settings).fit(X, errors)
    return time.process_time() - start, finder
case = np.load(sys.argv[1])
rng = np.random.default_rng(0)
fit(rng.integers(0, 3, (300, 5)), (rng.random(300) < 0.3).astype(float), 3)
took, finder = fit(case["X"], case["errors"], int(sys.argv[2]))
slices = [
    (
        {str(f): int(v) for f, v in enumerate(row) if v is not None},
        round(float(s["slice_score"]), 9),
    )
    for row, s in zip(finder.top_slices_.tolist(), finder.top_slices_statistics_)
]
print(json.dumps([took, slices]))
"""


def table(n: int, m: int, kind: str = "binary", seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Four values a column, a tenth of errors, two planted slices."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n, m), dtype=np.int8)
    first, second = (
        (X[:, 0] == 1) & (X[:, 3] == 2),
        (X[:, 5] == 0) & (X[:, 7] == 1) & (X[:, 9] == 3),
    )
    rate = np.where(second, 0.7, np.where(first, 0.5, 0.1))
    return X, (rng.random(n) < rate).astype(float) if kind == "binary" else rng.gamma(1.0, rate)


def ours(
    X: np.ndarray, errors: np.ndarray, levels: int, times: int = 30, **more: Any
) -> tuple[float, SliceLine]:
    took = []
    for _ in range(times):
        start = time.process_time()
        finder = SliceLine(
            k=10, alpha=0.95, max_level=levels, min_support=len(X) // 100, **more
        ).fit(X, errors)
        took.append(time.process_time() - start)
    return min(took), finder


def peer(python: str, X: np.ndarray, errors: np.ndarray, levels: int) -> tuple[float, list[Any]]:
    with tempfile.TemporaryDirectory() as folder:
        case = Path(folder) / "case.npz"
        np.savez(case, X=X, errors=errors)
        out = subprocess.run(
            [python, "-c", PEER, str(case), str(levels)], capture_output=True, text=True, check=True
        ).stdout
    took, slices = json.loads(out.splitlines()[-1])
    return took, slices


def has_peer(python: str) -> bool:
    return subprocess.run([python, "-c", "import sliceline"], capture_output=True).returncode == 0


def compare(python: str | None, large: bool) -> None:
    print("rows x columns, level, errors    ours (CPU s)   package (CPU s)   ratio   same slices")
    for n, m, levels, kind in (
        (2_000, 10, 3, "binary"),
        (20_000, 10, 3, "binary"),
        (20_000, 20, 2, "binary"),
        (20_000, 20, 2, "real"),
        (20_000, 20, 3, "binary"),
        (20_000, 20, 3, "real"),
    ):
        X, errors = table(n, m, kind)
        took, finder = ours(X, errors, levels)
        line = f"{n:7,} x {m}, L{levels}, {kind:6}         {took:9.4f}"
        if python is None or (m == 20 and levels == 3 and not large):
            print(f"{line}   {'not run: it takes minutes and 14 GB (--large)' if python else ''}")
            continue
        other, theirs = peer(python, X, errors, levels)
        mine = [({str(f): v for f, v in s.predicates.items()}, s.score) for s in finder.slices_]
        same = sorted(map(_key, mine)) == sorted(map(_key, theirs))
        print(f"{line}   {other:15.2f}   {other / took:5.0f}   {same}")


def _key(slice_: Any) -> tuple[Any, ...]:
    predicates, score = slice_
    return round(score, 6), tuple(sorted(predicates.items()))


@njit(cache=True)
def _count_in_cache(a: Any, b: Any, times: int) -> int:
    total = np.uint64(0)
    for t in range(times):
        for w in range(len(a)):
            total += popcount(a[w] & (b[w] + np.uint64(t)))
    return total


def limit() -> float:
    """Words of 64 rows a second that one core can intersect and count, both operands in its nearest
    cache.
    """
    a, b = (np.random.default_rng(0).integers(0, 2**63, 512).astype(np.uint64) for _ in range(2))
    _count_in_cache(a, b, 1)
    took = []
    for _ in range(5):
        start = time.process_time()
        _count_in_cache(a, b, 200_000)
        took.append(time.process_time() - start)
    return 512 * 200_000 / min(took)


def against_the_machine(large: bool) -> None:
    max_words = limit()
    print(
        f"\nlimit: {max_words:.2e} words of 64 rows a CPU second\nsearch alone, level 3 (alpha 1: "
        "hardly anything pruned)"
    )
    for n, m, alpha in [
        (200_000, 30, 0.95),
        (200_000, 30, 1.0),
        *([(10**6, 60, 0.95), (10**6, 60, 1.0)] if large else []),
    ]:
        X, loss = table(n, m)
        errors = Errors.of(loss)
        objective = errors.objective(alpha, n // 100)
        predicates = Predicates.of(
            np.ascontiguousarray(X.T).view(np.uint8), np.full(m, 4), objective
        )
        start, wall = time.process_time(), time.perf_counter()
        result = search(predicates, errors, objective, k=10, levels=3)
        took, wall = time.process_time() - start, time.perf_counter() - wall
        count = sum(level.counted for level in result.levels)
        print(
            f"{n:9,} x {m}, alpha {alpha}: {took:7.3f} CPU s, {wall:7.3f} s, {count:9,} slices "
            f"counted, {result.words / took:.2e} words a CPU second "
            f"({result.words / took / max_words:.0%} of the limit)"
        )


def growth(plot: str | None) -> None:
    print("\ngrowth with rows: 20 columns, level 3, end to end")
    points: dict[str, list[tuple[float, float]]] = {"binary": [], "real": []}
    for n in (50_000, 100_000, 200_000, 400_000, 800_000):
        for kind, line in points.items():
            line.append((n, ours(*table(n, 20, kind), 3, 3)[0]))
        print(
            f"{n:9,} rows   "
            + "   ".join(f"{kind} {line[-1][1]:.4f}" for kind, line in points.items())
        )
    if plot:
        Path(plot).write_text(lines(points, "rows", "CPU seconds", percent=False))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", default=sys.executable)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--plot", metavar="FILE.svg", help="draw the growth with rows")
    options = parser.parse_args()
    for kind in ("binary", "real"):
        ours(*table(2_000, 12, kind), 3, times=1, permutations=2)
    compare(options.peer if has_peer(options.peer) else None, options.large)
    growth(options.plot)
    took = ours(*table(20_000, 20), 3, 1, permutations=200)[0]
    print(f"\n200 replays of the search, 20,000 x 20, level 3: {took:.2f} CPU s in all")
    against_the_machine(options.large)
    if options.large:
        X, errors = table(10**6, 60)
        wall = time.perf_counter()
        took, _ = ours(X, errors, 3, 1)
        wall = time.perf_counter() - wall
        print(f"1,000,000 x 60, level 3, end to end: {took:.2f} CPU s, {wall:.2f} s")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")


if __name__ == "__main__":
    main()
