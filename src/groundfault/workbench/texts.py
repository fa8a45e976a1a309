"""Texts and values from data, for a page: lines kept, what steers a terminal replaced."""

from __future__ import annotations

from typing import Any

from groundfault.render.words import clean

MAX_LENGTH = 8_000
"""Characters of a text that are shown at first: some responses repeat themselves for pages."""


def shorten(text: str, max_length: int = MAX_LENGTH) -> str:
    """A text line by line, cleaned; of a long one its start and its end.

    Examples
    --------
    >>> shorten("one\\ntwo"), shorten("")
    ('one\\ntwo', '(empty)')
    """
    if len(text) > max_length:
        half = max_length // 2
        n_cut = len(text) - 2 * half
        text = f"{text[:half]}\n[... {n_cut:,} characters are not shown ...]\n{text[-half:]}"
    return "\n".join(clean(line) for line in text.split("\n")) or "(empty)"


def write_value(value: Any) -> str:
    """A value of a table as people write it.

    Examples
    --------
    >>> write_value(True), write_value(0.1 + 0.2), write_value(7)
    ('true', '0.3', '7')
    """
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)
