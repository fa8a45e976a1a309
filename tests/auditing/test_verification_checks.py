"""An anchor against a ledger: what was signed has to be there still."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from audit_tables import make_planted_evidence
from msgspec import structs
from signatures import make_authority, make_key, needs_openssl, needs_ssh, stamp

import groundfault
from groundfault.auditing.report import SUMS, Report, record_files, write_sums
from groundfault.auditing.verification_checks import (
    Verification,
    VerificationCheck,
    check_anchor,
    check_files,
    check_foreign_pages,
    check_opening,
    check_pages,
    find_records,
    judge_differences,
)
from groundfault.base.anchors import AnchorFiles, sign_head
from groundfault.base.ledger import Ledger
from groundfault.errors import PlanError

pytestmark = needs_ssh


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger of three events, the second of which was signed when it was the last."""
    folder = tmp_path_factory.mktemp("check")
    book = Ledger(folder / "book.db")
    book.extend("note", [{"number": 1}, {"number": 2}])
    sign_head(book, make_key(folder), folder / "a.anchor")
    book.append("note", {"number": 3})
    return folder


def files(desk: Path, **more: Path) -> AnchorFiles:
    return AnchorFiles(desk / "a.anchor", desk / "key.pub", **more)


def test_what_was_signed_is_there_and_later_events_are_said(desk: Path) -> None:
    book = Ledger(desk / "book.db")
    first, second, third = (event.hash for event in book.events())
    for head in (first, second, None):
        check = check_anchor(files(desk), book, head)
        assert check.status == "passed"
        assert "no earlier event has changed since" in check.detail
        assert "recorded later" not in check.detail
    late = check_anchor(files(desk), book, third)
    assert late.status == "passed"
    assert "This result was recorded later, as event 3" in late.detail


def test_a_ledger_that_was_cut_or_written_anew_is_noticed(desk: Path, tmp_path: Path) -> None:
    anew = Ledger(tmp_path / "anew.db")
    for number in (1, 4, 5):
        check = check_anchor(files(desk), anew, None)
        assert check.status == "failed"
        # the same events in the same order have other times, and so other hashes
        anew.append("note", {"number": number})
        anew.check()
    assert "lacks it: events were erased" in check_anchor(files(desk), anew, None).detail


def test_an_event_that_was_edited_and_a_chain_that_was_hashed_again_are_noticed(
    desk: Path, tmp_path: Path
) -> None:
    shutil.copy(desk / "book.db", tmp_path / "book.db")
    with closing(sqlite3.connect(tmp_path / "book.db")) as file:
        file.row_factory = sqlite3.Row
        previous = "0" * 64
        for row in file.execute("SELECT * FROM groundfault_ledger ORDER BY seq").fetchall():
            body = '{"number":7}' if row["seq"] == 1 else row["body"]
            parts = [previous, row["seq"], row["time"], row["actor"], row["kind"], body]
            digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
            values = (body, previous, digest, row["seq"])
            file.execute(
                "UPDATE groundfault_ledger SET body = ?, previous = ?, hash = ? WHERE seq = ?",
                values,
            )
            previous = digest
        file.commit()
    forged = Ledger(tmp_path / "book.db")
    # the chain has no key, and is whole
    forged.check()
    check = check_anchor(files(desk), forged, forged.head)
    assert (check.status, "lacks it: events" in check.detail) == ("failed", True)


def test_without_a_ledger_it_is_open_and_a_false_signature_is_not(
    desk: Path, tmp_path: Path
) -> None:
    assert check_anchor(files(desk), None, None).status == "unchecked"
    other = AnchorFiles(desk / "a.anchor", make_key(tmp_path).with_suffix(".pub"))
    for book in (None, Ledger(desk / "book.db")):
        check = check_anchor(other, book, None)
        assert check.status == "failed"
        assert "somebody else signed it" in check.detail


