"""``open`` of bare logs, evidence that the own ledger knows, and several runs of one evaluation."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import groundfault
from groundfault import Candidate, Evidence
from groundfault.cli.main import cli
from groundfault.cli.open_ import open_log
from groundfault.errors import InputError
from groundfault_lab.slicing.proposals import propose

LOG = Path(__file__).resolve().parents[1] / "fixtures"


def make_table(seed: int = 0, n: int = 300) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    lang = np.random.default_rng(1).choice(["de", "en", "fr"], n)
    fails = rng.random(n) < 0.1 + 0.5 * (lang == "de")
    return pl.DataFrame({"id": range(n), "lang": lang, "error": fails.astype(int)})


def run(*arguments: object) -> str:
    result = CliRunner().invoke(cli, [str(one) for one in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, beside one with a table; a ledger is where it is by default."""
    monkeypatch.delenv("GROUNDFAULT_LEDGER", raising=False)
    for name in ("work", "logs"):
        (tmp_path / name).mkdir()
    make_table().write_csv(tmp_path / "logs" / "x.csv")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def audit(place: Path, *more: object) -> str:
    source = place / "logs" / "x.csv"
    return run("audit", source, "--id", "id", "--outcome", "error", "--out", "rep", *more)


def test_evidence_elsewhere_is_opened_if_the_own_ledger_knows_the_report(place: Path) -> None:
    audit(place)
    assert "inside the rule, and wrong" in run("show", "rep", 1, "-n", 1)
    # one word of the report changed: it is not what was recorded
    path = Path("rep/report.json")
    path.write_text(path.read_text("utf-8").replace("lang is de", "lang is DE"), "utf-8")
    refused = CliRunner().invoke(cli, ["show", "rep", "1"])
    assert "which is outside of this folder" in str(refused.exception)


def test_evidence_elsewhere_stays_closed_without_a_record(place: Path) -> None:
    audit(place, "--no-ledger")
    refused = CliRunner().invoke(cli, ["show", "rep", "1"])
    assert "which is outside of this folder" in str(refused.exception)


def test_several_runs_of_one_evaluation_are_repeats(place: Path) -> None:
    for seed in (1, 2, 3):
        make_table(seed).write_csv(f"run{seed}.csv")
    text = run(
        *("audit", "run1.csv", "run2.csv", "run3.csv", "--repeats", "--id", "id"),
        *("--outcome", "error", "--out", "rep"),
    )
    assert "Examples 300; Answers 900" in text
    # the mean of three answers is a rate, and no loss
    assert "1. lang is de: " in text
    assert "% wrong (" in text
    assert "mean loss" not in text
    report = json.loads(Path("rep/report.json").read_text("utf-8"))
    assert report["averaged"]
    assert report["manifest"]["roles"]["repeat"] == "configuration"
    sentences = " ".join(finding["sentence"] for finding in report["findings"])
    shares = re.findall(r"\(([\d.]+) of [\d,]+ that match", sentences)
    assert shares
    assert max(map(len, shares)) <= len("161.3")
    assert run("verify", "rep").rstrip().endswith("reproduces")


def test_another_model_or_part_is_another_question(place: Path) -> None:
    rows = pl.concat([make_table(i).with_columns(model=pl.lit(f"m{i}")) for i in range(3)])
    evidence = Evidence.from_table(rows, id="id", model="model", outcome="error")

    def look(part: Evidence) -> tuple[int, int]:
        opening = groundfault.audit(part, candidates=[Candidate("de", "lang = 'de'")]).ledger
        assert opening is not None
        return opening.times, opening.asides

    assert look(evidence) == (1, 0)
    assert look(evidence.select_model("m1")) == (1, 1)
    assert look(evidence.where("lang != 'fr'")) == (1, 2)
    # the same question of a table with a row less is one more look
    assert look(Evidence.from_table(rows[1:], id="id", model="model", outcome="error"))[0] == 2


def test_a_bare_log_is_audited_and_opened(place: Path, tmp_path: Path) -> None:
    rows = [
        {
            "doc_id": i,
            "doc": {"question": f"what is {i}?"},
            "target": "1",
            "arguments": [[f"what is {i}?", ""]],
            "resps": [["1"]],
            "filtered_resps": ["1"],
            "acc": float(i % 3 == 0),
            "doc_hash": f"h{i}",
            "prompt_hash": "p",
            "target_hash": "t",
        }
        for i in range(40)
    ]
    log = Path("samples_demo_2026-11-20T10-00-00.000000.jsonl")
    log.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    folder = tmp_path / "opened"
    folder.mkdir()
    bench = open_log(str(log), str(folder), False, InputError("no report"))
    assert bench.report.n == 40
    with pytest.raises(InputError, match="no report"):
        open_log(os.devnull, str(folder), False, InputError("no report"))


class Crashing:
    name = "crashing"

    def propose(self, discovery: Evidence) -> list[Candidate]:
        raise ZeroDivisionError("a slip")


def test_a_finder_that_crashes_is_left_out_and_said() -> None:
    evidence = Evidence.from_table(make_table(), id="id", outcome="error")
    report = groundfault.audit(evidence, finders=["categories", Crashing()], ledger=False)
    assert report.left_out == ("the finder crashing: ZeroDivisionError: a slip",)
    assert report.modes
    with pytest.raises(ZeroDivisionError):
        propose(evidence, Crashing())
