"""Spans of OpenTelemetry for the stages of an audit: names and counts, no texts and no names of
data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from groundfault.auditing.report import Report
from groundfault.base.long_work import version
from groundfault.errors import require_extra

STAGES = (
    "proposing candidates",
    "applying",
    "judging",
    "repeating over",
    "looking for failure modes",
    "writing the report",
)
"""How messages of progress begin that open a span; others may name files and columns."""


class AuditSpans:
    """Open a span for each stage of one audit; to be passed as its ``progress``."""

    def __init__(self, tracer: Any, audit: Any) -> None:
        self._tracer, self._audit = tracer, audit
        self._name, self._stage = "", None

    def __call__(self, message: str) -> None:
        """End the span of the stage before, and begin this stage's."""
        stage = next(filter(message.startswith, STAGES), self._name)
        if stage != self._name:
            self.end()
            self._name = stage
            count = re.search(r"\d+", message)
            counts = {"groundfault.count": int(count[0])} if count else {}
            self._stage = self._tracer.start_span(stage, attributes=counts)

    def end(self) -> None:
        """End the span of the last stage."""
        if self._stage is not None:
            self._stage.end()
        self._stage = None

    def describe(self, report: Report) -> None:
        """Add the counts of a report to the span of the audit."""
        counts = {
            "rows": report.rows,
            "units": report.n,
            "failure_rate": report.error_rate,
            "candidates": len(report.findings),
            "confirmed": len(report.confirmed),
            "failure_modes": len(report.modes),
        }
        self._audit.set_attributes({f"groundfault.{name}": n for name, n in counts.items()})


@contextmanager
def trace_audit(tracer: Any = None) -> Iterator[AuditSpans]:
    """Trace an audit by OpenTelemetry: a span for the whole, and one for each stage in it.

    Spans have counts and no texts, no names of columns or files, and of an error its type alone.

    Parameters
    ----------
    tracer : opentelemetry.trace.Tracer, optional
        By default, the tracer of the provider that your program has set.

    Raises
    ------
    MissingExtraError
        If the API of OpenTelemetry is not installed (extra ``otel``).
    """
    with require_extra("spans need OpenTelemetry: pip install 'groundfault[otel]'"):
        from opentelemetry import trace
    tracer = tracer or trace.get_tracer("groundfault", version("groundfault"))
    with tracer.start_as_current_span(
        "groundfault.audit", record_exception=False, set_status_on_exception=False
    ) as audit:
        spans = AuditSpans(tracer, audit)
        try:
            yield spans
        except BaseException as error:
            audit.set_status(trace.Status(trace.StatusCode.ERROR, type(error).__name__))
            raise
        finally:
            spans.end()
