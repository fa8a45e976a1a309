"""``label code`` at the prompt: runs, notes, codes; what was stored, counted and exported."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from groundfault.cli.main import cli


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Arguments that name 30 failing runs, whose judge is right in all but one."""
    monkeypatch.chdir(tmp_path)
    call = {"id": "a", "function": {"name": "pay", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "\x1b[2Jpay 3"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "Error: no funds " + "x" * 400},
    ]
    runs = {"task": range(30), "error": 1}
    frame = pl.DataFrame({**runs, "messages": [json.dumps(messages)] * 30})
    frame.write_parquet("runs.parquet")
    return "label code runs.parquet --id task --outcome error --store codes.db".split()


def run(*words: str, text: str = "") -> str:
    result = CliRunner().invoke(cli, words, input=text)
    assert result.exit_code == 0, result.output
    return result.output


def test_runs_are_read_noted_and_counted(table: list[str]) -> None:
    said = run(
        *table, "--coder", "ana", text="pays at once\n1\npays early\na\nagain\n\n1,loops\nq\n"
    )
    assert "\x1b" not in said
    assert "2. tool result pay [error]: Error: no funds" in said
    # long texts are cut, until all is asked for
    assert said.count("x" * 400) == 1
    # note, back, and the same run again; then the end of input is a stop like q
    again = run(*table, "--coder", "ana", text="b\nbetter\n2\n2\nq\n")
    assert "[again]" in again
    shown = json.loads(run(*table, "--json", "-"))
    assert {one["code"]: one["runs"] for one in shown["counts"]} == {"pays early": 1, "loops": 1}
    assert shown["unseen"]["members"] == 2
    run(*table, "--define", "loops=calls the same tool again")
    run(*table, "--rename", "loops=pays early", "--export", "labels.csv")
    labels = pl.read_csv("labels.csv")
    assert labels.columns == ["task", "note", "step", "quote", "inclusion", "pays early"]
    assert set(labels["step"]) == {1, 2}
    assert "taken back: rename loops" in run(*table, "--undo")
    assert run(*table, "--prompt", "loops").splitlines() == [
        "Does this happen in the run: loops? calls the same tool again",
        "Example: better",
        "Answer yes or no.",
    ]
    run(*table, "--coder", "ana", text="x\n\nloops\n" * 20 + "q\n")
    # the judge grades later
    frame = pl.read_parquet("runs.parquet").with_columns(judge=pl.col("task").clip(0, 1))
    frame.write_parquet("runs.parquet")
    checked = run(*table, "--validate-judge", "loops=judge")
    assert "of 20" in checked or "of 19" in checked
    assert "29 of 30 (97%)" in checked


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--adjudicate"], "--adjudicate needs --coder"),
        (["--browser"], "--browser needs --coder"),
        (["--report", "report"], "--report needs --validate-judge"),
        (["--define", "loops"], "needs two parts"),
        (["--rename", "a=b"], "no code 'a'"),
        (["--validate-judge", "a=judge"], "no code 'a'"),
        (["--undo"], "was not changed"),
        (["--coder", " ana"], "printable characters"),
        (["--show", "nothing"], "no column 'nothing'"),
    ],
)
def test_bad_input_is_one_sentence(table: list[str], words: list[str], message: str) -> None:
    result = CliRunner().invoke(cli, [*table, *words])
    assert message in str(result.exception)
