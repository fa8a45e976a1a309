"""Columns of a table as one file holds them: each compressed by itself, to be read when needed."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.modes.examples import LONGEST

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
    content : list or dict
        ``{"levels": [...], "codes": [...]}`` for levels, else a value each row; None is missing.
    """

    name: str
    kind: Kind
    content: Any


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
    >>> encode_column(pl.Series("lang", ["de", "en", "de", None])).content
    {'levels': ['de', 'en'], 'codes': [0, 1, 0, None]}
    """
    if column.dtype.is_nested() or column.dtype == pl.Binary or column.dtype == pl.Object:
        return None
    if column.dtype.is_numeric() and not is_text:
        values = column.cast(pl.Float64) if column.dtype.is_decimal() else column
        if values.dtype.is_float():
            values = values.cast(pl.Float64).round_sig_figs(_DIGITS)
            values = pl.select(pl.when(values.is_finite()).then(values)).to_series()
        return FileColumn(column.name, "number", values.to_list())
    texts = _clean(column.cast(pl.String))
    levels = texts.drop_nulls().unique().sort()
    if is_text or len(levels) > max(2, min(_MAX_LEVELS, len(texts) // 2)):
        return FileColumn(column.name, "text", texts.to_list())
    codes = pl.DataFrame({"value": texts}).join(
        pl.DataFrame(
            {"value": levels, "code": range(len(levels))}, {"value": pl.String, "code": int}
        ),
        on="value",
        how="left",
        maintain_order="left",
    )["code"]
    return FileColumn(column.name, "levels", {"levels": levels.to_list(), "codes": codes.to_list()})


def _clean(texts: pl.Series) -> pl.Series:
    long = texts.str.len_chars() > LONGEST
    if long.any():
        cut = texts.str.slice(0, LONGEST) + " […]"
        texts = pl.select(pl.when(long).then(cut).otherwise(texts).alias(texts.name)).to_series()
    return texts.str.replace_all(_STEERING, "\ufffd")


def pack_json(content: Any) -> str:
    """Plain values as JSON, compressed, in base64: no character of the data is left in it."""
    # lone surrogates can be no UTF-8, and are none in JSON of ASCII
    return _pack(json.dumps(content, separators=(",", ":"), allow_nan=False).encode("ascii"))


class MaskPool:
    """Masks of one length, each kept once: rules share conditions, models and what is wrong.

    Parameters
    ----------
    size : int
        Rows of a mask.

    Examples
    --------
    >>> pool = MaskPool(2)
    >>> [pool.add(np.array(mask)) for mask in ([True, False], [True, True], [True, False])]
    [0, 1, 0]
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._places: dict[bytes, int] = {}

    def add(self, mask: NDArray[np.bool_]) -> int:
        """The place of a mask."""
        assert mask.shape == (self._size,)
        content = np.packbits(mask, bitorder="little").tobytes()
        return self._places.setdefault(content, len(self._places))

    def pack(self) -> str:
        """All of them one after the other, a bit each row, the lowest first; compressed."""
        return _pack(b"".join(self._places))


def _pack(content: bytes) -> str:
    # without a time: the same report is the same file
    return b64encode(gzip.compress(content, 6, mtime=0)).decode("ascii")
