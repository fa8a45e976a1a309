"""Runs without a difference to explain: perfect, failed, tiny or unscored ones are reports."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from bench_reports import open_bench, visit
from click.testing import CliRunner, Result

from groundfault.auditing.report import Report
from groundfault.cli.main import cli

RUNS: dict[str, tuple[list[float | None], str, int]] = {
    "perfect": ([0] * 400, "400 of 400 passed, so at most 0.75% of like examples fail", 0),
    "failed": ([1] * 300, "300 of 300 failed, so at most 0.99% of like examples pass", 1),
    "one": ([0], "1 of 1 passed, so at most 95% of like examples fail (95% confidence)", 0),
    "ten": ([0, 1] * 5, "No rule could be tested", 0),
    "unscored": ([None] * 60, "Nothing was scored: 60 missing", 1),
    "half": ([0.5] * 60, "All 60 outcomes are the same loss, 0.5", 1),
}
"""Losses, what the headline says, and the exit status of a gate."""


def run(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)


def write_run(place: Path, losses: list[float | None], kind: str) -> list[str]:
    """Write a table, or a log, and return how it is named."""
    n = len(losses)
    asked = [f"what is {i} and {i * 7 % 13}?" for i in range(n)]
    columns = {"n": range(n), "lang": [("de", "en")[i % 3 > 0] for i in range(n)], "prompt": asked}
    loss = pl.Series(losses, dtype=pl.Float64)
    path = place / f"{kind}.parquet"
    if kind == "table":
        pl.DataFrame({"id": range(n), **columns, "error": loss}).write_parquet(path)
        return [str(path), "--id", "id", "--outcome", "error", "--null-outcome", "missing"]
    log = {"example_id": [f"q{i}" for i in range(n)], "scorer": ["match"] * n, "value": 1 - loss}
    pl.DataFrame(log | columns).write_parquet(path)
    return [str(path)]


@pytest.mark.parametrize("kind", ["table", "log"])
@pytest.mark.parametrize("name", RUNS)
def test_it_is_audited_shown_and_gated(name: str, kind: str, tmp_path: Path) -> None:
    losses, headline, status = RUNS[name]
    source, place = write_run(tmp_path, losses, kind), tmp_path / "report"
    audit = run("audit", *source, "--no-ledger", "--out", place)
    assert audit.exit_code == 0, audit.output
    assert headline in " ".join(audit.output.split())
    assert "warning" not in audit.output.lower()
    report = Report.load(place)
    assert report.error_rate == (None if name == "unscored" else sum(losses) / len(losses))
    assert not report.weaknesses
    assert not report.modes
    shown = run("show", place, *(["--passing"] if name in ("perfect", "one") else []))
    assert shown.exit_code == 0
    assert ("prompt: what is" in shown.output) is (name != "unscored")
    gate = run("gate", place)
    assert gate.exit_code == status
    if status or name == "perfect":
        assert headline in gate.output
    pages = visit(open_bench(place))
    assert pages.get("/").status_code == 200
    assert run("verify", place, "--no-ledger").output.endswith("reproduces\n")


def test_a_perfect_run_passes_after_one_that_was_not(tmp_path: Path) -> None:
    before = [float(i % 3 == 0 and i % 7 > 0) for i in range(300)]
    for name, losses in (("before", before), ("now", [0.0] * 300)):
        (tmp_path / name).mkdir()
        source = write_run(tmp_path / name, losses, "table")
        assert run("audit", *source, "--no-ledger", "--out", tmp_path / name / "r").exit_code == 0
    gate = run("gate", tmp_path / "now/r", "--baseline", tmp_path / "before/r")
    assert gate.exit_code == 0
    assert "got better: lang is de" in gate.output
    assert run("gate", tmp_path / "now/r", "--must-detect", "0.2").exit_code == 0


def test_no_column_but_the_outcome_is_a_report(tmp_path: Path) -> None:
    path = tmp_path / "bare.csv"
    pl.DataFrame({"id": range(50), "error": [0, 1] * 25}).write_csv(path)
    audit = run("audit", path, "--id", "id", "--outcome", "error", "--no-ledger", "--out", tmp_path)
    assert audit.exit_code == 0
    search = Report.load(tmp_path).mode_search
    assert search is not None
    assert "no column describes the examples" in search.remarks[-1]
