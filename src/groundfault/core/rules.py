"""Rules: SQL boolean expressions over example columns, parsed and validated once.

A rule is read by ``sqlglot`` and may contain only what `_ALLOWED` names: comparisons, logic,
arithmetic, and functions of one row. Sub-queries, statements, window functions and anything else
are refused before they reach an engine. Expressions that turn NULL into a value (``CASE ... ELSE``,
``CONCAT``, ``STRPOS``, ``GREATEST``, ``IS TRUE``) are left out on purpose: a missing value would
silently count as "off". ``COALESCE`` and ``IS NULL`` do it visibly. A quotient by zero is NULL.
Functions that are undefined in places (roots, logarithms) are left out, because engines compare
their undefined results differently.

Patterns of LIKE are PostgreSQL's: ``%`` is any text, ``_`` any character, and a backslash escapes
the next character. Engines differ in their escapes, and polars has no escape at all, so a pattern
that needs one becomes a regular expression."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from groundfault.errors import RuleError, first_line

if TYPE_CHECKING:
    import polars as pl
    from sqlglot import exp

# a list of the safe expressions: no subqueries, no functions of other rows, no files
_ALLOWED = frozenset(
    "Column Identifier Literal Boolean Null Paren Tuple "
    "And Or Not EQ NEQ GT GTE LT LTE Is In Between Like ILike Escape "
    "RegexpLike RegexpILike StartsWith EndsWith "
    "Add Sub Mul Div Mod Neg Abs Round Floor Ceil "
    "Coalesce Nullif "
    "Length Lower Upper Trim Substring Left Right Replace DPipe SplitPart "
    "Cast DataType".split()
)
# characters; the parser's time grows faster than the text
_LONGEST = 20_000
_VALUE = r"(?:-?\d+(?:\.\d+)?|'[\w .:/]*')"
_ENDS = rf"(?:=|<>|[<>]=?) {_VALUE}|IN \({_VALUE}(?:, {_VALUE})*\)|IS NULL"
_RANGE = rf"BETWEEN {_VALUE} AND {_VALUE}"
_TEXT = r"'(?:[^'\x00-\x1f]|'')*'"
_NAME = r'"[\w .:/]+"'
_MARKS = rf"LENGTH\({_NAME}\) - LENGTH\(REPLACE\(REPLACE\({_NAME}, ',', ''\), ';', ''\)\)"
_LENGTH = rf"(?:LENGTH\({_NAME}\)|{_MARKS}) > \d+"
_ONE = rf"(?:(?:NOT )?{_NAME}(?: (?:{_ENDS}|{_RANGE}|~\*? {_TEXT}))?|{_LENGTH})"
CONDITION = re.compile(rf"{_ONE}|\({_ONE}(?: OR {_ONE})+\)")
"""One condition in normal form. Rules that consist of them are in normal form as they are written:
a parser takes .2 ms for each, and .1 s to load."""
ESCAPE = "\\"
# characters with a meaning in a regular expression; to escape a letter would be an error
_SIGNS = frozenset("\\.+*?()|[]{}^$#&-~")


def use_backslash(pattern: str, escape: str) -> str:
    r"""Return the same pattern with a backslash as its escape.

    Parameters
    ----------
    pattern : str
    escape : str
        One character, or empty for no escape.

    Raises
    ------
    RuleError
        If ``escape`` is longer, or the pattern ends with it.

    Examples
    --------
    >>> print(use_backslash("100!%", "!"))
    100\%
    """
    if len(escape) > 1:
        raise RuleError(f"ESCAPE takes one character, not {escape!r}")
    pieces = []
    for character, is_plain in split_pattern(pattern, escape):
        needs_escape = character == ESCAPE or (is_plain and character in "%_")
        pieces.append(ESCAPE + character if needs_escape else character)
    return "".join(pieces)


def split_pattern(pattern: str, escape: str = ESCAPE) -> Iterator[tuple[str, bool]]:
    """Yield each character of a pattern, and whether it stands for itself.

    Raises
    ------
    RuleError
        If the pattern ends with its escape.
    """
    characters = iter(pattern)
    for character in characters:
        if escape and character == escape:
            following = next(characters, None)
            if following is None:
                raise RuleError(
                    f"the pattern {pattern!r} ends with its escape {escape!r}: write it twice, or "
                    "name another with ESCAPE"
                )
            yield following, True
        else:
            yield character, character not in "%_"


def to_regex(pattern: str) -> str:
    r"""Return the regular expression of a pattern whose escape is a backslash; it matches whole
    texts.

    Examples
    --------
    >>> print(to_regex(r"100\%_"))
    (?s)\A100%.\z
    """
    wild = {"%": ".*", "_": "."}
    pieces = (
        quote_character(character) if is_plain else wild[character]
        for character, is_plain in split_pattern(pattern)
    )
    return rf"(?s)\A{''.join(pieces)}\z"


def quote_character(character: str) -> str:
    """Return a character as a regular expression that matches it alone."""
    return ESCAPE + character if character in _SIGNS else character


@dataclass(frozen=True)
class Rule:
    """A validated SQL boolean expression.

    Attributes
    ----------
    sql : str
        The expression in one normal form, so that spelling does not matter.
    columns : tuple of str
        The columns it reads, sorted.
    """

    sql: str
    columns: tuple[str, ...]

    @staticmethod
    def parse(text: str) -> Rule:
        """Parse and validate an expression.

        Raises
        ------
        RuleError
            If the text is not one expression, or uses something that rules may not use.

        Examples
        --------
        >>> Rule.parse("n_words > 400 and lang = 'de'").columns
        ('lang', 'n_words')
        """
        return _parse(text)

    def to_polars(self) -> pl.Expr:
        """Return the rule as a polars expression of true, false and NULL."""
        import polars as pl

        try:
            return pl.sql_expr(_without_escapes(self.sql))
        except Exception as error:
            raise RuleError(f"cannot evaluate {self.sql!r}: {first_line(error)}") from None

    def evaluate(self, frame: pl.DataFrame) -> pl.Series:
        """Evaluate the rule for each row of a table as true, false or NULL.

        Raises
        ------
        RuleError
            If it cannot be evaluated on the table, or its values are not true or false.
        """
        import polars as pl

        try:
            values = frame.select(self.to_polars().alias("holds")).to_series()
        except pl.exceptions.PolarsError as error:
            raise RuleError(f"cannot evaluate {self.sql!r}: {first_line(error)}") from None
        if values.dtype not in (pl.Boolean, pl.Null):
            raise RuleError(f"{self.sql!r} is {values.dtype}, not true or false")
        return values.cast(pl.Boolean)

    def holds(self, frame: pl.DataFrame) -> pl.Series:
        """Tell for which rows of a table the rule is true: false where values are missing.

        Raises
        ------
        RuleError
            As `evaluate`.
        """
        return self.evaluate(frame).fill_null(False)


def _is_plain(text: str) -> bool:
    """Return whether a rule consists of conditions in normal form."""
    first, *between = CONDITION.split(text)
    return not first and between[-1:] == [""] and {*between[:-1]} <= {" AND ", " OR "}


@lru_cache(maxsize=100_000)
def _parse(text: str) -> Rule:
    if len(text) > _LONGEST:
        raise RuleError(f"the rule has {len(text)} characters; at most {_LONGEST} are read")
    if _is_plain(text):
        return Rule(text, tuple(sorted({*re.findall('"(.*?)"', re.sub(_TEXT, "", text))})))
    from sqlglot import exp, parse
    from sqlglot.errors import SqlglotError

    try:
        # as a select, so that a comma, an alias or a second statement shows up as one
        trees = parse(f"SELECT {text}", read="postgres")
    except RecursionError:
        raise RuleError(f"{_short(text)} is nested too deeply") from None
    except SqlglotError as error:
        why = re.sub(r" missing for <class .*?>", " is missing", first_line(error))
        example = "\"lang = 'de' AND turns > 3\""
        raise RuleError(
            f"{_short(text)} is not SQL, which a rule is written in, such as {example}: {why}"
        ) from None
    select = trees[0] if len(trees) == 1 else None
    if (
        not isinstance(select, exp.Select)
        or len(select.expressions) != 1
        or set(_filled(select)) - {"expressions"}
    ):
        raise RuleError(
            f'{_short(text)} must be a single true/false expression such as "n_words > 400"'
        )
    tree = select.expressions[0]
    for node in tree.walk():
        if type(node).__name__ not in _ALLOWED:
            raise RuleError(
                f"{_short(text)} uses {node.key.upper()}, which rules may not: they compare "
                "columns with constants, "
                "combine with AND, OR, NOT, and use arithmetic and text functions of one row"
            )
        if isinstance(node, exp.Column) and node.table:
            raise RuleError(f"{_short(text)}: write the column {node.sql()} without a table name")
        # IS TRUE would hide NULL, which candidates treat by their own setting
        if isinstance(node, exp.Is) and not isinstance(node.expression, exp.Null):
            raise RuleError(
                f"{_short(text)}: write IS NULL or IS NOT NULL; for true or false, write the "
                "condition itself or NOT"
            )
    columns = tuple(sorted({column.name for column in tree.find_all(exp.Column)}))
    if not columns:
        raise RuleError(f"{_short(text)} reads no column; a rule must use at least one column")
    for identifier in tree.find_all(exp.Identifier):
        identifier.set("quoted", True)
    for quotient in tree.find_all(exp.Div, exp.Mod):
        quotient.set(
            "expression",
            exp.Nullif(this=quotient.expression.copy(), expression=exp.Literal.number(0)),
        )
    tree = _normalise_patterns(tree, _short(text))
    try:
        return Rule(tree.sql(dialect="postgres", comments=False), columns)
    except RecursionError:
        raise RuleError(f"{_short(text)} is nested too deeply") from None


def _normalise_patterns(tree: exp.Expression, where: str) -> exp.Expression:
    """Return the same rule with a backslash as the only escape of LIKE."""
    from sqlglot import exp

    for like in list(tree.find_all(exp.Like, exp.ILike)):
        parent = like.parent if isinstance(like.parent, exp.Escape) else None
        escape = ESCAPE if parent is None else parent.expression
        if not like.expression.is_string or not (isinstance(escape, str) or escape.is_string):
            raise RuleError(f"{where}: LIKE takes a pattern in quotes, and no column or expression")
        try:
            pattern = use_backslash(
                like.expression.this, escape if isinstance(escape, str) else escape.this
            )
        except RuleError as error:
            raise RuleError(f"{where}: {error}") from None
        like.set("expression", exp.Literal.string(pattern))
        if parent is tree:
            tree = cast("exp.Expression", like.pop())
        elif parent is not None:
            parent.replace(like)
    return tree


def _without_escapes(sql: str) -> str:
    """Return SQL for polars, whose LIKE knows no escape: regular expressions where a pattern has
    one."""
    if ESCAPE not in sql or "LIKE" not in sql:
        return sql
    from sqlglot import exp, parse_one

    tree = exp.paren(parse_one(sql, read="postgres"))
    for like in list(tree.find_all(exp.Like, exp.ILike)):
        pattern = like.expression.this
        if ESCAPE in pattern:
            regex = "(?i)" * isinstance(like, exp.ILike) + to_regex(pattern)
            text = like.this if isinstance(like.this, exp.Column) else exp.paren(like.this)
            match = exp.RegexpLike(this=text, expression=exp.Literal.string(regex))
            # newer sqlglot has NOT LIKE as one node
            like.replace(exp.not_(match) if like.args.get("negate") else match)
    return tree.sql(dialect="postgres")


def _filled(node: object) -> list[str]:
    return [key for key, value in node.args.items() if value]  # type: ignore[attr-defined]


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")


def quote(column: str) -> str:
    """Return a column name as a SQL identifier."""
    return '"' + column.replace('"', '""') + '"'


def literal(value: object) -> str:
    """Return a constant as SQL."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        if not math.isfinite(value):
            raise RuleError(f"{value} cannot stand in a rule")
        return repr(int(value)) if isinstance(value, int) else repr(float(value))
    return "'" + str(value).replace("'", "''") + "'"
