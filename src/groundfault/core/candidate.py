"""Candidates: proposed explanations as named true/false rules, frozen in a library.

A fitted function computes a column for a slice that no rule can express. The function reads one row
at a time and no outcomes. It is stored as plain arrays and the name of a function in
`groundfault.stats`, so saving needs no pickle and loading runs no code."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import polars as pl

from groundfault.base.arrays import Floats, Ints
from groundfault.base.files import write_text
from groundfault.base.reading import decode_json, read_text
from groundfault.base.registry import load_object
from groundfault.core.rules import Rule
from groundfault.errors import InputError, RuleError

Missing = Literal["reject", "off", "drop"]
DESCRIBED = "described"  # source of a candidate that a language model described
_FUNCTIONS = {
    "mixture": "groundfault_lab.stats.mixture_predict:assign",
    "ball": "groundfault_lab.stats.spotlight:is_inside",
    "centroid": "groundfault_lab.taxonomy.centroids:label_coordinates",
    "answers": "groundfault_lab.taxonomy.centroids:label_answers",
}
# functions that need more than arrays: the class that computes them, loaded when one is read
_CLASSES = {
    "language": "groundfault_lab.language.finder:LanguageColumn",
    "texts": "groundfault_lab.slicing.text_column:EmbeddedTextColumn",
    "description": "groundfault.descriptions.annotating:DescriptionColumn",
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
        The value computed: the likeliest slice of a mixture; 1 inside a ball and 0 outside; the
        number of the nearest centroid; or the number of the centroid nearest to the answers of
        fixed models.
    columns : tuple of str
        Columns of numbers, or of lists of numbers of one length, side by side.
    arrays : mapping of str to float64 array
        Fitted parameters.

    Raises
    ------
    RuleError
        If the function is unknown.
    """

    source: str
    function: str
    columns: tuple[str, ...]
    arrays: Mapping[str, Floats] = field(repr=False)

    def __post_init__(self) -> None:
        if self.function not in _FUNCTIONS:
            raise RuleError(f"{self.source}: there is no fitted function {self.function!r}")

    @cached_property
    def name(self) -> str:
        """Return the column's name, different for different content."""
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
        """Return the column for the rows of a table; NULL where any number it is computed from is
        missing.

        Raises
        ------
        InputError
            If the columns hold something else than when it was fitted.
        """
        function: Callable[..., Ints] = load_object(_FUNCTIONS[self.function])
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
        column = pl.when(pl.Series(complete)).then(pl.Series(out))
        return pl.select(column.alias(self.name)).to_series()

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted function as plain words and numbers, which `from_dict` reads."""
        arrays = {key: encode_array(array) for key, array in self.arrays.items()}
        words = {"source": self.source, "function": self.function}
        return {**words, "columns": list(self.columns), "arrays": arrays}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FittedColumn:
        """Read a fitted column that `to_dict` wrote.

        Raises
        ------
        KeyError, TypeError, ValueError
            If ``data`` has another content.
        """
        kind: type[FittedColumn] = cls
        if data["function"] in _CLASSES:
            kind = load_object(_CLASSES[data["function"]])
        arrays = {str(key): decode_array(array) for key, array in dict(data["arrays"]).items()}
        columns = tuple(str(column) for column in data["columns"])
        more = kind.read_more(data)
        return kind(str(data["source"]), str(data["function"]), columns, arrays, **more)

    @classmethod
    def read_more(cls, data: Mapping[str, object]) -> dict[str, Any]:  # noqa: ARG003
        """Read the fields that only a column of another class has."""
        return {}


def add_fitted_columns(frame: pl.DataFrame, candidates: Iterable[Candidate]) -> pl.DataFrame:
    """Return the table with the fitted columns that candidates read, each computed once."""
    columns = {
        c.fitted_column.name: c.fitted_column for c in candidates if c.fitted_column is not None
    }
    return frame.with_columns(column.apply(frame) for column in columns.values())


def matrix(frame: pl.DataFrame, columns: Sequence[str]) -> Floats:
    """Return columns of numbers, and of lists of numbers, side by side; NaN where a value is
    missing.

    Raises
    ------
    InputError
        If a column holds something else, or lists of several lengths.
    """
    parts = list(_parts(frame, columns))
    return np.concatenate(parts, axis=1) if parts else np.empty((frame.height, 0))


def _parts(frame: pl.DataFrame, columns: Sequence[str]) -> Iterator[Floats]:
    for name in columns:
        column = frame[name]
        inner: Any = getattr(column.dtype, "inner", None)
        if column.dtype.is_numeric() or column.dtype == pl.Boolean:
            yield column.cast(pl.Float64).to_numpy()[:, None]
        elif inner is not None and inner.is_numeric():
            yield _lists(column)
        else:
            raise InputError(
                f"column {name!r} holds {column.dtype}; it must hold numbers, or lists of numbers"
            )


def _lists(column: pl.Series) -> Floats:
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


def encode_array(array: Floats) -> dict[str, Any]:
    """Return an array as words and numbers that JSON can hold."""
    # bytes, not decimals: reading them gives equal numbers to the last bit
    data = np.ascontiguousarray(array, dtype="<f8").tobytes()
    return {"shape": list(array.shape), "float64": base64.b64encode(data).decode("ascii")}


def decode_array(data: Mapping[str, Any]) -> Floats:
    """Return the array that `encode_array` wrote."""
    values = np.frombuffer(base64.b64decode(data["float64"], validate=True), dtype="<f8")
    return values.reshape(data["shape"]).astype(np.float64)


@dataclass(frozen=True)
class Candidate:
    """A proposed explanation of failures: a true/false property of an example.

    Parameters
    ----------
    name : str
        Unique within a library.
    rule : str
        A SQL boolean expression over example columns, such as ``"n_words > 400"`` or ``"lang =
        'de'"``. A supplied boolean column is the rule that names it.
    meaning : str, optional
        The property in plain English; the rule where left out.
    source : str, optional
        Who proposed it: a finder's name, a file, a person.
    missing : {"reject", "off", "drop"}, optional
        How to treat an example on which the rule is neither true nor false (a NULL): the candidate
        cannot be tested (the default), the example counts as off, or the example is left out for
        this candidate.
    fitted_column : FittedColumn, optional
        A fitted function that computes a column the rule reads and the evidence need not have.
    mined : str, optional
        Units on which a finder that looks at outcomes found the candidate, as `Case.origin`; empty
        for candidates named without looking at outcomes.

    Raises
    ------
    RuleError
        If the rule does not parse, is anything but an expression, or does not read the fitted
        column.

    Examples
    --------
    >>> Candidate("long", "n_words > 400").columns
    ('n_words',)
    """

    name: str
    rule: str
    meaning: str = ""
    source: str = "declared"
    missing: Missing = "reject"
    fitted_column: FittedColumn | None = None
    mined: str = ""

    def __post_init__(self) -> None:
        for name in ("name", "rule", "meaning", "source", "mined"):
            if not isinstance(getattr(self, name), str):
                raise RuleError(
                    f"the {name} of a candidate is {getattr(self, name)!r:.60}; it must be text"
                )
        if not self.name.strip():
            raise RuleError("a candidate needs a name that is not blank")
        if self.missing not in get_args(Missing):
            raise RuleError(
                f"candidate {self.name!r}: missing={self.missing!r} is not one of reject, off, drop"
            )
        columns = self.parsed.columns  # a bad rule fails here, not in the middle of an audit
        if self.fitted_column is not None and self.fitted_column.name not in columns:
            raise RuleError(
                f"candidate {self.name!r}: {self.rule!r} does not read its fitted column "
                f"{self.fitted_column.name!r}"
            )
        if not self.meaning:
            # a frozen dataclass may be completed in __post_init__ only this way
            object.__setattr__(self, "meaning", self.rule)

    def is_mined_from(self, outcome_hash: str) -> bool:
        """Return whether a finder looked at the outcomes with this hash to find the candidate."""
        # an origin is the beginnings of two hashes, of the outcomes and of their split
        return self.mined.partition("/")[0] == outcome_hash[:16]

    @property
    def parsed(self) -> Rule:
        """Return the rule, parsed and validated."""
        try:
            return Rule.parse(self.rule)
        except RuleError as error:
            raise RuleError(f"candidate {self.name!r}: {error}") from None

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the evidence columns that the rule and its fitted column read, sorted."""
        names, fitted = self.parsed.columns, self.fitted_column
        return names if fitted is None else tuple(sorted({*names, *fitted.columns} - {fitted.name}))

    @classmethod
    def from_text(cls, text: str, *, missing: Missing = "reject") -> Candidate:
        """Read ``"NAME: SQL"``, the form used on the command line."""
        name, colon, rule = text.partition(":")
        if not colon or not name.strip() or not rule.strip():
            raise RuleError(f"candidate {text!r} is not of the form 'NAME: SQL expression'")
        return cls(name.strip(), rule.strip(), missing=missing)


