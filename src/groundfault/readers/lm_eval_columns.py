"""lm-evaluation-harness by columns: rows as versions since 2024 write them, many at a time.

A chunk whose rows differ in their layout, or hold what only the reading row by row knows what to do
with, is not read here at all: the table is the same either way, and this one is made faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from math import exp
from typing import Any, Literal, Protocol

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.core.status import Status
from groundfault.readers.lm_eval_parts import QUESTIONS, find_question, read_argument, read_first
from groundfault.readers.log import COLUMNS, ORIGIN, as_columns, make_series
from groundfault.readers.values import number, text

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Table = tuple[pl.DataFrame, frozenset[str]]

# of a few words each is one object, and no text for every choice
_Greedy = Literal["False", "True", "false", "true"]
# once, and not in every row
_SCORED, _MISSING, _UNPARSED = map(str, (Status.SCORED, Status.MISSING, Status.UNPARSED))
_NUMBERS = {bool, int, float, type(None)}


class _Request(msgspec.Struct, gc=False):
    arg_0: str
    arg_1: str


class _Answered(msgspec.Struct, gc=False):
    """A row with an answer in words; its scores follow under names of their own."""

    doc_id: Any
    doc: dict[str, Any]
    filter: str
    metrics: list[str]
    filtered_resps: Any
    target: Any = None
    arguments: Any = None
    resps: Any = None


class _Chosen(msgspec.Struct, gc=False):
    """A row of multiple choice; its scores follow under names of their own."""

    doc_id: Any
    doc: dict[str, Any]
    filter: str
    metrics: list[str]
    filtered_resps: list[tuple[str, _Greedy]]
    arguments: dict[str, _Request]
    target: Any = None


class Run(Protocol):
    """What rows are read with beside what is in them."""

    task: str
    model: str

    def is_per_document(self, metric: str, value: Any) -> bool:
        """Whether a metric is a number of each document; what is none is noted."""

    def name_example(self, doc: dict[str, Any], doc_id: Any) -> str:
        """The id of an example."""

    def is_fallback(self, answer: str | None, response: str | None) -> bool:
        """Whether a filter found no answer."""


@dataclass
class _Cells:
    """Cells of a table: one list for all scores of a row, or a list for each score."""

    shared: dict[str, list[Any]]
    each: dict[str, list[list[Any]]]
    measured: list[dict[str, Any]]


def read_columns(lines: Sequence[bytes], start: int, run: Run) -> Table | None:
    """The observations of some rows as a table, or None where they have to be read one by one.

    Parameters
    ----------
    lines : sequence of bytes
    start : int
        Number of the first row in the file, from 1.
    run : Run
        Is not changed where the result is None.
    """
    rows, metrics = _decode(lines)
    values = {m: [getattr(row, f"score_{i}") for row in rows] for i, m in enumerate(metrics)}
    kinds = {m: set(map(type, column)) for m, column in values.items()}
    # what is no number is a part of a metric of the whole task
    scores = {m: list(map(number, values[m])) for m in values if kinds[m] <= _NUMBERS}
    if not scores or any(types & _NUMBERS for m, types in kinds.items() if m not in scores):
        return None
    cells = _choose(rows, scores) if isinstance(rows[0], _Chosen) else _answer(rows, scores, run)
    if cells is None:
        return None
    docs, names = [row.doc for row in rows], set(COLUMNS)
    try:
        measurements = as_columns(
            [{"position": start + i, **more} for i, more in enumerate(cells.measured)], names
        )
        attributes = as_columns(docs, names)
    except RecursionError:
        return None
    for metric in metrics:
        run.is_per_document(metric, values[metric][0])
    present = set(chain.from_iterable(docs))
    keys = [key for key in QUESTIONS if key in present]
    asked = zip(docs, cells.shared["prompt"], strict=True)
    cells.shared["prompt"] = [find_question(doc, prompt, keys) for doc, prompt in asked]
    cells.shared["example_id"] = [run.name_example(row.doc, row.doc_id) for row in rows]
    suffix = "" if rows[0].filter == "none" else f",{rows[0].filter}"
    cells.each["scorer"] = [[metric + suffix] * len(rows) for metric in scores]
    wide = pl.DataFrame([*attributes, *measurements])
    return _lay_out(cells, wide, run, len(scores)), frozenset(s.name for s in measurements)


def _decode(lines: Sequence[bytes]) -> tuple[list[Any], tuple[str, ...]]:
    """The rows and their metrics; neither, where not all are alike."""
    try:
        first = msgspec.json.decode(lines[0], type=_Answered)
        is_choice = isinstance(first.filtered_resps, list) and len(first.filtered_resps) > 1
        metrics = tuple(first.metrics)
        base = _Chosen if is_choice else _Answered
        names = base.__struct_fields__
        if "bypass" in metrics or len(set(metrics)) < len(metrics) or set(metrics) & set(names):
            return [], ()
        rows = list(map(_decoder(base, metrics).decode, lines))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return [], ()
    is_alike = all(row.filter == first.filter and row.metrics == first.metrics for row in rows)
    return (rows, metrics) if is_alike else ([], ())


@lru_cache(maxsize=8)
def _decoder(base: type[msgspec.Struct], metrics: tuple[str, ...]) -> msgspec.json.Decoder[Any]:
    scores = [
        (f"score_{i}", Any, msgspec.field(name=metric, default=None))
        for i, metric in enumerate(metrics)
    ]
    return msgspec.json.Decoder(msgspec.defstruct("Row", scores, bases=(base,), gc=False))


def _answer(rows: list[Any], scores: dict[str, list[float | None]], run: Run) -> _Cells | None:
    """Cells of answers in words."""
    for row in rows:
        several = row.filtered_resps
        # several lists may be the log-likelihoods of choices
        if isinstance(several, list) and len(several) > 1:
            return None
    answers = [read_first(row.filtered_resps) for row in rows]
    responses = [read_first(row.resps) for row in rows]
    lost = [run.is_fallback(a, r) for a, r in zip(answers, responses, strict=True)]
    shared = {
        "prompt": [read_argument(row.arguments, 0, 0) for row in rows],
        "target": [text(row.target) for row in rows],
        "response": responses,
        "answer": answers,
    }
    values = [
        [None if gone else v for gone, v in zip(lost, column, strict=True)]
        for column in scores.values()
    ]
    statuses = [
        [
            _UNPARSED if gone else _MISSING if v is None else _SCORED
            for gone, v in zip(lost, column, strict=True)
        ]
        for column in values
    ]
    is_filtered = rows[0].filter != "none"
    measured = [{"parsed": not gone} if is_filtered else {} for gone in lost]
    return _Cells(shared, {"value": values, "status": statuses}, measured)


def _choose(rows: list[Any], scores: dict[str, list[float | None]]) -> _Cells | None:
    """Cells of multiple choice."""
    sizes = [len(row.filtered_resps) for row in rows]
    expected = {n: tuple(f"gen_args_{i}" for i in range(n)) for n in set(sizes)}
    requests = list(chain.from_iterable(row.arguments.values() for row in rows))
    pairs = list(chain.from_iterable(row.filtered_resps for row in rows))
    if (
        min(sizes) < 2
        or any(tuple(r.arguments) != expected[n] for r, n in zip(rows, sizes, strict=True))
        # a request without a context is made to normalise by, and is no choice
        or "" in {request.arg_0 for request in requests}
    ):
        return None
    numbers = pl.Series([log for log, _ in pairs], dtype=pl.String).cast(pl.Float64, strict=False)
    if numbers.null_count() or not numbers.is_finite().all():
        return None
    logs = numbers.to_numpy()
    words = [request.arg_1 for request in requests]
    labels = _name_choices(words, sizes)
    starts = np.cumsum([0, *sizes[:-1]])
    weights = _weigh(logs, starts, sizes)
    lengths = np.array([len(word.removeprefix(" ")) or 1 for word in words])
    taken = {
        norm: _find_largest(logs / lengths if norm else logs, starts, sizes)
        for norm in {metric.startswith("acc_norm") for metric in scores}
    }
    picks = [taken[metric.startswith("acc_norm")] for metric in scores]
    first = starts.tolist()
    targets = [
        _name_target(text(row.target), labels[a : a + n])
        for row, a, n in zip(rows, first, sizes, strict=True)
    ]
    each: dict[str, list[list[Any]]] = {
        "value": list(scores.values()),
        "status": [
            [_MISSING if v is None else _SCORED for v in column] for column in scores.values()
        ],
        "answer": [[labels[i] for i in pick.tolist()] for pick in picks],
        "logprob": [logs[pick].tolist() for pick in picks],
        "confidence": [weights[pick].tolist() for pick in picks],
    }
    shared = {"prompt": [requests[a].arg_0 for a in first], "target": targets}
    return _Cells(shared, each, [{}] * len(rows))


def _name_choices(words: list[str], sizes: list[int]) -> list[str]:
    """The words of each choice, or its number where two choices of a question have the same."""
    labels, start = [word.strip() for word in words], 0
    for n in sizes:
        # with one continuation after several contexts, as in Winogrande, only numbers are distinct
        if len(set(labels[start : start + n])) < n:
            labels[start : start + n] = map(str, range(n))
        start += n
    return labels


def _name_target(target: str | None, labels: list[str]) -> str | None:
    """The target; where it is the number of a choice, the choice's label."""
    if target is None or not target.isdecimal() or len(target) >= 6 or int(target) >= len(labels):
        return target
    return labels[int(target)]


