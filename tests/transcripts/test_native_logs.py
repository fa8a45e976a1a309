"""Traces of agents in the files that their tools export: small samples, made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from reader_samples import make_otlp_trace, mark_otlp

from groundfault import Evidence


def test_otlp_traces_have_steps_and_their_evaluations(tmp_path: Path) -> None:
    batches = [
        {"resourceSpans": [{"scopeSpans": [{"spans": make_otlp_trace(n, n % 2 * 1.0)}]}]}
        for n in range(4)
    ]
    logs = [
        {
            "traceId": "t0",
            "eventName": "gen_ai.evaluation.result",
            "attributes": mark_otlp(
                gen_ai__evaluation__name="polite", gen_ai__evaluation__score__label="pass"
            ),
        }
    ]
    batches[0]["resourceLogs"] = [{"scopeLogs": [{"logRecords": logs}]}]
    place = tmp_path / "traces.jsonl"
    place.write_text("\n".join(map(json.dumps, batches)))
    evidence = Evidence.from_logs(place, scorer="solved")
    assert evidence.loss.to_list() == [1, 0, 1, 0]
    assert evidence.models == ("m",)
    steps = evidence.transcripts.filter(example_id="t0")
    assert steps.select("actor", "kind", "name", "status").rows() == [
        ("assistant", "message", None, "ok"),
        ("assistant", "call", "pay", "ok"),
        ("tool", "result", "pay", "error"),
    ]
    assert steps["tokens"].to_list() == [7, None, None]
    polite = Evidence.from_logs(place, scorer="polite")
    assert polite.loss.drop_nulls().to_list() == [0]


def test_a_downloaded_trace_of_langfuse_has_steps(tmp_path: Path) -> None:
    for number in range(2):
        trace = {"id": f"t{number}", "name": "desk", "projectId": "p", "input": "q", "output": "a"}
        score = {"name": "solved", "value": number, "dataType": "NUMERIC", "source": "API"}
        observations = [
            {"id": "2", "type": "TOOL", "name": "pay", "startTime": "2026-01-01T00:00:02Z",
             "level": "ERROR", "statusMessage": "Error: no funds", "input": {"trip": 3}},
            {"id": "1", "type": "GENERATION", "name": "think", "output": "I will pay.",
             "startTime": "2026-01-01T00:00:01Z"},
        ]  # fmt: skip
        content = {"trace": trace, "observations": observations, "scores": [score]}
        (tmp_path / f"trace-{number}.json").write_text(json.dumps(content))
    evidence = Evidence.from_logs(tmp_path)
    assert sorted(evidence.loss.to_list()) == [0, 1]
    steps = evidence.transcripts
    assert steps.filter(example_id="t0").select("kind", "name", "status").rows() == [
        ("message", None, "ok"),
        ("call", "pay", "ok"),
        ("result", "pay", "error"),
    ]


def test_a_run_of_swe_bench_has_the_trajectories_beside_it(tmp_path: Path) -> None:
    turn = {"thought": "look", "action": "ls -F\n", "observation": "a.py", "execution_time": 0.5}
    for name in ("astropy__astropy-1", "django__django-2"):
        (tmp_path / name).mkdir()
        content = {"trajectory": [turn], "history": [{"role": "system", "content": "x"}]}
        (tmp_path / name / f"{name}.traj").write_text(json.dumps(content))
    report = {
        "total_instances": 3,
        "resolved_ids": ["astropy__astropy-1"],
        "unresolved_ids": ["django__django-2", "django__django-3"],
    }
    (tmp_path / "agent.run1.json").write_text(json.dumps(report))
    evidence = Evidence.from_logs(tmp_path / "agent.run1.json")
    assert sorted(evidence.loss.to_list()) == [0, 1, 1]
    steps = evidence.transcripts
    assert set(steps["example_id"]) == {"astropy__astropy-1", "django__django-2"}
    assert steps.filter(kind="call")["name"].to_list() == ["ls", "ls"]
    assert steps["seconds"].drop_nulls().to_list() == [0.5, 0.5]


def test_events_of_inspect_that_are_no_message_are_steps(tmp_path: Path) -> None:
    inspect = pytest.importorskip("inspect_ai")
    from inspect_ai.approval import Approval, ApprovalPolicy, approver
    from inspect_ai.dataset import Sample
    from inspect_ai.log import ProvenanceData, edit_score, write_eval_log
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import Score, ScoreEdit, accuracy, scorer
    from inspect_ai.solver import generate, use_tools
    from inspect_ai.tool import bash
    from inspect_ai.util import sandbox

    @approver
    def careful() -> Any:
        async def approve(_message: Any, call: Any, _view: Any, _history: Any) -> Approval:
            is_fine = "rm" not in str(call.arguments)
            return Approval(decision="approve" if is_fine else "reject", explanation="keep it")

        return approve

    @scorer(metrics=[accuracy()])
    def tests() -> Any:
        async def score(_state: Any, _target: Any) -> Score:
            await sandbox().exec(["ls", "/no-tests"])
            return Score(value="C", explanation="it says hi")

        return score

    def act(messages: list[Any], *_: Any) -> ModelOutput:
        commands = ["ls /nowhere", "rm -r /tmp/nowhere", "echo hi"]
        turn = sum(one.role == "assistant" for one in messages)
        if turn < len(commands):
            output = ModelOutput.for_tool_call("m", "bash", {"command": commands[turn]})
        else:
            output = ModelOutput.from_content("m", "hi")
        output.usage = ModelUsage(input_tokens=9, output_tokens=3, total_tokens=12)
        return output

    task = inspect.Task(
        dataset=[Sample(id=1, input="say hi", target="hi")],
        solver=[use_tools([bash()]), generate()],
        scorer=tests(),
        sandbox="local",
        approval=[ApprovalPolicy(careful(), "*")],
    )
    model = get_model("mockllm/model", custom_outputs=act)
    (log,) = inspect.eval(task, model=model, display="none", log_dir=str(tmp_path))
    author = ProvenanceData(author="eve", reason="it was void")
    edit_score(log, 1, "tests", ScoreEdit(value="I", provenance=author))
    write_eval_log(log)
    evidence = Evidence.from_logs(tmp_path)
    assert evidence.loss.to_list() == [1]
    steps = evidence.transcripts.filter(pl.col("actor").is_in(["environment", "judge"]))
    assert steps.select("turn", "kind", "name", "status").rows() == [
        (1, "error", "sandbox exec", "error"),
        (2, "error", "careful", "refused"),
        (4, "feedback", "tests", "ok"),
        (4, "feedback", "tests", "ok"),
    ]
    assert steps["error_kind"][:2].to_list() == [
        "ls: cannot access *: No such file or directory",
        "reject: keep it",
    ]
    # a step follows the call that it befell
    second = evidence.transcripts.filter(turn=2)["kind"].to_list()
    assert second == ["message", "call", "error", "result"]
