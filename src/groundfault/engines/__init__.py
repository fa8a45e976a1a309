"""Engines that count in a table too large to read, one engine a file.

Most verdicts need only counts: how many rows a rule matches, and how many of these failed. A
`Counter` returns the counts of all rules in one scan. `open_counter` finds one by name, also in
installed packages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import polars as pl

from groundfault.base.arrays import Ints
from groundfault.base.registry import open_registry
from groundfault.core.rules import Rule, quote
from groundfault.errors import InputError, RuleError, describe_missing, first_line

SCORED, ROWS = "rows of group that were scored", "rows of group"
"""Columns of a table of groups: how many rows have a loss, and how many there are."""

CELL_ROWS = "rows"
"""The column of a table of cells with the number of rows of each cell."""

_REGISTRY = open_registry("engine", "groundfault.engines")

NAMES = tuple(_REGISTRY.built_in)

DATABASES = ("duckdb",)
"""Engines that can also count in a table of a database file."""


@dataclass(frozen=True)
class CellCounts:
    """Counts of R rules in the C cells of a table.

    Attributes
    ----------
    keys : polars.DataFrame, C rows
        The values that the rows of each cell share; no columns for a single cell.
    rows : int64 array, shape (C,)
        Rows of each cell; at least 1.
    on, defined : int64 arrays, shape (C, R)
        Rows on which each rule is true, and on which it is true or false.
    """

    keys: pl.DataFrame
    rows: Ints
    on: Ints
    defined: Ints

    @classmethod
    def of(cls, frame: pl.DataFrame, by: Sequence[str], rules: int) -> CellCounts:
        """Read a table with the columns ``by``, ``rows``, and `name_counts` for each rule.

        Cells are sorted by their keys, so that they do not depend on the engine's order.
        """
        frame = frame.filter(pl.col(CELL_ROWS) > 0)
        frame = frame.sort(by, nulls_last=True) if by else frame
        names = [name_counts(number) for number in range(rules)]

        def stack(columns: list[str]) -> Ints:
            # a sum over no rows is NULL
            values = frame.select(pl.col(columns).cast(pl.Int64).fill_null(0))
            return values.to_numpy().reshape(frame.height, len(columns)).astype(np.int64)

        return cls(
            frame.select(by),
            frame[CELL_ROWS].cast(pl.Int64).to_numpy(),
            stack([on for on, _ in names]),
            stack([defined for _, defined in names]),
        )

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class GroupBy:
    """One row for each value of a column.

    Attributes
    ----------
    key : str
        The column that names the groups.
    mean : str
        The column for the mean loss; NULL if no row has a loss.
    loss : str
        An expression: a row's loss, NULL where it was not scored.
    columns : tuple of str
        Columns to keep: the smallest value of each, and whether the column differs within the
        group, under the name from `name_difference`. NULL counts as a value.
    """

    key: str
    mean: str
    loss: str
    columns: tuple[str, ...]


@runtime_checkable
class Counter(Protocol):
    """Counts in Parquet files, or in a table of a database, without reading them into memory.

    Attributes
    ----------
    name : str
    files : tuple of str
        Files to count in, sorted.
    table : str
        Table of a database file; else empty.

    Notes
    -----
    Expressions are SQL in the normal form of `groundfault.core.rules.Rule`, and may use ``MD5`` of
    a text, in hexadecimal. NaN in a column is NULL. Engines differ silently in the meaning of some
    expressions; `find_disagreements` finds these, and ``check_counter`` of
    `groundfault_lab.testing` lists them.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def files(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def table(self) -> str: ...  # noqa: D102

    def find_schema(self) -> pl.Schema:
        """Return the names and polars types of the columns."""
        ...

    def counts(self, rules: Sequence[str], by: Mapping[str, str]) -> CellCounts:
        """Count rows, and rows that each rule is true and defined for, in each cell.

        Parameters
        ----------
        rules : sequence of str
            True, false or NULL for each row.
        by : mapping of str to str
            Expressions by name: the rows of a cell have equal values of all expressions. Without
            expressions there is one cell.

        Raises
        ------
        RuleError
            If the engine cannot evaluate an expression.
        """
        ...

    def evaluate(self, expressions: Mapping[str, str], where: str) -> pl.DataFrame:
        """Evaluate expressions, by name, for the rows where a rule is true, in any order.

        Raises
        ------
        RuleError
            If the engine cannot evaluate an expression.
        """
        ...


@runtime_checkable
class GroupingCounter(Counter, Protocol):
    """A counter that can also make groups of rows."""

    def group(self, groups: GroupBy, part: int, parts: int) -> pl.DataFrame:
        """Make one row from each group, for one of several parts of the groups, in any order.

        Parameters
        ----------
        groups : GroupBy
        part, parts : int
            Number of this part, and of parts. A hash of its name puts each group into one part, the
            same in all calls of one process.

        Raises
        ------
        RuleError
            If the engine cannot evaluate an expression.
        """
        ...


def open_counter(name: str, source: str | Path, table: str = "") -> Counter:
    """Open an engine, over a Parquet file or a directory of them, or a table of a database.

    Raises
    ------
    InputError
        If the file is missing, or a table is named and the engine reads no databases.
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
    """List the Parquet files of a directory, sorted, or the single file of a path.

    Raises
    ------
    InputError
        If there are no Parquet files, or also other files.
    """
    place = Path(source)
    if not place.exists():
        raise InputError(describe_missing(place))
    files = sorted(p for p in place.iterdir() if p.is_file()) if place.is_dir() else [place]
    # without files that a job of Spark leaves: _SUCCESS, .part-0.crc
    files = [path for path in files if path.name[0] not in "._"]
    other = [path for path in files if path.suffix.lower() not in (".parquet", ".pq")]
    if other or not files:
        what = f"{other[0]} has another format" if other else f"{place} has no such file"
        raise InputError(f"engines count in Parquet files, and {what}; convert it first")
    odd = [path for path in files if set("*?[") & set(str(path))]
    if odd:
        raise InputError(f"{odd[0]} is named like a pattern, which engines would expand; rename it")
    return tuple(map(str, files))


def name_counts(number: int) -> tuple[str, str]:
    """Return the columns of an engine's result for a rule's counts: true, and defined."""
    return f"on {number}", f"defined {number}"


def name_difference(number: int) -> str:
    """Return the column of a table of groups that says whether another differs within a group."""
    return f"column {number} differs within the group"


_VALUE, _COLUMN = "value of {}", "column {}"


def find_disagreements(counter: Counter, rules: Mapping[str, Rule], where: str) -> dict[str, str]:
    """Find rules whose value in an engine differs from polars in some row.

    Parameters
    ----------
    counter : Counter
    rules : mapping of str to Rule
        By name.
    where : str
        The rows to compare, in the engine's table: a sample.

    Returns
    -------
    dict of str to str
        By name, in a few words: how many rows differ, or that the engine cannot evaluate the rule.

    Notes
    -----
    A rule that differs only in values missing from the sample is not found. If it differs in a
    share of 0.00023 of all rows, a sample of 20,000 shows it with probability 0.99.
    """
    try:
        return _compare(counter, rules, where)
    except RuleError as error:
        if len(rules) == 1:
            return dict.fromkeys(rules, str(error))
    # one rule fails: test halves of the rules until it is found
    names = list(rules)
    halves = names[: len(names) // 2], names[len(names) // 2 :]
    return {
        name: words
        for half in halves
        for name, words in find_disagreements(
            counter, {name: rules[name] for name in half}, where
        ).items()
    }


def _compare(counter: Counter, rules: Mapping[str, Rule], where: str) -> dict[str, str]:
    if not rules:
        return {}
    columns = sorted({column for rule in rules.values() for column in rule.columns})
    expressions = {_COLUMN.format(c): quote(c) for c in columns}
    expressions |= {_VALUE.format(name): rule.sql for name, rule in rules.items()}
    there = counter.evaluate(expressions, where)
    table = there.select(pl.col(_COLUMN.format(c)).alias(c) for c in columns)
    differences = {}
    for name, rule in rules.items():
        try:
            here = table.select(rule.to_polars().cast(pl.Boolean)).to_series()
        except pl.exceptions.PolarsError as error:
            raise RuleError(f"cannot evaluate {rule.sql!r}: {first_line(error)}") from None
        count = int((~here.eq_missing(there[_VALUE.format(name)].cast(pl.Boolean))).sum())
        if count:
            differences[name] = f"in {count} of {there.height} rows"
    return differences
