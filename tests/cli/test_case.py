"""``groundfault case`` and the steps of a case in the shell."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner, Result

from groundfault.cli.main import cli
from groundfault.probes import Bank, ComponentGroup, Grammar, Option, probes


def run(*words: object, typed: str | None = None) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words], input=typed)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, and a case of it that was audited."""
    place = tmp_path_factory.mktemp("case")
    rng = np.random.default_rng(5)
    language = rng.choice(["de", "en", "fr", "it"], 160)
    right = rng.random(160) >= np.where(language == "de", 0.95, 0.05)
    ids = [f"q{i:03}" for i in range(160)]
    sums = [f"{word}: what is {i} + 1?" for i, word in enumerate(language)]
    texts = {"ask": sums, "key": [str(i + 1) for i in range(160)]}
    table = pl.DataFrame({"id": ids, "lang": language, **texts, "right": right.astype(int)})
    table.write_csv(place / "answers.csv")
    begun = run(
        *("case", "new", place / "case", "--from", place / "answers.csv", "--id", "id"),
        *("--outcome", "right", "--positive-is-good", "--seed", 1),
        *("--ignore", "ask", "--ignore", "key"),
    )
    assert begun.exit_code == 0, begun.output
    assert "80 examples to audit, 80 fresh (kept apart)" in begun.output
    first = " ".join(run("case", "status", place / "case").output.split())
    assert f"groundfault audit --case {place / 'case'} costs no label" in first
    audited = run("audit", "--case", place / "case")
    assert audited.exit_code == 0, audited.output
    assert "lang is de" in audited.output
    shutil.copytree(place / "case", place / "probed")
    return place


def test_a_plan_names_the_command_that_begins_it(place: Path) -> None:
    plan = "case", "plan", place / "case", "--lift", 0.9
    can = run(*plan, "--budget", 60, "--runs", 10).output
    assert "60 labels confirm 1 mode in at least 80% of up to" in can
    assert f"label confirm --case {place / 'case'} --mode 1 --budget 60 --label file" in can
    cannot = run(*plan, "--budget", 3, "--runs", 2).output
    assert "3 labels confirm no mode in at least 80% of up to" in cannot
    assert "not mode 1: 0% alone" in cannot


def test_commands_to_go_on_with_can_be_pasted(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(place / "case", place / "my case")
    monkeypatch.chdir(place)
    for step in (("case", "status"), ("case", "plan", "--lift", 0.9, "--budget", 60, "--runs", 2)):
        words = " ".join(run(*step, "my case").output.split())
        assert "groundfault label confirm --case 'my case' " in words
        assert "--label file" in words


def test_steps_hand_over(place: Path) -> None:
    before = run("case", "status", place / "case").output
    assert "\"lang\" = 'de'" in before
    command = f"--case {place / 'case'} --label file (begin it) costs at most 80 labels"
    assert command in " ".join(before.split())
    assert "it says which modes N labels can confirm" in " ".join(before.split())
    stopped = run("label", "confirm", "--case", place / "case", "--label", "ask", typed="p\nq\n")
    assert "your labels are saved" in stopped.output
    assert "score: [p]assed, [f]ailed, [u]nscorable, [q]uit" in stopped.output
    state = json.loads(run("case", "status", place / "case", "--json", "-").output)
    assert (state["labelled"], state["modes"][0]["standing"]) == (1, "open")
    assert "go on with it" in " ".join(run("case", "status", place / "case").output.split())
    labelled = run("label", "confirm", "--case", place / "case", "--label", "file")
    assert labelled.exit_code == 0, labelled.output
    assert "confirmed: mode 1" in labelled.output
    report = run("case", "report", place / "case")
    assert "confirmed on fresh labels: 1" in report.output
    (place / "case").rename(place / "moved")
    verified = run("verify", place / "moved")
    assert (verified.exit_code, verified.output.splitlines()[-1]) == (0, "reproduces")
    (place / "moved").rename(place / "case")


def test_probe_and_review_hand_over(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    columns = ("--question", "ask", "--target", "key")
    early = run("lab", "probe", "init", "--case", "probed", *columns)
    assert "choose the modes to confirm first" in str(early.exception)
    run("label", "confirm", "--case", "probed", "--label", "ask", typed="q\n")
    words = ComponentGroup("start", (Option("plain"), Option("please", "Please answer.")))
    Grammar("two", (words,), "{start} {question}").write(place / "words.toml")
    begun = run("lab", "probe", "init", "--case", "probed", *columns, "--grammar", "words.toml")
    assert "2 wordings" in begun.output, begun.output
    status = " ".join(run("case", "status", "probed").output.split())
    assert "groundfault lab probe run --case probed --model NAME costs" in status
    prompts = probes(Bank.load("probed/probe/bank.toml"), Grammar.load("words.toml"))
    lines = [
        json.dumps({"prompt": p.prompt, "response": "0" if "de:" in p.prompt else p.task.answer})
        for p in prompts
    ]
    (place / "answers.jsonl").write_text("\n".join(lines))
    asked = run("lab", "probe", "run", "--case", "probed", "--model", "replay:answers.jsonl")
    assert "next: groundfault label review --case probed" in asked.output, asked.output
    sheet = ("--reviewer", "ana", "--export", "sheet.csv")
    assert "fill in" in run("label", "review", "--case", "probed", *sheet).output
    report = " ".join(run("case", "report", "probed").output.split())
    assert "holds in other words" in report
    assert "0 of" in report
    assert run("verify", "probed").exit_code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["audit", "--case", "case", "--alpha", "0.5"], "--alpha does not go with --case"),
        (["audit", "other.csv", "--case", "case"], "SOURCE does not go with --case"),
        (["audit"], "Missing argument 'SOURCE...'"),
        (["audit", "--case", "."], "is no case"),
        (["label", "confirm", "t.csv", "--mode", "1", "--label", "file"], "name it with"),
        (["label", "confirm", "--case", "case", "--label", "cmd"], "needs --command"),
        (["lab", "probe", "init"], "Missing argument 'FOLDER'"),
        (["lab", "probe", "run", "--model", "x"], "Missing argument 'CONFIG'"),
        (["lab", "probe", "init", "bank", "--mode", "1"], "name it with --case"),
        (["lab", "probe", "init", "--case", "case"], "holds the question: --question COL"),
        (["lab", "probe", "init", "bank", "--case", "case"], "FOLDER does not go with --case"),
        (["label", "review", "--case", "case", "--store", "x"], "--store does not go with --case"),
        (["label", "review", "--case", "case", "--status"], "holds no runs"),
        (["verify", "case", "--no-ledger"], "is verified from its own files: leave out --ledger"),
        (
            "case new case --from answers.csv --outcome right --positive-is-good".split(),
            "not empty",
        ),
    ],
)
def test_what_a_case_has_decided_is_not_said_again(
    words: list[str], message: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    result = run(*words)
    assert result.exit_code != 0
    assert message in f"{result.output} {result.exception}"
