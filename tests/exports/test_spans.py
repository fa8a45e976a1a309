"""An audit is traced: a span for each stage, counts alone, and of an error its type."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import polars as pl
import pytest

import groundfault
from groundfault import InputError
from groundfault.exports.spans import STAGES, trace_audit

SECRET = "sk-hidden"


def trace(**options: Any) -> tuple[list[Any], groundfault.Report | None]:
    """Return the finished spans of one audit, and its report."""
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    kept = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    memory = kept.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(memory))
    table = {
        f"{SECRET} column": ["de", "en"] * 100,
        "prompt": [f"{SECRET} asks {i}" for i in range(200)],
        "error": [1, 0, 1, 0, 0, 0, 1, 0] * 25,
    }
    evidence = groundfault.Evidence.from_table(pl.DataFrame(table), outcome="error")
    report = None
    try:
        with trace_audit(provider.get_tracer("test")) as spans:
            report = groundfault.audit(evidence, ledger=False, progress=spans, **options)
            spans.describe(report)
    except groundfault.GroundfaultError:
        pass
    return list(memory.get_finished_spans()), report


def test_each_stage_of_an_audit_is_a_span_in_that_of_the_audit() -> None:
    spans, report = trace(robustness=2)
    assert report is not None
    *stages, audit = spans
    assert [span.name for span in stages] == list(STAGES)
    assert {span.parent.span_id for span in stages} == {audit.context.span_id}
    for one, other in pairwise(stages):
        assert one.end_time <= other.start_time
    assert audit.attributes["groundfault.rows"] == 200
    assert audit.attributes["groundfault.failure_modes"] == len(report.modes) > 0
    assert stages[3].attributes["groundfault.count"] == 2


def test_spans_hold_counts_and_no_texts_of_data() -> None:
    spans, _ = trace()
    for span in spans:
        assert span.name in (*STAGES, "groundfault.audit")
        assert all(isinstance(value, int | float) for value in span.attributes.values())
        assert SECRET not in span.to_json()


def test_a_failing_audit_ends_its_spans_and_says_the_type_of_the_error() -> None:
    plan = groundfault.Plan(within=(f"{SECRET} nowhere",))
    spans, report = trace(plan=plan)
    assert report is None
    audit = spans[-1]
    assert audit.name == "groundfault.audit"
    assert audit.status.description == InputError.__name__
    assert SECRET not in "".join(span.to_json() for span in spans)
