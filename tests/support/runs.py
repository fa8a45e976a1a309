"""Two runs of one noisy model, and of one that got worse, as tables and reports."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

import groundfault
from groundfault import Candidate, Evidence, Plan, Report

RULES = {"hard": "hard", "odd": "odd", "long": "words > 60"}


def make_runs(
    seed: int = 0, *, n: int = 1000, shift: float = 0.0, everywhere: float = 0.0
) -> pl.DataFrame:
    """Errors .1 and .3 where hard; the run "new" fails more, by shift where hard."""
    rng = np.random.default_rng(seed)
    hard = rng.random(n) < 0.4
    rate = np.where(hard, 0.3, 0.1)
    part = {
        "id": [f"q{i:04d}" for i in range(n)],
        "hard": hard,
        "odd": rng.random(n) < 0.5,
        "words": rng.integers(1, 100, n),
    }
    return pl.concat(
        [
            pl.DataFrame({**part, "run": name, "error": (rng.random(n) < rate + extra).astype(int)})
            for name, extra in (("old", 0.0), ("new", shift * hard + everywhere))
        ]
    )


def make_evidence(frame: pl.DataFrame) -> Evidence:
    return Evidence.from_table(frame, id="id", model="run", outcome="error")


def compare_runs(frame: pl.DataFrame, plan: Plan | None = None, **options: Any) -> Report:
    candidates = [Candidate(name, rule) for name, rule in RULES.items()]
    return groundfault.audit(
        make_evidence(frame),
        plan,
        candidates,
        finders=(),
        compare=("old", "new"),
        ledger=False,
        **options,
    )
