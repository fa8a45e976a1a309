"""Cells: what an engine counts, the same from whatever engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

ROWS = "rows"


@dataclass(frozen=True)
class CellCounts:
    """Counts of R rules in the C cells of a table.

    Attributes
    ----------
    keys : polars.DataFrame, C rows
        What the rows of each cell agree in; no columns where there is one cell.
    rows : int64 array, shape (C,)
        Rows of each cell; at least 1.
    on, defined : int64 arrays, shape (C, R)
        Rows that each rule is true for, and true or false.
    """

    keys: pl.DataFrame
    rows: NDArray[np.int64]
    on: NDArray[np.int64]
    defined: NDArray[np.int64]

    @classmethod
    def of(cls, frame: pl.DataFrame, by: Sequence[str], rules: int) -> CellCounts:
        """CellCounts of a table with the columns ``by``, ``rows``, and `name_counts` for each rule.

        Sorted by their keys, so that no order of an engine shows.
        """
        frame = frame.filter(pl.col(ROWS) > 0)
        frame = frame.sort(by, nulls_last=True) if by else frame
        names = [name_counts(number) for number in range(rules)]

        def stack(columns: list[str]) -> NDArray[np.int64]:
            # a sum over no row is NULL
            values = frame.select(pl.col(columns).cast(pl.Int64).fill_null(0))
            return values.to_numpy().reshape(frame.height, len(columns)).astype(np.int64)

        return cls(
            frame.select(by),
            frame[ROWS].cast(pl.Int64).to_numpy(),
            stack([on for on, _ in names]),
            stack([defined for _, defined in names]),
        )

    def __len__(self) -> int:
        return len(self.rows)


def name_counts(number: int) -> tuple[str, str]:
    """Names of the columns in which an engine hands over a rule's counts: true, and defined."""
    return f"on {number}", f"defined {number}"
