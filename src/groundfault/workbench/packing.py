"""Packing: columns of rows, masks, and marks in texts, compressed into text of a page."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.modes.examples import LONGEST
from groundfault.render.highlights import find_patterns, find_spans


def pack_json(content: object) -> str:
    """Return plain values as JSON, compressed, in base64: without a character of the data."""
    return _pack(_dump(content))


@dataclass(frozen=True)
class RowValues:
    """A value for each row.

    Where values repeat, each different one is there once: the rows hold its place alone, which
    compresses to about as many bits as there is to know.

    Attributes
    ----------
    values : list
        The different ones in their order, a missing one first; of each row where `places` is None.
    places : uint32 array of shape (rows,), or None
        Of each row's value among them.
    """

    values: list[Any]
    places: NDArray[np.uint32] | None

    @classmethod
    def of(cls, rows: pl.Series) -> RowValues:
        """Return the values of some rows.

        Examples
        --------
        >>> RowValues.of(pl.Series(["de", "en", "de", None] * 2)).values
        [None, 'de', 'en']
        """
        values = rows.unique().sort()
        if len(values) > max(2, len(rows) // 2):
            return cls(rows.to_list(), None)
        table = pl.DataFrame({"value": values, "place": np.arange(len(values), dtype=np.uint32)})
        frame = pl.DataFrame({"value": rows})
        frame = frame.join(table, on="value", how="left", nulls_equal=True, maintain_order="left")
        return cls(values.to_list(), frame["place"].to_numpy())

    def pack(self) -> str:
        """Pack the values as JSON and, after a line break, the places byte by byte.

        Of places below 256 there is one byte each, and so on. Of names that are numbered, what
        they begin with, and how many digits they have at least, as JSON, and then the numbers."""
        if self.places is None:
            numbering = _find_numbering(self.values)
            if numbering is None:
                return _pack(_dump(self.values))
            head, numbers = numbering
            return _pack(_dump(head) + b"\n" + _split(numbers, _width(int(numbers.max()))))
        return _pack(_dump(self.values) + b"\n" + _split(self.places, _width(len(self.values) - 1)))


def pack_spans(spans: Mapping[str, Mapping[int, Sequence[int]]]) -> str:
    """Pack marks in texts: of each its place less the one before, its start and its length.

    A JSON list of columns, of each its name, how many marks it has, and how many bytes each of the
    three numbers takes; after a line break all numbers of a kind, as `RowValues.pack` writes them.

    Parameters
    ----------
    spans : mapping of str to mapping of int to sequence of int
        Starts and lengths, one after another.
    """
    head: list[tuple[str, int, list[int]]] = []
    content = b""
    for column, places in spans.items():
        order = sorted(places)
        rows = np.repeat(order, [len(places[place]) // 2 for place in order])
        marks = np.array([n for place in order for n in places[place]], dtype=np.int64)
        numbers = (np.diff(rows, prepend=0), marks[::2], marks[1::2])
        widths = [_width(int(some.max(initial=0))) for some in numbers]
        head.append((column, len(rows), widths))
        content += b"".join(map(_split, numbers, widths))
    return _pack(_dump(head) + b"\n" + content)


class MaskPool:
    """Masks of one length, each kept once: rules share masks of conditions, models and failures.

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
        """Return the place of a mask, which is added if it is new."""
        assert mask.shape == (self._size,)
        content = np.packbits(mask, bitorder="little").tobytes()
        return self._places.setdefault(content, len(self._places))

    def pack(self) -> str:
        """Pack all masks one after the other, a bit a row, the lowest bit first."""
        return _pack(b"".join(self._places))


def _find_numbering(names: list[Any]) -> tuple[dict[str, object], NDArray[np.uint32]] | None:
    """Split names into a shared beginning, their fewest digits, and numbers, if they are so."""
    if not names or not all(isinstance(name, str) for name in names):
        return None
    texts = pl.Series(names, dtype=pl.String)
    digits = texts.str.extract("([0-9]{1,9})$")
    if digits.null_count():
        return None
    prefix, width = names[0].removesuffix(digits[0]), min(map(len, digits))
    numbers = digits.cast(pl.UInt32)
    if not (prefix + numbers.cast(pl.String).str.zfill(width) == texts).all():
        return None
    return {"prefix": prefix, "width": width}, numbers.to_numpy()


def _width(largest: int) -> int:
    """Return the bytes of a number."""
    return (max(largest, 1).bit_length() + 7) // 8


def _split(numbers: NDArray[np.integer[Any]], width: int) -> bytes:
    """Return numbers byte by byte, the lowest of all first."""
    return numbers.astype("<u4").view(np.uint8).reshape(-1, 4).T[:width].tobytes()


