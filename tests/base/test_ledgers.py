"""Which ledger is taken: the one named, the variable's, the default; and whose word opens one."""

from __future__ import annotations

import sqlite3
import warnings
from pathlib import Path

import pytest

from groundfault.base.holdout_events import OPENED
from groundfault.base.ledger import Ledger
from groundfault.base.ledgers import DEFAULT, EARLIER, VARIABLE, find_ledger, find_witness
from groundfault.errors import InputError

URL = "postgresql+psycopg://reader@db.example/audits"


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, and no variable."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE)
    return tmp_path


def test_one_place_is_the_default_and_the_variable_names_another(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_ledger(True).place == str(desk / DEFAULT)
    monkeypatch.setenv(VARIABLE, "")
    assert find_ledger(True).place == str(desk / DEFAULT)
    monkeypatch.setenv(VARIABLE, "team.db")
    assert find_ledger(True).place == str(desk / "team.db")
    assert find_ledger("mine.db").place == str(desk / "mine.db")
    monkeypatch.setenv(VARIABLE, URL)
    assert find_ledger(True).place == URL
    monkeypatch.setenv(VARIABLE, "off")
    assert find_ledger(True) is None
    assert find_ledger(desk / "mine.db") is not None
    assert not list(desk.iterdir()), "to find a ledger makes none"


def test_none_and_false_record_nothing() -> None:
    assert find_ledger(None) is None
    assert find_ledger(False) is None
    book = Ledger("a.db")
    assert find_ledger(book) is book


@pytest.mark.parametrize("name", EARLIER)
def test_a_ledger_where_an_earlier_version_kept_it_is_mentioned_and_read(
    name: str, desk: Path
) -> None:
    Ledger(name).append(OPENED, {"outcome": "o"})
    with pytest.warns(UserWarning, match=rf"{name} holds looks that an earlier .*--ledger {name}"):
        book = find_ledger(True)
    with pytest.raises(Exception, match=f"go on with it by --ledger {name}"):
        book.refuse_earlier(OPENED, lambda body: body["outcome"] == "o", "these outcomes")
    book.refuse_earlier(OPENED, lambda body: body["outcome"] == "p", "those outcomes")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        find_ledger(name).refuse_earlier(OPENED, lambda _: True, "anything")


def test_another_programs_file_is_left_alone(desk: Path) -> None:
    with sqlite3.connect(desk / EARLIER[0]) as raw:
        raw.execute("CREATE TABLE notes (text)")
    (desk / EARLIER[1]).write_text("no database")
    Ledger(desk / "run.db").append("run_sealed", {})
    before = [path.read_bytes() for path in sorted(desk.iterdir())]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        find_ledger(True)
        find_ledger(True, earlier=["run.db"])
    assert [path.read_bytes() for path in sorted(desk.iterdir())] == before


@pytest.mark.parametrize("stated", [URL, "/somewhere/else.db", "//host/share/ledger.db"])
def test_what_a_result_states_opens_nothing(stated: str) -> None:
    assert find_witness(True, stated) is None
    assert find_witness(None, stated) is None


def test_the_callers_ledger_is_the_witness(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    default = str(desk / DEFAULT)
    assert find_witness(True, default) is None, "it is not there"
    Ledger(default).append("note", {})
    assert find_witness(True, default).place == default
    assert find_witness("other.db", default).place == str(desk / "other.db")
    monkeypatch.setenv(VARIABLE, str(desk / "team.db"))
    assert find_witness(True, URL).place == str(desk / "team.db")
    monkeypatch.setenv(VARIABLE, "off")
    assert find_witness(True, default) is None


def test_a_url_that_cannot_be_read_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "mysql://host/x")
    with pytest.raises(InputError, match="a ledger is kept in an SQLite file or in PostgreSQL"):
        _ = find_ledger(True).place
