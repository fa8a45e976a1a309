"""Every Eval Ever: records read, and written so that they are read again as what they were."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from damage import BYTES, damage_bytes, odd, read_or_refused
from hypothesis import given, settings, strategies as st
from profiles import count_examples

from groundfault import readers
from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.readers.every_eval_ever import EveryEvalEver, write
from groundfault.readers.log import COLUMNS, Log, Observation

RECORD: dict[str, Any] = {
    "schema_version": "0.2.1",
    "evaluation_id": "e",
    "model_id": "openai/gpt2",
    "evaluation_name": "narrativeqa",
    "sample_id": "id1413",
    "interaction_type": "single_turn",
    "input": {
        "raw": "Who is Todd?",
        "formatted": None,
        "reference": ["the mascot", "a mascot"],
        "choices": None,
    },
    "output": {"raw": [" Olive."], "reasoning_trace": []},
    "messages": None,
    "answer_attribution": [
        {
            "turn_idx": 0,
            "source": "output.raw",
            "extracted_value": "Olive.",
            "extraction_method": "exact_match",
            "is_terminal": True,
        }
    ],
    "evaluation": {"score": 0.0, "is_correct": False, "num_turns": None, "tool_calls_count": None},
    "token_usage": {"input_tokens": 790, "output_tokens": 2, "total_tokens": 792},
    "performance": {"latency_ms": None, "generation_time_ms": 831.5},
    "error": None,
    "metadata": {"subject": "films", "level": "3", "hard": "true", "code": "007"},
}


def lines(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def read(path: Path) -> tuple[Log, list[Observation]]:
    assert readers.sniff(path) == "every_eval_ever"
    log = EveryEvalEver().read(path)
    observations = list(log.observations)
    list(Log(observations).tables())
    return log, observations


def test_a_record_is_an_observation(tmp_path: Path) -> None:
    log, [row] = read(lines(tmp_path / "s.jsonl", RECORD))
    assert row == Observation(
        "id1413",
        0.0,
        scorer="exact_match",
        model="openai/gpt2",
        task="narrativeqa",
        prompt="Who is Todd?",
        response=" Olive.",
        answer="Olive.",
        target="the mascot | a mascot",
        attributes={"subject": "films", "level": 3, "hard": True, "code": "007"},
        measured={
            "position": 1,
            "input_tokens": 790,
            "output_tokens": 2,
            "seconds": 0.8315,
            "interaction_type": "single_turn",
        },
    )
    assert log.harness == "every_eval_ever 0.2.1"


@pytest.mark.parametrize(
    ("change", "status", "value"),
    [
        ({"error": "Timeout"}, "error", None),
        ({"error": "the model refused"}, "refused", None),
        ({"error": "unparsed: no letter"}, "unparsed", None),
        ({"evaluation": {"score": None, "is_correct": None}}, "missing", None),
        ({"evaluation": {"score": None, "is_correct": True}}, "scored", 1.0),
        ({"evaluation": {"score": 42.5, "is_correct": False}}, "scored", 42.5),
        ({"evaluation": {"score": 0.75, "is_correct": None}}, "scored", 0.75),
    ],
)
def test_statuses(tmp_path: Path, change: dict[str, Any], status: str, value: float | None) -> None:
    [row] = read(lines(tmp_path / "s.jsonl", RECORD | change))[1]
    assert (row.status, row.value) == (status, value)


def test_conversations_and_results_of_a_name(tmp_path: Path) -> None:
    messages = [
        {"turn_idx": i, "role": role, "content": role}
        for i, role in enumerate(("user", "assistant", "tool"))
    ]
    change = {
        "interaction_type": "agentic",
        "output": None,
        "messages": messages,
        "evaluation_result_id": "f1",
    }
    change["evaluation"] = {"score": 1.0, "is_correct": True, "num_turns": 4, "tool_calls_count": 2}
    [row] = read(lines(tmp_path / "s.jsonl", RECORD | change))[1]
    assert (row.response, row.scorer, row.measured["turns"], row.measured["tool_calls"]) == (
        "assistant",
        "f1",
        4,
        2,
    )


words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
number = st.floats(0, 1) | st.sampled_from([0.0, 1.0])


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    status = draw(st.sampled_from(list(Status)))
    return {
        "example_id": draw(words),
        "task": draw(words),
        "model": draw(words),
        "epoch": draw(st.integers(1, 9)),
        "scorer": draw(words),
        "value": draw(number) if status == Status.SCORED else None,
        "status": str(status),
        "group": draw(st.none() | words),
        "prompt": draw(words),
        "response": draw(st.none() | words),
        "answer": draw(st.none() | words),
        "target": draw(st.none() | words),
        "confidence": draw(st.none() | number),
        "logprob": draw(st.none() | st.floats(-100, 0)),
        "subject": draw(st.none() | st.sampled_from(["maths", "history, modern", "<b>"])),
        "level": draw(st.none() | st.integers(-5, 10**12)),
        "share": draw(st.none() | st.floats(-10, 10)),
        "hard": draw(st.none() | st.booleans()),
        "input_tokens": draw(st.none() | st.integers(0, 10**6)),
        "output_tokens": 5,
        "seconds": draw(st.none() | st.floats(0, 1000)),
    }


@settings(max_examples=30)
@given(content=st.lists(rows(), min_size=1, max_size=4))
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, content: list[dict[str, Any]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "written_samples.jsonl"
    types = {
        "subject": pl.String,
        "level": pl.Int64,
        "share": pl.Float64,
        "hard": pl.Boolean,
        "seconds": pl.Float64,
    }
    schema = {**COLUMNS, **types, "input_tokens": pl.Int64, "output_tokens": pl.Int64}
    frame = pl.DataFrame(content, schema=schema)
    assert write(frame, path) == len(content)
    for row, result in zip(content, read(path)[1], strict=True):
        for name in COLUMNS:
            assert getattr(result, name) == row[name], name
        for name in ("subject", "level", "hard"):
            assert result.attributes.get(name) == row[name]
        share = result.attributes.get("share")
        assert share == row["share"] or math.isclose(share, row["share"])
        if row["seconds"] is not None:
            assert result.measured["seconds"] == pytest.approx(row["seconds"])
        assert result.measured.get("input_tokens") == row["input_tokens"]


def test_a_written_record_is_what_the_schema_asks_for(tmp_path: Path) -> None:
    path = tmp_path / "w_samples.jsonl"
    frame = pl.DataFrame(
        {
            "example_id": ["1", "2"],
            "model": ["m"] * 2,
            "task": ["t"] * 2,
            "scorer": ["match"] * 2,
            "prompt": ["é?"] * 2,
        }
        | {
            "target": ["a"] * 2,
            "answer": ["a", None],
            "response": ["it is a", None],
            "value": [1.0, None],
        }
        | {"status": ["scored", "error"], "error": [None, "boom"]}
    )
    write(frame, path)
    first, second = map(json.loads, path.read_text().splitlines())
    required = {
        "schema_version",
        "evaluation_id",
        "model_id",
        "evaluation_name",
        "sample_id",
        "interaction_type",
    }
    for record in (first, second):
        assert required | {"input", "answer_attribution", "evaluation", "output"} <= set(record)
        assert "messages" not in record
        assert isinstance(record["evaluation"]["score"], float)
    hashed = '{"raw":"\\u00e9?","reference":["a"]}'
    assert first["sample_hash"] == hashlib.sha256(hashed.encode()).hexdigest()
    assert first["evaluation"] == {"score": 1.0, "is_correct": True}
    assert second["evaluation"] == {"score": 0.0, "is_correct": False}
    assert second["error"] == "error: boom"


@pytest.mark.parametrize(
    "bad",
    [b"{", b"[]", b'{"sample_id": 1}', b'{"sample_id": "\xff"}', b'{"metadata": ' + b"[" * 100_000],
)
def test_nonsense_is_one_line(tmp_path: Path, bad: bytes) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(json.dumps(RECORD).encode() + b"\n" + bad + b"\n")
    with pytest.raises(InputError, match=r"s\.jsonl, line 2") as error:
        list(EveryEvalEver().read(path).observations)
    assert "\n" not in str(error.value)


@settings(max_examples=count_examples(80))
@given(how=BYTES)
def test_any_bytes_are_records_or_one_error(
    tmp_path_factory: pytest.TempPathFactory, how: tuple[list[tuple[float, int]], float]
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.jsonl"
    path.write_bytes(damage_bytes(2 * (json.dumps(RECORD).encode() + b"\n"), how))
    read_or_refused(path, "every_eval_ever")


@settings(max_examples=count_examples(80))
@given(data=st.data())
def test_any_value_anywhere_is_a_record_or_one_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    read_or_refused(
        lines(tmp_path_factory.getbasetemp() / "odd.jsonl", odd(RECORD, data)), "every_eval_ever"
    )
