"""Logs as readers return them: observations in one vocabulary for all tools."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass, field
from itertools import chain, groupby, islice
from operator import attrgetter, itemgetter, methodcaller
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.core.column_meaning import TRANSCRIPT
from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.readers.account import OfficialFigure
from groundfault.readers.safely import pause_collection

COLUMNS: dict[str, type[pl.DataType]] = {
    "example_id": pl.String,
    "task": pl.String,
    "model": pl.String,
    "epoch": pl.Int64,
    "scorer": pl.String,
    "value": pl.Float64,
    "status": pl.String,
    "group": pl.String,
    "prompt": pl.String,
    "response": pl.String,
    "answer": pl.String,
    "target": pl.String,
    "confidence": pl.Float64,
    "logprob": pl.Float64,
}
"""The columns that every log is read into, in addition to the attributes of its examples."""

ORIGIN, RUN = "__origin__", "__run__"
"""Columns, only while logs are merged: the answer of a row, and the run of its log."""

WORDING = "__wording__"
"""Column, only while logs are merged: the source of a row's wording, if ids do not fix it."""

OURS = "groundfault"
"""The key under which exports write findings into logs; never read as an attribute of examples."""

Rows = Sequence[Mapping[str, Any]]
Columns = dict[str, list[Any]]
"""Attributes of examples or answers, or their measurements, row by row or by name."""

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)

# rows of a table whose Python objects are in memory at once, and rows that are packed together
CHUNK = 50_000
# a log with more is most likely a mapping keyed by id where a list should be
_MAX_ATTRIBUTES = 2_000
_NUMBERS = {int, float}
_PLAIN = {str, int, float, bool, type(None)}
_CELLS = COLUMNS | {ORIGIN: pl.String, TRANSCRIPT: pl.Int64}
_READ_CELLS = attrgetter(*COLUMNS, "origin", "transcript", "attributes", "measured")
_ENCODE = json.JSONEncoder(ensure_ascii=False, default=str).encode
_encode, _spell = msgspec.json.Encoder().encode, msgspec.json.format


class Observation(msgspec.Struct):
    """One score of one answer of one model to one example, or the reason for no score.

    Attributes
    ----------
    example_id : str
        Stable from run to run: the id in the log, or the position if the log has no ids.
    value : float, optional
        1 is right, 0 is wrong, values between are partly right; None for an unscored answer. A
        scorer with another range is read unchanged; importing then asks for ``scale``.
    status : str
        A `Status`. ``error`` is a failure of the evaluation; ``unparsed`` means that the scorer
        found no answer in the output.
    scorer, model, task : str
        The scorer and its metric, the model that answered, and the benchmark of the example.
    epoch : int
        Number of this answer among the model's answers to the same example, from 1.
    group : str, optional
        Group of dependent examples, such as variants of one question.
    prompt, response, answer, target : str, optional
        The question; the model's whole output; the answer extracted from it; the expected answer.
    confidence, logprob : float, optional
        Probability in [0, 1], or natural-log probability, that the model gave its answer.
    attributes : mapping
        Attributes of the example. Nested mappings become ``outer_inner``; lists become JSON.
    measured : mapping
        Attributes of this answer or its measurement: tokens, finish reason, grader, seconds,
        position.
    origin : str, optional
        The tool's own id of this answer, else of its run: a copy has the same origin, another run a
        different one. Left out if the log gives no id; the log's content is then the origin.
    transcript : int, optional
        The number of this conversation in the reader's ``read_conversations``.
    """

    example_id: str
    value: float | None = None
    status: str = Status.SCORED
    scorer: str = ""
    model: str = ""
    task: str = ""
    epoch: int = 1
    group: str | None = None
    prompt: str | None = None
    response: str | None = None
    answer: str | None = None
    target: str | None = None
    confidence: float | None = None
    logprob: float | None = None
    attributes: Mapping[str, object] = {}
    measured: Mapping[str, object] = {}
    origin: str | None = None
    transcript: int | None = None

    def rescore(self, scorer: str, value: float | None, status: str) -> Observation:
        """Return the same answer with the score of another scorer."""
        other = copy(self)
        other.scorer, other.value, other.status = scorer, value, status
        return other


