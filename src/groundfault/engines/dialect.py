"""Rules in the words of another engine.

What this rewrites is what would fail or mean something else there in every rule. What else may
differ in single values, such as halves that are rounded, is found by comparing values; see
`groundfault.engines.agreement`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from groundfault.core.rules import ESCAPE, quote
from groundfault.engines import (
    CELL_ROWS,
    ROWS,
    SCORED,
    CellCounts,
    GroupBy,
    name_counts,
    name_difference,
)
from groundfault.errors import InputError, MissingExtraError, RuleError, first_line

if TYPE_CHECKING:
    from sqlglot import exp

_LOSS = "loss of the row"

# the flags with which case is folded beyond ASCII
_FOLD = {"duckdb": "(?i)", "spark": "(?iu)"}


class SqlCounter:
    """What engines have in common that are asked in SQL: see `groundfault.engines.Counter`.

    Attributes
    ----------
    title : str
        What messages call the engine.
    dialect : {"duckdb", "spark"}
    sign : str
        The sign around names there.
    """

    title: ClassVar[str]
    dialect: ClassVar[str]
    sign: ClassVar[str]
    files: tuple[str, ...]

    @property
    def view(self) -> str:
        """Return the name of the table that is counted in."""
        raise NotImplementedError

    def fetch(self, statement: str) -> Any:
        """Return what a statement comes to, as a table of Arrow."""
        raise NotImplementedError

    def draw_part(self, key: str, part: int, parts: int) -> str:
        """Write a condition for the rows of one of several parts, by a hash of their key."""
        raise NotImplementedError

    def run(self, statement: str) -> pl.DataFrame:
        """Return what a statement comes to.

        Raises
        ------
        RuleError
            If the engine cannot evaluate it.
        """
        try:
            frame = pl.from_arrow(self.fetch(statement))
        except (MissingExtraError, InputError):
            raise
        except Exception as error:
            raise RuleError(f"{self.title} cannot evaluate a rule: {first_line(error)}") from None
        assert isinstance(frame, pl.DataFrame)
        return frame

    def find_schema(self) -> pl.Schema:
        """Return the names and types of the columns."""
        try:
            return self.run(f"SELECT * FROM {self.view} LIMIT 0").schema
        except RuleError as error:
            raise InputError(f"cannot read {self.files[0]}: {error}") from None

    def counts(self, rules: Sequence[str], by: Mapping[str, str]) -> CellCounts:
        """Count rules in cells: see `groundfault.engines.Counter.counts`."""
        statement = write_count(self.view, rules, by, self.dialect, self.sign)
        return CellCounts.of(self.run(statement), list(by), len(rules))

    def evaluate(self, expressions: Mapping[str, str], where: str) -> pl.DataFrame:
        """Evaluate expressions: see `groundfault.engines.Counter.evaluate`."""
        return self.run(write_select(self.view, expressions, where, self.dialect, self.sign))

    def group(self, groups: GroupBy, part: int, parts: int) -> pl.DataFrame:
        """Make groups: see `groundfault.engines.GroupingCounter.group`."""
        here = self.draw_part(quote_name(groups.key, self.sign), part, parts)
        return self.run(write_groups(self.view, groups, here, self.dialect, self.sign))


def spell(sql: str, dialect: str) -> str:
    """Write an expression of rules in the dialect of an engine.

    Parameters
    ----------
    sql : str
        In the normal form of `groundfault.core.rules.Rule`.
    dialect : {"duckdb", "spark"}
    """
    from sqlglot import exp, parse_one

    tree = exp.paren(parse_one(sql, read="postgres"))
    for node in list(tree.walk()):
        if isinstance(node, exp.Div):
            # PostgreSQL's division of whole numbers is none of rules
            node.set("typed", False)
        elif isinstance(node, exp.RegexpILike):
            pattern = exp.Literal.string(_FOLD[dialect] + node.expression.this)
            node.replace(exp.RegexpLike(this=node.this, expression=pattern))
        elif isinstance(node, exp.Like | exp.ILike) and dialect == "duckdb":
            _name_escape(node)
    return tree.sql(dialect=dialect)


def _name_escape(like: exp.Expression) -> None:
    """Say which sign escapes, for engines where none does by itself."""
    from sqlglot import exp

    if ESCAPE in like.expression.this:
        bare = like.copy()
        negate = bare.args.pop("negate", None)
        named = exp.Escape(this=bare, expression=exp.Literal.string(ESCAPE))
        like.replace(exp.not_(named) if negate else named)


def write_count(
    table: str, rules: Sequence[str], by: Mapping[str, str], dialect: str, name_quote: str
) -> str:
    """Write a statement that counts all rules in one scan, as `CellCounts.of` reads it.

    Parameters
    ----------
    table : str
        What stands after FROM.
    rules, by
        As in `groundfault.engines.Counter.counts`.
    dialect : {"duckdb", "spark"}
    name_quote : str
        The sign around names there.
    """

    def name(text: str) -> str:
        return quote_name(text, name_quote)

    # evaluated once each, then summed: to filter each count would be twenty times the work
    inner = [f"{spell(sql, dialect)} AS {name(key)}" for key, sql in by.items()]
    inner += [f"{spell(sql, dialect)} AS {name(f'rule {i}')}" for i, sql in enumerate(rules)]
    outer = [*map(name, by), f"COUNT(*) AS {name(CELL_ROWS)}"]
    for i in range(len(rules)):
        on, defined = name_counts(i)
        rule = name(f"rule {i}")
        outer.append(f"SUM(CAST({rule} AS INT)) AS {name(on)}")
        outer.append(f"COUNT({rule}) AS {name(defined)}")
    groups = f" GROUP BY {', '.join(map(name, by))}" if by else ""
    columns = ", ".join(inner) or "1 AS one"
    return f"SELECT {', '.join(outer)} FROM (SELECT {columns} FROM {table}) AS cells{groups}"


def write_select(
    table: str, expressions: Mapping[str, str], where: str, dialect: str, name_quote: str
) -> str:
    """Write a statement for `Counter.evaluate`; parameters as in `write_count`."""
    columns = [
        f"{spell(sql, dialect)} AS {quote_name(key, name_quote)}"
        for key, sql in expressions.items()
    ]
    # without a name for the table, Spark takes WHERE for one, and what follows for its columns
    return f"SELECT {', '.join(columns)} FROM {table} AS results WHERE {spell(where, dialect)}"


def write_columns(kinds: Mapping[str, str], name_quote: str) -> str:
    """Write all columns of a table, with NULL in place of NaN: SQL takes it for the largest number.

    Parameters
    ----------
    kinds : mapping of str to str
        The type of each column, as the engine names it.
    name_quote : str
        The sign around names there.
    """
    columns = []
    for plain, kind in kinds.items():
        name = quote_name(plain, name_quote)
        is_float = kind.lower() in ("float", "double")
        columns.append(
            f"CASE WHEN isnan({name}) THEN NULL ELSE {name} END AS {name}" if is_float else name
        )
    return ", ".join(columns)


def quote_name(name: str, sign: str) -> str:
    """Put a name between quotation marks of a dialect."""
    return quote(name) if sign == '"' else sign + name.replace(sign, sign * 2) + sign


def write_groups(table: str, groups: GroupBy, part: str, dialect: str, name_quote: str) -> str:
    """Write a statement for `GroupingCounter.group`.

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
