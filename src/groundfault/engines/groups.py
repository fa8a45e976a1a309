"""Groups: what an engine makes one row of, so that groups of dependent rows are counted once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import polars as pl

from groundfault.engines import Counter
from groundfault.engines.dialect import quote_name, spell

SCORED, ROWS = "rows of group that were scored", "rows of group"
"""Columns of a table of groups: how many rows have a loss, and how many there are."""

_LOSS = "loss of the row"


@dataclass(frozen=True)
class GroupBy:
    """One row for each value of a column.

    Attributes
    ----------
    key : str
        The column that names the groups.
    mean : str
        The column to write the mean of the losses into; NULL where no row has one.
    loss : str
        An expression: a row's loss, NULL where it was not scored.
    columns : tuple of str
        To carry along: each as its smallest value, and whether it differs within the group, as
        `name_difference` names it. Having no value is a value.
    """

    key: str
    mean: str
    loss: str
    columns: tuple[str, ...]


@runtime_checkable
class GroupingCounter(Counter, Protocol):
    """A counter that makes groups of rows, too."""

    def group(self, groups: GroupBy, part: int, parts: int) -> pl.DataFrame:
        """One row of each group, for one of several parts of the groups, in any order.

        Parameters
        ----------
        groups : GroupBy
        part, parts : int
            Which of how many: each group is in one of them, drawn by a hash of its name that is
            the same in all calls of one process.

        Raises
        ------
        RuleError
            If the engine cannot evaluate an expression.
        """
        ...


def name_difference(number: int) -> str:
    """Where a table of groups says whether column ``number`` differs within a group."""
    return f"column {number} differs within the group"


def write_groups(table: str, groups: GroupBy, part: str, dialect: str, name_quote: str) -> str:
    """A statement for `GroupingCounter.group`.

    Parameters
    ----------
    table : str
        What stands after FROM.
    groups : GroupBy
    part : str
        A condition in the dialect: which rows.
    dialect : {"duckdb", "spark"}
    name_quote : str
        The sign around names there.
    """

    def name(text: str) -> str:
        return quote_name(text, name_quote)

    columns = [
        name(groups.key),
        f"AVG({name(_LOSS)}) AS {name(groups.mean)}",
        f"COUNT({name(_LOSS)}) AS {name(SCORED)}",
        f"COUNT(*) AS {name(ROWS)}",
    ]
    for i, column in enumerate(map(name, groups.columns)):
        differs = f"COALESCE(MIN({column}) <> MAX({column}), FALSE)"
        has_gaps = f"COUNT({column}) NOT IN (0, COUNT(*))"
        columns.append(f"MIN({column}) AS {column}")
        columns.append(f"({differs} OR {has_gaps}) AS {name(name_difference(i))}")
    rows = [name(groups.key), *map(name, groups.columns)]
    rows.append(f"{spell(groups.loss, dialect)} AS {name(_LOSS)}")
    return (
        f"SELECT {', '.join(columns)} FROM (SELECT {', '.join(rows)} FROM {table}) AS results "
        f"WHERE {part} GROUP BY {name(groups.key)}"
    )
