"""Langfuse: exported scores, traces and observations, and downloads of one trace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from groundfault.core.status import Status
from groundfault.readers.log import Log, Observation
from groundfault.readers.server_exports import keys, parse_cell, plain, rows, verdict
from groundfault.readers.values import drop_empty, listing, mapping, number, text

_COLUMNS = set(
    "id bookmarked comments completionStartTime costDetails createdAt endTime environment htmlPath "
    "input level "
    "metadata model modelParameters name observations output parentObservationId projectId "
    "promptName public release "
    "sessionId startTime statusMessage tags timestamp toolCalls traceId traceName traceTags type "
    "updatedAt usage "
    "usageDetails userId version".split()
)
"""The columns of exported traces and observations that are no scores."""


class Langfuse:
    """Reads one observation a score; an example is the observation that has it, else its trace.

    Scores of one trace are one group. The categories correct, pass, incorrect and fail are values;
    others are ``missing``. Exports of traces and observations hold their scores as columns of
    lists; several scores of one name are several epochs. JSON, JSONL and CSV are read.
    """

    def sniff(self, path: Path) -> bool:
        """Whether it has the keys of scores, or of traces or observations of a project."""
        names = {name.replace("_", "").lower() for name in keys(path)}
        return {"traceid", "datatype", "source", "name"} <= names or {
            "projectid",
            "input",
            "output",
            "name",
        } <= names

    def read(self, path: Path) -> Log:
        """The scores of an export."""
        notes: list[str] = []
        return Log(_observations(path, notes), "langfuse", notes)


def _observations(path: Path, notes: list[str]) -> Iterator[Observation]:
    categories: set[str] = set()
    position = 0
    for row in rows(path):
        for source, score, epoch in _score_rows(row):
            position += 1
            observation = _observation(source, score, epoch, position)
            if observation.status == Status.MISSING and observation.measured.get("category"):
                categories.add(f"{observation.scorer}={observation.measured['category']}")
            yield observation
    if categories:
        notes.append(
            f"categories that are no verdict are missing: {', '.join(sorted(categories)[:5])}"
        )


def _score_rows(row: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any], int]]:
    """The scored trace or observation, a score of it, and its number among those of the name."""
    trace = mapping(row.get("trace")) or row
    # an export of scores; with the API the trace is an object inside each
    if _either(row, "dataType", "data_type") is not None:
        yield mapping(row.get("trace")) | {"traceId": _either(row, "traceId", "trace_id")}, row, 1
    # the download of one trace
    elif isinstance(scores := row.get("scores", trace.get("scores")), list):
        parts = listing(row.get("observations", trace.get("observations")))
        by_id = {str(mapping(part).get("id")): mapping(part) for part in parts}
        for score in map(mapping, scores):
            observation = by_id.get(str(_either(score, "observationId", "observation_id")), trace)
            yield {"traceId": trace.get("id")} | observation, score, 1
    # a table of traces or observations: any column that is not Langfuse's own is a score
    else:
        columns = {name: parse_cell(value) for name, value in row.items() if name not in _COLUMNS}
        lists = {name: values for name, values in columns.items() if isinstance(values, list)}
        for name, values in lists.items():
            for epoch, value in enumerate(values, 1):
                yield row, {"name": name, "value": value}, epoch
        if not any(lists.values()):
            yield row, {}, 1


def _observation(
    source: dict[str, Any], score: dict[str, Any], epoch: int, position: int
) -> Observation:
    trace = text(_either(source, "traceId", "trace_id"))
    raw = score.get("value")
    value = _number(raw)
    category = text(_either(score, "stringValue", "string_value")) or (
        raw if isinstance(raw, str) else None
    )
    # the number beside a category is one that the project assigned to it, not a measure
    if (
        _either(score, "dataType", "data_type") in ("CATEGORICAL", "TEXT", "CORRECTION")
        or value is None
    ):
        value = verdict(category)
    measurements = {
        "position": position,
        "category": category if value is None else None,
        "source": text(score.get("source")),
        "seconds": number(source.get("latency")),
        "output_tokens": source.get("outputTokens") or source.get("completionTokens"),
    }
    return Observation(
        text(_either(score, "observationId", "observation_id") or source.get("id")) or trace or "",
        value,
        Status.MISSING if value is None else Status.SCORED,
        scorer=text(score.get("name")) or "",
        model=text(source.get("model")) or "",
        task=text(_either(score, "traceName", "trace_name") or _either(source, "traceName", "name"))
        or "",
        epoch=epoch,
        group=trace,
        prompt=plain(source.get("input")),
        response=plain(source.get("output")),
        attributes={
            **mapping(parse_cell(source.get("metadata"))),
            "tags": parse_cell(source.get("tags")),
        },
        measured=drop_empty(measurements),
        # exports of two weeks that overlap hold the same scores
        origin=text(score.get("id")),
    )


def _either(row: dict[str, Any], camel: str, snake: str) -> Any:
    """Exports from the interface and the API write ``traceId``, those to a bucket ``trace_id``."""
    value = row.get(camel)
    return row.get(snake) if value is None else value


def _number(value: Any) -> float | None:
    """A number, also in quotes: a CSV column of numbers and categories is text."""
    if isinstance(value, str):
        try:
            return number(float(value))
        except ValueError:
            return None
    return number(value)
