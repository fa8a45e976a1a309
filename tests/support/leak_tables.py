"""Tables with columns that came about with the answer, or after it."""

from __future__ import annotations

import numpy as np
import polars as pl


def make_later_columns(n: int = 600, seed: int = 5) -> pl.DataFrame:
    """A table with columns of every stage; long answers go with errors."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(n) < 0.3
    flips = rng.random(n) < 0.03
    return pl.DataFrame(
        {
            "id": [f"q{i:03d}" for i in range(n)],
            "topic": np.where(rng.random(n) < 0.5, "x", "y"),
            "prediction": np.where(rng.random(n) < 0.4 + 0.3 * wrong, "no", "yes"),
            "n_turns": rng.poisson(3 + 2 * wrong),
            "response_chars": rng.normal(300 + 150 * wrong, 80).round(),
            "feedback": np.where(wrong & (rng.random(n) < 0.6), "bad", "fine"),
            "reason": np.where(wrong, "stop", "end"),
            "flag": wrong ^ flips,
            "error": wrong.astype(int),
        }
    )
