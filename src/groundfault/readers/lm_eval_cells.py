"""Rows of lm-evaluation-harness as cells: what is taken of each row as soon as it is decoded.

The rest of a row, such as the context of every choice, is then free again: to keep all rows until
their columns are made takes half as long again.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice, repeat
from math import exp
from operator import attrgetter, itemgetter
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.core.status import Status
from groundfault.readers.lm_eval_parts import read_argument, read_first
from groundfault.readers.values import text

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
        """The cells of all rows that were taken."""
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
        """The cells of all rows that were taken; none where a log-likelihood is not finite."""
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
            _name_target(text(target), labels, start, size)
            for target, start, size in zip(targets, starts.tolist(), sizes, strict=True)
        ]
        return ScoreCells({"prompt": self.prompts, "target": named}, each, {})


@lru_cache
def _name_requests(count: int) -> tuple[str, ...]:
    return tuple(f"gen_args_{i}" for i in range(count))


def _name_statuses(score: pl.Series, lost: pl.Series | None = None) -> pl.Series:
    """The status of each score; those of lost answers are unparsed."""
    codes = score.is_null().cast(pl.UInt32)
    if lost is not None:
        codes = codes.set(lost, _STATUSES.index(Status.UNPARSED))
    return pl.Series(_STATUSES).gather(codes)


def _name_choices(words: list[str], starts: Ints, sizes: list[int]) -> list[str]:
    """The words of each choice, or its number where two choices of a question have the same."""
    labels = [word.strip() for word in words]
    distinct = map(len, map(set, _split(labels, sizes)))
    # with one continuation after several contexts, as in Winogrande, only numbers are distinct
    for i in np.flatnonzero(np.fromiter(distinct, int) < np.array(sizes)).tolist():
        labels[starts[i] : starts[i] + sizes[i]] = map(str, range(sizes[i]))
    return labels


def _split(values: Iterable[T], sizes: Iterable[int]) -> Iterator[Iterator[T]]:
    """So many of the values, and so many of those that follow, and so on."""
    return map(islice, repeat(iter(values)), sizes)


def _name_target(target: str | None, labels: Sequence[str], start: int, size: int) -> str | None:
    """The target; where it is the number of a choice, the choice's label."""
    if target is None or not target.isdecimal() or len(target) >= 6 or int(target) >= size:
        return target
    return labels[start + int(target)]


def _weigh(logs: Floats, starts: Ints, sizes: list[int]) -> Floats:
    """The share of each choice among those of its question, by softmax."""
    top = np.maximum.reduceat(logs, starts)
    # exp and sum of Python, not NumPy: the last digits are those of a row read alone
    weights = list(map(exp, (logs - np.repeat(top, sizes)).tolist()))
    totals = list(map(sum, _split(weights, sizes)))
    shares: Floats = np.array(weights) / np.repeat(totals, sizes)
    return shares


def _find_largest(scores: Floats, starts: Ints, sizes: list[int]) -> Ints:
    """Of each question the place of the first choice with the largest score."""
    places = np.flatnonzero(scores == np.repeat(np.maximum.reduceat(scores, starts), sizes))
    return places[np.searchsorted(places, starts)]