def _weigh(logs: Floats, starts: Ints, sizes: list[int]) -> Floats:
    """The share of each choice among those of its question, by softmax."""
    top = np.maximum.reduceat(logs, starts)
    # exp and sum of Python, not NumPy: the last digits are those of a row read alone
    weights = list(map(exp, (logs - np.repeat(top, sizes)).tolist()))
    totals = [sum(weights[a : a + n]) for a, n in zip(starts.tolist(), sizes, strict=True)]
    shares: Floats = np.array(weights) / np.repeat(totals, sizes)
    return shares


def _find_largest(scores: Floats, starts: Ints, sizes: list[int]) -> Ints:
    """Of each question the place of the first choice with the largest score."""
    places = np.flatnonzero(scores == np.repeat(np.maximum.reduceat(scores, starts), sizes))
    return places[np.searchsorted(places, starts)]


def _lay_out(cells: _Cells, wide: pl.DataFrame, run: Run, n_scores: int) -> pl.DataFrame:
    """The table, the scores of a row under one another."""
    index = pl.Series(np.repeat(np.arange(wide.height, dtype=np.uint32), n_scores))
    same = {"task": run.task, "model": run.model, "epoch": 1, ORIGIN: None}
    columns = []
    for name, dtype in {**COLUMNS, ORIGIN: pl.String}.items():
        if name in cells.each:
            values = chain.from_iterable(zip(*cells.each[name], strict=True))
            columns.append(make_series(name, list(values), dtype))
        elif name in cells.shared:
            columns.append(make_series(name, cells.shared[name], dtype).gather(index))
        else:
            value = pl.Series(name, [same.get(name)], dtype=dtype)
            columns.append(value.new_from_index(0, len(index)))
    return pl.DataFrame([*columns, *(column.gather(index) for column in wide)])
