"""Counts by Spark, on this machine or on a cluster."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

from groundfault.engines.dialect import SqlCounter
from groundfault.errors import InputError, RuleError, require_extra


@dataclass(frozen=True)
class SparkCounter(SqlCounter):
    """Parquet files, scanned by Spark.

    Parameters
    ----------
    files : tuple of str
    session : pyspark.sql.SparkSession, optional
        Session to count in. The default is the active session, else a session from Spark's own
        configuration, which is this machine by default.

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
        """Count in the present files of a table in a session's catalogue.

        Raises
        ------
        InputError
            If its files are not Parquet files on this machine, or hold other rows or columns than
            the table, for example because names of folders hold the columns of partitions.
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
                f"the table {table} differs from its Parquet files on this machine; write its rows "
                "and columns to a directory of Parquet files, and name that directory"
            )
        return counter

    title: ClassVar[str] = "Spark"
    dialect: ClassVar[str] = "spark"
    sign: ClassVar[str] = "`"
    backtracks: ClassVar[bool] = True

    def draw_part(self, key: str, part: int, parts: int) -> str:
        """Write a condition for the rows of one of several parts, by a hash of their key."""
        return f"pmod(hash({key}), {parts}) = {part}"

    @property
    def view(self) -> str:
        """Return a unique name, because a session may serve several counters."""
        return f"groundfault_{hashlib.sha256(repr(self.files).encode()).hexdigest()[:16]}"

    @cached_property
    def _spark(self) -> Any:
        with require_extra(
            "the engine spark needs PySpark and a Java: pip install 'groundfault[spark]'"
        ):
            from pyspark.sql import SparkSession
        spark = self.session or SparkSession.builder.appName("groundfault").getOrCreate()
        frame = spark.read.parquet(*self.files)
        frame.createOrReplaceTempView(f"{self.view}_files")
        columns = self.spell_columns(dict(frame.dtypes))
        spark.sql(f"SELECT {columns} FROM {self.view}_files").createOrReplaceTempView(self.view)
        return spark

    def fetch(self, statement: str) -> Any:
        """Return the result of a statement as a table of Arrow."""
        if "${" in statement:
            raise RuleError("Spark puts settings and the environment in place of ${...}")
        return self._spark.sql(statement).toArrow()
