"""Database: a ledger's SQLite file or PostgreSQL, one writer at a time, plain errors."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from groundfault.errors import InputError, LedgerError, MissingExtraError

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine, Table
    from sqlalchemy.exc import DBAPIError

_WAIT = 60  # seconds to wait for another writer
# seconds after which PostgreSQL ends a transaction of which nothing is heard: a machine that
# went off the network would hold up all others until the patience of the server ends, in hours
_SILENCE = 300
# PostgreSQL's advisory lock: one number for all that groundfault keeps on a server
_LOCK = 0x67726F756E646661
# libpq's own way to name a server, and URLs that lost a slash: both may hold a password, which must
# not become the name of a file
_CONNECTION = re.compile(
    r"(^|\s)(host|hostaddr|port|dbname|user|password|passfile|service|sslmode)\s*=\s*\S"
    r"|^(postgres|postgresql|sqlite)(\+\w+)?:(?!//)",
    re.IGNORECASE,
)


class Database:
    """A place to keep a table in.

    Parameters
    ----------
    path_or_url : path or str
        A file, or a URL ``postgresql+psycopg://...``.
    name : str
        What messages call it.
    """

    def __init__(self, path_or_url: str | Path, name: str = "ledger") -> None:
        self._source = path_or_url
        self._name = name

    @property
    def place(self) -> str:
        """Where it is: an absolute path, or a URL without its password."""
        return str(self._file or self._url.set(query={}).render_as_string(hide_password=True))

    @cached_property
    def _file(self) -> Path | None:
        return Path(self._url.database or "") if self._url.get_backend_name() == "sqlite" else None

    @cached_property
    def _url(self) -> URL:
        from sqlalchemy import URL, make_url
        from sqlalchemy.exc import ArgumentError

        source = str(self._source)
        if isinstance(self._source, str) and _CONNECTION.search(source):
            raise InputError(
                f"the {self._name} is given as words for a database client (such as host=... "
                "password=...), which would be taken for the name of a file; write "
                "postgresql+psycopg://user@host/name, and the password into PGPASSWORD or ~/.pgpass"
            )
        if "://" not in source:
            return URL.create("sqlite", database=str(Path(source).absolute()))
        try:
            url = make_url(source)
        except (ArgumentError, ValueError):  # their messages may hold the password
            raise InputError(
                f"the {self._name}'s URL is malformed; give a path, or postgresql+psycopg://host/name"
            ) from None
        if url.get_backend_name() == "postgresql":
            return url
        if url.get_backend_name() != "sqlite" or url.database in (None, "", ":memory:"):
            raise InputError(
                f"a {self._name} is kept in an SQLite file or in PostgreSQL; give a path, or "
                "postgresql+psycopg://"
            )
        return URL.create("sqlite", database=str(Path(url.database or "").absolute()))

    @property
    def _reader(self) -> Engine:
        """As `_engine`; but a read-only file that nobody writes to is read as it stands.

        To read through the write-ahead log SQLite has to make files beside it.
        """
        from sqlalchemy import URL, create_engine

        file = self._file
        if file is None or (os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)):
            return self._engine
        if file.with_name(file.name + "-wal").exists():
            return self._engine
        return create_engine(
            URL.create("sqlite", database=file.as_uri(), query={"immutable": "1", "uri": "true"})
        )

    @cached_property
    def _engine(self) -> Engine:
        from sqlalchemy import create_engine
        from sqlalchemy.exc import ArgumentError
        from sqlalchemy.pool import NullPool

        # no isolation level: transactions begin where `transaction` says so, not at the first
        # write. no pool: no connection is carried over a fork, and the write-ahead log is folded in
        # at every close
        options = {"isolation_level": None, "timeout": _WAIT} if self._file else {}
        try:
            return create_engine(self._url, poolclass=NullPool, connect_args=options)
        except ArgumentError:
            raise InputError(
                f"no such driver: {self.place}; write postgresql+psycopg://host/name"
            ) from None
        except ImportError as error:
            raise MissingExtraError(
                f"the {self._name} {self.place} needs {error.name}: pip install 'psycopg[binary]'"
            ) from None

    @contextmanager
    def transaction(self, table: Table) -> Iterator[Connection]:
        """One writer at a time, from first read to last write; creates a missing table.

        Raises
        ------
        InputError
            If the place cannot be written to, or stays taken by another process.
        LedgerError
            If the file is damaged.
        """
        from sqlalchemy.exc import DBAPIError, OperationalError

        try:
            if self._file:
                self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._engine.begin() as connection:
                if self._file:
                    # fails at once while another process makes the same file, and is then done by
                    # that one
                    with suppress(OperationalError):
                        connection.exec_driver_sql("PRAGMA journal_mode=WAL")
                    connection.exec_driver_sql("BEGIN IMMEDIATE")
                else:
                    connection.exec_driver_sql(
                        f"SELECT set_config('lock_timeout', '{_WAIT}s', true), "
                        f"set_config('idle_in_transaction_session_timeout', '{_SILENCE}s', true)"
                    )
                    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
                table.metadata.create_all(connection)
                yield connection
        except OSError as error:
            raise InputError(
                f"cannot make the {self._name} {self.place}: {error.strerror}; choose another place"
            ) from None
        except DBAPIError as error:
            raise self._failure(error, "written to") from None

    @contextmanager
    def reading(self, table: Table) -> Iterator[Connection]:
        """One read, of a state between two transactions; an empty table where nobody has made one.

        Raises
        ------
        InputError
            If there is nothing at this place, or it cannot be read.
        LedgerError
            If the file is damaged.
        """
        from sqlalchemy import create_engine, inspect
        from sqlalchemy.exc import DBAPIError

        if self._file and not self._file.exists():
            raise InputError(f"there is no {self._name} at {self.place}")
        try:
            with self._reader.connect() as connection:
                if inspect(connection).has_table(table.name):
                    yield connection
                    return
            # whoever made the file was killed before anything was in it
            with create_engine("sqlite://").connect() as empty:
                table.metadata.create_all(empty)
                yield empty
        except DBAPIError as error:
            raise self._failure(error, "read") from None

    def _failure(self, error: DBAPIError, verb: str) -> InputError | LedgerError:
        name = f"the {self._name} {self.place}"
        what = (str(error.orig).strip().splitlines() or [type(error.orig).__name__])[0]
        if type(error.orig).__name__ == "DatabaseError":
            return LedgerError(
                f"{name} is damaged, or is no {self._name}: {what}; restore it from a copy"
            )
        if "locked" in what or "lock timeout" in what:
            return InputError(f"{name} was held by another process for {_WAIT} s; try again")
        return InputError(f"{name} cannot be {verb}: {what}; check the place and its permissions")


def copy_database(source: Path, target: Path) -> None:
    """Copy a file of a database as it is, although another process may be writing to it."""
    if not source.with_name(f"{source.name}-wal").exists():
        shutil.copyfile(source, target)
        return
    # what was written last is in a file beside it until the last connection is closed
    place = f"{source.resolve().as_uri()}?mode=ro"
    with (
        closing(sqlite3.connect(place, uri=True)) as live,
        closing(sqlite3.connect(target)) as copy,
    ):
        live.backup(copy)
