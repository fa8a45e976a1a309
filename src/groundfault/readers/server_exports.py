"""Exports of servers, as a JSON list, JSON lines or CSV: Phoenix, Langfuse and Label Studio."""

from __future__ import annotations

import csv
import re
from abc import abstractmethod
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.readers.formats import JsonFormat
from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import JsonObject, head, json_file, json_lines
from groundfault.readers.table import read_table
from groundfault.readers.values import (
    dig,
    drop_empty,
    list_names,
    listing,
    mapping,
    number,
    parse_number,
    settle,
    text,
)

_KEY = re.compile(rb'"((?:[^"\\]|\\.){1,80})"\s*:')
# only words that cannot mean anything else: "good" or "yes" depend on the question
_VERDICTS = dict.fromkeys(("correct", "right", "pass", "passed"), 1.0)
_VERDICTS |= dict.fromkeys(("incorrect", "wrong", "fail", "failed"), 0.0)
_TABLES = {".csv": ",", ".tsv": "\t"}
# of labels that are no verdict, so many are named
_MAX_LABELS = 5


class ServerExport(JsonFormat):
    """Reads an export whose rows are or hold scores; notes name labels without a meaning."""

    label: ClassVar[str] = "label"
    """The measured column in which a label that is no verdict stands."""
    plural: ClassVar[str] = "labels"
    # people and programs add metadata to a trace at any time
    undated = None

    def sniff(self, path: Path) -> bool:
        """Return whether the columns, or the keys of the first JSON objects, are an export's."""
        return self.has_keys(_find_keys(head(path), path.suffix))

    def observe(self, path: Path, log: Log) -> Iterator[Observation]:
        """Read the scores of an export, and note the labels that are no verdict."""
        labels: set[str] = set()
        for observation in self.list_scores(path):
            word = observation.measured.get(self.label)
            if observation.status == Status.MISSING and word:
                labels.add(f"{observation.scorer}={word}")
            yield observation
        if labels:
            some = ", ".join(sorted(labels)[:_MAX_LABELS])
            log.notes.append(f"{self.plural} that are no verdict are missing: {some}")

    @abstractmethod
    def has_keys(self, keys: frozenset[str]) -> bool:
        """Return whether a file with these keys is an export of the tool."""

    @abstractmethod
    def list_scores(self, path: Path) -> Iterator[Observation]:
        """Read one observation a score."""


@lru_cache(maxsize=8)
def _find_keys(start: bytes, suffix: str) -> frozenset[str]:
    """Return the columns of a CSV file, else the keys of its first JSON objects."""
    if suffix in _TABLES:
        first = start.partition(b"\n")[0].decode("utf-8", "replace").rstrip("\r")
        try:
            return frozenset(next(csv.reader([first], delimiter=_TABLES[suffix]), []))
        except csv.Error:
            return frozenset()
    if suffix not in (".json", ".jsonl", ".ndjson") or start.lstrip()[:1] not in (b"{", b"["):
        return frozenset()
    return frozenset(name.decode("utf-8", "replace") for name in _KEY.findall(start))


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Read the rows of an export; of a JSON object its ``data``, else the object as the only row.

    Raises
    ------
    InputError
        If the file cannot be read, or a row is no mapping.
    """
    if path.suffix in _TABLES:
        yield from read_table(path)[0].iter_rows(named=True)
    elif path.suffix == ".json":
        content: object = json_file(path, object)
        for row in listing(dig(content, "data")) or listing(content) or [content]:
            if not isinstance(row, dict):
                what = type(row).__name__
                raise InputError(f"{path} holds {what} where a row of the export should be")
            yield row
    else:
        yield from json_lines(path, dict[str, Any])


def _parse_cell(value: object) -> object:
    """Return the value of a CSV cell that holds JSON."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            return value
    return value


def plain(value: object) -> str | None:
    """Return a text; for a mapping with one entry, such as ``{"question": ...}``, its value."""
    value = _parse_cell(value)
    if isinstance(value, dict) and len(value) == 1:
        value = next(iter(value.values()))
    return text(value)


def judge(label: object) -> float | None:
    """Return 1 or 0 for a label that can only mean right or wrong; None for any other."""
    return _VERDICTS.get(label.strip().lower()) if isinstance(label, str) else None


