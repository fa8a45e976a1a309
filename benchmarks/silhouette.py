"""Time label-fixed shuffles beside as many calls of scikit-learn's `silhouette_score`, in the same
run.

Run with ``python benchmarks/silhouette.py [permutations] [--json]``. The matrix has the paper's
size, 1,253 by 18, and clusters of its 25. "bits" are zeros and ones; "filled" has 55 % of holes
filled with column means, as the paper's has; "texts" has 100 directions of texts beside them at
alpha 0.1. Times are of the wall and, in brackets, of the CPU; scikit-learn is timed by 100 calls.
What each calls is checked to be the same silhouette. ``--json`` ends with the ratios of CPU
times.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial

import numpy as np
from sklearn.metrics import silhouette_score

from groundfault_lab.stats.silhouette import combine, shuffle_silhouettes, silhouette

N, M, CLUSTERS, CALLS = 1_253, 18, 25, 100
LIMIT = 50


def main() -> None:
    permutations = next((int(word) for word in sys.argv[1:] if word.isdigit()), 1_000)
    ratios = {}
    rng = np.random.default_rng(0)
    values = (rng.random((N, M)) < rng.uniform(0.05, 0.75, M)).astype(np.float64)
    labels = rng.integers(0, CLUSTERS, N)
    filled = np.where(rng.random((N, M)) < 0.55, values.mean(axis=0), values)
    texts = combine(rng.normal(size=(N, 100)))
    print(f"{N:,} x {M}, {CLUSTERS} clusters; milliseconds a silhouette, of the wall (of the CPU)")
    for name, matrix, fixed, alpha in (
        ("bits", values, None, 0.0),
        ("filled", filled, None, 0.0),
        ("texts", filled, texts, 0.1),
    ):
        points = combine(matrix, fixed, alpha)
        np.testing.assert_allclose(
            silhouette(points, labels), silhouette_score(points, labels), atol=1e-9
        )
        run = partial(shuffle_silhouettes, matrix, labels, rng=rng, side_values=fixed, weight=alpha)
        run(4)  # compile
        theirs = measure(
            lambda points=points: [silhouette_score(points, labels) for _ in range(CALLS)], CALLS
        )
        ours = measure(lambda run=run: run(permutations), permutations)
        ratio = [a / b for a, b in zip(theirs, ours, strict=True)]
        ratios[name] = {"peer": theirs[1] / 1e3, "ours": ours[1] / 1e3, "ratio": ratio[1]}
        if name != "bits":
            ratios[name]["limit"] = LIMIT
        print(
            f"{name:7} scikit-learn {theirs[0]:7.3f} ({theirs[1]:7.3f})   here {ours[0]:6.3f} "
            f"({ours[1]:6.3f})   {ratio[0]:5.1f} times ({ratio[1]:5.1f})",
            flush=True,
        )
    if "--json" in sys.argv[1:]:
        print(json.dumps(ratios))


def measure(work: object, count: int) -> tuple[float, float]:
    """Milliseconds of wall and CPU each, the best of three goes."""
    best = (np.inf, np.inf)
    for _ in range(3):
        wall, cpu = time.perf_counter(), time.process_time()
        work()  # type: ignore[operator]
        best = tuple(map(min, best, (time.perf_counter() - wall, time.process_time() - cpu)))  # type: ignore[assignment]
    return 1e3 * best[0] / count, 1e3 * best[1] / count


if __name__ == "__main__":
    main()
