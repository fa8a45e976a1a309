"""Containment: what fails in an optional step is said, and kills no answer."""

from __future__ import annotations

import importlib
import logging
import signal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

from groundfault.auditing.report import Report
from groundfault.cli.main import cli
from groundfault.errors import attempt

STEPS = {
    "the search for copies": "preparation.join_copies",
    "the search for columns that follow": "prepared_audit.measure_columns",
    "the search for rules that follow": "prepared_audit.find_leaking_rules",
    "the search for failure modes": "flow.name_modes",
    "the examples of failure modes": "failure_modes.add_examples",
    "the power": "assemble._detectable_lifts",
    "the examples of findings": "assemble._pick_examples",
    "the check of the grader": "assemble.find_grader_evidence",
    "the record of units": "assemble.make_record",
    "the hint about order": "hints.find_runs",
}


def test_the_traceback_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    failures: list[str] = []
    with caplog.at_level(logging.DEBUG, logger="groundfault"):
        assert attempt(failures, "the sum", 0, sum, ["a"]) == 0
    assert failures[0].startswith("the sum: TypeError: unsupported")
    assert "Traceback" in caplog.text
    with pytest.raises(KeyboardInterrupt):
        attempt(failures, "the wait", 0, signal.raise_signal, signal.SIGINT)


def break_step(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("no column at all")

    module, _, name = place.rpartition(".")
    monkeypatch.setattr(importlib.import_module(f"groundfault.{module}"), name, fail)


def audit(tmp_path: Path) -> str:
    rows = [{"id": i, "lang": ("de", "en")[i % 2], "error": int(i % 4 == 0)} for i in range(400)]
    pl.DataFrame(rows).write_csv(tmp_path / "t.csv")
    words = ["audit", str(tmp_path / "t.csv"), "--id", "id", "--outcome", "error", "--no-ledger"]
    result = CliRunner().invoke(cli, [*words, "--out", str(tmp_path / "report")])
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_fails_is_left_out_and_said(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_step(monkeypatch, f"auditing.{STEPS[step]}")
    output = audit(tmp_path)
    assert f"Left out, because it failed: {step}" in output
    assert "no column at all" in output
    report = Report.load(tmp_path / "report")
    assert report.confirmed
    assert step in report.left_out[0]
    assert step in (tmp_path / "report/report.html").read_text()
    # without a search, no failure mode can be new
    gate = CliRunner().invoke(cli, ["gate", str(tmp_path / "report"), "--fail-on", "lift > 9"])
    assert gate.exit_code == int(step == "the search for failure modes")
    assert step in gate.output


def test_a_page_stands_without_its_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    break_step(monkeypatch, "render.audit_page.figures")
    audit(tmp_path)
    page = (tmp_path / "report/report.html").read_text()
    assert "Left out, because it failed: the figures" in page
    assert Report.load(tmp_path / "report").left_out == ()
