"""Traces of agents in the files that their tools export: small samples, made by hand."""

from __future__ import annotations

import json
from pathlib import Path

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
