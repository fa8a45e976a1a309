"""What a rule marks in texts, so that a page need not search them for its patterns.

A browser's regular expressions backtrack: a rule and a text that somebody made for it could hold
the page for hours. The engine of the rules does not, so it looks once, when the file is written.
Most patterns turn out to match some words wherever these stand. A page is then told the words,
which take no room; of other patterns it is told every place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import polars as pl

from groundfault.render.highlights import find_patterns, find_spans

Spans = dict[int, list[int]]
"""By place of a text: start and length of each mark, in UTF-16 units, one after another."""

# as `groundfault.render.highlights.highlight`: a pattern that matches most of a text marks nothing
_MAX_SHARE = 0.5
_SHORT = 40
_MAX_WORDS = 50


def find_rule_marks(texts: Mapping[str, pl.Series], rule: str) -> dict[str, list[str] | Spans]:
    """By column: the words that a rule marks wherever they stand, or else the places of its marks.

    Parameters
    ----------
    texts : mapping of str to polars.Series of String
        By column, as they are written: those that repeat once.
    rule : str
        In SQL.

    Examples
    --------
    >>> texts = {"q": pl.Series(["nothing is not", "so"])}
    >>> find_rule_marks(texts, r"q ~ '\\bnot\\b'"), find_rule_marks(texts, "q ~ 'not'")
    ({'q': ['not']}, {'q': {0: [0, 3, 11, 3]}})
    """
    marks: dict[str, list[str] | Spans] = {}
    for column, patterns in find_patterns(rule).items():
        if column in texts:
            some = texts[column].fill_null("")
            marks[column] = _find_words(some, patterns) or _find_places(some, patterns)
    return marks


def _find_words(texts: pl.Series, patterns: Sequence[str]) -> list[str]:
    """The words that patterns match; none if they match anything else, or not all of these."""
    words: set[str] = set()
    for pattern in patterns:
        try:
            some = texts.str.extract_all(pattern).explode().drop_nulls().unique()
            if len(some) > _MAX_WORDS or not some.str.contains(r"^\w+$").all():
                return []
            whole = rf"\b({'|'.join(some)})\b"
            if not (_sign(texts, pattern) == _sign(texts, whole)).all():
                return []
        except pl.exceptions.PolarsError:  # it cannot be read, or the words are too long for one
            return []
        words.update(some)
    return sorted(words)


def _sign(texts: pl.Series, pattern: str) -> pl.Series:
    """Texts with their matches between characters that `encode_column` leaves in none."""
    return texts.str.replace_all(pattern, "\0${0}\0")


def _find_places(texts: pl.Series, patterns: Sequence[str]) -> Spans:
    spans: Spans = {}
    # in the order of the text, whichever pattern finds them
    for row, *ends in sorted(chain.from_iterable(_list_places(texts, p) for p in patterns)):
        spans.setdefault(row, []).extend(ends)
    return spans


def _list_places(texts: pl.Series, pattern: str) -> Iterator[tuple[int, int, int]]:
    try:
        rows = texts.str.contains(pattern).arg_true()
    except pl.exceptions.PolarsError:
        return
    some = texts[rows]
    for row, text, places in zip(rows, some, find_spans(some, pattern), strict=True):
        if len(text) > _SHORT and sum(b - a for a, b in places) > _MAX_SHARE * len(text):
            continue
        for start, end in places:
            yield row, count_units(text[:start]), count_units(text[start:end])


def count_units(text: str) -> int:
    """Length of a text in UTF-16: what lies beyond the first plane counts twice.

    Examples
    --------
    >>> count_units("a😀")
    3
    """
    return len(text) if text.isascii() else len(text) + sum(c > "\uffff" for c in text)
