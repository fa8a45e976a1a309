"""Checks: what an audit could find, before its holdout is opened."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from audit_tables import make_planted_table

import groundfault
from groundfault import Evidence, Library, Plan

STORED = Path(__file__).resolve().parents[1] / "fixtures" / "v0_1_0"


def test_check_reads_no_outcome_of_the_holdout() -> None:
    evidence = Evidence.from_table(make_planted_table(), id="id", outcome="error")
    is_holdout = ~Plan().discovery_units(evidence)
    other = evidence.frame.with_columns(
        pl.when(pl.Series(is_holdout)).then(1 - pl.col("error")).otherwise("error").alias("error")
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


def test_a_check_as_0_1_0_stored_it_is_written_again_byte_for_byte() -> None:
    evidence = Evidence.from_table(
        STORED / "confirmed" / "evidence.csv", id="item", outcome="error"
    )
    library = Library.load(STORED / "frozen" / "library.json")
    check = groundfault.check(evidence, Plan(), library, finders=[])
    text = json.dumps(check.to_dict(), indent=1, ensure_ascii=False)
    expected = (STORED / "frozen" / "check.json").read_text(encoding="utf-8")
    assert text == expected.removesuffix("\n")


def test_the_summary_is_still_read_by_keys_with_a_warning() -> None:
    check = groundfault.check(Evidence.from_table(make_planted_table(), id="id", outcome="error"))
    with pytest.warns(DeprecationWarning, match=r"CheckSummary\.n_holdout"):
        assert check.summary["n_holdout"] == check.summary.n_holdout
    with pytest.warns(DeprecationWarning, match="n_units"), pytest.raises(KeyError):
        check.summary["n_units"]
