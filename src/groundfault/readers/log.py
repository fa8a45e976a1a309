"""Logs as readers return them: observations in one vocabulary, whatever tool wrote the log."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from itertools import chain, groupby, islice
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import polars as pl

from groundfault.core.conversations import TRANSCRIPT
from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.readers.account import OfficialFigure
from groundfault.readers.safely import pause_collection

COLUMNS: dict[str, Any] = {
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
"""The columns every log is read into, beside the attributes of its examples."""

ORIGIN, RUN = "__origin__", "__run__"
"""Columns, only while logs are merged: which answer a row is of, and which run its log is of."""

WORDING = "__wording__"
"""Column, only while logs are merged: in whose words a row asks, where ids are not of words."""

OURS = "groundfault"
"""The key under which exports write findings into logs; never read as an attribute of examples."""

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)

# rows of a table whose Python objects are in memory at once, and rows that are packed together
_CHUNK = 50_000
# a log with more is most likely a mapping keyed by id where a list should be
_MAX_ATTRIBUTES = 2_000
_NUMBERS = {int, float}
_PLAIN = {str, int, float, bool, type(None)}
_CELLS = attrgetter(*COLUMNS)
_ENCODE = json.JSONEncoder(ensure_ascii=False, default=str).encode
_QUOTE = json.encoder.encode_basestring


class Observation(msgspec.Struct):
    """One score of one answer of one model to one example, or the reason why there is none.

    Attributes
    ----------
    example_id : str
        Stable from run to run: the id that the log gives, never a position where there is an id.
    value : float, optional
        1 is right, 0 is wrong, between them partly right; None where the answer was not scored. A
        scorer of another range is read as it is; importing then asks for ``scale``.
    status : str
        A `Status`. ``error`` is a failure of the evaluation, ``unparsed`` an answer in which the
        scorer found none.
    scorer, model, task : str
        Who scored it by what metric, who answered, and which benchmark the example is from.
    epoch : int
        Which of several answers of the model to the same example, from 1.
    group : str, optional
        Examples that depend on each other, such as variants of one question.
    prompt, response, answer, target : str, optional
        The question; the model's whole output; the answer extracted from it; the expected answer.
    confidence, logprob : float, optional
        Probability in [0, 1], or natural-log probability, that the model gave its answer.
    attributes : mapping
        What describes the example. Nested mappings become ``outer_inner``; lists become JSON.
    measured : mapping
        What describes this answer or its measurement: tokens, finish reason, grader, seconds,
        position.
    origin : str, optional
        The tool's own id of this answer, else of the run that gave it: a copy has the same, another
        run another. Left out where the log gives none; the log's content then stands for it.
    transcript : int, optional
        The number under which the reader's ``read_conversations`` gives what was said and done.
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
    attributes: Mapping[str, Any] = {}
    measured: Mapping[str, Any] = {}
    origin: str | None = None
    transcript: int | None = None

    def rescore(self, scorer: str, value: float | None, status: str) -> Observation:
        """Return the same answer with the score of another scorer."""
        other = copy(self)
        other.scorer, other.value, other.status = scorer, value, status
        return other


