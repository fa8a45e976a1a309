"""Engines that count in a table too large to read: one an engine a file.

What a verdict needs of most tables is counts: how many rows a rule holds for, and how many of them
failed. A `Counter` is asked for those of all rules in one scan. `open_counter` finds one by name,
also those of installed packages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import polars as pl

from groundfault.base.registry import Registry
from groundfault.engines.cells import CellCounts
from groundfault.errors import InputError


@runtime_checkable
class Counter(Protocol):
    """Counts in Parquet files, or in a table of a database, without reading them into memory.

    Attributes
    ----------
    name : str
    files : tuple of str
        What it counts in, sorted.
    table : str
        Which table of the file, where that is a database; else empty.

    Notes
    -----
    Expressions are SQL in the normal form of `groundfault.core.rules.Rule`, and may use ``MD5`` of
    a text, in hexadecimal. NaN in a column is NULL. Engines differ silently in what some
    expressions mean; `groundfault.engines.agreement` finds out where, and ``check_counter`` of
    `groundfault.testing` lists it.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def files(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def table(self) -> str: ...  # noqa: D102

    def find_schema(self) -> pl.Schema:
        """Names and polars types of the columns."""
        ...

    def counts(self, rules: Sequence[str], by: Mapping[str, str]) -> CellCounts:
        """Rows, and rows that each rule is true and defined for, in each cell.

        Parameters
        ----------
        rules : sequence of str
            True, false or NULL for each row.
        by : mapping of str to str
            Expressions by name: the rows of one cell agree in all of them. Without any there is
            one cell.

        Raises
        ------
        RuleError
            If the engine cannot evaluate an expression.
        """
        ...

    def evaluate(self, expressions: Mapping[str, str], where: str) -> pl.DataFrame:
        """Values of expressions, by name, for the rows where a rule is true, in any order.

        Raises
        ------
        RuleError
            If the engine cannot evaluate an expression.
        """
        ...


_REGISTRY = Registry(
    "engine",
    "groundfault.engines",
    {
        "polars": "groundfault.engines.polars_files:PolarsCounter",
        "duckdb": "groundfault.engines.duckdb_files:DuckdbCounter",
        "spark": "groundfault.engines.spark_files:SparkCounter",
    },
)

NAMES = tuple(_REGISTRY.built_in)


DATABASES = ("duckdb",)
"""Engines that count in a table of a database file, too."""


def open_counter(name: str, source: str | Path, table: str = "") -> Counter:
    """The engine of a name, over a Parquet file or a directory of them, or a table of a database.

    Raises
    ------
    InputError
        If there is no such file, or a table is named and the engine reads no databases.
    PlanError
        If no engine has that name.
    MissingExtraError
        If the engine is not installed.
    """
    make = _REGISTRY.get(name)
    if not table:
        counter: Counter = make(list_files(source))
        return counter
    if name not in DATABASES:
        raise InputError(
            f"--table names a table of a database, which the engine {name} does not read; use "
            f"{' or '.join(DATABASES)}, or leave it out"
        )
    if not Path(source).is_file():
        raise InputError(f"{source} is no file of a database")
    database: Counter = make((str(source),), table)
    return database


def list_files(source: str | Path) -> tuple[str, ...]:
    """The Parquet files of a directory, sorted, or the one of a path.

    Raises
    ------
    InputError
        If there are none, or others beside them.
    """
    place = Path(source)
    if not place.exists():
        raise InputError(f"{place} does not exist")
    files = sorted(p for p in place.iterdir() if p.is_file()) if place.is_dir() else [place]
    # what a job of Spark leaves beside its files: _SUCCESS, .part-0.crc
    files = [path for path in files if path.name[0] not in "._"]
    other = [path for path in files if path.suffix.lower() not in (".parquet", ".pq")]
    if other or not files:
        what = f"{other[0]} is none" if other else f"{place} has none"
        raise InputError(f"engines count in Parquet files, and {what}; convert it first")
    odd = [path for path in files if set("*?[") & set(str(path))]
    if odd:
        raise InputError(f"{odd[0]} is named like a pattern, which engines would expand; rename it")
    return tuple(map(str, files))
