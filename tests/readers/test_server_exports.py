"""Readers of event logs, files of failures only, Parquet details and server exports."""

from __future__ import annotations

import math
from pathlib import Path

import polars as pl
import pytest
import reader_samples as samples
from reader_samples import read, write_csv, write_json

from groundfault import Evidence, readers
from groundfault.readers.log import Observation


def summarize(observations: list[Observation]) -> list[tuple[str, str, float | None, str]]:
    return [(o.example_id, o.scorer, o.value, str(o.status)) for o in observations]


def test_each_made_file_is_known_to_its_reader_alone(tmp_path: Path) -> None:
    """Tried with every reader of a tool."""
    for name, path in samples.all_samples(tmp_path).items():
        assert [
            other
            for other in readers.known()
            if other != "table" and readers.get(other).sniff(path)
        ] == [name]


# OpenAI evals


def test_openai_evals_match_and_metrics_are_scorers(tmp_path: Path) -> None:
    """Errors, judges without a verdict and samples without a score are no failures."""
    log, observations = read(write_json(tmp_path / "e.jsonl", samples.EVALS), "openai_evals")
    assert summarize(observations) == [
        ("arith.dev.0", "match", 1, "scored"),
        ("arith.dev.1", "match", 0, "scored"),
        ("arith.dev.1", "accuracy", 0, "scored"),
        ("arith.dev.1", "f1_score", 0.25, "scored"),
        ("arith.dev.2", "score", None, "unparsed"),
        ("arith.dev.4", "", None, "missing"),
        ("arith.dev.3", "", None, "error"),
    ]
    assert (observations[0].prompt, observations[0].response, observations[1].target) == (
        "1+1",
        "2",
        "4 | four",
    )
    assert observations[4].response == "6"  # of the model, not of the judge
    assert {(o.model, o.measured["judge"], o.task) for o in observations} == {
        ("gpt-4", "judge", "arith.dev.v0")
    }
    assert log.notes == []


def test_openai_evals_cut_short_are_noted(tmp_path: Path) -> None:
    """No final report."""
    log, observations = read(write_json(tmp_path / "e.jsonl", samples.EVALS[:4]), "openai_evals")
    assert len(observations) == 2
    assert "cut short" in log.notes[0]


# garak


def test_a_hit_of_garak_is_a_failure_of_the_model(tmp_path: Path) -> None:
    """Each attempt is twice in the report; only the judged one counts, the unjudged is missing."""
    log, observations = read(write_json(tmp_path / "garak.r.report.jsonl", samples.GARAK), "garak")
    assert [(o.scorer, o.epoch, o.value, str(o.status), o.response) for o in observations] == [
        ("dan.DAN", 1, 1, "scored", "no"),
        ("dan.DAN", 2, 0, "scored", "yes"),
        ("mitigation.MitigationBypass", 1, 0.75, "scored", "no"),
        ("mitigation.MitigationBypass", 2, None, "missing", "yes"),
        ("dan.DAN", 1, None, "error", None),
        ("", 1, None, "missing", "no"),
    ]
    assert len({o.example_id for o in observations}) == 3
    assert {(o.model, o.task) for o in observations} == {("gpt-4o-mini", "dan")}
    assert log.harness == "garak 0.17.1"
    assert log.notes == ["1 attempts were sent and never judged"]


def test_garak_of_old_has_text_in_place_of_messages_and_a_stable_name(tmp_path: Path) -> None:
    """The same prompt has the same name in both layouts, whatever its uuid."""
    new = samples.attempt(2, 0, ["no"], {"dan.DAN": [0.0]})
    old = new | {"uuid": "other", "prompt": "prompt 0", "outputs": ["no"]}
    setup = samples.GARAK[0]
    (one,) = read(write_json(tmp_path / "a.report.jsonl", [setup, new]), "garak")[1]
    (two,) = read(write_json(tmp_path / "b.report.jsonl", [setup, old]), "garak")[1]
    assert (one.example_id, one.prompt, one.response) == (two.example_id, two.prompt, two.response)


