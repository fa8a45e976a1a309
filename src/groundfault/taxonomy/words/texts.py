"""What the examples of a matrix say: which column it is in."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from groundfault.core.columns import Kind, profile
from groundfault.errors import InputError
from groundfault.taxonomy.fitting.matrix import Matrix


def text_column(
    matrix: Matrix, named: str | None = None, other: Collection[str | None] = ()
) -> str:
    """The column of texts: the one named, or the only one of prose but for ``other`` columns.

    Raises
    ------
    InputError
        If the column is not there or holds no text, or none or several hold prose.
    """
    if named is not None:
        words_column(matrix, named)
        return named
    table = matrix.attributes
    found = (
        [c.name for c in profile(table) if c.kind is Kind.TEXT and c.name not in other]
        if table.width
        else []
    )
    if len(found) != 1:
        there = ", ".join(found) if found else "none"
        raise InputError(
            "say which column holds what an example says (text=, or --text); columns of prose: "
            f"{there}"
        )
    return found[0]


def words_column(matrix: Matrix, named: str) -> list[str | None]:
    """What a column says of each example, as words.

    Raises
    ------
    InputError
        If the column is not there, or holds something else than words and numbers.
    """
    if named not in matrix.attributes.columns:
        known = ", ".join(matrix.attributes.columns[:12]) or "none"
        raise InputError(f"no attribute {named!r} describes the examples; there are {known}")
    column = matrix.attributes[named]
    if not (
        column.dtype.is_numeric()
        or column.dtype in (pl.String, pl.Categorical, pl.Enum, pl.Boolean)
    ):
        raise InputError(f"column {named!r} holds {column.dtype}, not words")
    return list(column.cast(pl.String))
