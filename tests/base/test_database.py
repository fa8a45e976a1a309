"""Databases: where a ledger may be, and what is said where it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Column, Integer, MetaData, Table

from groundfault.base.database import Database
from groundfault.errors import InputError, LedgerError

TABLE = Table("numbers", MetaData(), Column("n", Integer))


def numbers(database: Database) -> list[int]:
    with database.reading(TABLE) as connection:
        return [row.n for row in connection.execute(TABLE.select())]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    database = Database(tmp_path / "folder" / "a.db")
    with database.transaction(TABLE) as connection:
        connection.execute(TABLE.insert().values(n=3))
    assert numbers(Database(f"sqlite:///{tmp_path}/folder/a.db")) == [3]
    assert database.place == str(tmp_path / "folder" / "a.db")


def test_a_failed_transaction_leaves_nothing(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.db")

    def fail_half_way() -> None:
        with database.transaction(TABLE) as connection:
            connection.execute(TABLE.insert().values(n=3))
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


def test_a_missing_or_damaged_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no ledger at"):
        numbers(Database(tmp_path / "none.db"))
    (tmp_path / "a.db").write_bytes(b"words" * 1000)
    with pytest.raises(LedgerError, match="is damaged, or is no ledger"):
        numbers(Database(tmp_path / "a.db"))
