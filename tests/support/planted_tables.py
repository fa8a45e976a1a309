"""Small tables with planted errors, which tests of several rooms share."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from groundfault import Evidence


def make_clusters(
    n: int = 900, d: int = 6, c: int = 3, seed: int = 0, shift: float = 0.0
) -> tuple[np.ndarray, ...]:
    """Embeddings of a few clusters, in some of which the predictions are mostly wrong."""
    rng = np.random.default_rng(seed)
    cluster = rng.integers(0, 8, n)
    z = rng.normal(size=(8, d))[cluster] * 4 + rng.normal(size=(n, d)) + shift
    y = rng.integers(0, c, n)
    wrong = rng.random(n) < np.where(cluster < 2, 0.85, 0.08)
    predicted = np.where(wrong, (y + 1) % c, y)
    logits = rng.normal(size=(n, c)) + 4.0 * np.eye(c)[predicted]
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return z, y, p


def make_embedded_evidence(
    n: int = 1200, *, lists: bool = True, predictions: bool = True, seed: int = 0
) -> Evidence:
    z, y, p = make_clusters(n, seed=seed)
    columns: dict[str, Any] = {"id": np.arange(n), "error": (p.argmax(axis=1) != y).astype(int)}
    if lists:
        columns["embedding"] = pl.Series(list(z), dtype=pl.List(pl.Float64))
    else:
        columns |= {f"embedding_{i}": z[:, i] for i in range(z.shape[1])}
    if predictions:
        columns |= {"label": np.array(["ape", "bee", "cat"])[y]}
        columns |= {f"probability_{name}": p[:, i] for i, name in enumerate(("ape", "bee", "cat"))}
    return Evidence.from_table(
        pl.DataFrame(columns), id="id", outcome="error", ignore=("label",) if predictions else ()
    )


def words_and_languages(n: int = 1200, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    words, lang = rng.integers(0, 1000, n), np.array(["de", "en", "fr"])[rng.integers(0, 3, n)]
    bad = (words >= 500) & (lang == "de")
    error = (rng.random(n) < np.where(bad, 0.75, 0.15)).astype(int)
    return pl.DataFrame(
        {"item": [f"i{i:05d}" for i in range(n)], "error": error, "words": words, "lang": lang}
    )


def results(n: int = 1200, seed: int = 0) -> Evidence:
    return Evidence.from_table(words_and_languages(n, seed), id="item", outcome="error")
