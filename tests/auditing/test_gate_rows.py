"""Rows that a gate's condition is asked of, as it names them."""

from __future__ import annotations

import pytest
from audit_tables import make_planted_evidence
from msgspec import structs
from runs import compare_runs, make_evidence, make_runs

import groundfault
from groundfault import Candidate, Report
from groundfault.auditing.gate_rows import (
    COLUMNS,
    GateRows,
    list_rules,
    make_mode_row,
    parse_condition,
    read_gated,
)
from groundfault.errors import RuleError
from groundfault.modes.mode import Alternative


def test_a_finding_is_told_of_the_side_with_more_failures() -> None:
    frame = make_runs(n=600).with_columns(score=100 - 50 * make_runs(n=600)["hard"].cast(int))
    evidence = make_evidence(frame).select_model("old")
    cut = Candidate("score > 60", "score > 60", "score is above 60", "thresholds")
    report = groundfault.audit(evidence, None, [cut], finders=(), ledger=False)
    assert report.findings[0].is_less_frequent
    rows = GateRows(report.data, parse_condition("confirmed and lift > 0"), modes=False)
    ((key, row),) = rows.rows.items()
    assert (row.name, row.rule) == ("score <= 60", "score <= 60")
    assert row.subject.name == "score > 60"
    # the key is of the candidate, which a report that does not confirm it has as well
    assert key == (report.findings[0].rule, "", True, "finding")


def test_a_comparison_has_a_row_for_the_overall_change() -> None:
    report = compare_runs(make_runs(n=3000, everywhere=0.1))
    rows = GateRows(report.data, parse_condition("kind = 'overall' and confirmed"))
    (row,) = rows.rows.values()
    assert report.change is not None
    assert (row.lift, row.p) == (report.change.change, report.change.p)
    assert row.sentence.startswith("Overall, new fails more often than old (old ")
    with pytest.raises(RuleError, match="ask 'lift > 0'"):
        GateRows(report.data, parse_condition("outcome = 'new fails where old passed'"))


def test_a_report_is_read_as_it_stands() -> None:
    report = compare_runs(make_runs(n=200))
    assert read_gated(report) is report
    assert read_gated(report.to_dict()) == report.data


@pytest.fixture(scope="module")
def report() -> Report:
    return groundfault.audit(make_planted_evidence())


def test_a_row_has_what_a_rule_may_read(report: Report) -> None:
    (mode,) = report.modes
    row = make_mode_row(report.data, mode)
    assert set(COLUMNS) < set(row.__struct_fields__)
    assert row.rule == '"hard"'
    assert row.lift == mode.rate - mode.rate_outside > 0
    assert row.low < row.lift < row.high
    assert row.p_adjusted == max(mode.p_marginal, mode.p_conditional)
    assert f"({mode.errors:g} of {mode.n})" in row.sentence


def test_a_mode_without_an_outside_has_no_lift(report: Report) -> None:
    everywhere = structs.replace(report.modes[0], n_outside=0, errors_outside=0.0)
    row = make_mode_row(report.data, everywhere)
    assert (row.lift, row.low, row.high) == (None, None, None)


def test_a_mode_is_known_by_its_alternatives(report: Report) -> None:
    other = Alternative(rule="words > 3", meaning="words over 3", overlap=0.9)
    mode = structs.replace(report.modes[0], alternatives=(other,))
    assert list_rules(mode) == {mode.rule, "words > 3"}
