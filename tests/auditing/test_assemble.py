"""Assembly: findings in order, examples that failed, and what weaker rules would report."""

from __future__ import annotations

import polars as pl
from audit_tables import make_planted_results, make_planted_table

import groundfault
from groundfault import Candidate, Evidence, Verdict
from groundfault.auditing.assemble import assemble


def test_findings_are_ordered_and_twins_go_under_one() -> None:
    report = assemble(make_planted_results())
    assert [f.verdict for f in report.findings][:2] == [Verdict.CONFIRMED] * 2
    assert {f.name for f in report.confirmed} == {"hard", "again"}
    assert [f.representative for f in report.confirmed] == [None, report.confirmed[0].name]


def test_an_audit_that_could_test_nothing_says_what_kept_it() -> None:
    table = pl.DataFrame({"id": range(60), "pair": [i // 2 for i in range(60)], "odd": [0, 1] * 30})
    evidence = Evidence.from_table(
        table.with_columns(error=pl.col("id") % 3 == 0), id="id", group="pair", outcome="error"
    )
    odd = Candidate("odd", "odd = 1")
    report = groundfault.audit(evidence, None, [odd], ledger=None, modes=False)
    assert "no candidate could be tested (1 of 1: is true for some rows" in report.conclusion


def test_examples_failed_and_are_on_the_slice() -> None:
    report = assemble(make_planted_results())
    frame = make_planted_table()
    failures = set(frame.filter(frame["hard"] & (frame["error"] == 1))["id"])
    assert len(report.examples["hard"]) == 5
    assert set(report.examples["hard"]) <= failures


def test_weaker_rules_report_at_least_as_much() -> None:
    baselines = assemble(make_planted_results()).baselines
    assert baselines is not None
    assert set(baselines.full) <= set(baselines.decoy_only)
    assert baselines.survivor_mean_abs_lift is not None
    assert len(baselines.top_k) == 4
