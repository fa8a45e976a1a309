"""Conversations of any tool become one table of steps; what they hold is never an attribute."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from groundfault import Evidence, audit
from groundfault.core.column_meaning import holds_conversations, open_conversation
from groundfault.transcripts.steps import read_transcripts, tabulate_steps

OPENAI = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "book HAT12"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "a", "function": {"name": "book", "arguments": '{"flight":"HAT12"}'}},
            {"id": "b", "function": {"name": "pay", "arguments": "{}"}},
        ],
    },
    {"role": "tool", "tool_call_id": "a", "content": "Error: flight HAT12 not available"},
    {"role": "tool", "tool_call_id": "b", "name": "pay", "content": "ok"},
    {"role": "assistant", "content": "Sorry, I cannot book it."},
    {"role": "user", "content": "No, that is wrong"},
]
ANTHROPIC = [
    {"role": "user", "content": "book HAT12"},
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I will book."},
            {"type": "tool_use", "id": "a", "name": "book", "input": {"flight": "HAT12"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "a",
                "is_error": True,
                "content": [{"type": "text", "text": "flight not there"}],
            }
        ],
    },
]
MINT = [
    {"role": "user", "content": "2 + 2?"},
    {"role": "assistant", "content": "<execute>print(2)</execute> <solution>5</solution>"},
    {"role": "user", "content": "Observation:\nYour answer is wrong.\nYou have 4 steps left"},
    {"role": "assistant", "content": "<execute>prin(2)</execute>"},
    {
        "role": "user",
        "content": "Observation:\nTraceback (most recent call last)\nNameError: name 'prin' is not",
    },
]
AGENTS = [
    {"role": "assistant", "name": "Excel_Expert", "content": "plan"},
    {"role": "user", "name": "Computer_terminal", "content": "exitcode: 1 (execution failed)"},
    {"role": "assistant", "name": "Checker", "content": "done"},
]
SWE = {
    "trajectory": [
        {"thought": "look", "action": "ls -la", "observation": "a.py", "execution_time": 0.5},
        {"thought": "edit", "action": "edit 1:2", "observation": "fatal: no such line"},
    ]
}
SPANS = [
    {"span_id": "1", "attributes": {"gen_ai.operation.name": "chat", "output.value": "hello"}},
    {
        "spanId": "2",
        "name": "execute_tool f",
        "attributes": [
            {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
            {"key": "gen_ai.tool.name", "value": {"stringValue": "f"}},
        ],
        "status": {"code": 2, "message": "boom"},
    },
    {"id": "3", "traceId": "t", "type": "GENERATION", "output": "there"},
]


def steps_of(conversation: Any) -> list[tuple[Any, ...]]:
    table = tabulate_steps([(0, conversation)])
    return table.select("turn", "actor", "kind", "name", "status").rows()


def test_each_dialect_becomes_the_same_steps() -> None:
    assert steps_of(OPENAI) == [
        (0, "system", "message", None, "ok"),
        (0, "user", "message", None, "ok"),
        (1, "assistant", "call", "book", "ok"),
        (1, "assistant", "call", "pay", "ok"),
        (1, "tool", "result", "book", "error"),
        (1, "tool", "result", "pay", "ok"),
        (2, "assistant", "message", None, "ok"),
        (2, "user", "message", None, "ok"),
    ]
    assert steps_of(ANTHROPIC) == [
        (0, "user", "message", None, "ok"),
        (1, "assistant", "message", None, "ok"),
        (1, "assistant", "call", "book", "ok"),
        (1, "tool", "result", "book", "error"),
    ]
    assert steps_of(MINT) == [
        (0, "user", "message", None, "ok"),
        (1, "assistant", "message", None, "ok"),
        (1, "assistant", "call", "execute", "ok"),
        (1, "assistant", "call", "solution", "ok"),
        (1, "judge", "feedback", None, "ok"),
        (2, "assistant", "message", None, "ok"),
        (2, "assistant", "call", "execute", "ok"),
        (2, "environment", "result", None, "error"),
    ]
    assert steps_of(AGENTS) == [
        (1, "assistant", "message", "Excel_Expert", "ok"),
        (1, "environment", "result", "Computer_terminal", "error"),
        (2, "assistant", "message", "Checker", "ok"),
    ]
    assert [row[1:] for row in steps_of(SWE)] == [
        ("assistant", "message", None, "ok"),
        ("assistant", "call", "ls", "ok"),
        ("environment", "result", None, "ok"),
        ("assistant", "message", None, "ok"),
        ("assistant", "call", "edit", "ok"),
        ("environment", "result", None, "error"),
    ]
    assert [row[1:] for row in steps_of(SPANS)] == [
        ("assistant", "message", None, "ok"),
        ("assistant", "call", "f", "ok"),
        ("tool", "result", "f", "error"),
        ("assistant", "message", None, "ok"),
    ]


def test_the_table_has_templates_signs_and_digests() -> None:
    table = tabulate_steps(enumerate([OPENAI, MINT, OPENAI]))
    kinds = table["error_kind"].drop_nulls().to_list()
    assert kinds == ["Error: flight * not available", "NameError: name * is not", *kinds[:1]]
    last = table.filter(run=0)[-2:]
    assert last["signs"].to_list() == [["apologises", "refuses"], ["corrects"]]
    first, third = table.filter(run=0), table.filter(run=2)
    assert first.drop("run").equals(third.drop("run"))
    assert table.filter(run=1, name="execute")["arguments_digest"].n_unique() == 2


@pytest.mark.parametrize("odd", [None, "", "{", "[1, 2]", "[]", [{}], [{"role": 3}], 7, [[]]])
def test_what_is_no_conversation_has_no_steps_and_no_traceback(odd: Any) -> None:
    table = tabulate_steps([(0, odd)])
    assert table.filter(pl.col("actor") != "assistant").is_empty()
    assert open_conversation("[NaN, {}]") == [{}]


def test_columns_of_conversations_are_told_from_chats_that_were_asked() -> None:
    assert holds_conversations(pl.Series("m", [json.dumps(OPENAI)]))
    assert holds_conversations(pl.Series("m", [AGENTS]))
    assert not holds_conversations(pl.Series("prompt", [json.dumps(OPENAI)]))
    assert not holds_conversations(pl.Series("m", [json.dumps(OPENAI[:2])]))
    assert not holds_conversations(pl.Series("m", ["plain words", "[a, b]"]))
    assert not holds_conversations(pl.Series("m", [[1.0, 2.0]]))


@pytest.fixture
def table() -> pl.DataFrame:
    fails = [i % 2 for i in range(200)]
    told = [
        [{"role": "user", "content": "go"}, {"role": "assistant", "content": "bad" if f else "ok"}]
        for f in fails
    ]
    columns = {"messages": told, "n_observations": fails, "kind": ["a", "b", "c", "d"] * 50}
    return pl.DataFrame({"error": fails, **columns})


@pytest.mark.parametrize("as_text", [False, True])
def test_no_mode_reads_a_transcript(table: pl.DataFrame, as_text: bool) -> None:
    if as_text:
        texts = pl.Series("messages", [json.dumps(m) for m in table["messages"].to_list()])
        table = table.with_columns(texts)
    evidence = Evidence.from_table(table, outcome="error")
    assert evidence.attributes == ("n_observations", "kind")
    assert len(evidence.transcripts) == 400
    report = audit(evidence, ledger=False)
    named = " ".join(mode.rule for mode in report.modes)
    assert "messages" not in named
    assert "observations" not in named
    assert not report.deciding or all(one.column == "kind" for one in report.deciding)
    failing = evidence.frame["error"].to_list().index(1)
    assert read_transcripts(evidence.frame, evidence.roles, None, [failing])["text"].to_list() == [
        "go",
        "bad",
    ]
    assert len(evidence.take(evidence.frame["error"].to_numpy() == 1).transcripts) == 200


def test_runs_of_logs_are_read_from_the_log_and_warned_of_where_it_is_gone(
    tmp_path: Any,
) -> None:
    path = tmp_path / "gpt-airline.json"
    runs = [
        {"task_id": i, "trial": t, "reward": t, "info": {}, "traj": OPENAI[: 4 + t]}
        for t in range(2)
        for i in range(3)
    ]
    path.write_text(json.dumps(runs))
    evidence = Evidence.from_logs(path)
    assert evidence.transcripts.group_by("run", maintain_order=True).len()["len"].to_list() == [
        *(5, 6) * 3
    ]
    assert evidence.transcripts["repeat"].unique().sort().to_list() == ["1", "2"]
    evidence.save(tmp_path / "kept")
    assert Evidence.from_logs(tmp_path / "kept").transcripts.equals(evidence.transcripts)
    path.write_text("[]")
    with pytest.warns(UserWarning, match="is not the log that was read"):
        assert Evidence.from_logs(tmp_path / "kept").transcripts.is_empty()
