"""Rules in the SQL of another engine.

This module rewrites expressions that always fail or mean something else in the engine. Differences
in single values, such as rounded halves, are found by comparing values; see
`groundfault.engines.find_disagreements`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from groundfault.core.rules import ESCAPE
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

_FORKS, _REPEATS, _WILDCARDS = 4, 2, 4
"""Most choices, repetitions and signs % in a pattern for an engine that backtracks.

The engine then takes at most a multiple of n cubed steps for a text of n characters."""

# the flags with which case is folded beyond ASCII
_FOLD = {"duckdb": "(?i)", "spark": "(?iu)"}


class SqlCounter:
    """The common part of engines that use SQL: see `groundfault.engines.Counter`.

    Attributes
    ----------
    title : str
        The engine's name in messages.
    dialect : {"duckdb", "spark"}
    sign : str
        The quotation mark around names.
    backtracks : bool
        Whether its regular expressions backtrack, as in Java.
    """

    title: ClassVar[str]
    dialect: ClassVar[str]
    sign: ClassVar[str]
    backtracks: ClassVar[bool] = False
    files: tuple[str, ...]

    @property
    def view(self) -> str:
        """Return the name of the table to count in."""
        raise NotImplementedError

    def fetch(self, statement: str) -> Any:
        """Return the result of a statement as a table of Arrow."""
        raise NotImplementedError

    def draw_part(self, key: str, part: int, parts: int) -> str:
        """Write a condition for the rows of one of several parts, by a hash of their key."""
        raise NotImplementedError

    def run(self, statement: str) -> pl.DataFrame:
        """Return the result of a statement.

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
        # evaluated once each, then summed: to filter each count would be twenty times the work
        names = [self.quote(f"rule {i}") for i in range(len(rules))]
        inner = [f"{self.spell(sql)} AS {self.quote(key)}" for key, sql in by.items()]
        inner += [f"{self.spell(sql)} AS {name}" for sql, name in zip(rules, names, strict=True)]
        outer = [*map(self.quote, by), f"COUNT(*) AS {self.quote(CELL_ROWS)}"]
        for i, rule in enumerate(names):
            on, defined = map(self.quote, name_counts(i))
            outer += [f"SUM(CAST({rule} AS INT)) AS {on}", f"COUNT({rule}) AS {defined}"]
        cells = f"(SELECT {', '.join(inner) or '1 AS one'} FROM {self.view}) AS cells"
        groups = f" GROUP BY {', '.join(map(self.quote, by))}" if by else ""
        frame = self.run(f"SELECT {', '.join(outer)} FROM {cells}{groups}")
        return CellCounts.of(frame, list(by), len(rules))

    def evaluate(self, expressions: Mapping[str, str], where: str) -> pl.DataFrame:
        """Evaluate expressions: see `groundfault.engines.Counter.evaluate`."""
        columns = [f"{self.spell(sql)} AS {self.quote(key)}" for key, sql in expressions.items()]
        # without a name for the table, Spark takes WHERE for the name and the rest for its columns
        table = f"{self.view} AS results WHERE {self.spell(where)}"
        return self.run(f"SELECT {', '.join(columns)} FROM {table}")

    def group(self, groups: GroupBy, part: int, parts: int) -> pl.DataFrame:
        """Make groups: see `groundfault.engines.GroupingCounter.group`."""
        key, loss, names = self.quote(groups.key), self.quote(_LOSS), groups.columns
        columns = [
            key,
            f"AVG({loss}) AS {self.quote(groups.mean)}",
            f"COUNT({loss}) AS {self.quote(SCORED)}",
            f"COUNT(*) AS {self.quote(ROWS)}",
        ]
        for i, column in enumerate(map(self.quote, names)):
            differs = f"COALESCE(MIN({column}) <> MAX({column}), FALSE)"
            has_gaps = f"COUNT({column}) NOT IN (0, COUNT(*))"
            columns.append(f"MIN({column}) AS {column}")
            columns.append(f"({differs} OR {has_gaps}) AS {self.quote(name_difference(i))}")
        rows = [key, *map(self.quote, names), f"{self.spell(groups.loss)} AS {loss}"]
        table = f"(SELECT {', '.join(rows)} FROM {self.view}) AS results"
        here = self.draw_part(key, part, parts)
        return self.run(f"SELECT {', '.join(columns)} FROM {table} WHERE {here} GROUP BY {key}")

    def quote(self, name: str) -> str:
        """Put a name between quotation marks of the dialect."""
        return self.sign + name.replace(self.sign, self.sign * 2) + self.sign

    def spell_columns(self, kinds: Mapping[str, str]) -> str:
        """Write all columns of a table, with NULL in place of NaN, which SQL orders as the largest.

        Parameters
        ----------
        kinds : mapping of str to str
            The type of each column in the engine's words.
        """
        names = {
            self.quote(name): kind.lower() in ("float", "double") for name, kind in kinds.items()
        }
        return ", ".join(
            f"CASE WHEN isnan({name}) THEN NULL ELSE {name} END AS {name}" if is_float else name
            for name, is_float in names.items()
        )

    def spell(self, sql: str) -> str:
        """Write an expression in the normal form of `groundfault.core.rules.Rule`."""
        from sqlglot import exp, parse_one

        tree = exp.paren(parse_one(sql, read="postgres"))
        if self.backtracks:
            for match in tree.find_all(exp.RegexpLike, exp.RegexpILike, exp.Like, exp.ILike):
                _require_bound(self.title, match)
        for node in list(tree.walk()):
            if isinstance(node, exp.Div):
                # rules do not use PostgreSQL's division of whole numbers
                node.set("typed", False)
            elif isinstance(node, exp.RegexpILike):
                pattern = exp.Literal.string(_FOLD[self.dialect] + node.expression.this)
                node.replace(exp.RegexpLike(this=node.this, expression=pattern))
            elif isinstance(node, exp.Like | exp.ILike) and self.dialect == "duckdb":
                _name_escape(node)
        return tree.sql(dialect=self.dialect)