@dataclass(frozen=True)
class Library(Sequence[Candidate]):
    """An ordered, frozen set of candidates with a hash, fixed before scoring.

    Raises
    ------
    RuleError
        If two candidates share a name but not a rule. Exact repeats are merged.
    """

    candidates: tuple[Candidate, ...]

    @classmethod
    def of(cls, candidates: Iterable[Candidate]) -> Library:
        """Freeze candidates; merge those equal in name, rule and handling of missing values."""
        merged: dict[str, Candidate] = {}
        for candidate in candidates:
            first = merged.setdefault(candidate.name, candidate)
            # the same candidate from two finders is one candidate, tested once
            if (first.rule, first.missing) != (candidate.rule, candidate.missing):
                raise RuleError(
                    f"two candidates are named {candidate.name!r} "
                    f"({first.rule!r} and {candidate.rule!r}): rename one"
                )
        return cls(tuple(merged.values()))

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.candidates)

    def __len__(self) -> int:
        return len(self.candidates)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self.candidates[index]

    def find(self, name: str) -> int:
        """Return the place of the candidate of a name."""
        return [candidate.name for candidate in self.candidates].index(name)

    @property
    def hash(self) -> str:
        """Return SHA-256 of the candidates; their order does not matter."""
        # sorted, and without meaning or source: only what decides who is on the slice is sealed
        rows = sorted(
            json.dumps([c.name, c.rule, c.missing], ensure_ascii=False) for c in self.candidates
        )
        return hashlib.sha256("\n".join(rows).encode()).hexdigest()

    @property
    def sources(self) -> dict[str, int]:
        """Return how many candidates each source proposed."""
        return dict(Counter(c.source for c in self.candidates))

    def to_json(self) -> str:
        """Serialise; ``Library.from_json`` gives an equal library back."""
        columns = {
            c.fitted_column.name: c.fitted_column for c in self.candidates if c.fitted_column
        }
        data: dict[str, object] = {"groundfault_library": 1, "hash": self.hash}
        data["candidates"] = [_row(c) for c in self.candidates]
        if columns:
            data["derived"] = {name: column.to_dict() for name, column in columns.items()}
        return json.dumps(data, indent=1, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str, *, where: str = "library") -> Library:
        """Read a frozen library.

        Raises
        ------
        InputError
            If the text is not a library, or its candidates no longer match the hash they were
            frozen with.
        """
        try:
            data = decode_json(text, where)
            library = cls.of(_read_candidates(data))
            digest = data["hash"]
        except RuleError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            what = " ".join(str(error).split())
            raise InputError(f"{where}: not a frozen groundfault library ({what})") from None
        # a library is frozen before outcomes are seen; an edit afterwards has to show
        if digest != library.hash:
            raise InputError(
                f"{where}: the candidates do not match the hash they were frozen with; "
                "freeze it again"
            )
        return library

    @classmethod
    def load(cls, path: str | Path) -> Library:
        """Read a frozen library from a file."""
        try:
            text = read_text(path)
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read the library {path}: {error}") from None
        return cls.from_json(text, where=str(path))

    def freeze(self, path: str | Path) -> None:
        """Write the library to a file, whole or not at all."""
        write_text(Path(path), self.to_json())

    def require_columns(self, available: Iterable[str], *, where: str) -> None:
        """Raise `RuleError` naming every column that the rules read and ``available`` lacks."""
        have = set(available)
        lacking = {
            column: c.name for c in self.candidates for column in c.columns if column not in have
        }
        if lacking:
            column, name = next(iter(lacking.items()))
            more = f" (and {len(lacking) - 1} more columns)" if len(lacking) > 1 else ""
            raise RuleError(
                f"candidate {name!r} reads column {column!r}{more}, which {where} does not have; "
                f"its columns are {_some(sorted(have))}"
            )


