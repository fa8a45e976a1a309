"""An anchor against a ledger: what was signed has to be there still."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from signatures import make_authority, make_key, needs_openssl, needs_ssh, stamp

from groundfault.auditing.anchor_check import check_anchor
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
        assert "all events before it are as they were then" in check.detail
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
    assert (
        "does not hold it any more: events were erased"
        in check_anchor(files(desk), anew, None).detail
    )


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
    assert (check.status, "does not hold it any more" in check.detail) == ("failed", True)


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
