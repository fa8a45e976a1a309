"""lm-evaluation-harness by columns: rows as versions since 2024 write them, many at a time.

A chunk whose rows differ in their layout, or hold what only the reading row by row knows what to do
with, is not read here at all: the table is the same either way, and this one is made faster.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, islice, repeat
from math import exp
from operator import attrgetter, itemgetter
from types import GenericAlias
from typing import Annotated, Any, Literal, Protocol, TypeVar

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.core.status import Status
from groundfault.readers.log import COLUMNS, ORIGIN, as_columns, list_columns, make_series
from groundfault.readers.values import number, text

Table = tuple[pl.DataFrame, frozenset[str]]

_NUMBERS = {bool, int, float, type(None)}


class Run(Protocol):
    """What rows are read with beside what is in them."""

    task: str
    model: str

    def is_per_document(self, metric: str, value: Any) -> bool:
        """Return whether a metric is a number of each document; what is none is noted."""

    def name_example(self, doc: dict[str, Any], doc_id: Any) -> str:
        """Return the id of an example."""

    def is_fallback(self, answer: str | None, response: str | None) -> bool:
        """Return whether a filter found no answer."""


def read_columns(lines: Sequence[bytes], start: int, run: Run) -> Table | None:
    """Read the observations of some rows as a table, or None where they have to be read one by one.

    Parameters
    ----------
    lines : sequence of bytes
    start : int
        Number of the first row in the file, from 1.
    run : Run
        Is not changed where the result is None.
    """
    try:
        first = msgspec.json.decode(lines[0], type=AnsweredRow)
        is_choice = isinstance(first.filtered_resps, list) and len(first.filtered_resps) > 1
        parts = ChoiceParts() if is_choice else AnswerParts(run.is_fallback)
        heads = _take_rows(lines, first, parts)
        if heads is None:
            return None
        ids, docs, targets, *columns = heads
        values = dict(zip(first.metrics, columns, strict=True))
        scores = _read_scores(values)
        cells = parts.make_cells(scores, targets, first.filter != "none") if scores else None
        if cells is None:
            return None
        names = set(COLUMNS)
        positions = list(range(start, start + len(docs)))
        measurements = list_columns({"position": positions, **cells.measured}, names)
        attributes = as_columns(docs, names)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    for metric, column in values.items():
        run.is_per_document(metric, column[0])
    present = set(chain.from_iterable(docs))
    keys = [key for key in QUESTIONS if key in present]
    asked = zip(docs, cells.shared["prompt"], strict=True)
    cells.shared["prompt"] = [find_question(doc, prompt, keys) for doc, prompt in asked]
    cells.shared["example_id"] = list(map(run.name_example, docs, ids))
    suffix = "" if first.filter == "none" else f",{first.filter}"
    cells.each["scorer"] = [
        pl.Series([metric + suffix]).new_from_index(0, len(docs)) for metric in scores
    ]
    wide = pl.DataFrame([*attributes, *measurements])
    return _lay_out(cells, wide, run, len(scores)), frozenset(s.name for s in measurements)


def _take_rows(
    lines: Sequence[bytes], first: AnsweredRow, parts: AnswerParts | ChoiceParts
) -> list[Any] | None:
    """Return columns of ids, documents, targets and scores by each metric.

    The rest goes to the parts.

    None where not all rows are alike, as are those of one filter and the same metrics.
    """
    base = ChosenRow if isinstance(parts, ChoiceParts) else AnsweredRow
    own = {"bypass", *base.__struct_fields__}
    if not first.metrics or len(own.union(first.metrics)) < len(own) + len(first.metrics):
        return None
    decoder = _make_decoder(base, first.filter, tuple(first.metrics))
    pick = attrgetter("doc_id", "doc", "target", *map(_name_score, range(len(first.metrics))))
    heads = []
    for row in map(decoder.decode, lines):
        if not parts.take(row):
            return None
        heads.append(pick(row))
    return list(zip(*heads, strict=True))


@lru_cache(maxsize=8)
def _make_decoder(
    base: type[msgspec.Struct], filter: str, metrics: tuple[str, ...]
) -> msgspec.json.Decoder[Any]:
    """Return a decoder of the rows of one filter and these metrics, and of no others."""
    fields: list[Any] = [
        ("filter", Literal[filter]),
        ("metrics", GenericAlias(tuple, tuple(Literal[metric] for metric in metrics))),
    ]
    for i, metric in enumerate(metrics):
        fields.append((_name_score(i), Any, msgspec.field(name=metric, default=None)))
    row = msgspec.defstruct("Row", fields, bases=(base,), gc=False, kw_only=True)
    # not strict, for numbers in quotes
    return msgspec.json.Decoder(row, strict=False)


def _name_score(i: int) -> str:
    return f"score_{i}"


def _read_scores(values: dict[str, Sequence[Any]]) -> dict[str, pl.Series]:
    """Read scores by metric; none, where a metric is a number of some rows alone.

    What is no number of any row is a part of a metric of the whole task.
    """
    kinds = {metric: set(map(type, column)) for metric, column in values.items()}
    if any(types & _NUMBERS and types - _NUMBERS for types in kinds.values()):
        return {}
    return {
        metric: pl.Series(
            # a whole number may be beyond any float
            column if kinds[metric] <= {float, type(None)} else list(map(number, column)),
            dtype=pl.Float64,
        )
        for metric, column in values.items()
        if kinds[metric] <= _NUMBERS
    }


def _lay_out(cells: ScoreCells, wide: pl.DataFrame, run: Run, n_scores: int) -> pl.DataFrame:
    """Return the table, the scores of a row under one another."""
    rows = np.arange(wide.height, dtype=np.uint32)
    index = np.repeat(rows, n_scores)
    # of columns one after the other
    order = (rows[:, None] + wide.height * np.arange(n_scores, dtype=np.uint32)).ravel()
    same = {"task": run.task, "model": run.model, "epoch": 1, ORIGIN: None}
    columns = []
    for name, dtype in {**COLUMNS, ORIGIN: pl.String}.items():
        if name in cells.each:
            columns.append(pl.concat(cells.each[name]).gather(order).alias(name))
        elif name in cells.shared:
            columns.append(make_series(name, cells.shared[name], dtype).gather(index))
        else:
            value = pl.Series(name, [same.get(name)], dtype=dtype)
            columns.append(value.new_from_index(0, len(index)))
    return pl.DataFrame([*columns, *(column.gather(index) for column in wide)])


QUESTIONS = (
    "question", "Question", "problem", "query", "prompt", "instruction", "input", "question_stem",
    "goal", "sentence", "text", "premise",
)  # fmt: skip
"""Keys of a document that hold its question, the likeliest first."""

_ARGUMENTS = ("arg_0", "arg_1")


def read_argument(arguments: Any, request: int, which: int) -> str | None:
    """Read an argument of a request."""
    # {"gen_args_0": {"arg_0": ...}}, and lists of lists in files before 2024
    if isinstance(arguments, dict):
        own = arguments.get(f"gen_args_{request}")
        argument = own.get(_ARGUMENTS[which]) if isinstance(own, dict) else None
    else:
        try:
            argument = arguments[request][which]
        except (TypeError, IndexError, KeyError):
            return None
    if isinstance(argument, str):
        return argument
    # of a chat model the argument is a list with the whole conversation as one text of JSON
    return read_first(argument) if isinstance(argument, list) else None


def find_question(
    doc: dict[str, Any], prompt: str | None, keys: Sequence[str] = QUESTIONS
) -> str | None:
    """Return the question of the document where the prompt holds it, else the whole prompt.

    The prompt has few-shot examples and a template, which may differ between models that were asked
    the same question.
    """
    whole = prompt or ""
    for key in keys:
        question = doc.get(key)
        if (
            isinstance(question, str)
            and question.strip()
            and (question in whole or json.dumps(question)[1:-1] in whole)
        ):
            return question
    return prompt


def read_first(responses: Any) -> str | None:
    """Read the first response of the first request, however it is nested."""
    while isinstance(responses, list):
        if not responses:
            return None
        responses = responses[0]
    return text(responses)


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Scores = dict[str, pl.Series]
T = TypeVar("T")

# of a few words each is one object, and no text for every choice
_Greedy = Literal["False", "True", "false", "true"]
_STATUSES = [str(status) for status in (Status.SCORED, Status.MISSING, Status.UNPARSED)]
_WORD, _LOG = attrgetter("arg_1"), itemgetter(0)


class _Request(msgspec.Struct, gc=False):
    # a request without a context is made to normalise by, and is no choice
    arg_0: Annotated[str, msgspec.Meta(min_length=1)]
    arg_1: str


class AnsweredRow(msgspec.Struct, gc=False):
    """A row with an answer in words; its scores follow under names of their own."""

    doc_id: Any
    doc: dict[str, Any]
    filter: str
    metrics: list[str]
    filtered_resps: Any
    target: Any = None
    arguments: Any = None
    resps: Any = None


class ChosenRow(msgspec.Struct, gc=False):
    """A row of multiple choice; its scores follow under names of their own."""

    doc_id: Any
    doc: dict[str, Any]
    filter: str
    metrics: list[str]
    # log-likelihoods are in quotes, and read as numbers at once
    filtered_resps: list[tuple[float, _Greedy]]
    arguments: dict[str, _Request]
    target: Any = None


@dataclass
class ScoreCells:
    """Cells of a table: one for all scores of a row, or a column for each score."""

    shared: dict[str, list[Any]]
    each: dict[str, list[pl.Series]]
    measured: dict[str, list[Any]]


@dataclass
class AnswerParts:
    """Parts of rows with answers in words.

    Attributes
    ----------
    is_fallback : callable
        Whether a filter found no answer, which it was given, in a response.
    """

    is_fallback: Callable[[str | None, str | None], bool]
    prompts: list[str | None] = field(default_factory=list)
    responses: list[str | None] = field(default_factory=list)
    answers: list[str | None] = field(default_factory=list)

    def take(self, row: AnsweredRow) -> bool:
        """Take the parts of a row; false where it has to be read alone."""
        several = row.filtered_resps
        # several lists may be the log-likelihoods of choices
        if isinstance(several, list) and len(several) > 1:
            return False
        self.prompts.append(read_argument(row.arguments, 0, 0))
        self.responses.append(read_first(row.resps))
        self.answers.append(read_first(several))
        return True

    def make_cells(self, scores: Scores, targets: list[Any], is_filtered: bool) -> ScoreCells:
        """Return the cells of all rows that were taken."""
        lost = pl.Series(map(self.is_fallback, self.answers, self.responses), dtype=pl.Boolean)
        none = pl.Series([None], dtype=pl.Float64)
        values = [score.zip_with(~lost, none) for score in scores.values()]
        shared = {
            "prompt": self.prompts,
            "target": [text(target) for target in targets],
            "response": self.responses,
            "answer": self.answers,
        }
        each = {"value": values, "status": [_name_statuses(value, lost) for value in values]}
        return ScoreCells(shared, each, {"parsed": (~lost).to_list()} if is_filtered else {})


@dataclass
class ChoiceParts:
    """Parts of rows of multiple choice: words and log-likelihoods of all choices in a row."""

    prompts: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    logs: array[float] = field(default_factory=lambda: array("d"))

    def take(self, row: ChosenRow) -> bool:
        """Take the parts of a row; false where it has to be read alone."""
        pairs, requests = row.filtered_resps, row.arguments
        if len(pairs) < 2 or tuple(requests) != _name_requests(len(pairs)):
            return False
        self.prompts.append(requests["gen_args_0"].arg_0)
        self.sizes.append(len(pairs))
        self.words.extend(map(_WORD, requests.values()))
        self.logs.extend(map(_LOG, pairs))
        return True

    def make_cells(self, scores: Scores, targets: list[Any], _: bool) -> ScoreCells | None:
        """Return the cells of all rows that were taken.

        None where a log-likelihood is not finite.
        """
        logs, sizes, words = np.array(self.logs), self.sizes, self.words
        if not np.isfinite(logs).all():
            return None
        starts = np.cumsum([0, *sizes[:-1]])
        labels = _name_choices(words, starts, sizes)
        weights = _weigh(logs, starts, sizes)
        is_normed = [metric.startswith("acc_norm") for metric in scores]
        picks = {False: _find_largest(logs, starts, sizes)}
        if any(is_normed):
            lengths = np.array([len(word.removeprefix(" ")) or 1 for word in words])
            picks[True] = _find_largest(logs / lengths, starts, sizes)
        answers = {is_norm: pl.Series([labels[i] for i in at]) for is_norm, at in picks.items()}
        each = {
            "value": list(scores.values()),
            "status": [_name_statuses(score) for score in scores.values()],
            "answer": [answers[is_norm] for is_norm in is_normed],
            "logprob": [pl.Series(logs[picks[is_norm]]) for is_norm in is_normed],
            "confidence": [pl.Series(weights[picks[is_norm]]) for is_norm in is_normed],
        }
        named = [
            name_target(text(target), labels, start, size)
            for target, start, size in zip(targets, starts.tolist(), sizes, strict=True)
        ]
        return ScoreCells({"prompt": self.prompts, "target": named}, each, {})


@lru_cache
def _name_requests(count: int) -> tuple[str, ...]:
    return tuple(f"gen_args_{i}" for i in range(count))


def _name_statuses(score: pl.Series, lost: pl.Series | None = None) -> pl.Series:
    """Return the status of each score; those of lost answers are unparsed."""
    codes = score.is_null().cast(pl.UInt32)
    if lost is not None:
        codes = codes.set(lost, _STATUSES.index(Status.UNPARSED))
    return pl.Series(_STATUSES).gather(codes)


def _name_choices(words: list[str], starts: Ints, sizes: list[int]) -> list[str]:
    """Return the words of each choice, or its number where two of a question have the same."""
    labels = [word.strip() for word in words]
    distinct = map(len, map(set, _split(labels, sizes)))
    # with one continuation after several contexts, as in Winogrande, only numbers are distinct
    for i in np.flatnonzero(np.fromiter(distinct, int) < np.array(sizes)).tolist():
        labels[starts[i] : starts[i] + sizes[i]] = map(str, range(sizes[i]))
    return labels


def _split(values: Iterable[T], sizes: Iterable[int]) -> Iterator[Iterator[T]]:
    """Split values into so many at a time, by a list of sizes."""
    return map(islice, repeat(iter(values)), sizes)


def name_target(target: str | None, labels: Sequence[str], start: int, size: int) -> str | None:
    """Return the target; where it is the number of a choice, the choice's label."""
    if target is None or not target.isdecimal() or len(target) >= 6 or int(target) >= size:
        return target
    return labels[start + int(target)]


def _weigh(logs: Floats, starts: Ints, sizes: list[int]) -> Floats:
    """Return the share of each choice among those of its question, by softmax."""
    top = np.maximum.reduceat(logs, starts)
    # exp and sum of Python, not NumPy: the last digits are those of a row read alone
    weights = list(map(exp, (logs - np.repeat(top, sizes)).tolist()))
    totals = list(map(sum, _split(weights, sizes)))
    shares: Floats = np.array(weights) / np.repeat(totals, sizes)
    return shares


def _find_largest(scores: Floats, starts: Ints, sizes: list[int]) -> Ints:
    """Return the place of the first choice with the largest score of each question."""
    places = np.flatnonzero(scores == np.repeat(np.maximum.reduceat(scores, starts), sizes))
    return places[np.searchsorted(places, starts)]
