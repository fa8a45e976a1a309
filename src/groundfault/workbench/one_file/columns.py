"""Columns of a table as one file holds them: each compressed by itself, to be read when needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import polars as pl

from groundfault.modes.examples import LONGEST
from groundfault.workbench.one_file.packing import RowValues

Kind = Literal["text", "levels", "number"]

# characters that steer a terminal or reverse the direction of writing; line breaks stay
_STEERING = (
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u{061c}\u{200e}\u{200f}\u{202a}-\u{202e}\u{2066}-\u{2069}"
    r"\u{feff}]"
)
_MAX_LEVELS = 60_000
_DIGITS = 9


@dataclass(frozen=True)
class FileColumn:
    """A column of examples, and how it is to be shown.

    Attributes
    ----------
    name : str
    kind : {"text", "levels", "number"}
        Texts to read and search; a few values, each with a number; numbers.
    rows : RowValues
        None is missing.
    """

    name: str
    kind: Kind
    rows: RowValues


def encode_column(column: pl.Series, *, is_text: bool = False) -> FileColumn | None:
    """A column as it is written; None for one that holds lists or other things of several parts.

    Texts are cut after 2,000 characters, as those in a report are, and characters that would not
    print as themselves are replaced.

    Parameters
    ----------
    column : polars.Series
    is_text : bool
        Whether it is to be read, however few values it has.

    Examples
    --------
    >>> encode_column(pl.Series("lang", ["de", "en", "de", None])).kind
    'levels'
    """
    if column.dtype.is_nested() or column.dtype == pl.Binary or column.dtype == pl.Object:
        return None
    if column.dtype.is_numeric() and not is_text:
        values = column.cast(pl.Float64) if column.dtype.is_decimal() else column
        if values.dtype.is_float():
            values = values.cast(pl.Float64).round_sig_figs(_DIGITS)
            values = pl.select(pl.when(values.is_finite()).then(values)).to_series()
        return FileColumn(column.name, "number", RowValues.of(values))
    texts = _clean(column.cast(pl.String))
    few = texts.drop_nulls().n_unique() <= max(2, min(_MAX_LEVELS, len(texts) // 2))
    kind: Kind = "levels" if few and not is_text else "text"
    return FileColumn(column.name, kind, RowValues.of(texts))


def _clean(texts: pl.Series) -> pl.Series:
    long = texts.str.len_chars() > LONGEST
    if long.any():
        cut = texts.str.slice(0, LONGEST) + " […]"
        texts = pl.select(pl.when(long).then(cut).otherwise(texts).alias(texts.name)).to_series()
    return texts.str.replace_all(_STEERING, "\ufffd")