def _row(candidate: Candidate) -> dict[str, object]:
    """Return a candidate as JSON. The key "derived" is the file format's name of a fitted
    column."""
    names = [
        "name",
        "rule",
        "meaning",
        "source",
        "missing",
        *(["mined"] if candidate.mined else []),
    ]
    row = {name: getattr(candidate, name) for name in names}
    column = candidate.fitted_column
    return row if column is None else row | {"derived": column.name}


def _read_candidates(data: dict[str, Any]) -> Iterator[Candidate]:
    derived = dict(data.get("derived", {}))
    columns = {name: FittedColumn.from_dict(column) for name, column in derived.items()}
    for row in data["candidates"]:
        settings = dict(row)
        name = settings.pop("derived", None)
        yield Candidate(**settings, fitted_column=None if name is None else columns[name])


def _some(names: Sequence[str], max_names: int = 12) -> str:
    listing = ", ".join(names[:max_names])
    return f"{listing}, ... ({len(names)} in all)" if len(names) > max_names else listing


def unique_names(candidates: Iterable[Candidate], reserved: Iterable[str] = ()) -> list[Candidate]:
    """Number the candidates whose name is in use, so that finders can be combined."""
    names_in_use = set(reserved)
    out = []
    for candidate in candidates:
        name, count = candidate.name, 2
        while name in names_in_use:
            name, count = f"{candidate.name} ({count})", count + 1
        names_in_use.add(name)
        out.append(candidate if name == candidate.name else replace(candidate, name=name))
    return out