def _dump(content: object) -> bytes:
    # lone surrogates can be no UTF-8, and are none in JSON of ASCII
    return json.dumps(content, separators=(",", ":"), allow_nan=False).encode("ascii")


def _pack(content: bytes) -> str:
    # without a time: the same report is the same file
    return b64encode(gzip.compress(content, 9, mtime=0)).decode("ascii")


# characters that steer a terminal or reverse the direction of writing; line breaks stay
_STEERING = (
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u{061c}\u{200e}\u{200f}\u{202a}-\u{202e}\u{2066}-\u{2069}"
    r"\u{feff}]"
)
_MAX_LEVELS = 60_000
"""Different values of a column to filter by: their places take two bytes."""
_DIGITS = 9
"""Of a number: more than a single-precision float has."""


@dataclass(frozen=True, eq=False)
class FileColumn:
    """A column of examples, and how it is to be shown.

    Attributes
    ----------
    name : str
    kind : {"text", "levels", "number"}
        Texts to read and search; a few values, each with a number; numbers.
    series : polars.Series
        As the table has it.
    """

    name: str
    kind: Literal["text", "levels", "number"]
    series: pl.Series

    def clean(self, places: Sequence[int] | None = None, longest: int = LONGEST) -> pl.Series:
        """Return the values of all or some rows as they are shown; None is missing.

        Texts are cut after some characters, and characters that would not print as themselves are
        replaced.
        """
        values = self.series if places is None else self.series[list(places)]
        if self.kind != "number":
            return _clean(values.cast(pl.String), longest)
        values = values.cast(pl.Float64) if values.dtype.is_decimal() else values
        if values.dtype.is_float():
            values = values.cast(pl.Float64).round_sig_figs(_DIGITS)
            values = pl.select(pl.when(values.is_finite()).then(values)).to_series()
        return values

    @cached_property
    def rows(self) -> RowValues:
        """Return the value of each row."""
        return RowValues.of(self.clean())


def encode_column(column: pl.Series, *, is_text: bool = False) -> FileColumn | None:
    """Encode a column; return None for one that holds lists or other things of several parts.

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
        return FileColumn(column.name, "number", column)
    few = column.drop_nulls().n_unique() <= max(2, min(_MAX_LEVELS, len(column) // 2))
    return FileColumn(column.name, "levels" if few and not is_text else "text", column)


def _clean(texts: pl.Series, longest: int) -> pl.Series:
    long = texts.str.len_chars() > longest
    if long.any():
        cut = texts.str.slice(0, longest) + " […]"
        texts = pl.select(pl.when(long).then(cut).otherwise(texts).alias(texts.name)).to_series()
    return texts.str.replace_all(_STEERING, "\ufffd")


Spans = dict[int, list[int]]
"""By place of a text: start and length of each mark, in UTF-16 units, one after another."""

# as `groundfault.render.highlights.highlight`: a pattern that matches most of a text marks nothing
_MAX_SHARE = 0.5
_SHORT = 40  # characters: a short text may be marked whole


def find_rule_marks(texts: Mapping[str, pl.Series], rule: str) -> dict[str, Spans]:
    """Return by column the places of the marks of a rule.

    Parameters
    ----------
    texts : mapping of str to polars.Series of String
        By column, as written; repeated values once.
    rule : str
        In SQL.

    Examples
    --------
    >>> find_rule_marks({"q": pl.Series(["nothing is not", "so"])}, "q ~ 'not'")
    {'q': {0: [0, 3, 11, 3]}}
    """
    marks: dict[str, Spans] = {}
    for column, patterns in find_patterns(rule).items():
        if column in texts:
            spans, some = marks.setdefault(column, {}), texts[column].fill_null("")
            # in the order of the text, whichever pattern finds them
            places = chain.from_iterable(_list_places(some, pattern) for pattern in patterns)
            for row, *ends in sorted(set(places)):
                spans.setdefault(row, []).extend(ends)
    return marks


def _list_places(texts: pl.Series, pattern: str) -> Iterator[tuple[int, int, int]]:
    try:
        rows = texts.str.contains(pattern).arg_true()
    except pl.exceptions.PolarsError:
        return
    some = texts[rows]
    for row, text, places in zip(rows, some, find_spans(some, pattern), strict=True):
        if len(text) > _SHORT and sum(b - a for a, b in places) > _MAX_SHARE * len(text):
            continue
        for start, end in places:
            yield row, count_units(text[:start]), count_units(text[start:end])


def count_units(text: str) -> int:
    """Return the length of a text in UTF-16: characters beyond the first plane count twice.

    Examples
    --------
    >>> count_units("a😀")
    3
    """
    return len(text) if text.isascii() else len(text) + sum(c > "\uffff" for c in text)
