"""OpenTelemetry: spans of agents in OTLP's JSON, with the results of evaluations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from groundfault.core.column_meaning import read_attributes
from groundfault.core.status import Status
from groundfault.readers.log import Observation
from groundfault.readers.server_exports import ServerExport, judge, plain, read_rows
from groundfault.readers.values import dig, drop_empty, listing, mapping, number, settle, text


class OpenTelemetry(ServerExport):
    """Reads traces of agents in OTLP's JSON, scored by ``gen_ai.evaluation.result``.

    There is one observation a trace and evaluation, from events of spans and from log records. An
    example is the conversation that the attributes name (``gen_ai.conversation.id``), else the
    trace. Without a score, a label counts as in other exports.
    """

    tool = "opentelemetry"

    def has_keys(self, keys: frozenset[str]) -> bool:
        """Return whether these are the keys of exported spans."""
        return keys >= {"resourceSpans", "scopeSpans"}

    def list_scores(self, path: Path) -> Iterator[Observation]:
        """Read the evaluations of each trace; a trace without any is missing."""
        traces = _read_traces(path)
        for run, (trace, (spans, scores)) in enumerate(traces.items()):
            marks: dict[str, object] = {}
            for span in spans:
                marks = read_attributes(span.get("attributes")) | marks
            for score in scores or [{}]:
                value, label = score.get(f"{_SCORE}.value"), score.get(f"{_SCORE}.label")
                is_error = Status.ERROR if score.get("error.type") else None
                yield Observation(
                    text(marks.get("gen_ai.conversation.id")) or trace,
                    *settle(judge(label) if value is None else number(value), is_error),
                    scorer=text(score.get("gen_ai.evaluation.name")) or "",
                    model=text(marks.get("gen_ai.request.model")) or "",
                    task=text(marks.get("gen_ai.agent.name")) or "",
                    prompt=plain(marks.get("gen_ai.input.messages")),
                    response=plain(marks.get("gen_ai.output.messages")),
                    measured=drop_empty({"label": text(label), "trace_id": trace}),
                    origin=trace,
                    transcript=run,
                )

    def read_conversations(self, path: Path) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """Yield the spans of each trace, in the order in which they began."""
        for run, (spans, _) in enumerate(_read_traces(path).values()):
            yield run, spans


_SCORE = "gen_ai.evaluation.score"
_DIGITS = 20
"""Digits of nanoseconds, which OTLP writes as text."""


def _read_traces(path: Path) -> dict[str, tuple[list[dict[str, object]], list[dict[str, object]]]]:
    """Return the spans and the evaluations of each trace."""
    traces: dict[str, tuple[list[dict[str, object]], list[dict[str, object]]]] = {}
    parts = (("resourceSpans", "scopeSpans", "spans"), ("resourceLogs", "scopeLogs", "logRecords"))
    for row in read_rows(path):
        for outer, middle, inner in parts:
            scopes = [s for r in listing(row.get(outer)) for s in listing(dig(r, middle))]
            for each in (mapping(e) for scope in scopes for e in listing(dig(scope, inner))):
                spans, scores = traces.setdefault(str(each.get("traceId")), ([], []))
                if inner == "spans":
                    spans.append(each)
                for event in map(mapping, listing(each.get("events")) or [each]):
                    name = event.get("name") if inner == "spans" else event.get("eventName")
                    if name == "gen_ai.evaluation.result":
                        scores.append(read_attributes(event.get("attributes")))
    for spans, _ in traces.values():
        spans.sort(key=lambda span: str(span.get("startTimeUnixNano") or 0).zfill(_DIGITS))
    return traces
