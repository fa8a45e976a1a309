"""Texts of examples: with the words that a rule names highlighted, or in a line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import polars as pl

from groundfault.core.rules import Rule, quote_character, split_pattern
from groundfault.modes.mode import ModeExample
from groundfault.render import words
from groundfault.render.page import Highlight, Line

# a pattern that matches as much of a text as this says nothing about a place in it
_MAX_SHARE = 0.5
_SHORT = 40
"""Characters of a text that one match may fill: a word or two."""
# parts under NOT of a rule in normal form, and matches with a pattern: a parser takes .1 s to load
_NEGATED = re.compile(r"NOT \((?:[^()']|'(?:[^']|'')*'|\([^()]*\))*\)")
_MATCH = re.compile(r"""(NOT )?((?:\w+\()*)"([^"]+)"\)* (~\*?|I?LIKE) '((?:[^']|'')*)'""")
# "anything but a comma, any number of them" is no word
_STRETCH = re.compile(r"\[\^[^\]]*\](\*|\+|\{)")


def find_patterns(rule: str) -> dict[str, tuple[str, ...]]:
    """Find, by column, the patterns of words that a rule looks for in texts.

    Parameters
    ----------
    rule : str
        In SQL. Conditions under NOT are not looked for; patterns of whole stretches of a text
        name no word.

    Examples
    --------
    >>> find_patterns("prompt ~* '\\\\bnot\\\\b' AND lang = 'en' AND NOT prompt LIKE '%why%'")
    {'prompt': ('(?i)\\\\bnot\\\\b',)}
    """
    sql, patterns = Rule.parse(rule).sql, dict[str, list[str]]()
    for is_under_not, call, name, sign, text in _MATCH.findall(_NEGATED.sub("", sql)):
        pattern = text.replace("''", "'")
        if is_under_not or _STRETCH.search(pattern):
            continue
        if sign.endswith("LIKE"):
            pattern = "|".join(filter(None, _split_words(pattern)))
        folds = call or sign in ("~*", "ILIKE")
        patterns.setdefault(name, []).append(f"(?i){pattern}" if folds else pattern)
    return {name: tuple(some) for name, some in patterns.items()}


def highlight(text: str, patterns: Sequence[str]) -> Line:
    """Highlight the places of a text that patterns match.

    Parameters
    ----------
    text : str
    patterns : sequence of str
        Regular expressions, in the syntax of the rules. One that matches most of a longer text
        highlights nothing.
    """
    marks: list[tuple[int, int]] = []
    for pattern in patterns:
        spans = find_spans(pl.Series([text]), pattern)[0]
        if len(text) <= _SHORT or sum(b - a for a, b in spans) <= _MAX_SHARE * len(text):
            marks += spans
    return mark_spans(text, marks)


def mark_spans(text: str, spans: Sequence[tuple[int, int]]) -> Line:
    """Return a text with some places highlighted, which may overlap.

    Examples
    --------
    >>> mark_spans("it is not", [(6, 9)])
    ('it is ', Highlight(text='not'))
    """
    on = [False] * len(text)
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


def find_spans(texts: pl.Series, pattern: str) -> list[list[tuple[int, int]]]:
    """Find where a pattern matches in each of some texts, by the engine of the rules.

    It takes time linear in the texts for any pattern, and knows syntax that Python lacks, such
    as ``\\p{Lu}``. A pattern that it cannot read matches nowhere.

    Parameters
    ----------
    texts : polars.Series of String
        Of NULL there are no places.
    pattern : str

    Returns
    -------
    list of list of pair of int
        Start and end of each match that is not empty, in characters.

    Examples
    --------
    >>> find_spans(pl.Series(["nothing is not", None]), r"\\bnot\\b")
    [[(11, 14)], []]
    """
    # two characters for private use that no text contains
    signs = (chr(code) for code in range(0xE000, 0xF8FF))
    free = (sign for sign in signs if not any(sign in (text or "") for text in texts))
    start, end = next(free), next(free)
    try:
        # the engine tells what matches but not where, so it is asked to set signs around it
        signed = texts.str.replace_all(pattern, f"{start}${{0}}{end}")
    except pl.exceptions.PolarsError:
        return [[] for _ in texts]
    return [_read_signs(text or "", start, end) for text in signed]


def _read_signs(text: str, start: str, end: str) -> list[tuple[int, int]]:
    """Read where the parts between two signs would be, were the signs not there."""
    first, *pieces = text.split(start)
    spans, place = [], len(first)
    for piece in pieces:
        match, _, rest = piece.partition(end)
        if match:
            spans.append((place, place + len(match)))
        place += len(match) + len(rest)
    return spans


def _split_words(pattern: str) -> list[str]:
    """Split a LIKE pattern at its ``%`` into regular expressions."""
    words = [""]
    for character, is_plain in split_pattern(pattern):
        if character == "%" and not is_plain:
            words.append("")
        else:
            words[-1] += quote_character(character) if is_plain else "."
    return words


_WIDTHS = (90, 40, 40)
"""Characters that are shown of an example's first text, and of its last two: two lines."""


def quote_example(sample: tuple[ModeExample, ...], lead: str = "For example ") -> str:
    """Quote a typical failure in a line: its id, and the beginnings of three of its texts."""
    example = next((one for one in sample if one.side == "failing"), None)
    if example is None or not example.texts:
        return ""
    parts = [f"{words.clean(name)}: {text}" for name, text in pick_texts(example)]
    return " · ".join([words.clean(f"{lead}{example.id}"), *parts])


def pick_texts(example: ModeExample) -> Iterator[tuple[str, str]]:
    """Yield the names and beginnings of an example's first text and last two: prompt and answer."""
    texts = list(example.texts.items())
    for (name, text), width in zip([*texts[:1], *texts[1:][-2:]], _WIDTHS, strict=False):
        plain = words.clean(text)
        yield name, plain if len(plain) <= width else f"{plain[: width - 2].rstrip()} …"