@needs_openssl
def test_a_time_stamp_says_by_when_it_was_there(desk: Path, tmp_path: Path) -> None:
    pytest.importorskip("rfc3161_client")
    root, book = make_authority(tmp_path), Ledger(desk / "book.db")
    shutil.copy(desk / "a.anchor", tmp_path / "a.anchor")
    response = stamp(tmp_path, tmp_path / "a.anchor")
    check = check_anchor(files(desk, time_stamp=response, authority=root), book, None)
    assert check.status == "passed"
    assert "UTC by the time stamp" in check.detail
    with pytest.raises(PlanError, match="--authority"):
        check_anchor(files(desk, time_stamp=response), book, None)
    (tmp_path / "other").write_text("other bytes")
    response = stamp(tmp_path, tmp_path / "other")
    check = check_anchor(files(desk, time_stamp=response, authority=root), book, None)
    assert (check.status, "does not hold" in check.detail) == ("failed", True)


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
    assert check.detail.endswith("records 1 look at these outcomes")
    assert check_opening(bare, None, "unchecked").detail.endswith("add --no-ledger")


def test_a_ledger_that_is_not_there_leaves_it_open(report: Report, tmp_path: Path) -> None:
    check = check_opening(report.data, Ledger(tmp_path / "gone.db"), "waived")
    assert check.status == "unchecked", "whoever names one does not do without"
    assert "there is no ledger" in check.detail
    assert check_opening(report.data, None, "waived").status == "waived"


PAGE = '<p>one of two</p>\n<svg width="20"><path d="M0,0h5v2"/><text x="3">57</text></svg>\n'


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        ("one", "one", "passed"),
        ("one of two", "two of two", "failed"),
        (">57<", ">75<", "failed"),
        ("<path", "<path class='x'", "failed"),
        ('x="3"', 'x="4.5"', "unchecked"),
        ("h5", "h5.25", "unchecked"),
        ('x="3"', 'onload="3"', "failed"),
    ],
)
def test_words_are_compared_and_places_in_figures_where_nothing_else_vouches(
    old: str, new: str, status: str, tmp_path: Path
) -> None:
    (tmp_path / "report.html").write_text(PAGE.replace(old, new, 1))
    check = check_pages(tmp_path, {"report.html": PAGE}, attested=False)
    assert check.status == status
    if status == "failed":
        assert check.differences[0].startswith("report.html: line ")
    attested = check_pages(tmp_path, {"report.html": PAGE}, attested=True)
    assert attested.status == ("passed" if status == "unchecked" else status)


def test_a_page_that_is_missing_or_longer_is_named(tmp_path: Path) -> None:
    check = check_pages(tmp_path, {"report.md": "# one\n"}, attested=True)
    assert check.differences == ("report.md: missing",)
    (tmp_path / "report.md").write_bytes(b"# one\n\xff")
    check = check_pages(tmp_path, {"report.md": "# one\n"}, attested=True)
    assert check.differences == ("report.md: 7 characters, 6",)


def test_pages_of_another_version_need_the_ledger() -> None:
    assert check_foreign_pages("0.1.0", "waived", attested=True).status == "passed"
    check = check_foreign_pages("0.1.0", "unchecked", attested=False)
    assert check.status == "unchecked"
    assert "0.1.0" in check.detail


@pytest.mark.parametrize(
    ("statuses", "verdict"),
    [
        (["passed", "passed"], "reproduces"),
        (["passed", "waived"], "reproduces"),
        (["passed", "unchecked"], "cannot be verified"),
        (["unchecked", "failed"], "does NOT reproduce"),
        (["waived", "unchecked"], "cannot be verified"),
    ],
)
def test_one_failure_contradicts_and_what_is_unchecked_leaves_it_open(
    statuses: list[Any], verdict: str
) -> None:
    result = Verification(tuple(VerificationCheck("files", status, "so") for status in statuses))
    assert result.verdict == verdict
    assert result.reproduces == (verdict == "reproduces")
    assert result.ledger == ""


def test_differences_of_all_checks_are_listed_and_bounded() -> None:
    many = judge_differences([f"n: {i}, 0" for i in range(300)], "all follows")
    assert (many.status, len(many.differences)) == ("failed", 100)
    assert many.detail.startswith("300 values differ")
    assert judge_differences(["n: 1, 2"], "all follows").detail.startswith("1 value differs")
    none = judge_differences([], "all follows")
    assert (none.status, none.detail) == ("passed", "all follows")
    ledger = VerificationCheck("ledger", "passed", "it holds this", ("times: 1, 2",))
    result = Verification((many, ledger))
    assert len(result.differences) == 101
    assert result.ledger == "it holds this"


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
