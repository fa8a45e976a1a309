"""Leaks: columns that predict the outcome almost perfectly, and noise that does not."""

from __future__ import annotations

import polars as pl
from audit_tables import make_planted_table

from groundfault import Evidence
from groundfault.auditing.leaks import MIN_FAILURES, find_leaks


def evidence(n: int = 400) -> Evidence:
    frame = make_planted_table(n).with_columns(
        status_code=pl.when(pl.col("error") == 1).then(500).otherwise(200),
        score=1 - pl.col("error") * 0.5,
    )
    return Evidence.from_table(frame, id="id", outcome="error")


def test_a_column_that_follows_from_the_outcome_is_a_leak() -> None:
    leaks = find_leaks(evidence(), ["status_code", "score", "hard", "words", "lang"])
    assert leaks == {"status_code": 1.0, "score": 1.0}


def test_few_failures_say_nothing() -> None:
    small = evidence(20)
    assert int((small.loss > 0.5).sum()) < MIN_FAILURES
    assert find_leaks(small, ["status_code"]) == {}
