"""Langfuse and Phoenix: the failure modes of each run, as scores and annotations to upload.

A file has the arguments of one call of the tool's own client a line. groundfault opens no
connection.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from groundfault.base.sheets import write_rows
from groundfault.errors import InputError
from groundfault.exports.slices import ReportSlices


class SliceRun(NamedTuple):
    """A run that is on a slice; ``key`` is the same in each export of the report."""

    run: str
    trace: str
    slice: str
    sentence: str
    key: str


@dataclass(frozen=True)
class LangfuseScores:
    """Write arguments of ``Langfuse.create_score``: true for each slice that a run is on."""

    name: str = "langfuse"

    def export(self, slices: ReportSlices, out: Path) -> str:
        """Write the lines, whole or not at all."""
        scores = []
        for one in find_runs(slices, self.name):
            part = {} if one.run == one.trace else {"observation_id": one.run}
            score = {"trace_id": one.trace, **part, "name": one.slice, "value": 1}
            scores.append(
                score | {"data_type": "BOOLEAN", "comment": one.sentence, "score_id": one.key}
            )
        return _write_lines(scores, out)


@dataclass(frozen=True)
class PhoenixAnnotations:
    """Write arguments of ``Client().spans.add_span_annotation``, for logs of annotated spans."""

    name: str = "phoenix"

    def export(self, slices: ReportSlices, out: Path) -> str:
        """Write the lines, whole or not at all."""
        annotations = [
            {
                "span_id": one.run,
                "annotation_name": one.slice,
                "annotator_kind": "CODE",
                "score": 1.0,
                "explanation": one.sentence,
                "identifier": one.key,
            }
            for one in find_runs(slices, self.name)
        ]
        return _write_lines(annotations, out)


def find_runs(slices: ReportSlices, tool: str) -> Iterator[SliceRun]:
    """Find each run and slice that it is on, once.

    Raises
    ------
    InputError
        If the report was not made from an export of the tool.
    """
    evidence, report = slices.evidence, slices.report
    if not evidence.account or {log.reader for log in evidence.account.logs} != {tool}:
        raise InputError(
            f"the report was not made from logs of {tool}, so its ids name no runs there; to write "
            "all ids with their slices: --to memberships"
        )
    sentences = slices.summary()["modes"] | {f.name: f.sentence for f in report.confirmed}
    name = evidence.roles.id or ""
    names = evidence.frame.select(run=name, trace=evidence.roles.group or name)
    # several scorers of a run are several rows
    seen = set[tuple[str, str]]()
    for row, (run, trace) in enumerate(names.iter_rows()):
        for each in slices.on(row):
            if (run, each) not in seen:
                seen.add((run, each))
                key = hashlib.sha256("\n".join((report.hashes.plan, run, each)).encode())
                yield SliceRun(run, trace, each, sentences.get(each, ""), key.hexdigest()[:32])


def _write_lines(lines: list[dict[str, object]], out: Path) -> str:
    write_rows(lines, out)
    return f"{len(lines):,} lines"
