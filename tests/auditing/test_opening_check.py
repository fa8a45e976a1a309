"""What a report states of its opening, held against a ledger."""

from __future__ import annotations

from pathlib import Path

import pytest
from audit_tables import make_planted_evidence
from msgspec import structs

import groundfault
from groundfault.auditing.opening_check import check_opening
from groundfault.auditing.report import Report
from groundfault.base.ledger import Ledger


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("opening") / "ledger.db"


@pytest.fixture(scope="module")
def report(place: Path) -> Report:
    return groundfault.audit(make_planted_evidence(n=60), ledger=place, modes=False)


def test_the_event_has_to_be_of_this_evidence_library_plan_and_split(
    report: Report, place: Path
) -> None:
    assert check_opening(report.data, Ledger(place), "unchecked").status == "passed"
    for name in ("evidence", "outcome", "library", "plan", "split"):
        hashes = structs.replace(report.hashes, **{name: "0" * 64})
        check = check_opening(structs.replace(report.data, hashes=hashes), Ledger(place), "waived")
        assert check.status == "failed"
        assert f"is of another {name}" in check.detail


def test_what_was_not_recorded_is_no_success_and_looks_of_others_are_told(
    report: Report, place: Path
) -> None:
    bare = structs.replace(report.data, ledger=None)
    check = check_opening(bare, Ledger(place), "unchecked")
    assert check.status == "unchecked"
    assert check.detail.endswith("holds 1 look at these outcomes")
    assert check_opening(bare, None, "unchecked").detail.endswith("was not recorded")


def test_a_ledger_that_is_not_there_leaves_it_open(report: Report, tmp_path: Path) -> None:
    check = check_opening(report.data, Ledger(tmp_path / "gone.db"), "waived")
    assert check.status == "unchecked", "whoever names one does not do without"
    assert "there is no ledger" in check.detail
    assert check_opening(report.data, None, "waived").status == "waived"
