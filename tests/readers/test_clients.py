"""Logs by the real clients: what each says, as kept here and, every night, as written anew."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import groundfault
from groundfault import Evidence, InputError, readers

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "tests" / "fixtures" / "clients"
SCRIPT = ROOT / "scripts" / "make_client_logs.py"
TABLE = ROOT / "scripts" / "make_format_table.py"

Folders = dict[str, Path]
NAMES = ("inspect", "promptfoo", "deepeval", "lm_eval")


def find_python(client: str) -> str:
    """The Python that has a client: this one, else that of CLIENT_PYTHON; skips without one."""
    if client == "promptfoo":
        if not shutil.which(os.environ.get("PROMPTFOO", "promptfoo")):
            pytest.skip("promptfoo is not on the path, and PROMPTFOO does not say where it is")
        return sys.executable
    module = {"inspect": "inspect_ai"}.get(client, client)
    for python in (sys.executable, os.environ.get("CLIENT_PYTHON")):
        if python and not run([python, "-c", f"import {module}"]).returncode:
            return python
    pytest.skip(f"no {module} here, and CLIENT_PYTHON names no Python that has it")


def write_logs(client: str, folder: Path) -> Path:
    """Logs by the client, written now."""
    result = run([find_python(client), str(SCRIPT), client, str(folder)])
    assert result.returncode == 0, result.stderr
    return folder


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module", params=["kept", pytest.param("new", marks=pytest.mark.clients)])
def folders(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """For each client the folder of its logs; those written anew are written when asked for."""
    if request.param == "kept":
        return {name: next(KEPT.glob(f"{name}*")) for name in NAMES}
    return _New(tmp_path_factory.mktemp("logs"))


class _New(dict[str, Path]):
    def __init__(self, place: Path) -> None:
        self.place = place

    def __missing__(self, client: str) -> Path:
        self[client] = write_logs(client, self.place / client)
        return self[client]


def count(path: Path, pattern: str) -> Counter[tuple[str, str, float | None]]:
    """Rows of each scorer, status and value, of the one log of a pattern."""
    (log,) = path.rglob(pattern)
    tables = [table for table, _ in readers.read(log).tables()]
    return Counter(pl.concat(tables).select("scorer", "status", "value").iter_rows())


def test_runs_of_inspect_are_epochs_of_one(folders: Folders) -> None:
    runs, epochs = (folders["inspect"] / name for name in ("runs", "epochs"))
    with pytest.raises(InputError, match="same example and model, other result: 2 examples"):
        Evidence.from_logs(runs)
    apart, whole = Evidence.from_logs(runs, conflicts="keep"), Evidence.from_logs(epochs)
    assert apart.outcome_hash == whole.outcome_hash
    assert apart.attributes == whole.attributes
    # of what describes answers only seconds may differ
    columns = [c for c in apart.roles.instrument if c not in ("seconds", "position")]
    assert apart.frame.select(columns).equals(whole.frame.select(columns))


def test_copies_of_one_run_of_inspect_add_nothing(folders: Folders, tmp_path: Path) -> None:
    log = next((folders["inspect"] / "runs").iterdir())
    (tmp_path / "copy.eval").write_bytes(log.read_bytes() + b"")
    evidence = Evidence.from_logs(log, tmp_path / "copy.eval", conflicts="keep")
    assert evidence.account is not None
    assert (len(evidence), evidence.account.duplicated) == (2, 2)


def test_a_grader_of_inspect_without_a_grade_is_an_error(folders: Folders) -> None:
    assert count(folders["inspect"] / "graded", "*.eval") == {
        ("model_graded_qa", "scored", 1.0): 1,
        ("model_graded_qa", "error", None): 1,
    }


def test_an_eval_set_is_read_as_one(folders: Folders, tmp_path: Path) -> None:
    place = folders["inspect"] / "set"
    evidence = Evidence.from_logs(place)
    assert evidence.account is not None
    assert evidence.account.unread == ()
    assert sorted(evidence.frame["example_id"]) == ["one/q0", "one/q1", "two/q0", "two/q1"]
    for path in place.iterdir():
        if "_two_" not in path.name:
            (tmp_path / path.name).write_bytes(path.read_bytes())
    evidence = Evidence.from_logs(tmp_path)
    assert evidence.account is not None
    assert evidence.account.logs[0].notes == ("the eval set has no log of two",)


def test_a_grader_of_promptfoo_that_is_down_fails_nobody(folders: Folders) -> None:
    expected = {
        ("pass", "scored", 1.0): 1,
        ("pass", "scored", 0.0): 1,
        ("pass", "error", None): 1,
        ("exact", "scored", 1.0): 2,
        ("exact", "scored", 0.0): 1,
        ("rubric", "error", None): 1,
        ("", "refused", None): 1,
    }
    assert count(folders["promptfoo"], "*.json") == expected
    assert count(folders["promptfoo"], "*.jsonl") == expected
    assert count(folders["promptfoo"], "*.yaml") == expected
    (table,) = folders["promptfoo"].rglob("*.csv")
    log = readers.read(table)
    assert [row.value for row in log.observations if row.scorer == "pass"] == [1, 0, 0, 0]
    assert [note for note in log.notes if "counts refusals" in note]


def test_a_metric_of_deepeval_that_raised_leaves_its_case_open(folders: Folders) -> None:
    assert count(folders["deepeval"], "test_run*.json") == {
        ("success", "scored", 1.0): 1,
        ("success", "scored", 0.0): 1,
        ("success", "error", None): 3,
        ("Exact", "scored", 1.0): 3,
        ("Exact", "scored", 0.0): 2,
        ("Judge", "scored", 1.0): 2,
        ("Judge", "error", None): 3,
    }


def test_what_a_filter_of_lm_eval_returns_for_nothing_is_unparsed(folders: Folders) -> None:
    assert count(folders["lm_eval"], "samples*.jsonl") == {
        ("exact_match,strict", "unparsed", None): 6,
        ("exact_match,loose", "scored", 1.0): 3,
        ("exact_match,loose", "scored", 0.0): 3,
    }


def test_the_share_of_errors_of_a_grader_is_part_of_the_instrument(folders: Folders) -> None:
    evidence = Evidence.from_logs(folders["deepeval"], scorer="Exact")
    assert "grader_errors" in evidence.roles.instrument
    shares = dict(evidence.frame.select("example_id", "grader_errors").iter_rows())
    assert shares["case 0"] == 0
    assert shares["case 2"] == pytest.approx(2 / 3)  # its judge, and with it the case


def load_table() -> Any:
    spec = importlib.util.spec_from_file_location("table", TABLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_page_of_formats_is_what_a_run_makes() -> None:
    """Every outcome is the client's own, but for answers that have none."""
    table = load_table()
    lines = list(table.compare(KEPT))
    assert {line.client.rpartition("-")[0] for line in lines} == {
        path.name.rpartition("-")[0] for path in KEPT.iterdir()
    }
    assert [line for line in lines if not line.agrees] == []
    assert table.PAGE.read_text("utf-8") == table.INTRODUCTION + table.write_table(lines), (
        "python scripts/make_format_table.py"
    )