_COLUMN = re.compile(r"annotation_(.+)_(label|score|explanation|annotator_kind|error)")
# the label that Phoenix's own evaluators give a grader's reply without a grade, with a score of 0
_NOT_PARSED = "NOT_PARSABLE"


class Phoenix(ServerExport):
    """Reads experiments of Phoenix, downloaded or saved from its client, and annotated spans.

    There is one observation a run and annotation; the scorer is the annotation's name. A value is
    the annotation's score, else 1 or 0 where its label says correct, pass, incorrect or fail; other
    labels are ``missing`` and stand in the column ``label``. A task or an evaluator that raised is
    ``error``, and so is a grader's reply without a grade (``NOT_PARSABLE``). The file does not name
    the model.
    """

    tool = "phoenix"

    def has_keys(self, keys: frozenset[str]) -> bool:
        """Return whether these are the keys of an experiment's runs, or of annotated spans."""
        return (
            keys >= {"example_id", "repetition_number", "reference_output"}
            or keys >= {"evaluation_runs", "task_runs"}
            or keys >= {"span_id", "annotator_kind"}
        )

    def list_scores(self, path: Path) -> Iterator[Observation]:
        """Read runs of an experiment, or spans."""
        pairs = (pair for row in read_rows(path) for pair in _pair_annotations(row))
        for position, (run, annotation) in enumerate(pairs, 1):
            score, label = number(annotation.get("score")), annotation.get("label")
            is_error = run.get("error") or annotation.get("error") or label == _NOT_PARSED
            value = judge(label) if score is None else score
            latency, repetition = number(run.get("latency_ms")), run.get("repetition_number")
            measurements = {
                "position": position,
                "label": text(label),
                "annotator_kind": text(annotation.get("annotator_kind")),
                "seconds": None if latency is None else latency / 1000,
                "input_tokens": run.get("prompt_token_count"),
                "output_tokens": run.get("completion_token_count"),
                "trace_id": text(run.get("trace_id")),
            }
            yield Observation(
                str(run.get("example_id")),
                *settle(value, Status.ERROR if is_error else None),
                scorer=text(annotation.get("name") or annotation.get("annotation_name")) or "",
                # repetition_number counts from 1, as epochs do
                epoch=repetition if isinstance(repetition, int) else 1,
                prompt=plain(run.get("input")),
                response=plain(run.get("output")),
                target=plain(run.get("reference_output")),
                attributes=mapping(_parse_cell(run.get("metadata"))),
                measured=drop_empty(measurements),
                origin=text(annotation.get("id")),
            )


def _pair_annotations(row: JsonObject) -> Iterator[tuple[JsonObject, JsonObject]]:
    """Pair each annotation of a row with its run; a row without annotations yields an empty one."""
    # an experiment saved by the client: one object, whose evaluations refer to runs by id
    if "evaluation_runs" in row:
        runs = {str(dig(run, "id")): mapping(run) for run in listing(row.get("task_runs"))}
        for each in map(mapping, listing(row["evaluation_runs"])):
            run = runs.get(str(each.get("experiment_run_id")), {})
            run = run | {"example_id": run.get("dataset_example_id")}
            yield run, each | mapping(each.get("result"))
        return
    # annotations of spans, as a data frame of the client: columns such as result.score
    if "span_id" in row and "annotator_kind" in row:
        span = {name.removeprefix("result."): value for name, value in row.items()}
        yield span | {"example_id": row["span_id"]}, span | mapping(row.get("result"))
        return
    # an experiment downloaded from the server: a row a run, with a list or columns of annotations
    values = row.get("annotations")
    annotations = [mapping(each) for each in values] if isinstance(values, list) else _columns(row)
    for annotation in annotations or [{}]:
        yield row, annotation


def _columns(row: JsonObject) -> list[JsonObject]:
    """Return the annotations of a CSV row, in columns ``annotation_<name>_score`` and the like."""
    columns: dict[str, JsonObject] = {}
    for column, value in row.items():
        if (parts := _COLUMN.fullmatch(column)) and value is not None:
            columns.setdefault(parts[1], {"name": parts[1]})[parts[2]] = value
    return list(columns.values())


_NO_SCORES = frozenset(list_names("langfuse")["no_scores"])
"""The columns of exported traces and observations that are no scores."""


