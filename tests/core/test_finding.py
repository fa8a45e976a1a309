"""Findings: rates of cells, names that nothing shares, and plain words."""

from __future__ import annotations

import json

import pytest

from groundfault.core.finding import Cell, Estimate, Finding, Verdict


def finding(outcome: str = "", verdict: Verdict = Verdict.CONFIRMED) -> Finding:
    cell = Cell(4, 6, 2, 3, 0.0)
    return Finding("a", "n > 1", "many", "me", outcome, verdict, "", "It is so.", cell, None, cell)


def test_rates_of_a_cell() -> None:
    assert Cell(4, 6, 2, 3, 0.0).on_rate == Cell(4, 6, 2, 3, 0.0).off_rate == 0.5
    assert Cell(0, 6, 0, 3, None).on_rate is None
    assert Cell(4, 0, 2, 0, None).off_rate is None


def test_the_key_names_the_outcome_where_there_are_several() -> None:
    assert finding().key == "a"
    assert finding("m1").key == "a · m1"


@pytest.mark.parametrize("verdict", list(Verdict))
def test_only_confirmed_findings_may_be_reported(verdict: Verdict) -> None:
    assert finding(verdict=verdict).confirmed == (verdict == "confirmed")


def test_a_finding_is_plain_json() -> None:
    data = json.loads(json.dumps(finding().to_dict()))
    assert data["verdict"] == "confirmed"
    assert data["aliases"] == []
    assert data["full"]["on"] == 4


def test_an_estimate_turns_with_its_side() -> None:
    assert Estimate(0.1, (0.0, 0.3)).swap() == Estimate(-0.1, (-0.3, 0.0))
    ratio = Estimate(2.0, (0.0, 4.0)).swap("risk_ratio")
    assert ratio == Estimate(0.5, (0.25, float("inf")))
