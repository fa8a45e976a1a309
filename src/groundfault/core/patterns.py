"""Patterns of LIKE: ``%`` is any text, ``_`` any character, and a backslash takes its successor.

That is PostgreSQL's. Engines differ in what escapes what, polars knows no escape at all, so a
pattern that needs one becomes a regular expression."""

from __future__ import annotations

from collections.abc import Iterator

from groundfault.errors import RuleError

ESCAPE = "\\"
# what stands for something else in a regular expression; to escape a letter would be an error
_SIGNS = frozenset("\\.+*?()|[]{}^$#&-~")


def use_backslash(pattern: str, escape: str) -> str:
    r"""The same pattern with a backslash as its escape.

    Parameters
    ----------
    pattern : str
    escape : str
        One character; empty for none.

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
    """Each character of a pattern, and whether it stands for itself.

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
    r"""The regular expression of a pattern whose escape is a backslash; it matches whole texts.

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
    """A character as a regular expression that matches it alone."""
    return ESCAPE + character if character in _SIGNS else character
