"""Counts by DuckDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from groundfault.core.rules import literal, quote
from groundfault.engines.cells import CellCounts
from groundfault.engines.dialect import write_columns, write_count, write_select
from groundfault.engines.groups import GroupBy, write_groups
from groundfault.errors import InputError, MissingExtraError, RuleError, first_line


@dataclass(frozen=True)
class DuckdbCounter:
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
    A database is attached to be read only, and then cut off from all other files: a view in it
    shows what the database itself holds, and nothing else of this machine.
    """

    files: tuple[str, ...]
    table: str = ""
    name: str = "duckdb"

    def find_schema(self) -> pl.Schema:
        """Names and types of the columns."""
        try:
            return self._run("SELECT * FROM files LIMIT 0").schema
        except RuleError as error:
            raise InputError(f"cannot read {self.files[0]}: {error}") from None

    def counts(self, rules: Sequence[str], by: Mapping[str, str]) -> CellCounts:
        """As `groundfault.engines.Counter.counts`."""
        frame = self._run(write_count("results", rules, by, "duckdb", '"'))
        return CellCounts.of(frame, list(by), len(rules))

    def evaluate(self, expressions: Mapping[str, str], where: str) -> pl.DataFrame:
        """As `groundfault.engines.Counter.evaluate`."""
        return self._run(write_select("results", expressions, where, "duckdb", '"'))

    def group(self, groups: GroupBy, part: int, parts: int) -> pl.DataFrame:
        """As `groundfault.engines.groups.GroupingCounter.group`."""
        here = f"hash({quote(groups.key)}) % {parts} = {part}"
        return self._run(write_groups("results", groups, here, "duckdb", '"'))

    @cached_property
    def _connection(self) -> Any:
        try:
            import duckdb
            import pyarrow  # noqa: F401, which DuckDB hands its results over by
        except ImportError:
            raise MissingExtraError(
                "the engine duckdb needs DuckDB: pip install 'groundfault[duckdb]'"
            ) from None
        connection = duckdb.connect()
        # Parquet's ends of a column pass over NaN, from which DuckDB takes it that there is none,
        # and isnan for false
        connection.execute("SET disabled_optimizers = 'statistics_propagation'")
        if self.table:
            self._attach(connection)
        else:
            paths = ", ".join(map(literal, self.files))
            connection.execute(f"CREATE VIEW files AS SELECT * FROM read_parquet([{paths}])")
        kinds = {name: kind for name, kind, *_ in connection.execute("DESCRIBE files").fetchall()}
        columns = write_columns(kinds, '"')
        connection.execute(f"CREATE VIEW results AS SELECT {columns} FROM files")
        return connection

    def _attach(self, connection: Any) -> None:
        """Make a view of the table."""
        from sqlglot import exp
        from sqlglot.errors import SqlglotError

        path = self.files[0]
        if Path(f"{path}.wal").exists():
            raise InputError(
                f"{path} has changes that are not in the file yet, beside it in {path}.wal: close "
                "what writes to it, or run CHECKPOINT"
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

    def _run(self, statement: str) -> pl.DataFrame:
        try:
            # not from the relation itself: DuckDB 2.0 then complains of leaks when Python ends
            result = self._connection.sql(statement).to_arrow_table()
        except (MissingExtraError, InputError):
            raise
        except Exception as error:
            raise RuleError(f"DuckDB cannot evaluate a rule: {first_line(error)}") from None
        frame = pl.from_arrow(result)
        assert isinstance(frame, pl.DataFrame)
        return frame