@dataclass
class Log:
    """One log, read during iteration.

    Attributes
    ----------
    observations : iterable of Observation
    harness : str
        The tool that wrote it and its version, such as ``inspect_ai 0.3.285``.
    notes : list of str
        Remarks for the account, such as a run that was cut short; complete once the observations
        have been read to the end.
    verdict : str
        The tool's main scorer, if it has several: its pass or fail, or its main metric. It is the
        outcome unless you choose another.
    first_leads : bool
        Whether the order of the tool's scorers has a meaning: without a verdict, the first scorer
        of the observations is then the outcome.
    beside : list of Path
        Other files read with the log, such as a file of its passes; complete when notes are.
    run : str
        Name that a run shares with its retries, if the tool retries runs.
    settings : mapping
        Arguments of the task and of the model. Logs of one model with different settings are two
        configurations.
    rewords : bool
        Whether models may have been asked the same example in other words, as by two prompts.
    official : OfficialFigure, optional
        The tool's own count, if the log states it; complete when notes are.
    """

    observations: Iterable[Observation]
    harness: str = ""
    notes: list[str] = field(default_factory=list)
    verdict: str = ""
    first_leads: bool = False
    run: str = ""
    beside: list[Path] = field(default_factory=list)
    settings: Mapping[str, object] = field(default_factory=dict)
    rewords: bool = False
    official: OfficialFigure | None = None

    def tables(self) -> Iterator[tuple[pl.DataFrame, frozenset[str]]]:
        """Yield the observations as tables of up to 50,000 rows, with their measured columns."""
        # in chunks, so that a log larger than memory's worth of Python objects can be read
        rows = iter(self.observations)
        while table := _read_chunk(rows):
            yield table

    def find_headline(self, scorers: Sequence[str]) -> str:
        """Return the tool's own choice among scorers, in the order of the log, or ""."""
        if self.verdict in scorers:
            return self.verdict
        return scorers[0] if self.first_leads and scorers else ""


@dataclass
class TableLog(Log):
    """A log given as a table, with the columns of `COLUMNS` and further columns.

    Attributes
    ----------
    frame : polars.DataFrame
    measured : frozenset of str
        The further columns that describe the answer, not the example.
    """

    observations: Iterable[Observation] = ()
    frame: pl.DataFrame = field(default_factory=pl.DataFrame)
    measured: frozenset[str] = frozenset()

    def tables(self) -> Iterator[tuple[pl.DataFrame, frozenset[str]]]:
        """Return the one table."""
        yield self.frame, self.measured


def _read_chunk(rows: Iterator[Observation]) -> tuple[pl.DataFrame, frozenset[str]] | None:
    """Read the next rows as a table; None after the last."""
    with pause_collection():
        chunk = list(islice(rows, CHUNK))
        return _make_table(chunk) if chunk else None


def _make_table(rows: list[Observation]) -> tuple[pl.DataFrame, frozenset[str]]:
    """Return observations as a table, and the names of its measured columns."""
    *cells, attributes, measured = zip(*map(_READ_CELLS, rows), strict=True)
    return make_table(dict(zip(_CELLS, cells, strict=True)), attributes, measured)


def make_table(
    cells: Mapping[str, Sequence[object]],
    attributes: Rows | Columns,
    measured: Rows | Columns,
    index: NDArray[np.int64] | None = None,
    scores: Mapping[str, Any] | None = None,
) -> tuple[pl.DataFrame, frozenset[str]]:
    """Return answers as a table, and the names of its measured columns.

    Parameters
    ----------
    cells : mapping
        Columns of `COLUMNS` with a value for each answer; others are empty.
    attributes, measured : sequence of mapping, or mapping of lists
        Of each answer, or by name.
    index : array of int, optional
        For each row of the table the number of its answer; otherwise each answer is a row.
    scores : mapping, optional
        Columns of `COLUMNS` with a value for each row of the table.
    """
    blank = [None] * len(cells["example_id"])
    columns = [make_series(n, list(cells.get(n, blank)), dtype) for n, dtype in _CELLS.items()]
    if columns[-1].null_count() == len(blank):
        columns.pop()
    names = {column.name for column in columns}
    with _refuse_depth(cells["example_id"][0]):
        measurements = _as_columns(measured, names)
        columns += [*_as_columns(attributes, names), *measurements]
    table = pl.DataFrame(columns)
    if index is not None:
        own = [make_series(n, values, COLUMNS[n]) for n, values in (scores or {}).items()]
        table = table[pl.Series(index, dtype=pl.UInt32)].with_columns(own)
    return table, frozenset(s.name for s in measurements)


