"""Results that version 0.2 stored are read, shown, gated and verified by this version."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from commands import run_program

import groundfault
from groundfault.sequential import Certificate

STORED = Path(__file__).resolve().parents[1] / "fixtures" / "v0_2_0"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy to work in: reading a ledger may leave files beside it."""
    shutil.copytree(STORED, tmp_path / "stored")
    monkeypatch.chdir(tmp_path / "stored")
    return tmp_path / "stored"


@pytest.mark.parametrize("place", ["report", "change"])
def test_a_report_of_0_2_is_read(place: str, desk: Path) -> None:
    report = groundfault.Report.load(place)
    assert report.modes
    assert report.to_markdown()
    ending = run_program("show", place, "1")
    assert ending.status == 0, ending.errors
    checks = {each.name: each for each in groundfault.verify(place, ledger=None).checks}
    # a later search may find other modes; all else is made again
    assert checks["recomputation"].status in ("passed", "unchecked"), checks


def test_a_gate_goes_on_from_a_report_of_0_2(desk: Path) -> None:
    ending = run_program("gate", "report", "--baseline", "report")
    assert ending.status == 0, ending.errors
    assert run_program("verify", "gate.json").status == 0


def test_a_certificate_of_0_2_reproduces(desk: Path) -> None:
    assert Certificate.load("certificate.json").sentence
    ending = run_program("verify", "certificate.json", "--ledger", "labels.db")
    assert ending.status == 0, ending.output


def test_a_case_and_evidence_of_0_2_go_on(desk: Path) -> None:
    modes = groundfault.Case("case").summarize().modes
    assert modes[0].standing == "confirmed"
    assert run_program("case", "report", "case").status == 0
    assert len(groundfault.Evidence.from_logs("evidence")) == 60
    assert run_program("verify", "evidence").status == 0
