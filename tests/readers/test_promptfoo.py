"""promptfoo results: all three files, errors that are no failures, prompts and repeats."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from damage import BYTES, damage_bytes, odd, read_or_refused
from hypothesis import given, settings, strategies as st
from profiles import count_examples

from groundfault import readers
from groundfault.errors import InputError
from groundfault.readers.log import Log, Observation
from groundfault.readers.promptfoo import Promptfoo


@pytest.fixture(scope="module")
def logs(shared: Path) -> Path:
    return shared / "real/native_logs/promptfoo"


def read(path: Path) -> tuple[Log, list[Observation]]:
    assert readers.sniff(path) == "promptfoo"
    log = Promptfoo().read(path)
    observations = list(log.observations)
    list(Log(observations).tables())
    return log, observations


def results(logs: Path) -> list[dict[str, Any]]:
    return json.loads((logs / "out.json").read_text())["results"]["results"]


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("name", ["out.json", "out.jsonl", "out.csv"])
def test_every_result_has_a_row_and_one_a_metric(logs: Path, name: str) -> None:
    rows = read(logs / name)[1]
    expected = Counter[tuple[str, str, float | None]]()
    for row in results(logs):
        if row["failureReason"] == 2:
            expected[row["provider"]["id"], "", None] += 1
            continue
        expected[row["provider"]["id"], "pass", float(row["success"])] += 1
        for metric, value in row["namedScores"].items():
            expected[row["provider"]["id"], metric, value] += 1
    assert Counter((r.model.split(" (")[0], r.scorer, r.value) for r in rows) == expected
    assert sum(r.scorer in ("", "pass") for r in rows) == 96


def test_reasons_of_graders_are_kept(logs: Path) -> None:
    said = [row["gradingResult"]["reason"] for row in results(logs) if row["failureReason"] != 2]
    kept = [
        row.measured.get("reason") for row in read(logs / "out.json")[1] if row.scorer == "pass"
    ]
    assert kept == said
    assert any(said)


def test_the_three_files_tell_the_same(logs: Path) -> None:
    def read_values(name: str, *fields: str) -> set[tuple[Any, ...]]:
        return {tuple(getattr(r, f) for f in fields) for r in read(logs / name)[1]}

    both = (
        "example_id",
        "group",
        "model",
        "epoch",
        "scorer",
        "value",
        "status",
        "response",
        "prompt",
        "target",
    )
    assert read_values("out.json", *both) == read_values("out.jsonl", *both)
    # an error has no output, which the table writes as an empty one
    also = both[:7]
    assert read_values("out.json", *also) == read_values("out.csv", *also)


def test_errors_are_no_failures_and_a_score_below_one_may_be(logs: Path) -> None:
    log, rows = read(logs / "out.json")
    assert log.harness == "promptfoo 0.121.20"
    errors = [r for r in rows if r.status == "error"]
    assert len(errors) == 4
    assert all(r.value is None and r.measured["error"] for r in errors)
    failures = [
        r for r in rows if r.scorer == "pass" and r.value == 0 and r.measured["score"] > 0.6
    ]
    assert failures


def test_prompts_and_providers_are_configurations_of_the_same_tests(logs: Path) -> None:
    log, every = read(logs / "out.json")
    rows = [r for r in every if r.scorer == "pass"]
    assert {r.example_id for r in rows} == {str(i) for i in range(24)}
    assert {r.model for r in rows} == {
        f"calc-{letter} (prompt {number})" for letter in "ab" for number in (1, 2)
    }
    assert log.notes[0] == "prompt 1 is 'Answer with a number only: {{question}}'"
    assert log.rewords
    row = next(r for r in rows if r.example_id == "0" and r.model == "calc-a (prompt 1)")
    assert row.attributes["op"] == "+"
    assert row.attributes["vars"] == {"question": "0 + 0"}
    assert (row.prompt, row.target) == ("Answer with a number only: 0 + 0", "0")


def test_one_prompt_needs_no_name_and_a_test_run_again_is_an_epoch(
    logs: Path, tmp_path: Path
) -> None:
    one = [r for r in results(logs) if r["promptIdx"] == 0]
    again = [row | {"testIdx": row["testIdx"] + 24} for row in one]
    rows = [r for r in read(lines(tmp_path / "o.jsonl", one + again))[1] if r.scorer == "pass"]
    assert {(r.example_id, r.epoch) for r in rows} == {
        (str(i), e) for i in range(24) for e in (1, 2)
    }
    assert {r.group for r in rows} == {None}


def test_refusals_judges_and_people(logs: Path, tmp_path: Path) -> None:
    row = next(r for r in results(logs) if r["failureReason"] == 1)
    graded = json.loads(json.dumps(row))
    part = graded["gradingResult"]["componentResults"][0]["assertion"]
    part |= {"type": "llm-rubric", "provider": {"id": "openai:judge"}}
    person = json.loads(json.dumps(row))
    person["gradingResult"]["componentResults"].append(
        {"pass": True, "score": 1, "assertion": {"type": "human"}}
    )
    content = [
        row | {"response": {"output": "no", "isRefusal": True}},
        row | {"response": {"output": "", "finishReason": "content_filter"}, "testIdx": 1},
        row | {"success": True, "response": {"output": "no", "isRefusal": True}, "testIdx": 2},
        graded,
        person,
        row
        | {
            "response": {
                "output": {"a": 1},
                "finishReason": "length",
                "tokenUsage": {"completion": 9},
            }
        },
        {k: v for k, v in row.items() if k not in ("failureReason", "gradingResult")},
    ]
    rows = [r for r in read(lines(tmp_path / "o.jsonl", content))[1] if r.scorer in ("", "pass")]
    assert [r.status for r in rows] == [
        "refused",
        "refused",
        "scored",
        "scored",
        "scored",
        "scored",
        "error",
    ]
    assert rows[3].measured["judge"] == "openai:judge"
    assert rows[4].measured["edited"] is True
    assert rows[5].response == '{"a": 1}'
    assert rows[5].measured["truncated"] is True
    assert rows[5].measured["output_tokens"] == 9


def test_of_a_conversation_the_last_question_is_the_prompt(logs: Path, tmp_path: Path) -> None:
    row = results(logs)[0]
    chat = json.dumps([{"role": "system", "content": "be"}, {"role": "user", "content": "what?"}])
    rows = read(lines(tmp_path / "o.jsonl", [row | {"prompt": {"raw": chat, "label": "chat"}}]))[1]
    assert rows[0].prompt == "what?"


def test_older_files(logs: Path, tmp_path: Path) -> None:
    """Version 2: no test numbers, providers by name, and the table beside the results."""
    old = [
        {
            k: v
            for k, v in row.items()
            if k not in ("testIdx", "promptIdx", "failureReason", "testCase")
        }
        | {"provider": row["provider"]["id"]}
        for row in results(logs)
    ]
    path = tmp_path / "old.json"
    path.write_text(
        json.dumps(
            {"results": {"version": 2, "results": old, "stats": {}, "table": {}}, "config": {}}
        )
    )
    rows = read(path)[1]
    assert Counter(r.status for r in rows) == {"scored": 276, "error": 4}
    assert len({r.example_id for r in rows}) == 24


def test_no_results(tmp_path: Path) -> None:
    path = tmp_path / "none.json"
    path.write_text(
        json.dumps({"evalId": "x", "results": {"version": 3, "prompts": [], "results": []}})
    )
    assert read(path)[0].notes == ["no samples"]


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("o.json", b'{"evalId": "x", "results": {"prompts": [], "results": ['),
        ("o.json", b'{"evalId": "x", "results": {"prompts": []}}'),
        ("o.json", b'{"evalId": "x", "results": {"results": [1]}}'),
        ("o.jsonl", b"[]\n"),
        ("o.jsonl", b'{"success": true\n'),
        ("o.jsonl", b'{"vars": ' + b"[" * 100_000),
        ("o.csv", b"a,b\n1,2\n"),
        ("o.csv", b""),
        ("o.csv", b"\xff\xfe\x00"),
    ],
)
def test_nonsense_is_one_line(tmp_path: Path, name: str, bad: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(bad)
    with pytest.raises(InputError) as error:
        list(Promptfoo().read(path).observations)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["out.json", "out.jsonl", "out.csv"])
@settings(max_examples=count_examples(60))
@given(how=BYTES)
def test_any_bytes_are_results_or_one_error(
    logs: Path,
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    how: tuple[list[tuple[float, int]], float],
) -> None:
    path = tmp_path_factory.getbasetemp() / f"damaged-{name}"
    path.write_bytes(damage_bytes((logs / name).read_bytes(), how))
    read_or_refused(path, "promptfoo")


@settings(max_examples=count_examples(80))
@given(data=st.data())
def test_any_value_anywhere_is_results_or_one_error(
    logs: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "odd.jsonl"
    read_or_refused(lines(path, odd(results(logs)[:2], data)), "promptfoo")


def test_the_table_of_results_holds_every_column(logs: Path) -> None:
    tables = [table for table, _ in Promptfoo().read(logs / "out.json").tables()]
    table = pl.concat(tables)
    assert table.height == 280
    assert {"op", "big", "vars_question", "seconds"} <= set(table.columns)


def test_results_as_yaml_are_those_as_json(logs: Path, tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    content = json.loads((logs / "out.json").read_text())
    path = tmp_path / "out.yaml"
    # one object in two places becomes an alias, as in promptfoo's own YAML
    shared = content["results"]["results"][0]["testCase"]
    for row in content["results"]["results"]:
        if row["testCase"] == shared:
            row["testCase"] = shared
    path.write_text(yaml.safe_dump(content))
    assert "*id001" in path.read_text()
    log, rows = read(path)
    before, expected = read(logs / "out.json")
    assert [vars_of(row) for row in rows] == [vars_of(row) for row in expected]
    assert (log.harness, log.notes) == (before.harness, before.notes)


def vars_of(row: Observation) -> list[Any]:
    return [getattr(row, name) for name in ("example_id", "model", "scorer", "value", "prompt")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("results:\n  results: [\n", "is not YAML, or is cut short"),
        ("results:\n  results: 3\n", "is not laid out as expected"),
        ("results:\n  results: !!python/object/apply:os.getcwd []\n", "is not YAML"),
        ("results:\n  results: &a [*a]\n", "over 20,000,000 values"),
        (
            "a0: &a0 [1]\n"
            + "".join(f"a{i}: &a{i} [{f'*a{i - 1},' * 9}]\n" for i in range(1, 9))
            + "results:\n  results: *a8\n",
            "over 20,000,000 values",
        ),
        ("results:\n  results: " + "[" * 5000 + "]" * 5000, "nested too deeply"),
    ],
)
def test_yaml_of_a_stranger_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    pytest.importorskip("yaml", reason="needs PyYAML")
    path = tmp_path / "out.yaml"
    path.write_text(text)
    assert readers.sniff(path) == "promptfoo"
    with pytest.raises(InputError, match=message):
        list(readers.read(path).observations)
