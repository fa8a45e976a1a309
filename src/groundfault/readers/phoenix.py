"""Phoenix: experiments, downloaded or saved from its client, and annotations of spans."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from groundfault.core.status import Status
from groundfault.readers.log import Log, Observation
from groundfault.readers.server_exports import keys, parse_cell, plain, rows, verdict
from groundfault.readers.values import drop_empty, listing, mapping, number, text

_COLUMN = re.compile(r"annotation_(.+)_(label|score|explanation|annotator_kind|error)")
# the label that Phoenix's own evaluators give a grader's reply without a grade, with a score of 0
_NOT_PARSED = "NOT_PARSABLE"


class Phoenix:
    """Reads one observation a run and annotation; the scorer is the annotation's name.

    A value is the annotation's score, else 1 or 0 where its label says correct, pass, incorrect or
    fail; other labels are ``missing`` and stand in the column ``label``. A task or an evaluator
    that raised is ``error``, and so is a grader's reply without a grade (``NOT_PARSABLE``). The
    file does not name the model.
    """

    def sniff(self, path: Path) -> bool:
        """Whether it has the keys of an experiment's runs, or of annotated spans."""
        names = keys(path)
        runs = {"example_id", "repetition_number", "reference_output"} <= names
        return (
            runs
            or {"evaluation_runs", "task_runs"} <= names
            or {"span_id", "annotator_kind"} <= names
        )

    def read(self, path: Path) -> Log:
        """Runs of an experiment, or spans."""
        notes: list[str] = []
        return Log(_observations(path, notes), "phoenix", notes)


def _observations(path: Path, notes: list[str]) -> Iterator[Observation]:
    labels: set[str] = set()
    position = 0
    for row in rows(path):
        for run, annotation in _pair_annotations(row):
            position += 1
            observation = _observation(run, annotation, position)
            if observation.status == Status.MISSING and annotation.get("label"):
                labels.add(f"{observation.scorer}={annotation['label']}")
            yield observation
    if labels:
        notes.append(f"labels that are no verdict are missing: {', '.join(sorted(labels)[:5])}")


def _pair_annotations(row: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each annotation of a row, with the run it is about; an empty one where there is none."""
    # an experiment saved by the client: one object, whose evaluations refer to runs by id
    if "evaluation_runs" in row:
        runs = {str(mapping(run).get("id")): mapping(run) for run in listing(row.get("task_runs"))}
        for evaluation in map(mapping, listing(row["evaluation_runs"])):
            run = runs.get(str(evaluation.get("experiment_run_id")), {})
            yield (
                run | {"example_id": run.get("dataset_example_id")},
                evaluation | mapping(evaluation.get("result")),
            )
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


def _columns(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The annotations of a CSV row, whose columns are ``annotation_<name>_score`` and the like."""
    columns: dict[str, dict[str, Any]] = {}
    for column, value in row.items():
        if (parts := _COLUMN.fullmatch(column)) and value is not None:
            columns.setdefault(parts[1], {"name": parts[1]})[parts[2]] = value
    return list(columns.values())


def _observation(run: dict[str, Any], annotation: dict[str, Any], position: int) -> Observation:
    score = number(annotation.get("score"))
    value = verdict(annotation.get("label")) if score is None else score
    status = Status.MISSING if value is None else Status.SCORED
    if run.get("error") or annotation.get("error") or annotation.get("label") == _NOT_PARSED:
        value, status = None, Status.ERROR
    # repetition_number counts from 1, as epochs do
    latency, repetition = number(run.get("latency_ms")), run.get("repetition_number")
    measurements = {
        "position": position,
        "label": text(annotation.get("label")),
        "annotator_kind": text(annotation.get("annotator_kind")),
        "seconds": None if latency is None else latency / 1000,
        "input_tokens": run.get("prompt_token_count"),
        "output_tokens": run.get("completion_token_count"),
        "trace_id": text(run.get("trace_id")),
    }
    return Observation(
        str(run.get("example_id")),
        value,
        status,
        scorer=text(annotation.get("name") or annotation.get("annotation_name")) or "",
        epoch=repetition if isinstance(repetition, int) else 1,
        prompt=plain(run.get("input")),
        response=plain(run.get("output")),
        target=plain(run.get("reference_output")),
        attributes=mapping(parse_cell(run.get("metadata"))),
        measured=drop_empty(measurements),
        origin=text(annotation.get("id")),
    )
