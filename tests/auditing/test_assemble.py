"""Assembly: findings in order, examples that failed, and what weaker rules would report."""

from __future__ import annotations

from audit_tables import make_planted_results, make_planted_table

from groundfault import Verdict
from groundfault.auditing.assemble import assemble


def test_findings_are_ordered_and_twins_go_under_one() -> None:
    report = assemble(make_planted_results())
    assert [f.verdict for f in report.findings][:2] == [Verdict.CONFIRMED] * 2
    assert {f.name for f in report.confirmed} == {"hard", "again"}
    assert [f.representative for f in report.confirmed] == [None, report.confirmed[0].name]


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