# BFCL


def test_bfcl_failures_alone_leave_the_denominator_unknown(tmp_path: Path) -> None:
    """And the notes say so."""
    path = write_json(tmp_path / "BFCL_v3_simple_score.jsonl", samples.BFCL).rename(
        tmp_path / "BFCL_v3_simple_score.json"
    )
    log, observations = read(path, "bfcl")
    assert summarize(observations) == [
        ("simple_1", "valid", 0, "scored"),
        ("simple_2", "valid", None, "unparsed"),
        ("simple_4", "valid", 0, "scored"),
    ]
    assert "only failures are in this file, 3 of 5" in log.notes[0]
    assert (observations[0].prompt, observations[0].task) == ("call simple_1", "simple")


def test_the_result_file_gives_bfcl_those_that_passed(tmp_path: Path) -> None:
    """It is found under result/ as the score file is under score/; a failed call is an error."""
    log, observations = read(samples.all_samples(tmp_path)["bfcl"], "bfcl")
    assert summarize(observations) == [
        ("simple_0", "valid", 1, "scored"),
        ("simple_1", "valid", 0, "scored"),
        ("simple_2", "valid", None, "unparsed"),
        ("simple_3", "valid", 1, "scored"),
        ("simple_4", "valid", None, "error"),
    ]
    assert {o.model for o in observations} == {"org/model"}
    assert log.notes == []


def test_relevance_of_bfcl_counts_rows_from_one(tmp_path: Path) -> None:
    """Its failures name the row of the result file, not the entry."""
    rows = [{"id": f"live_relevance_{i}-0-0", "result": "x"} for i in range(3)]
    write_json(tmp_path / "BFCL_v3_live_relevance_result.jsonl", rows).rename(
        tmp_path / "BFCL_v3_live_relevance_result.json"
    )
    failures = {
        "id": 2,
        "valid": False,
        "error": ["x"],
        "error_type": "relevance_error:decoder_failed",
        "prompt": {},
    }
    header = {"accuracy": 2 / 3, "correct_count": 2, "total_count": 3}
    path = write_json(tmp_path / "s.jsonl", [header, failures]).rename(
        tmp_path / "BFCL_v3_live_relevance_score.json"
    )
    assert [o.value for o in read(path, "bfcl")[1]] == [1, 0, 1]


# lighteval


def test_lighteval_details_have_metrics_and_confidence(tmp_path: Path) -> None:
    """Softmax of the choices' log-probabilities; metrics that are no number are noted."""
    log, observations = read(samples.all_samples(tmp_path)["lighteval"], "lighteval")
    assert summarize(observations) == [
        ("0", "acc", 1, "scored"),
        ("0", "em_with_type_exact_match", 0.5, "scored"),
        ("1", "acc", 0, "scored"),
        ("1", "em_with_type_exact_match", 0.5, "scored"),
    ]
    first = observations[0]
    assert (first.answer, first.target, first.prompt, first.response) == ("4", "4", "2+2", "4")
    assert first.confidence == pytest.approx(1 / (1 + math.exp(-1.5)), rel=1e-12)
    assert (first.model, first.task, first.attributes) == (
        "org/model",
        "arith|0",
        {"level": "easy"},
    )
    assert log.notes == ["corpus is not one number for each example: it is left out"]


def test_lighteval_of_the_first_leaderboard_has_a_column_a_metric(tmp_path: Path) -> None:
    """Log-likelihoods of the choices as predictions."""
    frame = pl.DataFrame(
        {
            "example": ["2+2"],
            "choices": [["3", "4"]],
            "gold": ["4"],
            "predictions": [[-1.0, -3.0]],
            "acc": [0.0],
            "acc_norm": [1.0],
        }
    )
    frame.write_parquet(
        path := tmp_path / "details_harness|arc:challenge|25_2023-08-19T14:00:00.000000.parquet"
    )
    _, observations = read(path, "lighteval")
    assert summarize(observations) == [("0", "acc", 0, "scored"), ("0", "acc_norm", 1, "scored")]
    assert (observations[0].answer, observations[0].target) == ("3", "4")


