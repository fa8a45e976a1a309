"""lighteval: details of one task, a Parquet file; also those of the first Open LLM Leaderboard."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from groundfault.core.status import Status
from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import escape_pattern, head
from groundfault.readers.table import read_table
from groundfault.readers.values import listing, mapping, number, text

_NAME = re.compile(r"details_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d:.-]+)")
_LAYOUTS = (
    {"doc", "model_response", "metric"},
    {"example", "predictions", "metrics"},
    {"example", "predictions", "gold"},
)
# the first leaderboard wrote one column a metric, which its name alone tells from other columns
_METRICS = ("acc", "em", "exact_match", "f1", "mc1", "mc2", "bits_per_byte", "rouge", "bleu")


class LightEval:
    """Reads ``details_<task>_<time>.parquet``: one observation an example and metric.

    Layouts: structs ``doc``, ``model_response`` and ``metric`` (since 0.10), columns ``example``,
    ``predictions`` and ``metrics`` (before), and the first leaderboard's with one column a metric.
    The model is the folder between ``details`` and the time. Where each choice has a
    log-probability, confidence is their softmax.
    """

    def sniff(self, path: Path) -> bool:
        """Whether it is a Parquet file with the columns of details."""
        if path.suffix != ".parquet" or not head(path).startswith(b"PAR1"):
            return False
        try:
            columns = set(pl.read_parquet_schema(escape_pattern(path)))
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
            return False
        return any(layout <= columns for layout in _LAYOUTS)

    def read(self, path: Path) -> Log:
        """The examples of one task."""
        frame, _ = read_table(path)
        notes = [] if frame.height else ["no samples"]
        return Log(_observations(path, frame, notes), "lighteval", notes, first_leads=True)


def _observations(path: Path, frame: pl.DataFrame, notes: list[str]) -> Iterator[Observation]:
    name_match = _NAME.fullmatch(path.stem)
    model = _model(path)
    for position, row in enumerate(frame.iter_rows(named=True), 1):
        doc, response, metrics = _parts(row)
        task = text(doc.get("task_name")) or (
            name_match["task"].replace("|", ":") if name_match else path.stem
        )
        choices = _choices(doc, response)
        common: dict[str, Any] = {
            "example_id": str(doc.get("id") or position - 1),
            "model": model,
            "task": task,
            "prompt": text(doc.get("original_query") or doc.get("query")),
            "target": _target(doc),
            "attributes": mapping(doc.get("specific")),
            "measured": {
                "position": position,
                "output_tokens": _length(response.get("output_tokens")),
            },
        }
        for scorer, score in _numbers(metrics, notes).items():
            value = number(score)
            status = Status.MISSING if value is None else Status.SCORED
            words = text(next(iter(listing(response.get("text"))), response.get("text")))
            yield Observation(
                **common, **choices, value=value, status=status, scorer=scorer, response=words
            )


def _parts(row: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Document, response and metrics, whatever the layout."""
    if "doc" in row:
        return mapping(row["doc"]), mapping(row.get("model_response")), mapping(row.get("metric"))
    doc = {
        "query": row.get("example"),
        "choices": row.get("choices"),
        "gold_index": row.get("gold_index"),
    }
    doc |= {"specific": row.get("specifics"), "gold": row.get("gold")}
    predictions = row.get("predictions")
    numeric = isinstance(predictions, list) and all(isinstance(each, float) for each in predictions)
    response = {
        "logprobs" if numeric else "text": predictions,
        "output_tokens": row.get("cont_tokens"),
    }
    return (
        doc,
        response,
        mapping(row.get("metrics")) or {k: v for k, v in row.items() if k.startswith(_METRICS)},
    )


def _numbers(metrics: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """The metrics that are a number for each example; the others are noted once."""
    single = {
        name: value
        for name, value in metrics.items()
        if value is None or isinstance(value, bool | int | float)
    }
    for name in metrics.keys() - single.keys():
        note = f"{name} is not one number for each example: it is left out"
        if note not in notes:
            notes.append(note)
    return single or {"": None}


def _choices(doc: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
    """Answer, log-probability and confidence of a multiple choice; nothing where there is none."""
    choices, logs = listing(doc.get("choices")), listing(response.get("logprobs"))
    if len(choices) != len(logs) or len(logs) < 2 or any(number(log) is None for log in logs):
        return {}
    best = max(range(len(logs)), key=logs.__getitem__)
    # the largest is subtracted first: exp of a sum over hundreds of tokens would be 0
    total = sum(math.exp(log - logs[best]) for log in logs)
    return {"answer": text(choices[best]), "logprob": float(logs[best]), "confidence": 1 / total}


def _target(doc: dict[str, Any]) -> str | None:
    """The choices that are right, as text."""
    choices, gold = listing(doc.get("choices")), doc.get("gold_index")
    which = [i for i in listing(gold) or [gold] if isinstance(i, int) and 0 <= i < len(choices)]
    return text([str(choices[i]) for i in which]) if which else text(doc.get("gold"))


def _length(tokens: Any) -> int | None:
    token_lists = listing(tokens)
    return len(listing(token_lists[0])) or 1 if token_lists else None


def _model(path: Path) -> str:
    """The folders between ``details`` and the time."""
    parts = path.resolve().parts
    start = max((i for i, part in enumerate(parts) if part == "details"), default=None)
    return "/".join(parts[start + 1 : -2]) if start is not None else path.resolve().parent.name
