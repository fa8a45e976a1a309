"""lighteval: details of one task as a Parquet file, also from the first Open LLM Leaderboard."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import JsonObject, escape_pattern, head
from groundfault.readers.table import read_table
from groundfault.readers.values import list_names, listing, mapping, number, settle, text

_NAME = re.compile(r"details_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d:.-]+)")
_LAYOUTS = [set(names) for names in list_names("lighteval")["layouts"]]
_METRICS: tuple[str, ...] = tuple(list_names("lighteval")["metrics"])


class LightEval:
    """Reads ``details_<task>_<time>.parquet``: one observation an example and metric.

    Layouts: structs ``doc``, ``model_response`` and ``metric`` (since 0.10), columns ``example``,
    ``predictions`` and ``metrics`` (before), and the first leaderboard's with one column a metric.
    The model is the folder between ``details`` and the time. Where each choice has a
    log-probability, confidence is their softmax.
    """

    undated = ()

    def sniff(self, path: Path) -> bool:
        """Return whether it is a Parquet file with the columns of details."""
        if path.suffix != ".parquet" or not head(path).startswith(b"PAR1"):
            return False
        try:
            columns = set(pl.read_parquet_schema(escape_pattern(path)))
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
            return False
        return any(layout <= columns for layout in _LAYOUTS)

    def read(self, path: Path) -> Log:
        """Read the examples of one task."""
        frame, _ = read_table(path)
        notes = [] if frame.height else ["no samples"]
        return Log(_read_rows(path, frame, notes), "lighteval", notes, first_leads=True)


def _read_rows(path: Path, frame: pl.DataFrame, notes: list[str]) -> Iterator[Observation]:
    name = _NAME.fullmatch(path.stem)
    default_task = name["task"].replace("|", ":") if name else path.stem
    model = _name_model(path)
    for position, row in enumerate(frame.iter_rows(named=True), 1):
        doc, response, metrics = _split_row(row)
        tokens = listing(response.get("output_tokens"))
        n_tokens = len(listing(tokens[0])) or 1 if tokens else None
        base = Observation(
            str(doc.get("id") or position - 1),
            model=model,
            task=text(doc.get("task_name")) or default_task,
            prompt=text(doc.get("original_query") or doc.get("query")),
            response=text(next(iter(listing(response.get("text"))), response.get("text"))),
            target=_read_target(doc),
            attributes=mapping(doc.get("specific")),
            measured={"position": position, "output_tokens": n_tokens},
            **_read_choices(doc, response),
        )
        for scorer, score in _select_numbers(metrics, notes).items():
            yield base.rescore(scorer, *settle(score))


def _split_row(row: JsonObject) -> tuple[JsonObject, JsonObject, JsonObject]:
    """Return document, response and metrics from any of the layouts."""
    if "doc" in row:
        return mapping(row["doc"]), mapping(row.get("model_response")), mapping(row.get("metric"))
    doc = {name: row.get(name) for name in ("choices", "gold_index", "gold")}
    doc |= {"query": row.get("example"), "specific": row.get("specifics")}
    predictions = row.get("predictions")
    is_numeric = isinstance(predictions, list) and all(isinstance(p, float) for p in predictions)
    response = {"logprobs" if is_numeric else "text": predictions}
    response["output_tokens"] = row.get("cont_tokens")
    scores = {k: v for k, v in row.items() if k.startswith(_METRICS)}
    return doc, response, mapping(row.get("metrics")) or scores


def _select_numbers(metrics: JsonObject, notes: list[str]) -> dict[str, Any]:
    """Return the metrics that are a number for each example; the others are noted once."""
    numbers = bool | int | float | None
    single = {name: value for name, value in metrics.items() if isinstance(value, numbers)}
    for name in metrics.keys() - single.keys():
        note = f"{name} is not one number for each example: it is left out"
        if note not in notes:
            notes.append(note)
    return single or {"": None}


def _read_choices(doc: JsonObject, response: JsonObject) -> dict[str, Any]:
    """Return answer, log-probability and confidence of a multiple choice, if the row is one."""
    choices, logs = listing(doc.get("choices")), listing(response.get("logprobs"))
    if len(choices) != len(logs) or len(logs) < 2 or any(number(log) is None for log in logs):
        return {}
    best = max(range(len(logs)), key=logs.__getitem__)
    # the largest is subtracted first: exp of a sum over hundreds of tokens would be 0
    total = sum(math.exp(log - logs[best]) for log in logs)
    return {"answer": text(choices[best]), "logprob": float(logs[best]), "confidence": 1 / total}


def _read_target(doc: JsonObject) -> str | None:
    """Return the choices that are right, as text."""
    choices, gold = listing(doc.get("choices")), doc.get("gold_index")
    which = [i for i in listing(gold) or [gold] if isinstance(i, int) and 0 <= i < len(choices)]
    return text([str(choices[i]) for i in which]) if which else text(doc.get("gold"))


def _name_model(path: Path) -> str:
    """Return the folders between ``details`` and the time."""
    parts = path.resolve().parts
    start = max((i for i, part in enumerate(parts) if part == "details"), default=None)
    return "/".join(parts[start + 1 : -2]) if start is not None else path.resolve().parent.name
