"""Columns whose gaps go with failing: the search names that they are missing, and no value."""

from __future__ import annotations

import numpy as np
import polars as pl

from groundfault import Evidence, Plan, audit
from groundfault.auditing.gap_columns import find_gap_columns
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
    assert "because whether there is one goes with the outcome" in remarks
    assert "lang" in remarks
    assert "tool" in remarks


def test_that_a_value_is_missing_may_be_named() -> None:
    rules, _ = list_rules(make_evidence("failures"))
    assert rules
    assert all("IS NULL" in rule for rule in rules)


def test_few_harmless_gaps_are_taken_for_others() -> None:
    refused = 0
    for seed in range(20):
        evidence = make_evidence("rows", seed)
        prepared = start_audit(evidence, Plan(judge="holm"))
        table = evidence.frame.select("tool", "lang")
        refused += len(find_gap_columns(prepared, table, prepared.losses()))
    assert refused <= 10


def test_what_only_one_benchmark_says_is_asked_inside_it() -> None:
    """Steps are of the easy benchmark, and say where it is hard; lines are of the hard one."""
    rng = np.random.default_rng(3)
    hard = rng.random(1200) < 0.5
    steps, lines = rng.integers(1, 9, 1200), rng.integers(1, 40, 1200)
    rate = np.where(hard, 0.5, np.where(steps >= 7, 0.6, 0.05))
    table = pl.DataFrame(
        {
            "id": range(1200),
            "error": (rng.random(1200) < rate).astype(int),
            "benchmark": np.where(hard, "code", "sums"),
            "steps": np.where(hard, np.nan, steps),
            "lines": np.where(hard, lines, np.nan),
        }
    ).fill_nan(None)
    evidence = Evidence.from_table(table, id="id", outcome="error")
    rules, remarks = list_rules(evidence)
    assert "among the examples that have a value" in remarks
    assert any(rule.startswith('"steps" >= ') for rule in rules)
    assert not any("lines" in rule and "IS NULL" not in rule for rule in rules)
    report = audit(evidence, Plan(judge="holm"), texts=False, ledger=False)
    mode = next(one for one in report.modes if "steps" in one.columns)
    assert mode.n + mode.n_outside == table["steps"].count()
