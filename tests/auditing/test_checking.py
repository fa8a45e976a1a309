"""Checks: what an audit could find, before its holdout is opened."""

from __future__ import annotations

import polars as pl
from audit_tables import planted

import groundfault
from groundfault import Evidence, Plan


def test_check_reads_no_held_out_outcome() -> None:
    evidence = Evidence.from_table(planted(), id="id", outcome="error")
    held = ~Plan().discovery_units(evidence)
    other = evidence.frame.with_columns(
        pl.when(pl.Series(held)).then(1 - pl.col("error")).otherwise("error").alias("error")
    )
    checks = [
        groundfault.check(e).to_dict()
        for e in (evidence, Evidence.from_table(other, id="id", outcome="error"))
    ]
    assert checks[0] == checks[1]
    hard = next(c for c in checks[0]["candidates"] if c["name"] == "hard")
    assert hard["eligible"]
    assert 0.1 < hard["minimum_detectable_lift"] < 0.6
    never = [c for c in checks[0]["candidates"] if not c["eligible"]]
    assert all(c["reason"] for c in never)
