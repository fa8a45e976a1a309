"""Words that a rule names, highlighted in the texts of examples."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from groundfault.core.patterns import quote_character, split_pattern
from groundfault.core.rules import Rule
from groundfault.render.page import Highlight, Line

# a pattern that matches as much of a text as this says nothing about a place in it
_MAX_SHARE = 0.5
_SHORT = 40
# "anything but a comma, any number of them" is no word
_STRETCH = re.compile(r"\[\^[^\]]*\](\*|\+|\{)")


def find_patterns(rule: str) -> dict[str, tuple[str, ...]]:
    """By column: the patterns of words that a rule looks for in texts.

    Parameters
    ----------
    rule : str
        In SQL. What stands under NOT is not looked for; patterns of whole stretches of a text
        name no word.

    Examples
    --------
    >>> find_patterns("prompt ~* '\\\\bnot\\\\b' AND lang = 'en' AND NOT prompt LIKE '%why%'")
    {'prompt': ('(?i)\\\\bnot\\\\b',)}
    """
    from sqlglot import exp, parse_one

    patterns: dict[str, list[str]] = {}
    tree = parse_one(Rule.parse(rule).sql, read="postgres")
    kinds = (exp.RegexpLike, exp.RegexpILike, exp.Like, exp.ILike)
    for node in tree.find_all(*kinds):
        column, text = node.this.find(exp.Column), node.expression
        is_under_not = node.find_ancestor(exp.Not) or node.args.get("negate")
        if column is None or not text.is_string or is_under_not:
            continue
        pattern = text.this
        if _STRETCH.search(pattern):
            continue
        if isinstance(node, exp.Like | exp.ILike):
            pattern = "|".join(filter(None, _split_words(pattern)))
        folds = isinstance(node, exp.RegexpILike | exp.ILike) or not isinstance(
            node.this, exp.Column
        )
        patterns.setdefault(column.name, []).append(f"(?i){pattern}" if folds else pattern)
    return {name: tuple(some) for name, some in patterns.items()}


def highlight(text: str, patterns: Sequence[str]) -> Line:
    """A text with the places that patterns match highlighted.

    Parameters
    ----------
    text : str
    patterns : sequence of str
        Regular expressions, in the syntax of the rules. One that matches most of a longer text
        highlights nothing.
    """
    on = [False] * len(text)
    for pattern in patterns:
        spans = list(_find_spans(text, pattern))
        if len(text) > _SHORT and sum(b - a for a, b in spans) > _MAX_SHARE * len(text):
            continue
        for start, end in spans:
            on[start:end] = [True] * (end - start)
    line: list[str | Highlight] = []
    start = 0
    for end in range(1, len(text) + 1):
        if end == len(text) or on[end] != on[start]:
            part = text[start:end]
            line.append(Highlight(part) if on[start] else part)
            start = end
    return tuple(line)


def _find_spans(text: str, pattern: str) -> list[tuple[int, int]]:
    """Where a pattern matches, by the engine of the rules: Python knows no ``\\p{Lu}``."""
    try:
        matches = pl.Series([text]).str.extract_all(pattern).to_list()[0]
    except pl.exceptions.PolarsError:
        return []
    spans, place = [], 0
    for match in matches:
        start = text.find(match, place)
        place = start + len(match)
        if match:
            spans.append((start, place))
    return spans


def _split_words(pattern: str) -> list[str]:
    """The pieces of a LIKE pattern between its ``%``, as regular expressions."""
    words = [""]
    for character, is_plain in split_pattern(pattern):
        if character == "%" and not is_plain:
            words.append("")
        else:
            words[-1] += quote_character(character) if is_plain else "."
    return words
