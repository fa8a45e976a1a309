"""Exports: what was found reaches the tools, says the same there, and the originals stay as they
were.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

import groundfault
from groundfault import Candidate, Evidence, InputError, Plan, Report, exports
from groundfault.base.sheets import write_table
from groundfault.cli.reports import export
from groundfault.errors import GroundfaultError, MissingExtraError
from groundfault.exports import ReportSlices, inspect

MODE = "mode 1: level >= 3"
CANDIDATES = [
    Candidate("hard", "level >= 3"),
    Candidate("of maths", "subject = 'maths'"),
    Candidate("same", "level > 2"),
]


def log_of(samples: int, model: str = "mockllm/model") -> dict[str, Any]:
    """An Inspect log as JSON, in which the model fails where the level is 3 or more."""
    rng = random.Random(0)
    spec = {
        "created": "2026-01-02T03:04:05+00:00",
        "task": "sums",
        "task_id": "t",
        "run_id": "r",
        "model": model,
    }
    sample_list = []
    for i in range(samples):
        level = i % 5
        value = "I" if rng.random() < (0.85 if level >= 3 else 0.15) else "C"
        message = {"role": "assistant", "content": f"it is {i}", "source": "generate"}
        sample_list.append(
            {
                "id": f"q{i}",
                "epoch": 1,
                "input": f"What is {i}?",
                "target": str(i),
                "messages": [{"role": "user", "content": f"What is {i}?"}, message],
                "output": {
                    "model": model,
                    "choices": [{"message": message, "stop_reason": "stop"}],
                },
                "scores": {"match": {"value": value, "answer": str(i)}},
                "metadata": {"level": level, "subject": rng.choice(["maths", "history"])},
            }
        )
    ids = [sample["id"] for sample in sample_list]
    spec |= {
        "dataset": {"name": "sums", "samples": samples, "sample_ids": ids},
        "config": {"epochs": 1},
    }
    return {"version": 2, "status": "success", "eval": spec, "samples": sample_list}


def write_log(place: Path, kind: str = ".json", **more: Any) -> Path:
    path = place / f"log{kind}"
    plain = place / "plain.json"
    plain.write_text(json.dumps(log_of(200, **more)))
    if kind == ".json":
        plain.replace(path)
        return path
    from inspect_ai.log import read_eval_log, write_eval_log

    write_eval_log(read_eval_log(str(plain)), str(path))
    plain.unlink()
    return path


def audited(path: Path) -> tuple[Report, Evidence]:
    evidence = Evidence.from_logs(path)
    return groundfault.audit(
        evidence, Plan(judge="janus", min_lift=0.2), CANDIDATES, finders=(), ledger=None
    ), evidence


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with log.json and report/, of which one slice is confirmed and one is not."""
    place = tmp_path_factory.mktemp("home")
    report, _ = audited(write_log(place))
    assert [f.name for f in report.confirmed] == ["hard", "same"]
    report.write(place / "report")
    return place


@pytest.fixture(scope="module")
def slices(home: Path) -> ReportSlices:
    return ReportSlices.load(home / "report")


def test_a_report_comes_back_from_its_directory(home: Path, slices: ReportSlices) -> None:
    report, evidence = audited(home / "log.json")
    assert slices.report.findings == report.findings
    assert slices.report.library == report.library
    names = (MODE, "hard", "same")
    assert slices.names == ReportSlices.of(report, evidence).names == names
    assert ReportSlices.of(report, evidence, every=True).names == (*names, "of maths")


