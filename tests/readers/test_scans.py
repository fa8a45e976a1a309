"""Scans of Inspect Scout, and tables by transcript, become columns of the runs they are of."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import groundfault
from groundfault import Evidence, InputError

KEPT = Path(__file__).parents[1] / "fixtures" / "scans"
SCRIPT = Path(__file__).parents[2] / "scripts" / "make_client_logs.py"


@pytest.fixture(scope="module", params=["kept", pytest.param("new", marks=pytest.mark.clients)])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log and a scan of it by the real clients."""
    if request.param == "kept":
        return KEPT
    place = tmp_path_factory.mktemp("scans") / "say"
    for python in filter(None, (sys.executable, os.environ.get("CLIENT_PYTHON"))):
        if not subprocess.run([python, "-c", "import inspect_scout"], check=False).returncode:
            subprocess.run([python, str(SCRIPT), "scans", str(place)], check=True)
            return place
    pytest.skip("no inspect_scout here, and CLIENT_PYTHON names no Python that has it")


@pytest.mark.parametrize("as_files", [False, True])
def test_each_scanner_is_a_column_of_the_runs(folder: Path, as_files: bool) -> None:
    scans = sorted(folder.rglob("*.parquet")) if as_files else [folder / "scans"]
    evidence = Evidence.from_logs(folder / "logs", *scans)
    assert evidence.roles.during == ("n_words", "refuses", "signs: Sorry", "signs: answer")
    assert not {*evidence.roles.during} & {*evidence.attributes}
    assert len(evidence) == 16
    rows = evidence.frame.select("example_id", *evidence.roles.during).unique().sort("example_id")
    assert rows.rows()[:3] == [
        ("q0", 3.0, True, True, False),
        # the scanner of words crashed on this one
        ("q1", None, False, False, True),
        ("q2", 4.0, False, False, True),
    ]


def test_a_folder_of_both_is_audited_and_verified(folder: Path, tmp_path: Path) -> None:
    evidence = Evidence.from_logs(folder)
    assert evidence.account is not None
    assert evidence.account.unread == ()
    assert [note for note in evidence.account.notes if "scanner refuses" in note] == [
        "the scanner refuses flags 4 of 6 that have it and leaves 8 of 10 alone that have not, in "
        "its validation set"
    ]
    report = groundfault.audit(evidence, ledger=tmp_path / "ledger.db")
    by_name = {one.name: one for one in report.behaviours if one.whole}
    refuses = by_name["refuses"]
    assert (refuses.failing, refuses.failing_runs, refuses.passing) == (6, 6, 0)
    assert by_name["n_words above 4"].passing_runs == 8
    assert report.modes == ()
    report.write(tmp_path / "report")
    checked = groundfault.verify(
        tmp_path / "report", evidence=folder, ledger=tmp_path / "ledger.db"
    )
    assert checked.verdict == "reproduces"
    evidence.save(tmp_path / "kept")
    again = Evidence.from_logs(tmp_path / "kept")
    assert (again.roles.during, again.hash) == (evidence.roles.during, evidence.hash)


def test_any_table_by_transcript_is_joined(tmp_path: Path) -> None:
    (file,) = KEPT.rglob("refuses.parquet")
    keys = pl.read_parquet(file, columns=["transcript_id"])
    table = keys.with_columns(dear=pl.Series([i % 2 for i in range(16)]), target=pl.lit("x"))
    table.head(10).write_csv(tmp_path / "own.csv")
    evidence = Evidence.from_logs(KEPT / "logs", tmp_path / "own.csv")
    assert evidence.roles.during == ("dear", "target_scan")
    assert evidence.frame["dear"].null_count() == 6


def test_a_scan_of_other_logs_or_alone_is_one_clear_error(tmp_path: Path) -> None:
    other = KEPT.parent / "clients" / "inspect_ai-0.3.285" / "epochs"
    with pytest.raises(InputError, match="its 16 transcripts match no run of these logs"):
        Evidence.from_logs(other, KEPT / "scans")
    with pytest.raises(InputError, match="are scans of runs: also name the logs"):
        Evidence.from_logs(KEPT / "scans")
    no_uuids = KEPT.parent / "clients" / "promptfoo-0.121.20"
    with pytest.raises(InputError, match="name Inspect logs"):
        Evidence.from_logs(next(no_uuids.rglob("*.jsonl")), KEPT / "scans")
    (tmp_path / "_scan.json").write_text("{}")
    with pytest.raises(InputError, match="has no results yet"):
        Evidence.from_logs(KEPT / "logs", tmp_path)
    (file,) = KEPT.rglob("refuses.parquet")
    (tmp_path / "cut.parquet").write_bytes(file.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"cut\.parquet"):
        Evidence.from_logs(KEPT / "logs", tmp_path)


def write_odd(folder: Path, value: str, kind: str) -> Path:
    (file,) = KEPT.rglob("refuses.parquet")
    odd = pl.read_parquet(file).with_columns(value=pl.lit(value), value_type=pl.lit(kind))
    odd.write_parquet(folder / "odd.parquet")
    return folder / "odd.parquet"


def test_results_of_another_kind_than_they_say_are_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"odd\.parquet cannot be read as a scan"):
        Evidence.from_logs(KEPT / "logs", write_odd(tmp_path, "5", "resultset"))


@pytest.mark.parametrize(
    ("value", "kind"), [("[" * 100_000, "string"), ('["' + "<b>" * 300 + '"]', "array")]
)
def test_odd_results_are_columns_with_short_names(value: str, kind: str, tmp_path: Path) -> None:
    evidence = Evidence.from_logs(KEPT / "logs", write_odd(tmp_path, value, kind))
    report = groundfault.audit(evidence, ledger=False)
    assert report.transcripts is not None
    assert all(len(one.name) <= 80 for one in report.behaviours)
