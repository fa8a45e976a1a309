"""Hints: each one where it applies, and none where none does."""

from __future__ import annotations

import polars as pl
from audit_tables import make_planted_results, make_planted_table

import groundfault
from groundfault import Candidate, Evidence, Plan
from groundfault.auditing.hints import write_hints


def test_a_plain_audit_has_no_hint() -> None:
    assert write_hints(make_planted_results()) == ()


def test_a_window_through_a_candidate_is_pointed_out() -> None:
    (hint,) = write_hints(make_planted_results(Plan(judge="janus", prevalence=("0.1", "0.4"))))
    assert "of the edge of the prevalence window [0.1, 0.4]" in hint


def test_rare_errors_are_pointed_out() -> None:
    frame = make_planted_table(1000).with_columns(error=pl.col("error") * (pl.col("words") < 20))
    evidence = Evidence.from_table(frame, id="id", outcome="error")
    hints = groundfault.audit(evidence, Plan(judge="janus"), [Candidate("hard", "hard")]).hints
    assert any(hint.startswith("errors are rare") for hint in hints)
