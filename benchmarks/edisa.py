"""Time Edisa's fit beside a plain NumPy/SciPy program of the same model, and its growth with the
number of examples.

Run with ``python benchmarks/edisa.py [examples ...] [--json] [growth.svg]``: ``--json`` ends with
the ratios to the plain program, and the last plots the growth.
Both start from the same slices and do the same iterations; that their likelihoods agree is checked.
Times are CPU seconds of one thread. The plain program follows the textbook: three Gaussian blocks
at a time, responsibilities of all examples in memory. "Recorded" are times of the published
reference implementation on the machine of the specification, at 128 dimensions, two classes and 128
slices: 0.585 CPU seconds an iteration at 20,000 examples and 4.652 at 100,000; ratios to them are
across machines.

Two kinds of data: in "blurred" most examples belong to several slices, and an iteration is two
matrix products; in "clear" they belong to few, as those of real classifiers mostly do, and the
second product is a sparse one."""

from __future__ import annotations

import os

os.environ.update(
    OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", NUMBA_NUM_THREADS="1"
)

import json
import resource
import sys
import time

import numpy as np
from scipy.special import logsumexp

from groundfault_lab.slicing.edisa import Edisa

D, K, ITERATIONS = 128, 128, 20
PLAIN = 20_000
RECORDED = {20_000: 0.585, 100_000: 4.652}


def data(n: int, kind: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Embeddings of clusters, some of them badly predicted, and slices to start from."""
    rng = np.random.default_rng(seed)
    cluster = rng.integers(0, 40 if kind == "blurred" else K, n)
    z = (1 if kind == "blurred" else 3) * rng.normal(size=(K, D))[cluster] + rng.normal(size=(n, D))
    y = rng.integers(0, 2, n)
    wrong = rng.random(n) < np.where(cluster < 5, 0.7, 0.08)
    margin = np.abs(rng.normal(2.0, 1.0, n)) * np.where((y == 1) ^ wrong, 1, -1)
    p = 1 / (1 + np.exp(-margin))
    start = rng.integers(0, K, n) if kind == "blurred" else cluster
    return z, y, np.column_stack([1 - p, p]), start


def plain(z: np.ndarray, y: np.ndarray, p: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The textbook program: mean log-likelihood of each E-step."""
    blocks, weights, history = (z, np.eye(2)[y] - p, p), (0.15, 0.1, 1.0), []
    share, views = _m_step(blocks, np.eye(K)[labels])
    for _ in range(ITERATIONS):
        joint = np.log(share) + sum(
            w * _log_normal(x, *at) for w, x, at in zip(weights, blocks, views, strict=True)
        )
        total = logsumexp(joint, axis=1)
        history.append(total.mean())
        share, views = _m_step(blocks, np.exp(joint - total[:, None]))
    return np.array(history)


def _m_step(
    blocks: tuple[np.ndarray, ...], responsibility: np.ndarray
) -> tuple[np.ndarray, list[tuple]]:
    mass = responsibility.sum(axis=0) + 10 * np.finfo(float).eps
    means = [responsibility.T @ x / mass[:, None] for x in blocks]
    squares = [responsibility.T @ x**2 / mass[:, None] for x in blocks]
    return mass / mass.sum(), [(m, s - m**2 + 1e-6) for m, s in zip(means, squares, strict=True)]


def _log_normal(x: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    precision = 1 / variance
    quadratic = (
        (mean**2 * precision).sum(axis=1) - 2 * x @ (mean * precision).T + x**2 @ precision.T
    )
    return -0.5 * (x.shape[1] * np.log(2 * np.pi) + quadratic) - 0.5 * np.log(variance).sum(axis=1)


def measure(function: object, *arguments: object) -> tuple[float, object]:
    start = time.process_time()
    out = function(*arguments)  # type: ignore[operator]
    return time.process_time() - start, out


def fit(
    z: np.ndarray, y: np.ndarray, p: np.ndarray, labels: np.ndarray, dtype: str = "float64"
) -> Edisa:
    slicer = Edisa(
        n_slices=K,
        pca=None,
        init=labels,
        tol=0,
        max_iter=ITERATIONS,
        dtype=dtype,
        suspicion="slices",
    )
    return slicer.fit(z, y, p)


def main() -> None:
    sizes = [int(n) for n in sys.argv[1:] if n.isdigit()] or [
        5_000,
        10_000,
        20_000,
        50_000,
        100_000,
    ]
    for dtype in ("float64", "float32"):
        fit(*data(1_000, "clear"), dtype)  # compile
    print(
        f"d = {D}, {K} slices, 2 classes, {ITERATIONS} iterations; CPU seconds an iteration, one "
        "thread"
    )
    heads = ("examples", "float64", "float32", "plain", "ratio", "of recorded", "peak MB")
    print(
        " " * 9
        + " ".join(f"{head:>{w}}" for head, w in zip(heads, (9, 9, 9, 9, 6, 12, 8), strict=True))
    )
    points = [point for kind in ("blurred", "clear") for n in sizes for point in row(kind, n)]
    if sys.argv[1:] and sys.argv[-1].endswith(".svg"):
        plot(points, sys.argv[-1])
    if "--json" in sys.argv[1:]:
        timed_both = [point for point in points if "ratio" in point]
        print(json.dumps({f"{p['slices']}, {p['examples']}": p["ratio"] for p in timed_both}))


def row(kind: str, n: int) -> list[dict[str, object]]:
    arguments = data(n, kind)
    repeats = 3 if n <= PLAIN else 1
    double, slicer = min((measure(fit, *arguments) for _ in range(repeats)), key=lambda run: run[0])
    single, other = min(
        (measure(fit, *arguments, "float32") for _ in range(repeats)), key=lambda run: run[0]
    )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    np.testing.assert_allclose(slicer.log_likelihood_, other.log_likelihood_, rtol=1e-3)
    ratios: dict[str, dict[str, float]] = {"float64": {}, "float32": {}}
    line = f"{kind:9}{n:>9,} {double / ITERATIONS:9.4f} {single / ITERATIONS:9.4f}"
    if n <= PLAIN:
        took, history = measure(plain, *arguments)
        np.testing.assert_allclose(slicer.log_likelihood_[:ITERATIONS], history, atol=1e-9)
        line += f" {took / ITERATIONS:9.4f} {took / double:6.1f}"
        ratios = {"float64": {"ratio": took / double}, "float32": {"ratio": took / single}}
    else:
        line += " " * 17
    line += f" {RECORDED[n] * ITERATIONS / double:12.1f}" if n in RECORDED else " " * 13
    print(f"{line} {memory:8.0f}", flush=True)
    return [
        {"slices": f"{kind}, {dtype}", "examples": n, "seconds": took / ITERATIONS, **ratios[dtype]}
        for dtype, took in (("float64", double), ("float32", single))
    ]


def plot(points: list[dict[str, object]], path: str) -> None:
    import altair as alt

    chart = alt.Chart(alt.Data(values=points)).mark_line(point=True)
    axes = [
        alt.X("examples:Q", title="examples"),
        alt.Y("seconds:Q", title="CPU seconds an iteration"),
        alt.Color("slices:N", title=None),
    ]
    chart.encode(*axes).properties(width=420, height=260).save(path)


if __name__ == "__main__":
    main()