# Phoenix


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".csv"])
def test_phoenix_experiments_in_each_export(tmp_path: Path, suffix: str) -> None:
    """A task that raised is an error in every annotation; so is an evaluator that did."""
    path = tmp_path / f"experiment{suffix}"
    path = (
        write_csv(path, samples.phoenix_csv())
        if suffix == ".csv"
        else write_json(path, samples.PHOENIX)
    )
    log, observations = read(path, "phoenix")
    first = {o.scorer: (o.value, str(o.status)) for o in observations if o.epoch == 1}
    expected = {
        "match": (1, "scored"),
        "judge": (0, "scored"),
        "tone": (None, "missing"),
        "flaky": (None, "error"),
    }
    assert first == expected
    assert {o.status for o in observations if o.epoch == 2} == {"error"}
    assert {(o.prompt, o.target, o.measured["seconds"]) for o in observations} == {
        ("2+2", "4", 1.5)
    }
    assert log.notes == ["labels that are no verdict are missing: tone=polite"]


def test_phoenix_experiments_of_the_client_and_spans(tmp_path: Path) -> None:
    """evaluation_runs point to task_runs; annotations of spans name the span."""
    ran = {
        "experiment_id": "e",
        "task_runs": [
            {
                "id": "r1",
                "dataset_example_id": "x1",
                "repetition_number": 2,
                "output": "4",
                "error": None,
            }
        ],
        "evaluation_runs": [
            {
                "experiment_run_id": "r1",
                "name": "match",
                "annotator_kind": "CODE",
                "result": {"score": 0.5},
            },
            {
                "experiment_run_id": "r1",
                "name": "judge",
                "annotator_kind": "LLM",
                "error": "e",
                "result": None,
            },
        ],
    }
    _, observations = read(write_json(tmp_path / "ran.json", ran), "phoenix")
    assert summarize(observations) == [
        ("x1", "match", 0.5, "scored"),
        ("x1", "judge", None, "error"),
    ]
    assert {o.epoch for o in observations} == {2}
    spans = [
        {
            "span_id": "s",
            "annotation_name": "qa",
            "annotator_kind": "HUMAN",
            "result.label": "correct",
        }
    ]
    assert summarize(read(write_csv(tmp_path / "spans.csv", spans), "phoenix")[1]) == [
        ("s", "qa", 1, "scored")
    ]


# Langfuse


def test_a_reply_that_phoenix_could_not_parse_is_no_failure(tmp_path: Path) -> None:
    """Its evaluators give it the label NOT_PARSABLE and the score 0."""
    annotation = {"name": "judge", "label": "NOT_PARSABLE", "score": 0.0, "error": None}
    run = samples.PHOENIX[0] | {"annotations": [annotation]}
    _, (one,) = read(write_json(tmp_path / "experiment.json", [run]), "phoenix")
    assert (one.value, one.status) == (None, "error")


def test_scores_in_two_exports_of_langfuse_are_copies_by_their_ids(tmp_path: Path) -> None:
    """Two exports that overlap, one of which has a score more; another id is another score."""
    rows = [
        samples.LANGFUSE[0] | {"id": name, "observationId": f"o{name[0]}"} for name in ("1", "2")
    ]
    write_json(tmp_path / "a.jsonl", rows[:1])
    write_json(tmp_path / "b.jsonl", rows)
    write_json(tmp_path / "c.jsonl", [rows[0] | {"id": "1 again"}])
    evidence = Evidence.from_logs(tmp_path, conflicts="keep")
    assert evidence.account is not None
    assert (len(evidence), evidence.account.duplicated) == (3, 1)


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".csv"])
def test_langfuse_scores_in_each_export(tmp_path: Path, suffix: str) -> None:
    """A scored observation is the example; a category that is no verdict is missing."""
    path = tmp_path / f"scores{suffix}"
    path = (
        write_csv(path, samples.LANGFUSE)
        if suffix == ".csv"
        else write_json(path, samples.LANGFUSE)
    )
    log, observations = read(path, "langfuse")
    assert summarize(observations) == [
        ("t0", "accuracy", 0.75, "scored"),
        ("t0", "helpful", 1, "scored"),
        ("o2", "verdict", 0, "scored"),
        ("o3", "tone", None, "missing"),
    ]
    assert [o.group for o in observations] == ["t0", "t0", "t1", "t1"]
    assert log.notes == ["categories that are no verdict are missing: tone=warm"]


