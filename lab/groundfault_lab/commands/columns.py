"""Tables of commands of groundfault-lab."""

from __future__ import annotations

import polars as pl

from groundfault.errors import InputError, require_name


def read_columns(source: str, *columns: str | None, text: tuple[str, ...] = ()) -> pl.DataFrame:
    """Read a table that has these columns; those of ``text`` as they are written."""
    from groundfault.readers.table import read_table

    table = read_table(source, text=text)[0]
    for column in columns:
        if column is not None:
            require_name("column", column, table.columns, InputError, source)
    return table