def test_memberships_are_those_of_the_rules(home: Path) -> None:
    every = ReportSlices.load(home / "report", every=True)
    members = every.members()
    frame = every.evidence.frame
    assert members["example_id"].equals(frame["example_id"])
    assert members["slice: hard"].to_list() == (frame["level"] >= 3).to_list()
    [mode] = every.report.modes
    inside = members[f"slice: mode 1: {mode.meaning}"]
    assert inside.to_list() == mode.holds(frame).to_list()
    assert inside.sum() == mode.n
    assert members["slice: of maths"].to_list() == (frame["subject"] == "maths").to_list()
    assert members["loss"].to_list() == (1 - frame["value"]).to_list()
    counts = dict(members["part"].value_counts().iter_rows())
    assert counts == {
        "discovery": every.report.n_discovery,
        "holdout": every.report.n_holdout,
    }
    on = every.report.findings[0]
    holdout = members.filter((pl.col("part") == "holdout") & pl.col("slice: hard"))
    assert on.holdout is not None
    assert (holdout.height, holdout["loss"].sum()) == (on.holdout.on, on.holdout.on_errors)


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_tables_of_every_kind(slices: ReportSlices, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"m.{kind}"
    write_table(slices.members(), path)
    read = {"csv": pl.read_csv, "parquet": pl.read_parquet, "jsonl": pl.read_ndjson}[kind]
    assert read(path).height == 200
    with pytest.raises(InputError, match="how to write a table"):
        write_table(slices.members(), tmp_path / "m.xlsx")


def test_a_candidate_that_is_not_defined_everywhere_is_empty_there() -> None:
    rows = [(i, i % 2, i % 3 if i % 7 else None) for i in range(120)]
    frame = pl.DataFrame(rows, schema=["id", "error", "level"], orient="row")
    evidence = Evidence.from_table(frame, outcome="error", id="id")
    report = groundfault.audit(
        evidence,
        candidates=[Candidate("two", "level = 2", missing="drop")],
        finders=(),
        ledger=None,
    )
    members = ReportSlices.of(report, evidence, every=True).members()
    assert members["slice: two"].null_count() == frame["level"].null_count()
    assert set(members.columns) == {"id", "status", "loss", "part", "slice: two"}


def test_other_evidence_is_refused(home: Path, tmp_path: Path) -> None:
    log = log_of(200)
    log["samples"][0]["scores"]["match"]["value"] = {"I": "C", "C": "I"}[
        log["samples"][0]["scores"]["match"]["value"]
    ]
    other = tmp_path / "changed.json"
    other.write_text(json.dumps(log))
    with pytest.raises(InputError, match="the report is not of"):
        ReportSlices.load(home / "report", other)


def test_label_studio_tasks_are_blind(slices: ReportSlices, tmp_path: Path) -> None:
    path = tmp_path / "tasks.json"
    assert exports.get("label-studio").export(slices, path) == "80 tasks"
    tasks = json.loads(path.read_text())
    hard = {
        name
        for name, level in slices.evidence.frame.select("example_id", "level").iter_rows()
        if level >= 3
    }
    assert {task["data"]["example_id"] for task in tasks} == hard
    first = tasks[0]
    assert first["data"].keys() == {
        "example_id",
        "model",
        "prompt",
        "response",
        "answer",
        "target",
        "task",
        "level",
        "subject",
    }
    assert first["meta"]["groundfault"].keys() == {"slices", "loss", "status"}
    assert first["meta"]["groundfault"]["slices"] == [MODE, "hard", "same"]


def test_records_are_read_again_as_the_same_evidence(slices: ReportSlices, tmp_path: Path) -> None:
    path = tmp_path / "w_samples.jsonl"
    assert exports.get("eee").export(slices, path) == "200 records"
    again = Evidence.from_logs(path)
    assert again.outcome_hash == slices.evidence.outcome_hash
    assert again.attributes == slices.evidence.attributes
    assert again.frame["level"].equals(slices.evidence.frame["level"])
    record = json.loads(path.read_text().splitlines()[3])
    assert record["metadata"]["groundfault"] in ("", "hard, same")
    assert record["evaluation_result_id"] == "match"


def test_records_of_a_table(tmp_path: Path) -> None:
    rows = [
        (f"e{i}", m, s, int(i % 3 == 0), i // 20) for i in range(60) for m in "ab" for s in (10, 20)
    ]
    frame = pl.DataFrame(rows, schema=["name", "who", "seed", "wrong", "size"], orient="row")
    frame.write_csv(tmp_path / "sums.csv")
    evidence = Evidence.from_table(
        tmp_path / "sums.csv", outcome="wrong", id="name", model="who", repeat="seed"
    )
    report = groundfault.audit(
        evidence, candidates=[Candidate("large", "size >= 1")], finders=(), ledger=None
    )
    path = tmp_path / "w_samples.jsonl"
    assert exports.get("eee").export(ReportSlices.of(report, evidence), path) == "240 records"
    again = Evidence.from_logs(tmp_path / "w_samples.jsonl")
    assert again.models == ("a", "b")
    assert again.roles.repeat == "epoch"
    assert again.frame["epoch"].unique().sort().to_list() == [1, 2]
    assert again.loss.sum() == evidence.loss.sum()
    assert {"size"} <= set(again.attributes)


@pytest.mark.parametrize("kind", [".json", ".eval"])
def test_inspect_reads_the_annotated_copy_and_the_log_is_untouched(
    tmp_path: Path, kind: str
) -> None:
    inspect_log = pytest.importorskip("inspect_ai.log")
    path = write_log(tmp_path, kind)
    report, evidence = audited(path)
    before = digest(path)
    [copy] = inspect.annotate(ReportSlices.of(report, evidence, every=True), tmp_path / "out")
    assert digest(path) == before
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [path.name]
    log, original = inspect_log.read_eval_log(str(copy)), inspect_log.read_eval_log(str(path))
    assert log.tags == ["groundfault"]
    metadata = log.metadata["groundfault"]
    assert metadata["modes"][MODE].startswith("Failure mode: ")
    assert list(metadata["confirmed"]) == ["hard", "same"]
    assert metadata["verdicts"]["confirmed"] == 2
    assert log.log_updates[-1].provenance.author == "groundfault"
    samples = {sample.id: sample for sample in original.samples}
    assert len(log.samples) == len(samples) == 200
    for sample in log.samples:
        on, other = sample.metadata.pop("groundfault"), samples[sample.id]
        assert on == {
            MODE: other.metadata["level"] >= 3,
            "hard": other.metadata["level"] >= 3,
            "same": other.metadata["level"] >= 3,
            "of maths": other.metadata["subject"] == "maths",
        }
        assert sample.metadata == other.metadata
        assert sample.scores == other.scores
        assert sample.messages == other.messages
    # a second audit does not take what the first one found for an attribute
    again = Evidence.from_logs(copy)
    assert again.attributes == evidence.attributes
    places = "position", "transcript_in_log"  # of a log whose samples are longer
    assert again.frame.drop(places).equals(evidence.frame.drop(places))


def test_logs_that_are_not_of_the_audit(home: Path, slices: ReportSlices, tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai.log")
    with pytest.raises(InputError, match="is the log itself"):
        inspect.annotate(slices, home)
    before = digest(home / "log.json")
    with pytest.raises(InputError, match="keep its suffix"):
        inspect.annotate(slices, tmp_path / "copy.eval")
    with pytest.raises(InputError, match="no log of Inspect"):
        inspect.annotate(slices, tmp_path / "out", [home / "report" / "report.json"])
    other = log_of(200)
    for sample in other["samples"]:
        sample["id"] = f"other {sample['id']}"
    (tmp_path / "other.json").write_text(json.dumps(other))
    with pytest.raises(InputError, match=r"no sample of .*other\.json"):
        inspect.annotate(slices, tmp_path / "out", [tmp_path / "other.json"])
    assert digest(home / "log.json") == before
    assert [p.name for p in tmp_path.iterdir()] == ["other.json"]


def test_logs_of_two_folders_that_share_a_name(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai.log")
    for folder, model in (("a", "mockllm/a"), ("b", "mockllm/b")):
        (tmp_path / folder).mkdir()
        write_log(tmp_path / folder, model=model)
    evidence = Evidence.from_logs(tmp_path / "a", tmp_path / "b")
    report = groundfault.audit(
        evidence, Plan(judge="janus", min_lift=0.2), CANDIDATES, finders=(), ledger=None
    )
    copies = inspect.annotate(ReportSlices.of(report, evidence), tmp_path / "out")
    assert [p.relative_to(tmp_path / "out").as_posix() for p in copies] == [
        "a/log.json",
        "b/log.json",
    ]
    one = evidence.select_model("mockllm/a")
    report = groundfault.audit(
        one, Plan(judge="janus", min_lift=0.2), CANDIDATES, finders=(), ledger=None
    )
    logs = [tmp_path / "a" / "log.json", tmp_path / "b" / "log.json"]
    with pytest.raises(InputError, match="is of mockllm/b"):
        inspect.annotate(ReportSlices.of(report, evidence), tmp_path / "one", logs)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b", "out"]


def test_without_inspect_one_line_says_what_to_install(
    slices: ReportSlices, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    with pytest.raises(MissingExtraError, match=r"groundfault\[inspect\]"):
        inspect.annotate(slices, tmp_path / "out")


@pytest.mark.parametrize(
    ("tool", "out"),
    [
        ("memberships", "m.csv"),
        ("eee", "s.jsonl"),
        ("label-studio", "t.json"),
        ("inspect", "copies"),
    ],
)
def test_the_command(home: Path, tmp_path: Path, tool: str, out: str) -> None:
    if tool == "inspect":
        pytest.importorskip("inspect_ai.log")
    result = CliRunner().invoke(
        export, [str(home / "report"), "--to", tool, "-o", str(tmp_path / out)]
    )
    assert result.exception is None, result.exception
    assert result.output.startswith("1 failure mode and 2 slices: wrote ")
    assert (tmp_path / out).exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "--to", "eee", "-o", "{out}/s.jsonl"], "no report"),
        (["{home}/report", "--to", "memberships", "-o", "{out}/m.txt"], "how to write a table"),
        (
            ["{home}/report", "--to", "memberships", "-o", "{out}/m.csv", "--log", "x"],
            "--log goes with",
        ),
        (
            ["{home}/report", "--to", "eee", "-o", "{out}", "--evidence", "{home}/log.json"],
            "is a directory",
        ),
        (
            [
                "{home}/report",
                "--to",
                "eee",
                "-o",
                "{out}/s.jsonl",
                "--evidence",
                "{home}/none.json",
            ],
            "does not exist",
        ),
    ],
)
def test_what_cannot_be_exported_is_one_line_and_writes_nothing(
    home: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    options = [a.format(home=home, out=tmp_path) for a in arguments]
    result = CliRunner().invoke(export, options)
    assert isinstance(result.exception, GroundfaultError)
    assert message in str(result.exception)
    assert not list(tmp_path.iterdir())
