"""Columns whose gaps go with failing: the search names that they are missing, and no value."""

from __future__ import annotations

import numpy as np
import polars as pl

from groundfault import Evidence, Plan, audit
from groundfault.auditing.gap_columns import blank_gap_columns
from groundfault.auditing.prepared import start_audit


def make_evidence(lost_of: str, seed: int = 0) -> Evidence:
    """Values lost of three in ten failures, or passes, or rows; nothing else is related."""
    rng = np.random.default_rng(seed)
    failed = rng.random(500) < 0.3
    part = {"failures": failed, "passes": ~failed, "rows": np.ones(500, dtype=bool)}[lost_of]
    columns = {}
    for name in ("tool", "lang"):
        values = rng.choice(["a", "b", "c"], 500)
        gone = part & (rng.random(500) < 0.3)
        columns[name] = [None if g else str(v) for g, v in zip(gone, values, strict=True)]
    table = pl.DataFrame({"id": range(500), "error": failed.astype(int), **columns})
    return Evidence.from_table(table, id="id", outcome="error")


def list_rules(evidence: Evidence) -> tuple[list[str], str]:
    report = audit(evidence, Plan(judge="holm"), texts=False, ledger=False)
    assert report.mode_search is not None
    return [mode.rule for mode in report.modes], " ".join(report.mode_search.remarks)


def test_no_value_is_named_where_passes_lose_theirs() -> None:
    rules, remarks = list_rules(make_evidence("passes"))
    assert rules == []
    assert "whether they have a value goes with the outcome" in remarks
    assert "lang" in remarks
    assert "tool" in remarks


def test_that_a_value_is_missing_may_be_named() -> None:
    rules, _ = list_rules(make_evidence("failures"))
    assert rules
    assert all("IS NULL" in rule for rule in rules)


def test_harmless_gaps_leave_the_table_as_it_is() -> None:
    refused = 0
    for seed in range(20):
        evidence = make_evidence("rows", seed)
        prepared = start_audit(evidence, Plan(judge="holm"))
        table = evidence.frame.select("tool", "lang")
        blanked, names = blank_gap_columns(prepared, table, prepared.losses())
        refused += len(names)
        others = [name for name in table.columns if name not in names]
        assert blanked.select(others).equals(table.select(others))
        for name in names:
            assert blanked[name].drop_nulls().n_unique() == 1
            assert blanked[name].is_null().equals(table[name].is_null())
    assert refused <= 10
