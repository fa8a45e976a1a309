"""Counts by DuckDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from groundfault.core.rules import quote
from groundfault.engines.cells import CellCounts
from groundfault.engines.dialect import write_count, write_select
from groundfault.errors import InputError, MissingExtraError, RuleError, first_line


@dataclass(frozen=True)
class DuckdbCounter:
    """Parquet files, scanned by DuckDB.

    Parameters
    ----------
    files : tuple of str

    Raises
    ------
    MissingExtraError
        If DuckDB is not installed.
    """

    files: tuple[str, ...]
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
        paths = ", ".join("'" + path.replace("'", "''") + "'" for path in self.files)
        connection.execute(f"CREATE VIEW files AS SELECT * FROM read_parquet([{paths}])")
        columns = connection.execute("DESCRIBE files").fetchall()
        floats = [quote(name) for name, kind, *_ in columns if kind in ("FLOAT", "DOUBLE")]
        # NaN is a value there, larger than all others
        numbers = [
            f"CASE WHEN isnan({name}) THEN NULL ELSE {name} END AS {name}" for name in floats
        ]
        star = f"* REPLACE ({', '.join(numbers)})" if numbers else "*"
        connection.execute(f"CREATE VIEW results AS SELECT {star} FROM files")
        return connection

    def _run(self, statement: str) -> pl.DataFrame:
        try:
            # not from the relation itself: DuckDB 2.0 then complains of leaks when Python ends
            result = self._connection.sql(statement).to_arrow_table()
        except MissingExtraError:
            raise
        except Exception as error:
            raise RuleError(f"DuckDB cannot evaluate a rule: {first_line(error)}") from None
        frame = pl.from_arrow(result)
        assert isinstance(frame, pl.DataFrame)
        return frame
