"""Sheets: tables as files, and CSV without formulas for spreadsheets.

This module writes every CSV of groundfault. A spreadsheet treats a cell that begins with one of a
few characters as a formula, which may fetch addresses or start programs. Evaluation data come from
strangers and models, so an apostrophe is put before such a text. Parquet and JSON lines keep every
text unchanged.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import polars as pl
from polars import selectors

from groundfault.base.files import write_bytes, write_text
from groundfault.base.reading import MAX_DOCUMENT, read_text
from groundfault.errors import InputError

_ENDS = re.compile("[\x85\u2028\u2029]")
# with the wide forms of East Asian keyboards, which some spreadsheets take for the narrow ones
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_BOM = b"\xef\xbb\xbf"  # without it Excel takes UTF-8 for the code page of the machine


def escape_cell(text: str) -> str:
    """Return a text as a cell of CSV, with an apostrophe in front if it would be a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def format_csv(frame: pl.DataFrame, *, for_excel: bool = False) -> bytes:
    """Return a table as CSV in UTF-8; texts and column names are escaped by `escape_cell`.

    Parameters
    ----------
    frame : polars.DataFrame
        One value a cell: no lists, structures or bytes.
    for_excel : bool
        Add a byte-order mark and use the line ends of Windows.

    Raises
    ------
    InputError
        If a column holds values that CSV cannot hold.
    """
    nested = [
        name
        for name, dtype in frame.schema.items()
        if dtype.is_nested() or dtype in (pl.Binary, pl.Object)
    ]
    if nested:
        raise InputError(
            f"the column {nested[0]!r} holds {frame.schema[nested[0]]}, which CSV cannot hold; "
            "write .parquet"
        )
    texts = selectors.string(include_categorical=True) | selectors.enum()
    cells = frame.with_columns(texts.cast(pl.String))
    is_formula = selectors.string().str.slice(0, 1).is_in(_FORMULA)
    quoted = pl.lit("'") + selectors.string()
    cells = cells.with_columns(
        pl.when(is_formula).then(quoted).otherwise(selectors.string()).name.keep()
    )
    header = pl.DataFrame([[escape_cell(name)] for name in frame.columns], orient="col")
    end = "\r\n" if for_excel else "\n"
    lines = [
        header.write_csv(include_header=False, line_terminator=end),
        cells.write_csv(include_header=False, line_terminator=end),
    ]
    return (_BOM if for_excel else b"") + "".join(lines).encode()


def read_sheet_text(path: Path) -> str:
    """Return the text of a sheet that somebody filled in.

    Raises
    ------
    InputError
        If it cannot be read, or is not UTF-8.
    """
    try:
        return read_text(path)
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; save it as CSV UTF-8") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None


def split_rows(
    text: str, path: Path, columns: Iterable[str]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the place of each row of a CSV sheet in words, and its cells by column.

    Raises
    ------
    InputError
        If the sheet is not CSV, or lacks a column.
    """
    csv.field_size_limit(MAX_DOCUMENT)
    head = text.partition("\n")[0]
    between = max(",;\t", key=head.count)  # spreadsheets of some countries write semicolons
    try:
        sheet = csv.DictReader(io.StringIO(text, newline=""), delimiter=between, strict=True)
        lacking = [name for name in columns if name not in (sheet.fieldnames or ())]
        if lacking:
            raise InputError(f"{path} has no column {lacking[0]!r}; is it the right file?")
        for number, row in enumerate(sheet, start=2):
            yield f"{path}, row {number}", row
    except csv.Error as error:
        raise InputError(f"{path} cannot be read as CSV: {error}") from None


def write_table(frame: pl.DataFrame, path: str | Path) -> None:
    """Write a table as CSV, Parquet or JSONL by its name, whole or not at all.

    Raises
    ------
    InputError
        If the name has another ending, CSV cannot hold a column, or the place cannot be written to.
    """
    place, buffer = Path(path), io.BytesIO()
    require_table_name(place)
    kind = place.suffix.lower()
    if kind == ".csv":
        buffer.write(format_csv(frame))
    elif kind in (".parquet", ".pq"):
        frame.write_parquet(buffer)
    else:
        frame.write_ndjson(buffer)
    write_bytes(place, buffer.getvalue())


def write_rows(rows: Iterable[Mapping[str, object]], path: str | Path) -> None:
    """Write rows as JSON lines, whole or not at all.

    A program that splits text at every Unicode line end also finds one row a line.
    """
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    write_text(Path(path), _ENDS.sub(lambda end: f"\\u{ord(end[0]):04x}", lines))


def require_table_name(path: str | Path) -> None:
    """Require a name that says how a table is written; `InputError` says which do."""
    name = Path(path).name
    if not name.lower().endswith((".csv", ".parquet", ".pq", ".jsonl", ".ndjson")):
        raise InputError(
            f"cannot tell from {name!r} how to write a table; name it .csv, .parquet or .jsonl"
        )
