"""Rows set for reading: texts shortened, the words and values that a rule names highlighted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from groundfault.core.rules import Rule, quote_character
from groundfault.render.highlights import find_patterns, highlight
from groundfault.render.words import clean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groundfault.render.page import Line
    from groundfault.workbench.rows import Rows

SHORT, LONG, WHOLE = 240, 700, 20_000
"""Characters of a text in a table, on a card, and on a page of its own: lines, a screen, all."""

_MIN_LENGTH = 30
"""Characters from which on a value is a sentence rather than a word."""


@dataclass(frozen=True)
class Field:
    """One value of a row.

    Attributes
    ----------
    name : str
        The column.
    line : tuple of str and Highlight
        Its text, line breaks and all.
    value : object
        As the table has it.
    mark : bool
        Whether the rule reads this column as a whole.
    cut : int
        Characters that are left out.
    """

    name: str
    line: Line
    value: Any
    mark: bool = False
    cut: int = 0

    @property
    def is_number(self) -> bool:
        """Return whether the value is a number."""
        return isinstance(self.value, int | float) and not isinstance(self.value, bool)

    @property
    def is_long(self) -> bool:
        """Return whether it is a sentence rather than a word."""
        return isinstance(self.value, str) and len(self.value) > _MIN_LENGTH


@dataclass(frozen=True)
class RowView:
    """One row of a page.

    Attributes
    ----------
    place : int
        In the table.
    id, model : str
    fails : bool or None
        None where it was not scored.
    loss : float or None
    fields : tuple of Field
    """

    place: int
    id: str
    model: str
    fails: bool | None
    loss: float | None
    fields: tuple[Field, ...]


def show_rows(
    rows: Rows,
    places: NDArray[np.intp],
    columns: Sequence[str],
    *,
    rule: str = "",
    text: str = "",
    length: int = SHORT,
) -> tuple[RowView, ...]:
    """Return some rows with some of their columns.

    Parameters
    ----------
    rows : Rows
    places : intp array, shape (m,)
    columns : sequence of str
    rule : str
        What is highlighted: the words that it looks for, and the columns that it compares.
    text : str
        Highlighted too.
    length : int
        Characters of a text that are shown.
    """
    frame = rows.frame.select(columns)[places] if len(columns) else pl.DataFrame()
    patterns = find_patterns(rule) if rule else {}
    read = set(Rule.parse(rule).columns) - set(patterns) if rule else set()
    search = ("(?i)" + "".join(map(quote_character, text)),) if text else ()
    fields = {
        name: _set_column(frame[name], (*patterns.get(name, ()), *search), length, name in read)
        for name in columns
    }
    roles = rows.evidence.roles
    ids = rows.frame[roles.id or ""][places].cast(pl.String)
    models = rows.frame[roles.model][places].cast(pl.String) if roles.model else [""] * len(places)
    views = []
    for number, place in enumerate(places):
        loss = float(rows.loss[place])
        scored = not np.isnan(loss)
        views.append(
            RowView(
                int(place),
                str(ids[number]),
                str(models[number] or ""),
                bool(rows.fails[place]) if scored else None,
                loss if scored else None,
                tuple(fields[name][number] for name in columns),
            )
        )
    return tuple(views)


def _set_column(column: pl.Series, patterns: Sequence[str], length: int, mark: bool) -> list[Field]:
    """Return a field for each value of a column."""
    values = column.to_list()
    texts = [None if value is None else write_value(value) for value in values]
    return [
        Field(
            column.name,
            highlight(text[:length], patterns) if text else (),
            value,
            mark,
            max(len(text) - length, 0),
        )
        for value, text in zip(values, (text or "" for text in texts), strict=True)
    ]


MAX_LENGTH = 8_000
"""Characters of a text that are shown at first, some two screens: a response may repeat itself."""


def shorten(text: str, max_length: int = MAX_LENGTH) -> str:
    """Clean a text line by line; of a long one keep its start and its end.

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
    """Return a value of a table as people write it.

    Examples
    --------
    >>> write_value(True), write_value(0.1 + 0.2), write_value(7)
    ('true', '0.3', '7')
    """
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)