@pytest.mark.clients
@pytest.mark.parametrize("client", NAMES)
def test_outcomes_of_new_logs_are_those_that_the_client_counts(tmp_path: Path, client: str) -> None:
    write_logs(client, tmp_path / client)
    for folder in ("broken", "retried"):  # samples without a score are in no count of Inspect's
        shutil.rmtree(tmp_path / client / folder, ignore_errors=True)
    lines = list(load_table().compare(tmp_path))
    assert lines
    assert [line for line in lines if not line.agrees] == []


@pytest.mark.clients
def test_new_logs_of_inspect_that_show_tracebacks(tmp_path: Path) -> None:
    """Not kept here, since they name folders of the machine that wrote them."""
    place = write_logs("inspect", tmp_path / "inspect")
    assert count(place / "broken", "*.eval") == {
        ("broken", "scored", 1.0): 1,
        ("", "error", None): 1,
    }
    for conflicts in ("error", "keep"):
        evidence = Evidence.from_logs(place / "retried", conflicts=conflicts)
        assert evidence.account is not None
        assert evidence.loss.to_list() == [0, 0]
        assert (evidence.account.retried, evidence.account.duplicated) == (1, 1)


@pytest.mark.clients
def test_five_runs_of_inspect_have_the_report_of_five_epochs(tmp_path: Path) -> None:
    place = tmp_path / "many"
    code = f"import sys; sys.path.insert(0, {str(SCRIPT.parent)!r}); import make_client_logs as m; "
    code += f"from pathlib import Path; m.make_many_inspect_logs(Path({str(place)!r}))"
    result = run([find_python("inspect"), "-c", code])
    assert result.returncode == 0, result.stderr
    one, other = (
        json.loads(groundfault.audit(evidence, ledger=None).to_json())
        for evidence in (
            Evidence.from_logs(place / "runs", conflicts="keep"),
            Evidence.from_logs(place / "epochs"),
        )
    )
    assert {name for name in one if one[name] != other[name]} <= {"hashes", "manifest"}
    assert [f["name"] for f in one["findings"] if f["verdict"] == "confirmed"] == ["lang = de"]
