"""Comparisons of runs that share no example: report, pages and gate."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from runs import make_evidence, make_runs

import groundfault
from groundfault import Evidence, Report
from groundfault.errors import PlanError
from groundfault.render.audit_page import make_summary
from groundfault.render.terminal import show


def draw_runs(shift: float, *, n: int = 900, hard_now: float = 0.4) -> pl.DataFrame:
    """Two runs, each over examples of its own; hard ones fail more, and ``shift`` more now."""
    old, new = make_runs(1, n=n), make_runs(2, n=4 * n, shift=shift)
    new = new.filter(run="new")
    odds = np.where(new["hard"], hard_now / 0.4, (1 - hard_now) / 0.6) / 2.5
    new = new.filter(pl.Series(np.random.default_rng(3).random(len(new)) < odds)).head(n)
    return pl.concat([old.filter(run="old"), new.with_columns(id="x" + pl.col("id"))])


def compare(frame: pl.DataFrame) -> Report:
    return groundfault.audit(make_evidence(frame), compare=("old", "new"), ledger=None)


@pytest.fixture(scope="module")
def worse() -> Report:
    return compare(draw_runs(0.3))


def test_a_comparison_of_different_examples_says_that_it_is_not_paired(worse: Report) -> None:
    (mode,) = [mode for mode in worse.modes if mode.outcome == "worse"]
    assert mode.rule == '"hard"'
    assert mode.change is not None
    assert mode.change.n_before is not None
    assert worse.change is not None
    assert worse.change.n == 1800
    console = Console(width=500, record=True, file=StringIO())
    show(make_summary(worse, why=True), console)
    text = console.export_text()
    before = f"before {100 * mode.rate_before:.0f}% ({mode.change.before:.0f} of "
    assert before + str(mode.change.n_before) in text
    assert "not paired, like compared with like" in text
    assert "The runs are not paired:" in text
    assert "swapped within" not in text
    assert not worse.confirmed
    assert worse.minimum_detectable_lift == worse.mode_search.detectable["0.3"]
    assert {e.side for e in mode.sample} >= {"failing", "passing"}


def test_a_report_of_different_examples_is_kept_and_verified(worse: Report, tmp_path: Path) -> None:
    frame = draw_runs(0.3)
    frame.write_parquet(tmp_path / "runs.parquet")
    evidence = Evidence.from_table(tmp_path / "runs.parquet", id="id", model="run", outcome="error")
    report = groundfault.audit(evidence, compare=("old", "new"), ledger=None)
    report.write(tmp_path / "report")
    checks = groundfault.verify(tmp_path / "report", evidence=tmp_path / "runs.parquet").checks
    assert not [check for check in checks if check.status == "failed"]
    assert Report.load(tmp_path / "report").modes == worse.modes
    page = (tmp_path / "report/report.html").read_text()
    assert "each example is compared with itself" not in page.lower()
    assert "Got worse" not in page


def test_another_mix_is_no_change_in_a_report_or_gate(tmp_path: Path) -> None:
    frame = draw_runs(0.0, hard_now=0.8)
    report = compare(frame)
    assert report.change is not None
    before, after = report.change.error_rates
    assert after - before > 0.05
    low, high = report.change.interval
    assert low < 0 < high
    assert not report.modes
    assert gate(frame, tmp_path).passed


def gate(frame: pl.DataFrame, folder: Path) -> groundfault.Gate:
    for run in ("old", "new"):
        place = folder / f"{run}.csv"
        frame.filter(run=run).drop("run").write_csv(place)
        evidence = Evidence.from_table(place, id="id", outcome="error")
        groundfault.audit(evidence, ledger=None).write(folder / run)
    return groundfault.gate(folder / "new", baseline=folder / "old")


def test_a_gate_finds_a_regression_on_other_examples(tmp_path: Path) -> None:
    result = gate(draw_runs(0.3), tmp_path)
    assert not result.passed
    assert [match.rule for match in result.new if match.kind == "mode"] == ['"hard"']
    assert [match.since.shared for match in result.new if match.since] == [True] * len(result.new)
    assert any(note.startswith("runs are not paired: ") for note in result.notes)
    # without its table, nothing but counts of the baseline is known
    (tmp_path / "old.csv").unlink()
    again = groundfault.gate(tmp_path / "new", baseline=tmp_path / "old")
    assert not again.modes
    assert any("by their counts" in note for note in again.notes)


def test_groups_of_one_run_are_compared_with_groups_of_the_other() -> None:
    frame = draw_runs(0.0, n=200)
    groups = pl.concat([frame.with_columns(id=pl.col("id") + f"/{k}", chat="id") for k in range(6)])
    evidence = Evidence.from_table(groups, id="id", model="run", outcome="error", group="chat")
    report = groundfault.audit(evidence, compare=("old", "new"), ledger=None)
    assert report.change is not None
    assert report.change.n == 400
    assert not report.modes


def test_without_failure_modes_there_is_no_test_of_different_examples() -> None:
    evidence = make_evidence(draw_runs(0.0, n=50))
    with pytest.raises(PlanError, match="'old' and 'new' have no example in common"):
        groundfault.audit(evidence, compare=("old", "new"), modes=False, ledger=None)


def test_without_columns_the_overall_change_is_told() -> None:
    frame = draw_runs(0.3, n=300).select("id", "run", "error")
    report = groundfault.audit(make_evidence(frame), compare=("old", "new"), ledger=None)
    assert report.change is not None
    rates = [frame.filter(run=run)["error"].mean() for run in ("old", "new")]
    assert report.change.error_rates == tuple(rates)
    assert report.change.confirmed
    assert report.change.change == pytest.approx(rates[1] - rates[0], abs=0.005)
    assert not report.modes
