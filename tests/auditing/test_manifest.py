"""Digests of a report's files: what SHA256SUMS and the ledger say of them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from groundfault.auditing.manifest import (
    SUMS,
    check_files,
    find_records,
    record_files,
    write_sums,
)
from groundfault.base.ledger import Ledger


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "report"
    place.mkdir()
    (place / "report.json").write_text("{}")
    (place / "report.html").write_text("<p>")
    return place


def test_sums_are_in_the_form_that_sha256sum_reads(folder: Path) -> None:
    digests = write_sums(folder)
    assert list(digests) == ["report.html", "report.json"]
    if not shutil.which("sha256sum"):
        pytest.skip("needs sha256sum")
    subprocess.run(["sha256sum", "--check", SUMS], cwd=folder, check=True, capture_output=True)


def test_a_ledger_holds_the_digests_of_each_opening(folder: Path, tmp_path: Path) -> None:
    book, digests = Ledger(tmp_path / "ledger.db"), write_sums(folder)
    record_files(book, "a" * 64, digests)
    record_files(book, "b" * 64, {"report.json": "0" * 64})
    assert find_records(book, "a" * 64) == [digests]
    assert find_records(book, "c" * 64) == []


def test_files_pass_where_the_ledger_holds_their_digests_and_only_there(folder: Path) -> None:
    digests = write_sums(folder)
    assert check_files(folder, [digests], "unchecked", expected=True).status == "passed"
    # as after a second rendering, which is recorded, too
    several = [{"report.json": "0" * 64}, digests]
    assert check_files(folder, several, "unchecked", expected=True).status == "passed"
    for records in (None, []):
        assert check_files(folder, records, "unchecked", expected=True).status == "unchecked"
        assert check_files(folder, records, "waived", expected=True).status == "waived"
    older = check_files(folder, [], "unchecked", expected=True)
    assert "earlier versions recorded none" in older.detail


def test_what_was_changed_is_named(folder: Path) -> None:
    digests = write_sums(folder)
    (folder / "report.html").write_text("<b>")
    (difference,) = check_files(folder, None, "waived", expected=True).differences
    assert difference.startswith("report.html: ")
    assert difference.endswith(f"in {SUMS}")
    write_sums(folder)
    (difference,) = check_files(folder, [digests], "waived", expected=True).differences
    assert difference.endswith("in the ledger")


def test_sums_that_are_missing_fail_where_they_were_written(folder: Path) -> None:
    assert check_files(folder, None, "waived", expected=True).status == "failed"
    assert check_files(folder, None, "waived", expected=False).status == "waived"
