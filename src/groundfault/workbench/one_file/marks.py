"""Where the words that a rule names stand in texts, so that a page can mark them without searching.

A browser's regular expressions backtrack: a rule and a text that somebody made for it could hold
the page for hours. The engine of the rules does not, so it looks once, when the file is written."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from groundfault.render.highlights import find_patterns, find_spans

Spans = dict[int, list[int]]
"""By place of a text: start and length of each mark, in UTF-16 units, one after another."""

# as `groundfault.render.highlights.highlight`: a pattern that matches most of a text marks nothing
_MAX_SHARE = 0.5
_SHORT = 40


def find_rule_spans(texts: Mapping[str, pl.Series], rule: str) -> dict[str, Spans]:
    """By column and place: where the words that a rule names stand.

    Parameters
    ----------
    texts : mapping of str to polars.Series of String
        By column, as they are written: those that repeat once.
    rule : str
        In SQL.

    Examples
    --------
    >>> find_rule_spans({"q": pl.Series(["nothing is not", "so"])}, r"q ~ '\\bnot\\b'")
    {'q': {0: [11, 3]}}
    """
    spans: dict[str, Spans] = {}
    for column, patterns in find_patterns(rule).items():
        if column in texts:
            spans[column] = {}
            for pattern in patterns:
                _add_spans(spans[column], texts[column].fill_null(""), pattern)
    return spans


def _add_spans(spans: Spans, texts: pl.Series, pattern: str) -> None:
    try:
        rows = texts.str.contains(pattern).arg_true()
    except pl.exceptions.PolarsError:
        return
    some = texts[rows]
    for row, text, places in zip(rows, some, find_spans(some, pattern), strict=True):
        if len(text) > _SHORT and sum(b - a for a, b in places) > _MAX_SHARE * len(text):
            continue
        for start, end in places:
            ends = (count_units(text[:start]), count_units(text[start:end]))
            spans.setdefault(row, []).extend(ends)


def count_units(text: str) -> int:
    """Length of a text in UTF-16: what lies beyond the first plane counts twice.

    Examples
    --------
    >>> count_units("a😀")
    3
    """
    return len(text) if text.isascii() else len(text) + sum(c > "\uffff" for c in text)
