"""Database: a ledger's SQLite file or PostgreSQL, one writer at a time, plain errors."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from groundfault.base.files import make_file, make_folder
from groundfault.errors import InputError, LedgerError, MissingExtraError

_WAIT = 60  # seconds to wait for another writer
# seconds after which PostgreSQL ends a silent transaction: otherwise a machine that left the
# network would block all others for hours, until the server gives up
_SILENCE = 300
# PostgreSQL's advisory lock: one number for all tables of groundfault on a server
_LOCK = 0x67726F756E646661
_POSTGRES = ("postgresql+psycopg", "postgresql")
# libpq's own way to name a server, and URLs that lost a slash: both may hold a password, which must
# not become the name of a file
_CONNECTION = re.compile(
    r"(^|\s)(host|hostaddr|port|dbname|user|password|passfile|service|sslmode)\s*=\s*\S"
    r"|^(postgres|postgresql|sqlite)(\+\w+)?:(?!//)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class DatabaseTable:
    """A table of texts, whose rows are numbered by ``seq``.

    Attributes
    ----------
    name : str
    texts : tuple of str
        The other columns.
    unique : str
        The column that never holds a text twice.
    index : str
        The column to look up rows by.
    numbers_itself : bool
        Whether the database, not the writer, numbers a new row.
    layout : int
        Version of these columns, which the database stores with them. A table with a version is
        checked when it is opened: see `Connection.check`.
    """

    name: str
    texts: tuple[str, ...]
    unique: str = ""
    index: str = ""
    numbers_itself: bool = False
    layout: int = 0

    def make(self, *, postgres: bool) -> Iterator[str]:
        """List the statements that make the table if it is missing."""
        number = "SERIAL" if postgres and self.numbers_itself else "INTEGER"
        rest = (f"{t} TEXT NOT NULL{' UNIQUE' if t == self.unique else ''}" for t in self.texts)
        columns = ", ".join([f"seq {number} PRIMARY KEY", *rest])
        yield f"CREATE TABLE IF NOT EXISTS {self.name} ({columns})"
        if self.index:
            name = f"{self.name}_{self.index}"
            yield f"CREATE INDEX IF NOT EXISTS {name} ON {self.name} ({self.index})"
        if self.layout and postgres:
            yield f"COMMENT ON TABLE {self.name} IS '{self.layout}'"
        elif self.layout:
            yield f"PRAGMA user_version = {self.layout}"


@cache  # making a class takes longer than most statements
def _make_row(columns: tuple[str, ...]) -> Any:
    return namedtuple("Row", columns)


class Connection:
    """A connection to either kind of database, by the same statements."""

    def __init__(self, raw: Any, *, postgres: bool) -> None:
        self._raw, self.postgres = raw, postgres

    def execute(self, statement: str, values: Sequence[object] = ()) -> Iterator[Any]:
        """Run a statement with a ``?`` for each value; rows have a field for each column."""
        if self.postgres:
            statement = statement.replace("?", "%s")
        cursor = self._raw.execute(statement, values)
        if cursor.description is None:
            return iter(())
        row = _make_row(tuple(column[0] for column in cursor.description))
        return map(row._make, cursor)

    def insert(self, table: DatabaseTable, entry: Mapping[str, object]) -> None:
        """Add a row."""
        names, marks = ", ".join(entry), ", ".join("?" * len(entry))
        self.execute(f"INSERT INTO {table.name} ({names}) VALUES ({marks})", [*entry.values()])

    def make(self, table: DatabaseTable) -> None:
        """Make a table where it is missing."""
        if not self.has(table):
            for statement in table.make(postgres=self.postgres):
                self.execute(statement)

    def check(self, table: DatabaseTable) -> str:
        """Return the fault of an existing table; empty for a valid one.

        The layout and columns must be known, and the index that forbids duplicate texts must exist.
        """
        if self.postgres:
            layout, triggers, columns, unique = (
                "SELECT obj_description(to_regclass(?)) AS it",
                "WITH t AS (SELECT to_regclass(?) AS c) SELECT tgname AS it FROM pg_trigger, t"
                " WHERE tgrelid = c AND NOT tgisinternal"
                " UNION ALL SELECT rulename FROM pg_rewrite, t WHERE ev_class = c",
                "SELECT attname AS it FROM pg_attribute WHERE attrelid = to_regclass(?)"
                " AND attnum > 0 AND NOT attisdropped",
                "SELECT a.attname AS it FROM pg_index i JOIN pg_attribute a ON a.attrelid ="
                " i.indrelid AND a.attnum = i.indkey[0] WHERE i.indrelid = to_regclass(?)"
                " AND i.indisunique AND i.indisvalid AND i.indnatts = 1 AND i.indpred IS NULL",
            )
        else:
            layout, triggers, columns, unique = (
                "SELECT user_version AS it FROM pragma_user_version WHERE ? <> ''",
                "SELECT name AS it FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?",
                "SELECT name AS it FROM pragma_table_info(?)",
                "SELECT max(c.name) AS it FROM pragma_index_list(?) i, pragma_index_info(i.name) c"
                ' WHERE i."unique" AND NOT i.partial GROUP BY i.name HAVING count(*) = 1',
            )
            (damage,) = next(self.execute("PRAGMA integrity_check(1)"))
            if damage != "ok":
                return f"is damaged: {' '.join(damage.split())}; restore it from a copy"
        found = {row.it for row in self.execute(columns, [table.name])}
        newer = int(next(self.execute(layout, [table.name])).it or 0) > table.layout
        if newer or found - {"seq", *table.texts}:
            return "was written by a newer groundfault: use that one, or a later one"
        if trigger := next(self.execute(triggers, [table.name]), None):
            return f"has the trigger {trigger.it!r}, which may drop or change rows"
        if missing := [text for text in table.texts if text not in found]:
            return f"was altered: it lacks the column {missing[0]}"
        if table.unique not in {row.it for row in self.execute(unique, [table.name])}:
            return f"was altered: two of its rows may have the same {table.unique}"
        return ""

    def has(self, table: DatabaseTable) -> bool:
        """Return whether the table is there."""
        query = (
            "SELECT 1 AS one WHERE to_regclass(?) IS NOT NULL"
            if self.postgres
            else "SELECT 1 AS one FROM sqlite_master WHERE name = ?"
        )
        return next(self.execute(query, [table.name]), None) is not None


class Database:
    """A file or server that holds a table.

    Parameters
    ----------
    path_or_url : path or str
        A file, or a URL ``postgresql+psycopg://...``.
    name : str
        Its name in messages.
    """

    def __init__(self, path_or_url: str | Path, name: str = "ledger") -> None:
        self._source = path_or_url
        self._name = name
        self._is_checked = False

    @property
    def place(self) -> str:
        """Return the place: an absolute path, or a URL without its password."""
        if isinstance(self._parsed, Path):
            return str(self._parsed)
        user, at, host = self._parsed.netloc.rpartition("@")
        name, colon, _ = user.partition(":")
        hidden = f"{name}:***" if colon else name
        return f"{self._parsed.scheme}://{hidden}{at}{host}{self._parsed.path}"

    @property
    def _file(self) -> Path | None:
        return self._parsed if isinstance(self._parsed, Path) else None

    @cached_property
    def _parsed(self) -> Path | SplitResult:
        source = str(self._source)
        if isinstance(self._source, str) and _CONNECTION.search(source):
            raise InputError(
                f"the {self._name} is given as words (such as host=... password=...); write "
                "postgresql+psycopg://user@host/name, and the password into PGPASSWORD or ~/.pgpass"
            )
        if "://" not in source:
            return Path(source).absolute()
        try:
            url = urlsplit(source)
            _ = url.port  # raises where it is no number
        except ValueError:  # its message may hold the password
            raise InputError(
                f"the {self._name}'s URL is malformed; give a path, or postgresql+psycopg://host/name"
            ) from None
        if url.scheme.startswith("postgresql"):
            if url.scheme in _POSTGRES:
                return url
            raise InputError(f"unknown driver {url.scheme}; write postgresql+psycopg://host/name")
        file = url.path.removeprefix("/")
        if url.scheme != "sqlite" or url.netloc or file in ("", ":memory:"):
            raise InputError(
                f"a {self._name} is kept in an SQLite file or in PostgreSQL; give a path, or "
                "postgresql+psycopg://"
            )
        return Path(file).absolute()

    @cached_property
    def _errors(self) -> type[Exception]:
        """Return the class of the driver's errors."""
        if self._file:
            return sqlite3.Error
        try:
            import psycopg
        except ImportError as error:
            raise MissingExtraError(
                f"the {self._name} {self.place} needs {error.name}: pip install 'psycopg[binary]'"
            ) from None
        return psycopg.Error

    def _connect(self, *, reading: bool = False) -> closing[Any]:
        """Open a connection of its own for each use, so that none is carried over a fork.

        SQLite then merges its write-ahead log at every close. A read-only file without a writer is
        read without that log, because SQLite would make files beside it to read the log.
        """
        if isinstance(self._parsed, SplitResult):
            import psycopg

            try:
                return closing(psycopg.connect(self._parsed._replace(scheme="postgresql").geturl()))
            except psycopg.ProgrammingError:  # its message may hold the password
                raise InputError(
                    f"the {self._name}'s URL is malformed; give a path, or "
                    "postgresql+psycopg://host/name"
                ) from None
        file = self._parsed
        writable = os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)
        if reading and not writable and not file.with_name(file.name + "-wal").exists():
            return closing(sqlite3.connect(f"{file.as_uri()}?immutable=1", uri=True))
        # transactions begin where `transaction` says so, not at the first write
        return closing(sqlite3.connect(file, timeout=_WAIT, isolation_level=None))

    @contextmanager
    def transaction(self, table: DatabaseTable) -> Iterator[Connection]:
        """Make a missing table, and admit one writer at a time, from first read to last write.

        Raises
        ------
        InputError
            If the place cannot be written to, or stays taken by another process.
        LedgerError
            If the file is damaged.
        """
        errors = self._errors
        try:
            if self._file:
                make_folder(self._file.parent)
                # before SQLite does, which would let others read it; its log has the same mode
                make_file(self._file)
            with self._connect() as raw:
                connection = Connection(raw, postgres=not self._file)
                self._begin(connection)
                try:
                    connection.make(table)
                    self._check(connection, table)
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    with suppress(errors):
                        connection.execute("ROLLBACK")
                    raise
        except OSError as error:
            raise InputError(
                f"cannot make the {self._name} {self.place}: {error.strerror}; choose another place"
            ) from None
        except errors as error:
            raise self._failure(error, "written to") from None

    def _begin(self, connection: Connection) -> None:
        if self._file:
            # fails at once while another process makes the same file, and is then done by that one
            with suppress(sqlite3.OperationalError):
                list(connection.execute("PRAGMA journal_mode=WAL"))
            connection.execute("BEGIN IMMEDIATE")
            return
        connection.execute(f"SET LOCAL lock_timeout = '{_WAIT}s'")
        connection.execute(f"SET LOCAL idle_in_transaction_session_timeout = '{_SILENCE}s'")
        connection.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")

    @contextmanager
    def reading(self, table: DatabaseTable) -> Iterator[Connection]:
        """Read a state between two transactions; a missing table reads as empty.

        Raises
        ------
        InputError
            If the place does not exist, or cannot be read.
        LedgerError
            If the file is damaged.
        """
        if self._file and not self._file.exists():
            raise InputError(f"there is no {self._name} at {self.place}")
        try:
            with self._connect(reading=True) as raw:
                connection = Connection(raw, postgres=not self._file)
                if connection.has(table):
                    self._check(connection, table)
                    yield connection
                    return
            # the process that made the file was killed before it made the table
            with closing(sqlite3.connect(":memory:")) as raw:
                connection = Connection(raw, postgres=False)
                connection.make(table)
                yield connection
        except self._errors as error:
            raise self._failure(error, "read") from None

    def _check(self, connection: Connection, table: DatabaseTable) -> None:
        """Refuse a faulty table when it is first opened."""
        if table.layout and not self._is_checked:
            if trouble := connection.check(table):
                raise LedgerError(f"the {self._name} {self.place} {trouble}")
            self._is_checked = True

    def _failure(self, error: Exception, verb: str) -> InputError | LedgerError:
        name = f"the {self._name} {self.place}"
        what = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if type(error).__name__ == "DatabaseError":
            return LedgerError(
                f"{name} is damaged, or is no {self._name}: {what}; restore it from a copy"
            )
        if "locked" in what or "lock timeout" in what:
            return InputError(f"{name} was held by another process for {_WAIT} s; try again")
        return InputError(f"{name} cannot be {verb}: {what}; check the place and its permissions")


def copy_database(source: Path, target: Path) -> None:
    """Copy a database file, even while another process writes to it."""
    if not source.with_name(f"{source.name}-wal").exists():
        make_file(target)
        shutil.copyfile(source, target)
        return
    # the last writes are in a file beside it until the last connection is closed
    place = f"{source.resolve().as_uri()}?mode=ro"
    with (
        closing(sqlite3.connect(place, uri=True)) as live,
        closing(sqlite3.connect(target)) as copy,
    ):
        live.backup(copy)
