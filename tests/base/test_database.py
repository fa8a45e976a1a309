"""Databases: where a ledger may be, and what is said where it cannot."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from groundfault.base.database import Database, DatabaseTable
from groundfault.errors import InputError, LedgerError

TABLE = DatabaseTable("numbers", ("n",), numbers_itself=True)


def numbers(database: Database) -> list[int]:
    with database.reading(TABLE) as connection:
        return [int(row.n) for row in connection.execute("SELECT n FROM numbers ORDER BY seq")]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    database = Database(tmp_path / "folder" / "a.db")
    with database.transaction(TABLE) as connection:
        connection.insert(TABLE, {"n": "3"})
    assert numbers(Database(f"sqlite:///{tmp_path}/folder/a.db")) == [3]
    assert database.place == str(tmp_path / "folder" / "a.db")


def test_a_failed_transaction_leaves_nothing(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.db")

    def fail_half_way() -> None:
        with database.transaction(TABLE) as connection:
            connection.insert(TABLE, {"n": "3"})
            raise KeyError

    with pytest.raises(KeyError):
        fail_half_way()
    assert numbers(database) == []


def test_a_password_is_never_shown() -> None:
    place = Database("postgresql+psycopg://me:secret@host/name?sslkey=s").place
    assert place == "postgresql+psycopg://me:***@host/name"


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://h/n", "http//x://"])
def test_other_places_are_refused(url: str) -> None:
    with pytest.raises(InputError):
        Database(url).place  # noqa: B018


@pytest.mark.parametrize(
    "words",
    [
        "host=db.example password=hunter22 dbname=audits",
        " password = hunter22",
        "user=me password='hunter22'",
        "postgresql:me:hunter22@db.example/audits",
        "postgresql+psycopg:/me:hunter22@db.example/audits",
    ],
)
def test_words_for_a_client_are_no_name_of_a_file(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with (
        pytest.raises(InputError, match="is given as words") as error,
        Database(words).transaction(TABLE),
    ):
        pass
    assert "hunter22" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_path_may_have_an_equals_sign(tmp_path: Path) -> None:
    for place in (tmp_path / "user=me" / "a.db", Path("host=a.db")):
        assert Database(place).place == str(place.absolute())
    assert Database(f"{tmp_path}/user=me/a.db").place == f"{tmp_path}/user=me/a.db"


def test_a_missing_or_damaged_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no ledger at"):
        numbers(Database(tmp_path / "none.db"))
    (tmp_path / "a.db").write_bytes(b"words" * 1000)
    with pytest.raises(LedgerError, match="is damaged, or is no ledger"):
        numbers(Database(tmp_path / "a.db"))


@pytest.mark.slow
def test_postgresql_is_waited_for_as_long_as_a_file_and_no_longer(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("groundfault.base.database._WAIT", 1)
    database = Database(postgres)
    with (
        database.transaction(TABLE),
        pytest.raises(InputError, match="held by another process for 1 s; try again"),
        Database(postgres).transaction(TABLE),
    ):
        pass


@pytest.mark.slow
def test_a_writer_of_whom_nothing_is_heard_holds_up_nobody_for_ever(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_after(seconds: float) -> None:
        with Database(postgres).transaction(TABLE) as connection:
            time.sleep(seconds)
            connection.insert(TABLE, {"n": "7"})

    before = numbers(Database(postgres))
    monkeypatch.setattr("groundfault.base.database._SILENCE", 1)
    with ThreadPoolExecutor() as pool:
        silent = pool.submit(write_after, 3)
        time.sleep(0.5)
        write_after(0)  # waits, and goes on before the other one says anything
        assert not silent.done()
        with pytest.raises(InputError, match="idle-in-transaction timeout"):
            silent.result(60)
    assert numbers(Database(postgres)) == [*before, 7]
