"""DeepEval: test runs, as saved beside a run or under .deepeval."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.readers.formats import JsonFormat
from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import JsonObject, json_file
from groundfault.readers.values import (
    dig,
    drop_empty,
    listing,
    mapping,
    number,
    settle,
    text,
    texts_by,
)


class _Metric(msgspec.Struct, rename="camel"):
    name: str
    success: bool | None = None
    score: object = None
    threshold: object = None
    reason: object = None
    evaluation_model: str | None = None
    error: object = None


class _Case(msgspec.Struct, rename="camel"):
    """A test case; a conversation has turns in place of input and output."""

    name: str
    success: bool | None = None
    metrics_data: list[_Metric] | None = None
    order: int | None = None
    input: object = None
    actual_output: object = None
    expected_output: object = None
    turns: list[JsonObject] | None = None
    scenario: str | None = None
    expected_outcome: str | None = None
    metadata: JsonObject | None = None
    tags: list[str] | None = None
    comments: str | None = None
    context: list[object] | None = None
    retrieval_context: list[object] | None = None
    trace: JsonObject | None = None
    run_duration: object = None
    completion_time: object = None
    input_token_count: int | None = None
    output_token_count: int | None = None


class _Run(msgspec.Struct, rename="camel"):
    # some files hold the same fields one level down, in testRunData
    test_cases: list[_Case] | None = None
    conversational_test_cases: list[_Case] | None = None
    hyperparameters: JsonObject | None = None
    dataset_alias: str | None = None
    test_file: str | None = None
    test_run_data: _Run | None = None


class DeepEval(JsonFormat):
    """Reads test runs: the scorer ``success`` for the case as a whole, and one scorer a metric.

    The value says whether the metric's threshold was met, since a low score is good in some
    metrics; the score itself is in a separate column. A metric that raised is ``error``, and so is
    its case.
    """

    tool = "deepeval"
    # a person who reads the answer may write them
    undated = ("comments",)
    opening = re.compile(
        rb'\s*\{(?s:(?=.*"(?:testCases|conversationalTestCases)").*"metrics(?:Data|Scores)")'
    )

    def observe(self, path: Path, log: Log) -> Iterator[Observation]:
        """Read one observation a case and metric."""
        run = json_file(path, _Run)
        run = run.test_run_data or run
        if run.test_cases is None and run.conversational_test_cases is None:
            raise InputError(f"{path} has no test cases; is it a test run of DeepEval?")
        cases = [*(run.test_cases or []), *(run.conversational_test_cases or [])]
        log.verdict, log.notes = "success", [] if cases else ["no samples"]
        log.settings = {k: v for k, v in mapping(run.hyperparameters).items() if k != "model"}
        names: set[str] = set()
        for position, case in enumerate(cases, 1):
            name = case.name if case.name not in names else f"{case.name}#{case.order or position}"
            names.add(name)
            yield from _score_case(_read_case(case, name, run), case, position)


def _score_case(base: Observation, case: _Case, position: int) -> Iterator[Observation]:
    metrics = case.metrics_data or []
    # DeepEval fails a case for a metric that raised. This case has no outcome, even if its other
    # metrics have: if it counted only when another metric failed, all counted cases that a judge
    # did not reach would be failures
    error = next((metric.error for metric in metrics if metric.error is not None), None)
    reasons = "\n".join(f"{m.name}: {text(m.reason)}" for m in metrics if text(m.reason))
    for metric in (_Metric("success", case.success, error=error, reason=reasons), *metrics):
        value = metric.score if metric.success is None else metric.success
        reason = None if metric.error is None else Status.ERROR
        observation = base.rescore(metric.name, *settle(value, reason))
        measurements = {
            "position": position,
            "score": number(metric.score),
            "threshold": number(metric.threshold),
            "judge": metric.evaluation_model,
            "reason": text(metric.reason) or None,
        }
        observation.measured = drop_empty({**measurements, **base.measured})
        yield observation


def _read_case(case: _Case, name: str, run: _Run) -> Observation:
    """Read the part that all scores of a case share."""
    turns = case.turns or []
    names = ("comments", "context", "retrieval_context", "tags")
    return Observation(
        name,
        model=_find_model(case, run),
        task=run.dataset_alias or run.test_file or "",
        prompt=text(case.input) or case.scenario or next(iter(texts_by(turns, "user")), None),
        response=text(case.actual_output) or "\n".join(texts_by(turns, "assistant")) or None,
        target=text(case.expected_output) or case.expected_outcome,
        attributes=drop_empty({**(case.metadata or {}), **{n: getattr(case, n) for n in names}}),
        measured={
            "seconds": number(case.completion_time) or number(case.run_duration),
            "input_tokens": case.input_token_count,
            "output_tokens": case.output_token_count,
            "turns": len(turns) or None,
        },
    )


def _find_model(case: _Case, run: _Run) -> str:
    """Return the model of the hyperparameters, else the only one in the trace of the case."""
    if model := mapping(run.hyperparameters).get("model"):
        return text(model) or ""
    names = {text(dig(span, "model")) for span in listing(dig(case.trace, "llmSpans"))} - {None}
    return str(names.pop()) if len(names) == 1 else ""
