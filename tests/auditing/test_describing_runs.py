"""Descriptions of runs are behaviours: with controls, blind to graders, and never modes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from describing_models import DescribingModel, read_arm

import groundfault
from groundfault import Evidence, Plan
from groundfault.cli.main import cli
from groundfault.descriptions import ProposingSettings
from groundfault.models import Question, Record

CAUSE, CONTROL = "the agent pays before it checks", "the task has an even number"


def make_runs(n: int = 240, *, steps: bool = True) -> Evidence:
    """Runs of two turns; those that pay first fail more often."""
    rng = np.random.default_rng(1)
    rows = []
    for task in range(n):
        hasty = rng.random() < 0.4
        failed = bool(rng.random() < (0.85 if hasty else 0.25))
        tools = ["pay", "check"] if hasty else ["check", "pay"]
        chat: list[dict[str, object]] = [{"role": "user", "content": f"task {task}"}]
        for tool in tools:
            call = {"id": "a", "function": {"name": tool, "arguments": "{}"}}
            chat.append({"role": "assistant", "tool_calls": [call]})
            chat.append({"role": "tool", "tool_call_id": "a", "content": "ok"})
        chat.append({"role": "judge", "content": "SECRET wrong" if failed else "SECRET right"})
        text = json.dumps(chat) if steps else f"task {task}: {' then '.join(tools)}"
        rows.append((f"t{task}", int(failed), text))
    names = ["id", "error", "messages" if steps else "response"]
    table = pl.DataFrame(rows, schema=names, orient="row")
    return Evidence.from_table(table, id="id", outcome="error")


def decide(item: str, statement: str) -> bool:
    if statement == CAUSE:
        return item.find("pay") < item.find("check")
    number = int(item.split("task ")[1].split()[0].rstrip(":"))
    return number % 2 == 0


def propose(question: Question) -> str:
    is_blind = read_arm(question.messages[0]["content"]) == "blind"
    return json.dumps({"descriptions": [CONTROL] if is_blind else [CAUSE, CONTROL]})


@pytest.mark.parametrize("steps", [True, False])
def test_descriptions_of_runs_are_lines_of_how_it_fails(steps: bool) -> None:
    model = DescribingModel(propose, decide)
    described = groundfault.describe(
        make_runs(steps=steps),
        model,
        Plan(seed=3),
        second=model,
        settings=ProposingSettings(rounds=1, runs=True),
    )
    assert not any("SECRET" in prompt for prompt in model.prompts)
    assert any("Say what happens in the runs that failed" in prompt for prompt in model.prompts)
    assert all(one.agreement is not None for one in described.rows)
    marked = described.marked
    assert marked is not None
    cause, control = marked.roles.during
    assert cause == f"{CAUSE} (outcomes, shuffled)"
    assert control == f"{CONTROL} (outcomes, blind, shuffled)"
    # on the half that it was proposed from, nothing is tested
    assert marked.frame[cause].null_count() == 120
    assert marked.frame[control].null_count() == 0
    report = groundfault.audit(marked, ledger=False)
    by_name = {one.name: one for one in report.behaviours if one.whole}
    told = by_name[cause[:80]]
    assert told.p is not None
    assert told.p < 0.05
    assert told.failing_runs + told.passing_runs == 120
    other = by_name[control[:80]].p
    assert other is None or other > 0.1
    assert not any({cause, control} & {*mode.columns} for mode in report.modes)


def test_the_command_writes_what_an_audit_reads(tmp_path: Path) -> None:
    make_runs(60).frame.write_parquet(tmp_path / "runs.parquet")
    evidence = Evidence.from_table(tmp_path / "runs.parquet", id="id", outcome="error")
    calls = tmp_path / "calls.db"
    settings = ProposingSettings(runs=True)
    model = DescribingModel(propose, decide)
    groundfault.describe(evidence, model, settings=settings, record=calls)
    Record(calls).to_jsonl(tmp_path / "calls.jsonl")
    words = f"lab describe {tmp_path}/runs.parquet --id id --outcome error --runs"
    words += f" --describer replay:{tmp_path}/calls.jsonl --out {tmp_path}/out"
    done = CliRunner().invoke(cli, words.split())
    assert done.exit_code == 0, done.output
    place = tmp_path / "out" / "evidence"
    # a long path is broken over lines
    assert f"groundfaultaudit{place}" in "".join(done.output.split())
    again = Evidence.from_logs(place)
    assert again.roles.during[0] == f"{CAUSE} (outcomes, shuffled)"
    assert len(again.transcripts) == len(evidence.transcripts) > 0
    report = groundfault.audit(again, ledger=tmp_path / "ledger.db")
    report.write(tmp_path / "report")
    checked = groundfault.verify(tmp_path / "report", evidence=place, ledger=tmp_path / "ledger.db")
    assert checked.verdict == "reproduces"
