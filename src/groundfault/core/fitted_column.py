"""Fitted columns: slices that no rule can express, as a column that a fitted function computes.

A fitted function looks at one row at a time and never at an outcome. It is plain arrays of numbers
and the name of a function in `groundfault.stats`, so it is saved without pickle and read without
running anything."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.base.registry import load_object
from groundfault.errors import InputError, RuleError

if TYPE_CHECKING:
    from groundfault.core.candidate import Candidate

_FUNCTIONS = {
    "mixture": "groundfault.stats.mixture_predict:assign",
    "ball": "groundfault.stats.spotlight:is_inside",
    "centroid": "groundfault.stats.centroids:label_coordinates",
    "answers": "groundfault.stats.centroids:label_answers",
}
# functions that need more than arrays: the class that computes them, loaded when one is read
_CLASSES = {
    "language": "groundfault.language.column:LanguageColumn",
    "texts": "groundfault.slicing.text_column:EmbeddedTextColumn",
    "description": "groundfault.descriptions.column:DescriptionColumn",
}
_ROWS = 1 << 16  # rows computed at a time, which bounds the memory


@dataclass(frozen=True, eq=False)
class FittedColumn:
    """A column of whole numbers, computed row by row from other columns.

    Attributes
    ----------
    source : str
        Who fitted it; the column's name begins with it.
    function : {"mixture", "ball", "centroid", "answers"}
        What is computed: the likeliest slice of a mixture; 1 inside a ball and 0 outside; the
        number of the nearest centroid; or that of the nearest one to the answers of fixed models.
    columns : tuple of str
        Columns of numbers, or of lists of numbers of one length, side by side.
    arrays : mapping of str to float64 array
        What was fitted.

    Raises
    ------
    RuleError
        If the function is unknown.
    """

    source: str
    function: str
    columns: tuple[str, ...]
    arrays: Mapping[str, NDArray[np.float64]] = field(repr=False)

    def __post_init__(self) -> None:
        if self.function not in _FUNCTIONS:
            raise RuleError(f"{self.source}: there is no fitted function {self.function!r}")

    @cached_property
    def name(self) -> str:
        """The column's name, different for different content."""
        # named after its content: two fits never share a column, and the same fit is computed once
        digest = hashlib.sha256(repr((self.function, self.columns)).encode())
        for key, array in sorted(self.arrays.items()):
            digest.update(f"{key}{array.shape}".encode())
            # little-endian by name: the hash is the same on every machine
            digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
        return f"{self.source}_{digest.hexdigest()[:16]}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FittedColumn) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def apply(self, frame: pl.DataFrame) -> pl.Series:
        """The column for the rows of a table; NULL where any number it is computed from is missing.

        Raises
        ------
        InputError
            If the columns hold something else than when it was fitted.
        """
        function: Callable[..., NDArray[np.int64]] = load_object(_FUNCTIONS[self.function])
        out = np.zeros(frame.height, dtype=np.int64)
        complete = np.zeros(frame.height, dtype=np.bool_)
        for start in range(0, frame.height, _ROWS):
            values = matrix(frame[start : start + _ROWS], self.columns)
            # a row with a gap belongs to no slice, and is NULL instead of a guess
            here = ~np.isnan(values).any(axis=1)
            try:
                if here.any():
                    out[start : start + _ROWS][here] = function(self.arrays, values[here])
            except (ValueError, KeyError, IndexError) as error:
                raise InputError(
                    f"the columns {', '.join(self.columns)} do not fit the slices of "
                    f"{self.source}: {error}"
                ) from None
            complete[start : start + _ROWS] = here
        return pl.select(
            pl.when(pl.Series(complete)).then(pl.Series(out)).alias(self.name)
        ).to_series()

    def to_dict(self) -> dict[str, Any]:
        """The fitted function as plain words and numbers; `from_dict` gives an equal one back."""
        arrays = {key: encode_array(array) for key, array in self.arrays.items()}
        return {
            "source": self.source,
            "function": self.function,
            "columns": list(self.columns),
            "arrays": arrays,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FittedColumn:
        """Read what `to_dict` wrote.

        Raises
        ------
        KeyError, TypeError, ValueError
            If it is something else.
        """
        if data["function"] in _CLASSES:
            kind: type[FittedColumn] = load_object(_CLASSES[data["function"]])
            return kind.from_dict(data)
        arrays = {str(key): decode_array(array) for key, array in dict(data["arrays"]).items()}
        columns = tuple(str(column) for column in data["columns"])
        return cls(str(data["source"]), str(data["function"]), columns, arrays)


def add_fitted_columns(frame: pl.DataFrame, candidates: Iterable[Candidate]) -> pl.DataFrame:
    """The table with the fitted columns that candidates read, each computed once."""
    columns = {
        c.fitted_column.name: c.fitted_column for c in candidates if c.fitted_column is not None
    }
    return frame.with_columns(column.apply(frame) for column in columns.values())


def matrix(frame: pl.DataFrame, columns: Sequence[str]) -> NDArray[np.float64]:
    """Columns of numbers, and of lists of numbers, side by side; NaN where a value is missing.

    Raises
    ------
    InputError
        If a column holds something else, or lists of several lengths.
    """
    parts = list(_parts(frame, columns))
    return np.concatenate(parts, axis=1) if parts else np.empty((frame.height, 0))


def _parts(frame: pl.DataFrame, columns: Sequence[str]) -> Iterator[NDArray[np.float64]]:
    for name in columns:
        column = frame[name]
        if column.dtype.is_numeric() or column.dtype == pl.Boolean:
            yield column.cast(pl.Float64).to_numpy()[:, None]
        elif isinstance(column.dtype, pl.List | pl.Array) and _inner(column.dtype).is_numeric():
            yield _lists(column)
        else:
            raise InputError(
                f"column {name!r} holds {column.dtype}; it must hold numbers, or lists of numbers"
            )


def _inner(dtype: Any) -> pl.DataType:
    return cast("pl.DataType", dtype.inner)


def _lists(column: pl.Series) -> NDArray[np.float64]:
    lists = column if isinstance(column.dtype, pl.List) else column.arr.to_list()
    lengths: list[int] = sorted(lists.list.len().drop_nulls().unique().to_list())
    if len(lengths) > 1:
        raise InputError(
            f"column {column.name!r} holds lists of {lengths[0]} to {lengths[-1]} numbers, not "
            "all of one"
        )
    width = lengths[0] if lengths else 1
    if width == 0:
        raise InputError(f"column {column.name!r} holds empty lists")
    out = np.full((len(lists), width), np.nan)
    present = lists.is_not_null().to_numpy()
    out[present] = lists.drop_nulls().explode().cast(pl.Float64).to_numpy().reshape(-1, width)
    return out


def encode_array(array: NDArray[np.float64]) -> dict[str, Any]:
    """An array as words and numbers that JSON can hold."""
    # bytes, not decimals: what is read back is equal to the last bit
    data = np.ascontiguousarray(array, dtype="<f8").tobytes()
    return {"shape": list(array.shape), "float64": base64.b64encode(data).decode("ascii")}


def decode_array(data: Mapping[str, Any]) -> NDArray[np.float64]:
    """The array that `encode_array` wrote."""
    values = np.frombuffer(base64.b64decode(data["float64"], validate=True), dtype="<f8")
    return values.reshape(data["shape"]).astype(np.float64)
