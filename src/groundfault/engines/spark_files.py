"""Counts by Spark, on this machine or on a cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

import polars as pl

from groundfault.engines.cells import CellCounts
from groundfault.engines.dialect import quote_name, write_columns, write_count, write_select
from groundfault.engines.groups import GroupBy, write_groups
from groundfault.errors import InputError, MissingExtraError, RuleError, first_line


@dataclass(frozen=True)
class SparkCounter:
    """Parquet files, scanned by Spark.

    Parameters
    ----------
    files : tuple of str
    session : pyspark.sql.SparkSession, optional
        Where to count; left out, the active session, else the one that Spark's own configuration
        describes, which is this machine where nothing says otherwise.

    Raises
    ------
    MissingExtraError
        If PySpark is not installed.
    """

    files: tuple[str, ...]
    session: Any = field(default=None, compare=False)
    name: str = "spark"
    table: ClassVar[str] = ""

    @classmethod
    def of_table(cls, session: Any, table: str) -> SparkCounter:
        """Count in the files of a table of a session's catalogue, as they are now.

        Raises
        ------
        InputError
            If its files are no Parquet files that this machine sees, or hold other rows or columns
            than the table: those of partitions stand in names of folders.
        """
        rows = session.table(table)
        places = [urlsplit(place) for place in rows.inputFiles()]
        counter = cls(tuple(sorted(unquote(place.path) for place in places)), session)
        is_here = bool(places) and all(place.scheme == "file" for place in places)
        if (
            not is_here
            or list(counter.find_schema()) != rows.columns
            or (counter.counts([], {}).rows.sum() != rows.count())
        ):
            raise InputError(
                f"the table {table} is not what its Parquet files on this machine hold; write its "
                "rows and columns to a directory of such files, and name that"
            )
        return counter

    def find_schema(self) -> pl.Schema:
        """Names and types of the columns."""
        try:
            return self._run(f"SELECT * FROM {self._view} LIMIT 0").schema
        except RuleError as error:
            raise InputError(f"cannot read {self.files[0]}: {error}") from None

    def counts(self, rules: Sequence[str], by: Mapping[str, str]) -> CellCounts:
        """As `groundfault.engines.Counter.counts`."""
        return CellCounts.of(
            self._run(write_count(self._view, rules, by, "spark", "`")), list(by), len(rules)
        )

    def evaluate(self, expressions: Mapping[str, str], where: str) -> pl.DataFrame:
        """As `groundfault.engines.Counter.evaluate`."""
        return self._run(write_select(self._view, expressions, where, "spark", "`"))

    def group(self, groups: GroupBy, part: int, parts: int) -> pl.DataFrame:
        """As `groundfault.engines.groups.GroupingCounter.group`."""
        here = f"pmod(hash({quote_name(groups.key, '`')}), {parts}) = {part}"
        return self._run(write_groups(self._view, groups, here, "spark", "`"))

    @property
    def _view(self) -> str:
        # of its own: a session may serve several
        return f"groundfault_{hashlib.sha256(repr(self.files).encode()).hexdigest()[:16]}"

    @cached_property
    def _spark(self) -> Any:
        try:
            from pyspark.sql import SparkSession
        except ImportError:
            raise MissingExtraError(
                "the engine spark needs PySpark and a Java: pip install 'groundfault[spark]'"
            ) from None
        spark = self.session or SparkSession.builder.appName("groundfault").getOrCreate()
        frame = spark.read.parquet(*self.files)
        frame.createOrReplaceTempView(f"{self._view}_files")
        columns = write_columns(dict(frame.dtypes), "`")
        spark.sql(f"SELECT {columns} FROM {self._view}_files").createOrReplaceTempView(self._view)
        return spark

    def _run(self, statement: str) -> pl.DataFrame:
        try:
            result = self._spark.sql(statement).toArrow()
        except MissingExtraError:
            raise
        except Exception as error:
            raise RuleError(f"Spark cannot evaluate a rule: {first_line(error)}") from None
        frame = pl.from_arrow(result)
        assert isinstance(frame, pl.DataFrame)
        return frame
