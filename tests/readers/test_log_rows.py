"""Rows of logs: what their format says was known before the answer, whatever it predicts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from reader_samples import PHOENIX, write_csv, write_json

import groundfault
from groundfault import Evidence
from groundfault.auditing.column_timing import Timing
from groundfault.auditing.preparation import prepare
from groundfault.render import to_markdown

KINDS = "abcdef"


def list_answers(share: float, n: int = 600) -> list[tuple[str, str, bool]]:
    """Id, kind and outcome: a share of one kind fails, and nothing else."""
    failing = {6 * i + 2 for i in range(round(share * n / 6))}
    return [(f"q{i}", KINDS[i % 6], i not in failing) for i in range(n)]


Answers = list[tuple[str, str, bool]]


def write_inspect(folder: Path, answers: Answers) -> Path:
    run = {"run_id": "r", "task_id": "i", "created": "2026-01-01", "dataset": {}, "config": {}}
    run |= {"task": "t", "model": "m/m"}
    samples = [
        {
            "id": name,
            "epoch": 1,
            "input": f"question {name}",
            "target": "x",
            "metadata": {"kind": kind, "passed": passed, "n_turns": int(passed)},
            "scores": {"match": {"value": "C" if passed else "I"}},
        }
        for name, kind, passed in answers
    ]
    content = {"version": 2, "status": "success", "eval": run, "samples": samples}
    return write_json(folder / "log.json", content)


def write_promptfoo(folder: Path, answers: Answers) -> Path:
    rows = [
        {
            "success": passed,
            "score": float(passed),
            "failureReason": int(not passed),
            "testIdx": i,
            "prompt": {"raw": f"question {name}", "label": "p"},
            "provider": {"id": "m"},
            "vars": {"kind": kind, "q": name},
            "response": {"output": "x"},
            "testCase": {"description": f"a test of {kind}"},
            "namedScores": {},
        }
        for i, (name, kind, passed) in enumerate(answers)
    ]
    return write_json(folder / "results.jsonl", rows)


def write_lm_eval(folder: Path, answers: Answers) -> Path:
    rows = [
        {
            "doc_id": i,
            "doc": {"question": name, "kind": kind},
            "target": "x",
            "arguments": [[f"question {name}", {}]],
            "resps": [["x"]],
            "filtered_resps": ["x"],
            "filter": "none",
            "metrics": ["exact_match"],
            "exact_match": float(passed),
        }
        for i, (name, kind, passed) in enumerate(answers)
    ]
    return write_json(folder / "samples_t_2026-01-01T00-00-00.000000.jsonl", rows)


def write_deepeval(folder: Path, answers: Answers) -> Path:
    cases = [
        {
            "name": name,
            "success": passed,
            "metricsData": [],
            "input": f"question {name}",
            "actualOutput": "x",
            "metadata": {"kind": kind},
            "comments": "fine" if passed else "this is wrong",
        }
        for name, kind, passed in answers
    ]
    return write_json(folder / "run.json", {"testCases": cases})


def write_langfuse(folder: Path, answers: Answers) -> Path:
    rows = [
        {
            "id": f"s{name}",
            "traceId": name,
            "name": "correct",
            "value": int(passed),
            "dataType": "BOOLEAN",
            "source": "API",
            "trace": {"id": name, "input": name, "output": "x", "metadata": {"kind": kind}},
        }
        for name, kind, passed in answers
    ]
    return write_json(folder / "scores.json", rows)


def write_lighteval(folder: Path, answers: Answers) -> Path:
    rows = [
        {
            "doc": {"id": name, "query": f"question {name}", "specific": {"kind": kind}},
            "model_response": {"text": ["x"]},
            "metric": {"acc": int(passed)},
        }
        for name, kind, passed in answers
    ]
    path = folder / "details_t|0_2026-01-01T00-00-00.000000.parquet"
    pl.DataFrame(rows).write_parquet(path)
    return path


def write_phoenix(folder: Path, answers: Answers) -> Path:
    rows = [
        {**PHOENIX[0], "example_id": name, "input": {"kind": kind}, "annotations": [note]}
        for name, kind, passed in answers
        for note in [{"name": "match", "annotator_kind": "CODE", "score": float(passed)}]
    ]
    return write_json(folder / "experiment.json", rows)


@pytest.mark.parametrize("share", [1.0, 0.97])
@pytest.mark.parametrize(
    "write", [write_inspect, write_promptfoo, write_lm_eval, write_deepeval, write_lighteval]
)
def test_a_kind_that_always_fails_is_named(
    write: Callable[[Path, Answers], Path], share: float, tmp_path: Path
) -> None:
    evidence = Evidence.from_logs(write(tmp_path, list_answers(share)))
    report = groundfault.audit(evidence, ledger=None)
    assert report.modes[0].meaning in ("kind is c", "vars_kind is c")
    assert report.modes[0].errors == round(100 * share)
    assert {"kind", "vars_kind"} & {*evidence.roles.known}
    assert not {"kind", "vars_kind"} & {one.column for one in report.deciding or ()}


def write_table(folder: Path, answers: Answers) -> Path:
    rows = [{"name": name, "kind": kind, "ok": int(passed)} for name, kind, passed in answers]
    return write_csv(folder / "table.csv", rows)


@pytest.mark.parametrize("write", [write_langfuse, write_phoenix, write_table])
def test_where_nobody_knows_when_the_kind_is_the_headline(
    write: Callable[[Path, Answers], Path], tmp_path: Path
) -> None:
    """Traces and tables: a kind that decides the outcome is named, and one word makes it a mode."""
    path = write(tmp_path, list_answers(1.0))

    def read(**more: Any) -> Evidence:
        if path.suffix == ".csv":
            return Evidence.from_table(path, id="name", outcome="ok", positive_is_good=True, **more)
        return Evidence.from_logs(path, **more)

    report = groundfault.audit(read(), ledger=None)
    (deciding,) = report.deciding or ()
    (mode,) = deciding.modes
    assert mode.errors == 100
    assert f"'{deciding.column}' decides the outcome" in " ".join(to_markdown(report).split())
    (named,) = groundfault.audit(read(allow_leakage=[deciding.column]), ledger=None).modes
    assert (named.rule, named.errors) == (mode.rule, 100)


def test_what_a_name_says_of_the_answer_is_not_known_before(tmp_path: Path) -> None:
    evidence = Evidence.from_logs(write_inspect(tmp_path, list_answers(1.0)))
    assert not {"passed", "n_turns"} & {*evidence.roles.known}
    stages = {one.column: one for one in prepare(evidence).stages}
    assert stages["kind"].stage is Timing.KNOWN
    assert stages["kind"].reason == "by the format of the log"
    assert stages["passed"].stage is stages["n_turns"].stage is Timing.FOLLOWS
    (mode,) = groundfault.audit(evidence, ledger=None).modes
    assert mode.columns == ("kind",)


def test_comments_may_be_of_somebody_who_read_the_answer(tmp_path: Path) -> None:
    evidence = Evidence.from_logs(write_deepeval(tmp_path, list_answers(1.0)))
    assert "comments" not in evidence.roles.known
    report = groundfault.audit(evidence, ledger=None)
    assert report.deciding is not None
    assert [one.column for one in report.deciding] == ["comments"]
    assert all("comments" not in mode.columns for mode in report.modes)


def test_traces_and_mapped_tables_say_nothing_of_when(tmp_path: Path) -> None:
    answers = list_answers(1.0)
    rows = [{"name": a, "kind": b, "ok": int(c)} for a, b, c in answers]
    table = write_csv(tmp_path / "table.csv", rows)
    mapping: dict[str, Any] = {"columns": {"example_id": "name", "value": "ok"}}
    for evidence in (
        Evidence.from_logs(write_langfuse(tmp_path, answers)),
        Evidence.from_logs(table, map=mapping),
    ):
        assert evidence.roles.known == ()
        report = groundfault.audit(evidence, ledger=None)
        assert report.deciding is not None
        assert [one.column for one in report.deciding] == ["kind"]
        assert report.modes == ()


def test_a_log_beside_it_that_says_nothing_takes_the_word_back(tmp_path: Path) -> None:
    answers = list_answers(1.0)
    log = write_inspect(tmp_path, answers[:300])
    other = tmp_path / "other.parquet"
    pl.DataFrame(
        {
            "example_id": [a for a, _, _ in answers[300:]],
            "kind": [b for _, b, _ in answers[300:]],
            "value": [float(c) for _, _, c in answers[300:]],
            "scorer": ["match"] * 300,
        }
    ).write_parquet(other)
    assert "kind" in Evidence.from_logs(log).roles.known
    assert "kind" not in Evidence.from_logs(log, other).roles.known


def test_what_was_known_is_saved_and_verified(tmp_path: Path) -> None:
    log = write_promptfoo(tmp_path, list_answers(1.0))
    evidence = Evidence.from_logs(log)
    evidence.save(tmp_path / "saved")
    again = Evidence.from_logs(tmp_path / "saved")
    assert again.roles.known == evidence.roles.known != ()
    report = groundfault.audit(evidence, ledger=None)
    report.write(tmp_path / "report")
    checks = groundfault.verify(tmp_path / "report", evidence=log, ledger=None).checks
    assert checks[0].status == "passed"
