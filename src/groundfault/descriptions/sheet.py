"""A sheet on which a person decides again, blindly, where descriptions hold."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from groundfault.base.files import write_bytes
from groundfault.base.reading import MAX_DOCUMENT, read_text
from groundfault.base.sheets import escape_cell, format_csv
from groundfault.descriptions.annotating import MISSING, Marks
from groundfault.errors import InputError

PERSON = "a person"
"""Who decided on a sheet."""

_HEADS = ("text", "description", "holds")
_WORDS = {"yes": 1, "no": 0, "": MISSING}


def write_sheet(path: str | Path, texts: Sequence[str], descriptions: Sequence[str]) -> None:
    """Write a CSV sheet with a row for each text and description, and no decision.

    Parameters
    ----------
    path : path
    texts, descriptions : sequence of str

    Raises
    ------
    InputError
        If the place cannot be written to.
    """
    rows = [(text, one, "") for text in texts for one in descriptions]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(_HEADS, pl.String), orient="row")
    write_bytes(Path(path), format_csv(frame, for_excel=True))


def read_sheet(path: str | Path, texts: Sequence[str], descriptions: Sequence[str]) -> Marks:
    """Read the decisions on a sheet, shape (texts, descriptions); `MISSING` where a cell is empty.

    Parameters
    ----------
    path : path
    texts, descriptions : sequence of str
        Those that were written.

    Raises
    ------
    InputError
        If the file cannot be read, a row is not of what was written, or a decision is neither yes
        nor no. Nothing of the sheet counts then.
    """
    rows = {_fold(text): i for i, text in enumerate(texts)}
    columns = {_fold(text): j for j, text in enumerate(descriptions)}
    marks = np.full((len(texts), len(descriptions)), MISSING, dtype=np.int64)
    for where, text, description, decision in _read_rows(Path(path)):
        place = rows.get(_fold(text)), columns.get(_fold(description))
        if None in place:
            what = "text" if place[0] is None else "description"
            raise InputError(
                f"{where}: the {what} is none of those that were written; change only the column "
                "'holds', and describe as then (same source, seed and --check)"
            )
        word = decision.strip().casefold()
        if word not in _WORDS:
            raise InputError(f"{where}: holds is {decision[:40]!r}; write yes or no, or leave it")
        marks[place] = _WORDS[word]
    return marks


def _fold(text: str) -> str:
    """Return a text as any spreadsheet gives it back.

    An apostrophe before a formula, its line ends.
    """
    return escape_cell(text.replace("\r\n", "\n").replace("\r", "\n"))


def _read_rows(path: Path) -> list[tuple[str, str, str, str]]:
    csv.field_size_limit(MAX_DOCUMENT)
    try:
        text = read_text(path)
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; save it as CSV UTF-8") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    head = text.partition("\n")[0]
    between = max(",;\t", key=head.count)  # spreadsheets of some countries write semicolons
    try:
        sheet = csv.DictReader(io.StringIO(text, newline=""), delimiter=between, strict=True)
        if not set(_HEADS) <= set(sheet.fieldnames or ()):
            raise InputError(f"{path} has not the columns {', '.join(_HEADS)}: it is no such sheet")
        return [
            (f"{path}, row {number}", *(row[name] or "" for name in _HEADS))  # type: ignore[misc]
            for number, row in enumerate(sheet, start=2)
        ]
    except csv.Error as error:
        raise InputError(f"{path} cannot be read as CSV: {error}") from None
