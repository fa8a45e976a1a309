"""A table in Parquet files, with the candidates that audits by counts and in memory are held to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from groundfault.core.candidate import Candidate

CANDIDATES = (
    Candidate("hard", "hard"),
    Candidate("easy", "NOT hard"),
    Candidate("long", "n > 50"),
    Candidate("long in other words", "n >= 51"),
    Candidate("german, rest dropped", "lang = 'de'", missing="drop"),
    Candidate("german, rest off", "lang = 'de'", missing="off"),
    Candidate("german", "lang = 'de'"),
    Candidate("rare", "n = 3 AND hard"),
    Candidate("lost", "lost > 0", missing="off"),
    Candidate("hard and long", "hard AND n > 50"),
)


def make_table(n: int = 1000) -> pl.DataFrame:
    """Failures that go with ``hard``; ``lost`` is empty where the model failed; some unscored."""
    rng = np.random.default_rng(5)
    hard = rng.random(n) < 0.3
    error = rng.random(n) < 0.2 + 0.25 * hard
    table = pl.DataFrame(
        {
            "id": [f"q{i}" for i in range(n)],
            "error": error.astype(int),
            "hard": hard,
            "n": rng.integers(0, 100, n),
            "lang": [("de", "en", None)[i] for i in rng.integers(0, 3, n)],
            "lost": np.where(error & (rng.random(n) < 0.6), np.nan, rng.normal(size=n)),
            "part": np.where(rng.random(n) < 0.5, "discovery", "holdout"),
        }
    )
    is_lost = pl.int_range(n) % 50 == 0
    return table.with_columns(error=pl.when(is_lost).then(None).otherwise("error"))


def write_parts(folder: Path, table: pl.DataFrame) -> Path:
    """Two Parquet files of a table."""
    folder.mkdir(exist_ok=True)
    half = table.height // 2
    table[:half].write_parquet(folder / "a.parquet")
    table[half:].write_parquet(folder / "b.parquet")
    return folder
