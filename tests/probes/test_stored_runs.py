"""Probe runs, reviews, reports and packages that version 0.1.0 wrote are read, resumed, reported
and checked by this version.

What has to come out the same is in ``tests/fixtures/v0_1_0/README.md``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from groundfault.cli.main import cli
from groundfault.errors import InputError
from groundfault.models import Record
from groundfault.probes import Bank, Grammar, Runs
from groundfault.probes.review.reviewed_runs import ReviewedRuns, ReviewProgress
from groundfault_lab.probes.summary import ProbeSummary, ProbeTables

FIXTURES = Path(__file__).parents[1] / "fixtures/v0_1_0/probe"


@pytest.fixture
def old_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the stored files, in the working directory that their manifests name paths from."""
    shutil.copytree(FIXTURES, tmp_path / "probe")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "probe"


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["lab", "probe", *arguments], catch_exceptions=False)


def contents(folder: Path, *names: str) -> dict[str, bytes]:
    """The bytes of the files with these names, by their places in the folder."""
    places = [place for name in names for place in folder.rglob(name)]
    return {str(place.relative_to(folder)): place.read_bytes() for place in places}


RUN_FILES = ("manifest.json", "trajectory.jsonl", "status.json", "bank.toml", "grammar.toml")
RESUME = ("run", "probe/config.toml", "--model", "replay:probe/said.jsonl", "--out")


def test_bank_grammar_and_runs_are_read(old_runs: Path) -> None:
    runs = Runs(old_runs / "runs")
    assert runs.bank.hash == Bank.load(old_runs / "bank.toml").hash
    assert runs.grammar.hash == Grammar.load(old_runs / "grammar.toml").hash
    assert len(runs.rows) == 20
    assert len(list(Record(old_runs / "runs/calls.db").calls())) == 18


def test_the_same_check_is_written(old_runs: Path) -> None:
    assert invoke("check", "probe", "--samples", "2", "--json", "new.json").exit_code == 0
    assert Path("new.json").read_bytes() == (old_runs / "check.json").read_bytes()


def test_an_unfinished_run_goes_on_to_the_same_end(old_runs: Path) -> None:
    assert invoke(*RESUME, "probe/unfinished").exit_code == 0
    assert contents(old_runs / "unfinished", *RUN_FILES) == contents(old_runs / "runs", *RUN_FILES)


def test_a_finished_run_is_not_changed_by_running_it_again(old_runs: Path) -> None:
    before = contents(old_runs / "runs", *RUN_FILES)
    assert invoke(*RESUME, "probe/runs").exit_code == 0
    assert contents(old_runs / "runs", *RUN_FILES) == before


def test_the_review_is_read(old_runs: Path) -> None:
    for option in ("--status", "--agreement"):
        words = ["label", "review", str(old_runs / "runs"), option, "--json", "-"]
        result = CliRunner().invoke(cli, words, catch_exceptions=False)
        assert result.exit_code == 0
        assert json.loads(result.stdout)


def test_the_progress_of_the_review(old_runs: Path) -> None:
    progress = ReviewProgress.of(ReviewedRuns(old_runs / "runs"))
    assert (progress.items, progress.settled, progress.adjudicated) == (8, 6, 2)
    assert progress.settings.reviewers == 2
    assert set(progress.reviewers) == {"ana", "ben"}
    assert set(progress.adjudicators) == {"cy"}


def test_the_same_report_is_written(old_runs: Path) -> None:
    assert invoke("report", "probe/runs", "--json", "new.json").exit_code == 0
    assert Path("new.json").read_bytes() == (old_runs / "report.json").read_bytes()


def test_a_stored_report_is_read_and_written_again(old_runs: Path) -> None:
    summary = ProbeSummary.load(old_runs / "report.json")
    assert summary.control == "stratified"
    assert sum(run.rows.confirmed for run in summary.runs) == 4
    assert summary.to_json() == (old_runs / "report.json").read_text()
    tables = ProbeTables.load(old_runs / "package/tables.json")
    assert tables.best_scores == summary.best_scores


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "it is no JSON object"),
        ('{"schema_version": 2}', "reads versions up to 1"),
        ('{"schema_version": 1, "more": 0}', "is no JSON of groundfault lab probe report"),
    ],
)
def test_a_report_of_another_form_is_refused(old_runs: Path, text: str, message: str) -> None:
    (old_runs / "report.json").write_text(text)
    with pytest.raises(InputError, match=message):
        ProbeSummary.load(old_runs / "report.json")


def test_a_stored_package_reproduces(old_runs: Path) -> None:
    result = invoke("release", "--check", str(old_runs / "package"))
    assert result.exit_code == 0, result.output
    assert "9 files, 20 rows, 4 unique audited prompt keys" in result.output


def test_the_same_package_is_made(old_runs: Path) -> None:
    assert invoke("release", "probe/runs", "--out", "new").exit_code == 0
    old, new = contents(old_runs / "package", "*"), contents(Path("new"), "*")
    indexes = [json.loads(files.pop("MANIFEST.json")) for files in (old, new)]
    # the command has another name now
    assert old.pop("README.md") == new.pop("README.md").replace(b"lab probe", b"probe")
    assert new == old
    for index in indexes:
        index["source"].pop("ledger")
        index["files"].pop("README.md")
    # all else says which version made the package, and equals what 0.1.0 said
    versions = [index.pop("groundfault") for index in indexes]
    assert versions[0] == "0.1.0"
    assert indexes[0] == indexes[1]