class Langfuse(ServerExport):
    """Reads scores, traces and observations exported from Langfuse, and downloads of one trace.

    There is one observation a score; an example is the observation that has it, else its trace.
    Scores of one trace are one group. The categories correct, pass, incorrect and fail are values;
    others are ``missing``. Exports of traces and observations hold their scores as columns of
    lists; several scores of one name are several epochs. JSON, JSONL and CSV are read.
    """

    tool = "langfuse"
    label = "category"
    plural = "categories"

    def has_keys(self, keys: frozenset[str]) -> bool:
        """Return whether these are the keys of scores, or of a project's traces or observations."""
        names = {name.replace("_", "").lower() for name in keys}
        return names >= {"traceid", "datatype", "source", "name"} or (
            names >= {"projectid", "input", "output", "name"}
        )

    def list_scores(self, path: Path) -> Iterator[Observation]:
        """Read the scores of an export."""
        rows = enumerate(read_rows(path))
        scores = ((run, *each) for run, row in rows for each in _list_scores(row))
        for position, (run, source, score, epoch) in enumerate(scores, 1):
            trace, raw = text(_either(source, "traceId")), score.get("value")
            words = raw if isinstance(raw, str) else None
            category, value = text(_either(score, "stringValue")) or words, parse_number(raw)
            # the number beside a category is one that the project assigned to it, not a measure
            if value is None or _either(score, "dataType") in ("CATEGORICAL", "TEXT", "CORRECTION"):
                value = judge(category)
            name = _either(score, "observationId") or source.get("id")
            task = _either(score, "traceName") or _either(source, "traceName", "name")
            measurements = {
                "position": position,
                "category": category if value is None else None,
                "source": text(score.get("source")),
                "seconds": number(source.get("latency")),
                "output_tokens": source.get("outputTokens") or source.get("completionTokens"),
            }
            tags = {"tags": _parse_cell(source.get("tags"))}
            yield Observation(
                text(name) or trace or "",
                *settle(value),
                scorer=text(score.get("name")) or "",
                model=text(source.get("model")) or "",
                task=text(task) or "",
                epoch=epoch,
                group=trace,
                prompt=plain(source.get("input")),
                response=plain(source.get("output")),
                attributes={**mapping(_parse_cell(source.get("metadata"))), **tags},
                measured=drop_empty(measurements),
                # exports of two weeks that overlap hold the same scores
                origin=text(score.get("id")),
                # a score of one observation is of a part of the run
                transcript=None if _either(score, "observationId") else run,
            )

    def read_conversations(self, path: Path) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """Yield the observations of each trace that was downloaded whole, in their order."""
        for run, row in enumerate(read_rows(path)):
            parts = listing(row.get("observations", mapping(row.get("trace")).get("observations")))
            if parts and isinstance(parts[0], dict):
                yield run, sorted(parts, key=lambda part: str(_either(part, "startTime")))


def _list_scores(row: JsonObject) -> Iterator[tuple[JsonObject, JsonObject, int]]:
    """Yield the scored trace or observation, a score, and its number among scores of its name."""
    trace = mapping(row.get("trace")) or row
    # an export of scores; with the API the trace is an object inside each
    if _either(row, "dataType") is not None:
        yield mapping(row.get("trace")) | {"traceId": _either(row, "traceId")}, row, 1
    # the download of one trace
    elif isinstance(scores := row.get("scores", trace.get("scores")), list):
        parts = listing(row.get("observations", trace.get("observations")))
        by_id = {str(dig(part, "id")): mapping(part) for part in parts}
        for score in map(mapping, scores):
            observation = by_id.get(str(_either(score, "observationId")), trace)
            yield {"traceId": trace.get("id")} | observation, score, 1
    # a table of traces or observations: any column that is not Langfuse's own is a score
    else:
        cells = {name: _parse_cell(value) for name, value in row.items() if name not in _NO_SCORES}
        columns = {name: values for name, values in cells.items() if isinstance(values, list)}
        for name, values in columns.items():
            for epoch, value in enumerate(values, 1):
                yield row, {"name": name, "value": value}, epoch
        if not any(columns.values()):
            yield row, {}, 1


def _either(row: JsonObject, camel: str, other: str = "") -> object:
    """Return a value under the name in exports from the interface and the API, or to a bucket.

    The former write ``traceId``, the latter ``trace_id``.
    """
    value = row.get(camel)
    snake = other or re.sub("([A-Z])", r"_\1", camel).lower()
    return row.get(snake) if value is None else value


