"""lm-evaluation-harness by columns: rows as versions since 2024 write them, many at a time.

A chunk whose rows differ in their layout, or hold what only the reading row by row knows what to do
with, is not read here at all: the table is the same either way, and this one is made faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from types import GenericAlias
from typing import Any, Literal, Protocol

import msgspec
import numpy as np
import polars as pl

from groundfault.readers.lm_eval_cells import (
    AnsweredRow,
    AnswerParts,
    ChoiceParts,
    ChosenRow,
    ScoreCells,
)
from groundfault.readers.lm_eval_parts import QUESTIONS, find_question
from groundfault.readers.log import COLUMNS, ORIGIN, as_columns, list_columns, make_series
from groundfault.readers.values import number

Table = tuple[pl.DataFrame, frozenset[str]]

_NUMBERS = {bool, int, float, type(None)}


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
    """Columns of ids, documents, targets and scores by each metric; the rest goes to the parts.

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
    """What reads the rows of one filter and these metrics, and no others."""
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
    """Scores by metric; none, where a metric is a number of some rows alone.

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
    """The table, the scores of a row under one another."""
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
