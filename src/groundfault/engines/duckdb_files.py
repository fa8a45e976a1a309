"""Counts by DuckDB."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from groundfault.core.rules import literal
from groundfault.engines.dialect import SqlCounter
from groundfault.errors import InputError, require_extra


@dataclass(frozen=True)
class DuckdbCounter(SqlCounter):
    """Parquet files, or a table of a database, scanned by DuckDB.

    Parameters
    ----------
    files : tuple of str
        Parquet files; or one database.
    table : str
        A table or view of the database, as DuckDB names it: ``results``, ``main."my results"``.

    Raises
    ------
    MissingExtraError
        If DuckDB is not installed.

    Notes
    -----
    A database is attached read-only, and then cut off from all other files: its views can show the
    database itself, but no other file of this machine.
    """

    files: tuple[str, ...]
    table: str = ""
    name: str = "duckdb"

    title: ClassVar[str] = "DuckDB"
    dialect: ClassVar[str] = "duckdb"
    sign: ClassVar[str] = '"'

    @property
    def view(self) -> str:
        """Return the name of the view that `_connection` makes."""
        return "results"

    def fetch(self, statement: str) -> Any:
        """Return the result of a statement as a table of Arrow."""
        # not from the relation itself: DuckDB 2.0 then complains of leaks when Python ends
        return self._connection.sql(statement).to_arrow_table()

    def draw_part(self, key: str, part: int, parts: int) -> str:
        """Write a condition for the rows of one of several parts, by a hash of their key."""
        return f"hash({key}) % {parts} = {part}"

    @cached_property
    def _connection(self) -> Any:
        with require_extra("the engine duckdb needs DuckDB: pip install 'groundfault[duckdb]'"):
            import duckdb
            import pyarrow  # noqa: F401, which DuckDB hands its results over by
        connection = duckdb.connect()
        # the minimum and maximum of a column in Parquet ignore NaN; DuckDB concludes that there is
        # no NaN and that isnan is false
        connection.execute("SET disabled_optimizers = 'statistics_propagation'")
        if self.table:
            self._attach(connection)
        else:
            paths = ", ".join(map(literal, self.files))
            connection.execute(f"CREATE VIEW files AS SELECT * FROM read_parquet([{paths}])")
        kinds = {name: kind for name, kind, *_ in connection.execute("DESCRIBE files").fetchall()}
        columns = self.spell_columns(kinds)
        connection.execute(f"CREATE VIEW results AS SELECT {columns} FROM files")
        return connection

    def _attach(self, connection: Any) -> None:
        """Make a view of the table."""
        from sqlglot import exp
        from sqlglot.errors import SqlglotError

        path = self.files[0]
        if Path(f"{path}.wal").exists():
            raise InputError(
                f"{path} has changes that are still in {path}.wal: close the program that writes "
                "to the database, or run CHECKPOINT"
            )
        try:
            table = exp.to_table(self.table, dialect="duckdb")
        except SqlglotError:
            table = None
        if table is None or not table.name or table.catalog:
            raise InputError(f"{self.table!r} is no name of a table: write TABLE or SCHEMA.TABLE")
        name = exp.table_(table.name, db=table.db or "main", catalog="source", quoted=True)
        connection.execute(f"ATTACH {literal(path)} AS source (TYPE duckdb, READ_ONLY)")
        connection.execute("SET enable_external_access = false")
        connection.execute(f"CREATE VIEW files AS SELECT * FROM {name.sql(dialect='duckdb')}")