@dataclass
class Log:
    """One log, read as it is iterated over.

    Attributes
    ----------
    observations : iterable of Observation
    harness : str
        The tool that wrote it and its version, such as ``inspect_ai 0.3.285``.
    notes : list of str
        Remarks for the account, such as a run that was cut short; complete once the observations
        have been read to the end.
    verdict : str
        The scorer whose score the tool itself takes for the result, where it scores by several and
        has such a one: its pass or fail, or its main metric. It is the outcome unless another is
        chosen.
    first_leads : bool
        Whether the tool lists its scorers in an order that means something: where there is no
        verdict among them, it is then the first that the observations have.
    beside : list of Path
        Other files that were read with it, such as one of its passes; complete as notes are.
    run : str
        What a second try of the same run has in common with the first, where the tool tries again.
    settings : mapping
        How the model was set up: arguments of the task and of the model. Logs of one model that
        differ in them are of two configurations.
    rewords : bool
        Whether models may have been asked the same example in other words, as by two prompts.
    official : OfficialFigure, optional
        What the tool itself counts, where the log says so; complete as notes are.
    """

    observations: Iterable[Observation]
    harness: str = ""
    notes: list[str] = field(default_factory=list)
    verdict: str = ""
    first_leads: bool = False
    run: str = ""
    beside: list[Path] = field(default_factory=list)
    settings: Mapping[str, Any] = field(default_factory=dict)
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
    """A log that came as a table, in the columns of `COLUMNS` and those of its own.

    Attributes
    ----------
    frame : polars.DataFrame
    measured : frozenset of str
        The columns of its own that describe the answer, not the example.
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
        chunk = list(islice(rows, _CHUNK))
        return _make_table(chunk) if chunk else None


def _make_table(rows: list[Observation]) -> tuple[pl.DataFrame, frozenset[str]]:
    """Return observations as a table, and the names of its measured columns."""
    try:
        cells = zip(*map(_CELLS, rows), strict=True)
        columns = [
            _make_series(name, list(values), dtype)
            for (name, dtype), values in zip(COLUMNS.items(), cells, strict=True)
        ]
        columns.append(pl.Series(ORIGIN, [row.origin for row in rows], dtype=pl.String))
        names = set(COLUMNS)
        numbers = [row.transcript for row in rows]
        if any(number is not None for number in numbers):
            columns.append(pl.Series(TRANSCRIPT, numbers, dtype=pl.Int64))
            names.add(TRANSCRIPT)
        measurements = _as_columns([row.measured for row in rows], names)
        attributes = _as_columns([row.attributes for row in rows], names)
    except RecursionError:
        raise InputError(
            f"something about {rows[0].example_id!r} or an example after it is nested too deeply"
        ) from None
    return pl.DataFrame([*columns, *attributes, *measurements]), frozenset(
        s.name for s in measurements
    )


def _as_columns(rows: list[Mapping[str, Any]], names: set[str]) -> list[pl.Series]:
    """Return mappings as columns; a name that another column has gets ``_given`` at its end.

    The names are added to ``names``.
    """
    # scores of one answer share what describes it, which is looked at once
    places = {id(row): row for row in rows}
    distinct = list(places.values())
    if len(distinct) < len(rows):
        numbers = dict(zip(places, range(len(distinct)), strict=True))
        index = pl.Series([numbers[id(row)] for row in rows], dtype=pl.UInt32)
        return [column.gather(index) for column in _as_columns(distinct, names)]
    columns = []
    for name, column in (_read_plain(rows) or _read_nested(rows)).items():
        if name == OURS or name.startswith(f"{OURS}_"):
            continue
        free = name or "_"
        while free in names:
            free += "_given"
        names.add(free)
        columns.append(_series(free, column))
    return columns


def _read_plain(rows: list[Mapping[str, Any]]) -> dict[str, list[Any]] | None:
    """Read values by name where no mapping is in another, and every name is a table's.

    Else None.
    """
    names = dict.fromkeys(chain.from_iterable(rows))
    if len(names) > _MAX_ATTRIBUTES or not all(isinstance(n, str) and n.isascii() for n in names):
        return None
    values = {name: [row.get(name) for row in rows] for name in names}
    kinds = set(chain.from_iterable(set(map(type, column)) for column in values.values()))
    return None if any(issubclass(kind, Mapping) for kind in kinds) else values


def _read_nested(rows: list[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Read values by name, that of a mapping in another after the other's."""
    values: dict[str, list[Any]] = {}
    for i, row in enumerate(rows):
        for key, value in row.items():
            column = values.get(key)
            # the common case, without recursion: this loop sees every attribute of every row
            if column is not None and type(value) in _PLAIN:
                column[i] = value
                continue
            for name, inner in _flat({key: value}):
                if name not in values:
                    if len(values) >= _MAX_ATTRIBUTES:
                        many = f"over {_MAX_ATTRIBUTES} attributes, the last {name!r}"
                        raise InputError(f"its examples have {many}")
                    values[name] = [None] * len(rows)
                values[name][i] = inner
    return values


def _flat(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
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
    return _make_series(name, values if kinds == {str} else _write(values, kinds), pl.String)


def _make_series(name: str, values: list[Any], dtype: Any) -> pl.Series:
    """Return values of one type, or None, as a column."""
    try:
        return pl.Series(name, values, dtype=dtype, strict=False)
    except UnicodeEncodeError:
        return pl.Series(name, [_clean(value) for value in values], dtype=dtype, strict=False)


def _write(values: list[Any], kinds: set[type]) -> list[str | None]:
    """Write values as texts: a text as it is, anything else as JSON."""
    if kinds == {list}:
        # the same, in a third of the time, for lists of texts alone: quoting takes nothing else
        with suppress(TypeError):
            return [v if v is None else f"[{', '.join(map(_QUOTE, v))}]" for v in values]
    return [v if v is None or isinstance(v, str) else _ENCODE(v) for v in values]


def _clean(value: Any) -> Any:
    """Return text without halves of surrogate pairs, which are no characters.

    A table cannot hold them.
    """
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "replace").decode()
    return value


class PackedRows:
    """Tables that are stacked at the end, and take a tenth of their memory until then.

    Rows of all scorers repeat the texts of an answer, and few of their columns are ever read at
    once. So many rows are kept as Parquet files in memory, which polars reads by parts and columns.
    """

    def __init__(self) -> None:
        self._packed: list[tuple[pl.Schema, bytes]] = []
        self._open: list[pl.DataFrame] = []
        self._types: dict[str, set[Any]] = {}

    def add(self, frame: pl.DataFrame) -> None:
        """Put a table under those before it."""
        _note_types(self._types, frame)
        # only tables of the same columns become one: numbers are not to become text on the way
        if self._open and self._open[0].schema != frame.schema:
            self._pack()
        self._open.append(frame)
        if sum(table.height for table in self._open) >= _CHUNK:
            self._pack()

    def stack(self) -> pl.LazyFrame:
        """Return all rows in the order in which they came; see `stack` for their types."""
        self._pack()
        # files of the same columns are read as one: any part of it is then found without the others
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

    A column of several types is numeric if all are, else text.

    The type of a column without a value says nothing.

    Notes
    -----
    Tables read in parts are those read whole but for one thing: where a column has words in a later
    part, numbers of an earlier one are written as the numbers of that part, a 2 beside fractions
    as 2.0 and a 0.00001 without an exponent.
    """
    types: dict[str, set[Any]] = {}
    for frame in frames:
        _note_types(types, frame)
    return _concatenate(frames, types)


def _note_types(types: dict[str, set[Any]], frame: pl.DataFrame) -> None:
    for column in frame:
        kinds = types.setdefault(column.name, set())
        if column.null_count() < len(column):
            kinds.add(column.dtype)


def _concatenate(frames: Iterable[Frame], types: dict[str, set[Any]]) -> Frame:
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