@contextmanager
def _refuse_depth(example: object) -> Iterator[None]:
    try:
        yield
    except RecursionError:
        place = f"{example!r} or an example after it"
        raise InputError(f"something about {place} is nested too deeply") from None


def add_columns(columns: Columns, examples: list[str], rows: Rows) -> None:
    """Add mappings to columns by name, whose values are those of the examples before."""
    with _refuse_depth(examples[-len(rows)]):
        new = _read_plain(rows) or _read_nested(rows)
    for name in dict.fromkeys((*columns, *new)):
        column = columns.setdefault(name, [None] * (len(examples) - len(rows)))
        column += new.get(name) or [None] * len(rows)
    _check_names(columns)


def _as_columns(rows: Rows | Columns, names: set[str]) -> list[pl.Series]:
    """Return mappings as columns; a name in use gets ``_given`` at its end.

    The names are added to ``names``.
    """
    if isinstance(rows, dict):
        values = rows
    else:
        # scores of one answer share its attributes, which are read once
        places = {id(row): row for row in rows}
        distinct = list(places.values())
        if len(distinct) < len(rows):
            numbers = dict(zip(places, range(len(distinct)), strict=True))
            index = pl.Series([numbers[id(row)] for row in rows], dtype=pl.UInt32)
            return [column.gather(index) for column in _as_columns(distinct, names)]
        values = _read_plain(rows) or _read_nested(rows)
    columns = []
    for name, column in values.items():
        if name == OURS or name.startswith(f"{OURS}_"):
            continue
        free = name or "_"
        while free in names:
            free += "_given"
        names.add(free)
        columns.append(_series(free, column))
    return columns


def _read_plain(rows: Rows) -> Columns | None:
    """Read values by name; return None for nested mappings, many names or unusual names."""
    names = dict.fromkeys(chain.from_iterable(rows))
    if len(names) > _MAX_ATTRIBUTES or not all(isinstance(n, str) and n.isascii() for n in names):
        return None
    same = set(map(len, rows)) == {len(names)}  # then each row has each name
    values = {n: list(map(itemgetter(n) if same else methodcaller("get", n), rows)) for n in names}
    kinds = {name: set(map(type, column)) for name, column in values.items()}
    if any(issubclass(kind, Mapping) for kind in set().union(*kinds.values())):
        return None
    return {n: _write(v, {list}) if kinds[n] == {list} else v for n, v in values.items()}


def _read_nested(rows: Rows) -> Columns:
    """Read values by name, with a nested mapping's values after the outer ones."""
    values: dict[str, list[object]] = {}
    for i, row in enumerate(rows):
        for key, value in row.items():
            column = values.get(key)
            # the common case, without recursion: this loop sees every attribute of every row
            if column is not None and type(value) in _PLAIN:
                column[i] = value
                continue
            for name, inner in _flat({key: value}):
                if name not in values:
                    values[name] = [None] * len(rows)
                    _check_names(values)
                values[name][i] = inner
    return values


def _check_names(values: Mapping[str, object]) -> None:
    if len(values) > _MAX_ATTRIBUTES:
        many = f"over {_MAX_ATTRIBUTES} attributes, the last {[*values][-1]!r}"
        raise InputError(f"its examples have {many}")


def _flat(row: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in row.items():
        name = prefix + _clean(str(key))
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}_")
        else:
            yield name, value


def _series(name: str, values: list[Any]) -> pl.Series:
    kinds = set(map(type, values)) - {type(None)}
    if kinds <= {bool}:
        return pl.Series(name, values, dtype=pl.Boolean)
    if kinds == {int} and all(v is None or abs(v) < 2**63 for v in values):
        return pl.Series(name, values, dtype=pl.Int64)
    if kinds <= _NUMBERS:
        try:
            numbers = [None if v is None or math.isnan(v) else float(v) for v in values]
            return pl.Series(name, numbers, dtype=pl.Float64)
        except OverflowError:  # a whole number beyond any float becomes text, its digits
            pass
    return make_series(name, values if kinds == {str} else _write(values, kinds), pl.String)


