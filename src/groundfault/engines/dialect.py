"""Rules in the words of another engine.

What this rewrites is what would fail or mean something else there in every rule. What else may
differ in single values, such as halves that are rounded, is found by comparing values; see
`groundfault.engines.agreement`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from groundfault.core.rules import ESCAPE, quote
from groundfault.engines.cells import ROWS, name_counts

if TYPE_CHECKING:
    from sqlglot import exp

# the flags with which case is folded beyond ASCII
_FOLD = {"duckdb": "(?i)", "spark": "(?iu)"}


def spell(sql: str, dialect: str) -> str:
    """An expression of rules in the dialect of an engine.

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
    """A statement that counts all rules in one scan, in the columns that `CellCounts.of` reads.

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
    outer = [*map(name, by), f"COUNT(*) AS {name(ROWS)}"]
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
    """A statement for `groundfault.engines.Counter.evaluate`; parameters as in `write_count`."""
    columns = [
        f"{spell(sql, dialect)} AS {quote_name(key, name_quote)}"
        for key, sql in expressions.items()
    ]
    # without a name for the table, Spark takes WHERE for one, and what follows for its columns
    return f"SELECT {', '.join(columns)} FROM {table} AS results WHERE {spell(where, dialect)}"


def write_columns(kinds: Mapping[str, str], name_quote: str) -> str:
    """All columns of a table, with NULL in place of NaN: SQL takes it for the largest number.

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
    """A name between quotation marks of a dialect."""
    return quote(name) if sign == '"' else sign + name.replace(sign, sign * 2) + sign
