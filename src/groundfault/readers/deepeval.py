"""DeepEval: test runs, as saved beside a run or under .deepeval."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import head, json_file
from groundfault.readers.values import drop_empty, mapping, number, text, texts_by


class _Metric(msgspec.Struct, rename="camel"):
    name: str
    success: bool | None = None
    score: Any = None
    threshold: Any = None
    reason: Any = None
    evaluation_model: str | None = None
    error: Any = None


class _Case(msgspec.Struct, rename="camel"):
    """A test case; a conversation has turns in place of input and output."""

    name: str
    success: bool | None = None
    metrics_data: list[_Metric] | None = None
    order: int | None = None
    input: Any = None
    actual_output: Any = None
    expected_output: Any = None
    turns: list[dict[str, Any]] | None = None
    scenario: str | None = None
    expected_outcome: str | None = None
    metadata: dict[str, Any] | None = None
    tags: list[str] | None = None
    comments: str | None = None
    context: list[Any] | None = None
    retrieval_context: list[Any] | None = None
    trace: dict[str, Any] | None = None
    run_duration: Any = None
    completion_time: Any = None
    input_token_count: int | None = None
    output_token_count: int | None = None


class _Run(msgspec.Struct, rename="camel"):
    # some files hold the same fields one level down, in testRunData
    test_cases: list[_Case] | None = None
    conversational_test_cases: list[_Case] | None = None
    hyperparameters: dict[str, Any] | None = None
    dataset_alias: str | None = None
    test_file: str | None = None
    test_run_data: _Run | None = None


class DeepEval:
    """Reads test runs: the scorer ``success`` for the case as a whole, and one scorer a metric.

    A value is whether the metric's threshold was met, since in some metrics a low score is the good
    one; the score itself stands in a column beside it. A metric that raised is ``error``, and so is
    its case.
    """

    def sniff(self, path: Path) -> bool:
        """Whether it has test cases with metrics data."""
        start = head(path)
        cases = b'"testCases"' in start or b'"conversationalTestCases"' in start
        return (
            start.lstrip().startswith(b"{")
            and cases
            and (b'"metricsData"' in start or b'"metricsScores"' in start)
        )

    def read(self, path: Path) -> Log:
        """One observation a case and metric."""
        run = json_file(path, _Run)
        run = run.test_run_data or run
        if run.test_cases is None and run.conversational_test_cases is None:
            raise InputError(f"{path} has no test cases; is it a test run of DeepEval?")
        cases = [*(run.test_cases or []), *(run.conversational_test_cases or [])]
        observations = list(_observations(cases, run))
        notes = [] if cases else ["no samples"]
        settings = {k: v for k, v in mapping(run.hyperparameters).items() if k != "model"}
        return Log(observations, "deepeval", notes, "success", settings=settings)


def _observations(cases: list[_Case], run: _Run) -> Iterator[Observation]:
    example_ids: set[str] = set()
    for position, case in enumerate(cases, 1):
        name = (
            case.name if case.name not in example_ids else f"{case.name}#{case.order or position}"
        )
        example_ids.add(name)
        metrics = case.metrics_data or []
        # DeepEval fails a case for a metric that raised. Such a case has no outcome, whatever its
        # other metrics say: were it a failure where one of them failed, and nothing where none did,
        # the cases that a judge did not reach would be all failures
        error = next((metric.error for metric in metrics if metric.error is not None), None)
        overall = _Metric("success", case.success, error=error)
        for metric in (overall, *metrics):
            yield _observation(case, metric, name, run, position)


def _observation(case: _Case, metric: _Metric, name: str, run: _Run, position: int) -> Observation:
    value = number(metric.score) if metric.success is None else float(metric.success)
    status = Status.SCORED if value is not None else Status.MISSING
    if metric.error is not None:
        value, status = None, Status.ERROR
    turns = case.turns or []
    measurements = {
        "position": position,
        "score": number(metric.score),
        "threshold": number(metric.threshold),
        "judge": metric.evaluation_model,
        "seconds": number(case.completion_time) or number(case.run_duration),
        "input_tokens": case.input_token_count,
        "output_tokens": case.output_token_count,
        "turns": len(turns) or None,
    }
    lists = {
        "context": case.context,
        "retrieval_context": case.retrieval_context,
        "tags": case.tags,
    }
    attributes = {**(case.metadata or {}), "comments": case.comments, **lists}
    return Observation(
        name,
        value,
        status,
        scorer=metric.name,
        model=_model(case, run),
        task=run.dataset_alias or run.test_file or "",
        prompt=text(case.input) or case.scenario or next(iter(texts_by(turns, "user")), None),
        response=text(case.actual_output) or "\n".join(texts_by(turns, "assistant")) or None,
        target=text(case.expected_output) or case.expected_outcome,
        attributes=drop_empty(attributes),
        measured=drop_empty(measurements),
    )


def _model(case: _Case, run: _Run) -> str:
    """The model among the hyperparameters, else the only one that the trace of the case names."""
    model = mapping(run.hyperparameters).get("model")
    spans = mapping(case.trace).get("llmSpans")
    models = (
        {text(mapping(span).get("model")) for span in spans}
        if isinstance(spans, list) and not model
        else set()
    )
    only = [model for model in models if isinstance(model, str)]
    return text(model) or (only[0] if len(only) == 1 else "")
