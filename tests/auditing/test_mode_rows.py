"""Failure modes as rows of a gate's table."""

from __future__ import annotations

import pytest
from audit_tables import make_planted_evidence
from msgspec import structs

import groundfault
from groundfault import Report
from groundfault.auditing.gating import COLUMNS
from groundfault.auditing.mode_rows import list_mode_rows, list_rules
from groundfault.modes.mode import Alternative


@pytest.fixture(scope="module")
def report() -> Report:
    return groundfault.audit(make_planted_evidence())


def test_a_row_has_what_a_rule_may_read(report: Report) -> None:
    (row,) = list_mode_rows(report.data)
    mode = report.modes[0]
    assert set(row) == {*COLUMNS, "sentence"}
    assert row["rule"] == '"hard"'
    assert row["lift"] == mode.rate - mode.rate_outside > 0
    assert row["low"] < row["lift"] < row["high"]
    assert row["p_adjusted"] == max(mode.p_marginal, mode.p_conditional)
    assert f"{mode.errors:g}/{mode.n}" in row["sentence"]


def test_a_mode_without_an_outside_has_no_lift(report: Report) -> None:
    everywhere = structs.replace(report.modes[0], n_outside=0, errors_outside=0.0)
    (row,) = list_mode_rows(structs.replace(report.data, modes=(everywhere,)))
    assert (row["lift"], row["low"], row["high"]) == (None, None, None)


def test_a_mode_is_known_by_its_alternatives(report: Report) -> None:
    other = Alternative(rule="words > 3", meaning="words over 3", overlap=0.9)
    mode = structs.replace(report.modes[0], alternatives=(other,))
    assert list_rules(mode) == {mode.rule, "words > 3"}