def _require_bound(title: str, match: exp.Binary) -> None:
    """Raise if a pattern may take unbounded time in an engine that backtracks."""
    from sqlglot import exp

    pattern = match.expression.this if match.expression.is_string else None
    is_bounded = pattern is not None and pattern.count("%") <= _WILDCARDS
    if pattern is not None and isinstance(match, exp.RegexpLike | exp.RegexpILike):
        # without escaped signs, classes of characters, and marks of groups
        bare = re.sub(r"(?s)\\.|\[\^?\]?[^\]]*\]|\(\?[a-zA-Z-]*\)", "", pattern)
        bare = re.sub(r"\(\?(P?<\w+>|[a-zA-Z-]*:|<?[=!]|>)", "(", bare)
        repeats = re.findall(r"[*+{]", bare)
        forks = len(repeats) + bare.count("?") + bare.count("(") * ("|" in bare)
        is_bounded = len(repeats) <= _REPEATS and forks <= _FORKS
        is_bounded = is_bounded and not re.search(r"\)[*+{]", bare)
    if not is_bounded:
        raise RuleError(
            f"{title} may run forever on {match.sql()!r:.200}: its patterns may have at most "
            f"{_REPEATS} repetitions, not of groups, {_FORKS} choices and {_WILDCARDS} signs %; "
            "take another engine (--engine)"
        )


def _name_escape(like: exp.Expression) -> None:
    """Add the escape sign, for engines that have none by default."""
    from sqlglot import exp

    if ESCAPE in like.expression.this:
        bare = like.copy()
        negate = bare.args.pop("negate", None)
        named = exp.Escape(this=bare, expression=exp.Literal.string(ESCAPE))
        like.replace(exp.not_(named) if negate else named)
