"""What the examples of a matrix say: which column it is in."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from groundfault.core.columns import Kind, profile
from groundfault.errors import InputError
from groundfault.taxonomy.fitting.matrix import Matrix


def find_text_column(
    matrix: Matrix, column: str | None = None, other: Collection[str | None] = ()
) -> str:
    """The column of texts: the one named, or the only one of prose but for ``other`` columns.

    Raises
    ------
    InputError
        If the column is not there or holds no text, or none or several hold prose.
    """
    if column is not None:
        read_column(matrix, column)
        return column
    table = matrix.attributes
    columns = (
        [c.name for c in profile(table) if c.kind is Kind.TEXT and c.name not in other]
        if table.width
        else []
    )
    # a guess between two columns of prose could label clusters by the wrong one
    if len(columns) != 1:
        there = ", ".join(columns) if columns else "none"
        raise InputError(
            "say which column holds what an example says (text=, or --text); columns of prose: "
            f"{there}"
        )
    return columns[0]


def read_column(matrix: Matrix, name: str) -> list[str | None]:
    """What a column says of each example, as words.

    Raises
    ------
    InputError
        If the column is not there, or holds something else than words and numbers.
    """
    if name not in matrix.attributes.columns:
        names = ", ".join(matrix.attributes.columns[:12]) or "none"
        raise InputError(f"no attribute {name!r} describes the examples; there are {names}")
    column = matrix.attributes[name]
    if not (
        column.dtype.is_numeric()
        or column.dtype in (pl.String, pl.Categorical, pl.Enum, pl.Boolean)
    ):
        raise InputError(f"column {name!r} holds {column.dtype}, not words")
    return list(column.cast(pl.String))