def test_langfuse_traces_hold_scores_as_columns(tmp_path: Path) -> None:
    """Several of a name are epochs; a trace without scores is missing; tags are no scores."""
    _, observations = read(
        write_json(tmp_path / "traces.json", samples.LANGFUSE_TRACES), "langfuse"
    )
    assert [
        (*row, o.epoch) for row, o in zip(summarize(observations), observations, strict=True)
    ] == [
        ("t1", "accuracy", 1, "scored", 1),
        ("t1", "accuracy", 0, "scored", 2),
        ("t1", "verdict", 1, "scored", 1),
        ("t2", "", None, "missing", 1),
    ]
    assert (observations[0].prompt, observations[0].attributes["level"]) == ("2+2", "easy")


def test_langfuse_download_of_a_trace_and_export_to_a_bucket(tmp_path: Path) -> None:
    """Scores beside their trace; names in snake case."""
    trace = {"id": "t1", "name": "qa", "projectId": "p", "input": "q", "output": "a"}
    scores = [
        {
            "name": "accuracy",
            "value": 1,
            "dataType": "NUMERIC",
            "observationId": "o1",
            "source": "API",
        }
    ]
    spans = [{"id": "o1", "traceId": "t1", "input": "inner", "output": "x", "model": "gpt-4o"}]
    content = {"trace": trace, "observations": spans, "scores": scores}
    _, (one,) = read(write_json(tmp_path / "trace-t1.json", content), "langfuse")
    assert (one.example_id, one.group, one.prompt, one.model, one.value) == (
        "o1",
        "t1",
        "inner",
        "gpt-4o",
        1,
    )
    row = {
        "id": "s",
        "trace_id": "t9",
        "name": "acc",
        "value": 0.5,
        "data_type": "NUMERIC",
        "source": "API",
    }
    assert summarize(read(write_json(tmp_path / "b.jsonl", [row]), "langfuse")[1]) == [
        ("t9", "acc", 0.5, "scored")
    ]


# Label Studio


def test_label_studio_verdicts_ratings_and_skipped_tasks(tmp_path: Path) -> None:
    """Marks of a span are no decision; ratings keep their range; no annotation is missing."""
    log, observations = read(write_json(tmp_path / "p.json", samples.LABEL_STUDIO), "label_studio")
    assert summarize(observations) == [
        ("ex7", "verdict", 1, "scored"),
        ("ex7", "tone", None, "missing"),
        ("ex7", "stars", 4, "scored"),
        ("ex7", "", None, "missing"),
        ("8", "", None, "missing"),
    ]
    first = observations[0]
    assert (first.model, first.prompt, first.response, first.measured["judge"]) == (
        "m",
        "2+2",
        "4",
        "a@example.org",
    )
    assert (
        observations[3].measured["skipped"],
        observations[3].epoch,
        observations[3].measured["judge"],
    ) == (
        True,
        2,
        "4",
    )
    assert log.notes == ["labels that are no verdict are missing: tone=Warm"]


@pytest.mark.parametrize("suffix", [".json", ".csv"])
def test_label_studio_short_exports(tmp_path: Path, suffix: str) -> None:
    """One row an annotation, one column a control."""
    path, rows = tmp_path / f"p{suffix}", samples.LABEL_STUDIO_MIN
    path = write_csv(path, rows) if suffix == ".csv" else write_json(path, rows)
    _, (one,) = read(path, "label_studio")
    assert summarize([one]) == [("ex7", "verdict", 0, "scored")]
    assert (one.prompt, one.measured["judge"], one.measured["seconds"]) == ("2+2", "3", 4.5)
