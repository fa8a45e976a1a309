"""Conditions on a text, each as SQL and as a polars expression."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from groundfault.core.rules import literal

MIN_TEXTS = 8
"""Texts that a condition holds for, at least, and as many that it leaves out."""

TEXT = pl.col("text")
"""The texts, for polars; SQL has ``{}`` in its place."""

LAST = pl.col("last")
"""Each text from the last mark of a sentence on that has something behind it (`find_lasts`)."""


@dataclass(frozen=True)
class Term:
    """One test of a text.

    Attributes
    ----------
    sql : str
        With ``{}`` for the column.
    expression : polars.Expr
        The same over `TEXT`.
    holds : bool
        Whether the text has to pass it, or to fail it.
    words : tuple of str
        Words one of which the text has to have, where that is the whole test.
    needs : str
        Pattern of characters one of which every text that passes has: texts without are not read.
    """

    sql: str
    expression: pl.Expr = field(compare=False)
    holds: bool = True
    words: tuple[str, ...] = ()
    needs: str = ""


@dataclass(frozen=True)
class TextTest:
    """Tests that all have to come out as they say."""

    terms: tuple[Term, ...]

    @property
    def sql(self) -> str:
        """Return in SQL, with ``{}`` for the column."""
        return " AND ".join(term.sql if term.holds else f"NOT {term.sql}" for term in self.terms)

    def __and__(self, other: TextTest) -> TextTest:
        return TextTest(self.terms + other.terms)

    def __invert__(self) -> TextTest:
        (term,) = self.terms
        return TextTest((replace(term, holds=not term.holds),))


@dataclass(frozen=True)
class Draft:
    """A condition on texts before it is evaluated.

    Attributes
    ----------
    family : str
    condition : TextTest
    meaning : str
        Words after the name of the column, in English.
    cost : float
    value : str or None
        The value, for conditions that exclude each other.
    """

    family: str
    condition: TextTest
    meaning: str
    cost: float = 1.0
    value: str | None = None


def compare(sql: str, expression: pl.Expr) -> TextTest:
    """Return one test that is no regular expression."""
    return TextTest((Term(sql, expression),))


def match(pattern: str, *, any_case: bool = False, needs: str = "", last: str = "") -> TextTest:
    """Return the text has a regular expression somewhere; for its needs see `Term`. ``last`` is an
    expression that `LAST` has exactly where the text has the first."""
    operator, flags = ("~*", "(?i)") if any_case else ("~", "")
    test = (LAST if last else TEXT).str.contains(flags + (last or pattern))
    return TextTest((Term(f"{{}} {operator} {literal(pattern)}", test, needs=needs),))


def find_lasts(text: pl.Series) -> pl.Series:
    """Return `LAST`: to search each text for it takes a hundred times as long."""
    ended = text.str.strip_chars_end().str.strip_chars_end(".!?")
    lasts = [
        None if whole is None else whole[max(0, *map(end.rfind, ".!?")) :]
        for whole, end in zip(text, ended, strict=True)
    ]
    return pl.Series("last", lasts, dtype=pl.String)


def match_words(words: Sequence[str]) -> TextTest:
    """Return the text has one of these words, in any case."""
    inner = "|".join(re.escape(word) for word in words)
    test = match(rf"\b{inner}\b" if len(words) == 1 else rf"\b({inner})\b", any_case=True)
    return TextTest((replace(test.terms[0], words=tuple(words)),))
