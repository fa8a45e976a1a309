"""Codes go to other tools as labels, scanners and tests, whatever their words hold."""

from __future__ import annotations

import ast
import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from groundfault import Evidence, InputError, audit
from groundfault.cli.main import cli
from groundfault.coding import Coding
from groundfault.exports.codes import export_codes

HOSTILE = 'pays \'""" {{ env }} {% x %}\\ <b> first'


@pytest.fixture
def coding(tmp_path: Path) -> Coding:
    """Thirty runs of which ten fail; the notes and codes of some are hostile."""
    chat = [
        {"role": "user", "content": "Book {{flight}} now"},
        {"role": "assistant", "content": "Paid."},
    ]
    rows = {"id": [f"t{i}" for i in range(30)], "error": [int(i % 3 == 0) for i in range(30)]}
    table = pl.DataFrame({**rows, "messages": [json.dumps(chat)] * 30})
    table.write_parquet(tmp_path / "runs.parquet")
    evidence = Evidence.from_table(tmp_path / "runs.parquet", id="id", outcome="error")
    coding = Coding(evidence, tmp_path / "codes.db", passing=5)
    session = coding.session("ana")
    while session.item is not None:
        failing = evidence.loss[coding.queue.by_id[session.item.id].row] == 1  # type: ignore[attr-defined]
        codes = [HOSTILE, "loops"] if failing else []
        session.decide(note=f"note {HOSTILE}" if failing else "", codes=codes)
    coding.define("loops", "It repeats a call.")
    return coding


def test_label_studio_gets_tasks_with_their_codes(coding: Coding, tmp_path: Path) -> None:
    assert export_codes(coding, "label-studio", tmp_path / "tasks.json") == "15 tasks"
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    (result,) = tasks[0]["annotations"][0]["result"]
    assert result["value"]["choices"] == [HOSTILE, "loops"]
    assert "Paid." in tasks[0]["data"]["run"]
    assert not {"error", "loss"} & {*tasks[0]["data"]}


def test_scanners_are_a_module_of_literals(coding: Coding, tmp_path: Path) -> None:
    place = tmp_path / "scanners.py"
    assert export_codes(coding, "scout", place) == "2 scanners"
    tree = ast.parse(place.read_text())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert [one.name.rpartition("_")[2] for one in functions] == ["first", "loops"]
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    told = {key.arg: ast.literal_eval(key.value) for call in calls for key in call.keywords}
    assert told["question"] == coding.ask("loops")
    assert len(calls) == 4  # two decorators and two scanners: nothing of the words became a call


@pytest.mark.clients
def test_inspect_scout_loads_the_scanners(coding: Coding, tmp_path: Path) -> None:
    export_codes(coding, "scout", tmp_path / "scanners.py")
    code = "import scanners; print(type(scanners.code_2_loops()).__name__)"
    for python in filter(None, (sys.executable, os.environ.get("CLIENT_PYTHON"))):
        if not subprocess.run([python, "-c", "import inspect_scout"], check=False).returncode:
            subprocess.run([python, "-c", code], cwd=tmp_path, check=True)
            return
    pytest.skip("no inspect_scout here, and CLIENT_PYTHON names no Python that has it")


def test_a_coded_failure_is_a_test_that_it_does_not_come_back(
    coding: Coding, tmp_path: Path
) -> None:
    assert export_codes(coding, "promptfoo", tmp_path / "tests.json") == "10 tests"
    (test, *_) = json.loads((tmp_path / "tests.json").read_text())["tests"]
    assert test["vars"] == {"prompt": "Book { {flight}} now"}
    assert [one["metric"] for one in test["assert"]] == [HOSTILE, "loops"]
    assert test["assert"][1]["value"] == "This does not happen: loops. It repeats a call."
    assert "{{" not in json.dumps(test["assert"][0]["value"])
    assert "{{" not in test["description"]


def test_the_command_writes_what_python_writes(coding: Coding, tmp_path: Path) -> None:
    place = tmp_path / "labels.csv"
    words = (
        f"label code {tmp_path}/runs.parquet --id id --outcome error --store {tmp_path}/codes.db"
    )
    done = CliRunner().invoke(cli, [*words.split(), "--export", str(place)])
    assert done.exit_code == 0, done.output
    with place.open(newline="") as stream:
        columns = next(csv.reader(stream))
    assert columns == ["id", "note", "step", "quote", "inclusion", HOSTILE, "loops"]
    with pytest.raises(InputError, match="'trello'"):
        export_codes(coding, "trello", place)
    empty = Coding(coding.evidence, tmp_path / "other.db")
    with pytest.raises(InputError, match="no run has a code yet"):
        export_codes(empty, "scout", tmp_path / "scanners.py")


def test_codes_are_behaviours_of_coded_and_of_fresh_runs(coding: Coding) -> None:
    marked = coding.mark()
    assert marked.roles.during == (HOSTILE, "loops")
    by_name: dict[str, Any] = {one.name: one for one in audit(marked, ledger=False).behaviours}
    loops = by_name["loops"]
    # of coded runs alone
    assert (loops.failing, loops.failing_runs, loops.passing, loops.passing_runs) == (10, 10, 0, 5)
    fresh = coding.evidence.take(np.arange(30) >= 12)
    grades = fresh.loss.to_numpy()
    (told,) = [
        one
        for one in audit(coding.mark({"loops": grades}, on=fresh), ledger=False).behaviours
        if one.whole
    ]
    assert (told.name, told.failing, told.failing_runs) == (
        "loops",
        int(grades.sum()),
        int(grades.sum()),
    )
    with pytest.raises(InputError, match="there is a column 'messages' already"):
        coding.mark({"messages": grades}, on=fresh)