def make_series(name: str, values: list[Any], dtype: Any) -> pl.Series:
    """Return values of one type, or None, as a column."""
    if type(values) is list and len(values) > 1 and values.count(values[0]) == len(values):
        return make_series(name, values[:1], dtype).new_from_index(0, len(values))
    try:
        return pl.Series(name, values, dtype=dtype, strict=False)
    except UnicodeEncodeError:
        return pl.Series(name, [_clean(value) for value in values], dtype=dtype, strict=False)


def _write(values: list[Any], kinds: set[type]) -> list[str | None]:
    """Write values as texts: texts unchanged, other values as JSON."""
    if kinds == {list} and set(map(type, chain.from_iterable(v or () for v in values))) == {str}:
        # of lists of texts alone msgspec writes the same, all at once in a tenth of the time
        with suppress(UnicodeEncodeError):
            lists = [v for v in values if v is not None]
            texts = _spell(_encode(lists), indent=0).decode()[2:-2].split("], [")
            if len(texts) == len(lists):  # no text has these signs in it
                left = iter(texts)
                return [v if v is None else f"[{next(left)}]" for v in values]
    return [v if v is None or isinstance(v, str) else _ENCODE(v) for v in values]


def _clean(value: object) -> Any:
    """Return text without halves of surrogate pairs, which are no characters.

    A table cannot hold them.
    """
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "replace").decode()
    return value


class PackedRows:
    """Tables to stack at the end, which take a tenth of their memory until then.

    Rows of all scorers repeat the texts of an answer, and only a few columns are read at once. So
    the rows are kept as Parquet files in memory, which polars reads by parts and columns.
    """

    def __init__(self) -> None:
        self._packed: list[tuple[pl.Schema, bytes]] = []
        self._open: list[pl.DataFrame] = []
        self._types: dict[str, set[object]] = {}

    def add(self, frame: pl.DataFrame) -> None:
        """Put a table under those before it."""
        _note_types(self._types, frame)
        # only tables of the same columns become one: numbers are not to become text on the way
        if self._open and self._open[0].schema != frame.schema:
            self._pack()
        self._open.append(frame)
        if sum(table.height for table in self._open) >= CHUNK:
            self._pack()

    def stack(self) -> pl.LazyFrame:
        """Return all rows in the order in which they came; see `stack` for their types."""
        self._pack()
        # files with the same columns are read as one, so any part can be read without the rest
        groups = groupby(self._packed, itemgetter(0))
        scans = [pl.scan_parquet([file for _, file in group]) for _, group in groups]
        return _concatenate(scans, self._types)

    def _pack(self) -> None:
        if not self._open:
            return
        table, stream = pl.concat(self._open), io.BytesIO()
        self._open.clear()
        table.write_parquet(stream, compression_level=1)
        self._packed.append((table.schema, stream.getvalue()))

    def __bool__(self) -> bool:
        return bool(self._packed or self._open)


def stack(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """Return tables one under the other.

    A column with several types is numeric if all are, else text.

    The type of a column without values is ignored.

    Notes
    -----
    Tables read in parts equal tables read whole, with one exception. If a column has words in a
    later part, numbers of an earlier part become text with that part's types: a 2 beside fractions
    becomes 2.0, and 0.00001 has no exponent.
    """
    types: dict[str, set[Any]] = {}
    for frame in frames:
        _note_types(types, frame)
    return _concatenate(frames, types)


def _note_types(types: dict[str, set[object]], frame: pl.DataFrame) -> None:
    for column in frame:
        kinds = types.setdefault(column.name, set())
        if column.null_count() < len(column):
            kinds.add(column.dtype)


def _concatenate(frames: Iterable[Frame], types: dict[str, set[object]]) -> Frame:
    common = {name: _find_common(kinds) for name, kinds in types.items() if kinds}
    alike = []
    for frame in frames:
        others = [n for n, t in frame.collect_schema().items() if common.get(n, t) != t]
        alike.append(frame.with_columns(pl.col(n).cast(common[n]) for n in others))
    return pl.concat(alike, how="diagonal_relaxed")


def _find_common(kinds: set[Any]) -> Any:
    if len(kinds) == 1:
        return next(iter(kinds))
    return pl.Float64 if all(kind.is_numeric() for kind in kinds) else pl.String