_WORDS: dict[str, list[str]] = list_names("label_studio")["words"]
_OURS = ("example_id", *(name for names in _WORDS.values() for name in names))
_MIN = set(list_names("label_studio")["bookkeeping"])
"""The columns of JSON-MIN and CSV other than the task's data and controls."""


class LabelStudio(ServerExport):
    """Reads tasks annotated in Label Studio, exported as JSON, JSON-MIN or CSV.

    There is one observation a task, annotation and control, which is the scorer. The choices
    correct, right, pass, incorrect, wrong and fail are values; others are ``missing`` and stand in
    the column ``label``. Ratings and numbers are read as they are. A skipped task, and one without
    annotations, is ``missing``. Several annotations of a task are its epochs, and ``judge`` names
    the annotator. ``example_id``, ``model``, ``prompt`` and the like are read from the task's data
    where it has them.
    """

    tool = "label_studio"

    def has_keys(self, keys: frozenset[str]) -> bool:
        """Return whether these are keys of annotated tasks, or the columns of JSON-MIN and CSV."""
        return keys >= {"annotations", "data", "was_cancelled"} or keys >= _MIN

    def list_scores(self, path: Path) -> Iterator[Observation]:
        """Read one observation a decision."""
        epochs: dict[str, int] = {}
        for position, row in enumerate(read_rows(path), 1):
            # JSON-MIN and CSV have a row an annotation, the task's data and controls side by side
            is_short = "annotations" not in row
            data = mapping(row.get("data"))
            annotations = [mapping(each) for each in listing(row.get("annotations"))] or [{}]
            if is_short:
                data = {name: value for name, value in row.items() if name not in _MIN}
                annotations = [row]
            name = str(data.get("example_id", row.get("id")))
            for annotation in annotations:
                epochs[name] = epochs.get(name, 0) + 1
                decisions = _find_controls(data) if is_short else list(_list_results(annotation))
                for scorer, decision in decisions or [("", None)]:
                    observation = _read_decision(data, annotation, scorer, decision)
                    observation.example_id, observation.epoch = name, epochs[name]
                    observation.measured = {"position": position, **observation.measured}
                    yield observation


def _list_results(annotation: JsonObject) -> Iterator[tuple[str, object]]:
    """Yield control and decision of each result that is about the whole answer."""
    # results of other kinds mark a part of a text or image
    for each in [] if annotation.get("was_cancelled") else listing(annotation.get("result")):
        value = mapping(dig(each, "value"))
        kind = next((kind for kind in ("choices", "rating", "number") if kind in value), None)
        if kind:
            decision = value[kind]
            single = decision[0] if isinstance(decision, list) and len(decision) == 1 else decision
            yield text(dig(each, "from_name")) or "", single


def _find_controls(data: JsonObject) -> list[tuple[str, object]]:
    """Return controls of a row of JSON-MIN or CSV, which also has the task's data as columns.

    A column counts as a control if it holds a verdict or a rating.
    """
    values = {name: _parse_cell(value) for name, value in data.items() if name not in _OURS}
    ratings = [(name, mapping(value).get("rating", value)) for name, value in values.items()]
    return [
        (name, value)
        for name, value in ratings
        if judge(value) is not None or "rating" in mapping(values[name])
    ]


def _read_decision(
    data: JsonObject, annotation: JsonObject, scorer: str, decision: object
) -> Observation:
    score = number(decision)
    fields = {
        ours: plain(next((data[n] for n in names if n in data), None))
        for ours, names in _WORDS.items()
    }
    who = annotation.get("completed_by", annotation.get("annotator"))
    measurements = {
        "judge": text(who.get("email") or who.get("id") if isinstance(who, dict) else who),
        "seconds": number(annotation.get("lead_time")),
        "label": None if score is not None else text(decision),
        "skipped": True if annotation.get("was_cancelled") else None,
    }
    return Observation(
        "",
        *settle(judge(decision) if score is None else score),
        scorer=scorer,
        model=fields["model"] or "",
        task=fields["task"] or "",
        prompt=fields["prompt"],
        response=fields["response"],
        target=fields["target"],
        attributes={k: value for k, value in data.items() if k not in _OURS and k != scorer},
        measured=drop_empty(measurements),
    )
