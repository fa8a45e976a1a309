"""Checks: what an audit could find, before its holdout is opened."""

from __future__ import annotations

import polars as pl
from audit_tables import make_planted_table

import groundfault
from groundfault import Evidence, Plan


def test_check_reads_no_outcome_of_the_holdout() -> None:
    evidence = Evidence.from_table(make_planted_table(), id="id", outcome="error")
    is_holdout = ~Plan().discovery_units(evidence)
    other = evidence.frame.with_columns(
        pl.when(pl.Series(is_holdout)).then(1 - pl.col("error")).otherwise("error").alias("error")
    )
    checks = [
        groundfault.check(e, Plan(judge="janus")).to_dict()
        for e in (evidence, Evidence.from_table(other, id="id", outcome="error"))
    ]
    assert checks[0] == checks[1]
    hard = next(c for c in checks[0]["candidates"] if c["name"] == "hard")
    assert hard["eligible"]
    assert 0.1 < hard["minimum_detectable_lift"] < 0.6
    never = [c for c in checks[0]["candidates"] if not c["eligible"]]
    assert all(c["reason"] for c in never)
