"""The study of finders: worlds whose truth is known, runs that resume, and the tables of both
papers in form.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import groundfault
from groundfault import InputError, PlanError, finders
from groundfault_lab.commands.study import study as command
from groundfault_lab.testing import check_finder
from groundfault_studies import finders as study_of_finders, leaderboard, matrices, planted_worlds
from groundfault_studies.leaderboard import FINDERS, LeaderboardRun, measure, tables

FEW = ("sliceline", "tree", "confidence", "random")


def draw(world: str, seed: int = 0, rows: int = 1000) -> planted_worlds.PlantedWorld:
    return planted_worlds.draw(
        world, np.random.default_rng([planted_worlds.WORLDS.index(world), seed]), rows
    )


@pytest.fixture
def one_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = draw("two", 7, 400).evidence
    monkeypatch.setattr(leaderboard, "matrices", lambda folder: iter([("results", evidence)]))
    monkeypatch.setattr(leaderboard, "SPLITS", 2)


# worlds


@pytest.mark.parametrize("world", planted_worlds.WORLDS)
def test_errors_of_a_world_are_where_they_were_planted(world: str):
    data = draw(world, rows=20_000)
    loss = data.evidence.loss.to_numpy()
    on_slice = np.logical_or.reduce([np.zeros(20_000, dtype=bool), *data.planted.values()])
    assert loss[~on_slice].mean() == pytest.approx(planted_worlds.BASE, abs=0.015)
    for inside in data.planted.values():
        assert loss[inside].mean() == pytest.approx(planted_worlds.RAISED, abs=0.03)
        assert 0.18 < inside.mean() < 0.22
    # the likeliest class is wrong where there is an error, and says nothing else of it
    frame = data.evidence.frame
    prediction = (frame["probability_1"] > 0.5).cast(int)
    assert ((prediction != frame["label"]) == (data.evidence.loss == 1)).all()
    assert abs(np.corrcoef(prediction, loss)[0, 1]) < 0.03


@pytest.mark.parametrize("name", FINDERS)
def test_every_finder_of_the_board_keeps_the_contract(name: str):
    finder, settings = FINDERS[name]
    assert len(check_finder(finders.get(finder)(**settings), draw("unsure").evidence)) > 0


def test_whatever_the_finder_null_worlds_keep_the_judges_error_rate():
    """At level 0.1, five of sixteen have a chance of 2 in 100 for one finder; the slow test has
    more of all.
    """
    for name in FEW:
        assert (
            sum(
                measure(name, "null", i, draw("null", i, 400), "janus").confirmed > 0
                for i in range(16)
            )
            <= 5
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", FINDERS)
def test_null_worlds_keep_the_judges_error_rate_in_earnest(name: str):
    erred = sum(
        measure(name, "null", i, draw("null", i), "janus").confirmed > 0 for i in range(200)
    )
    assert erred <= 20 + 3 * np.sqrt(200 * 0.1 * 0.9)


@pytest.mark.parametrize("name", ["sliceline", "domino"])
def test_a_run_is_an_audit(name: str):
    data, (finder, settings) = draw("two"), FINDERS[name]
    report = groundfault.audit(
        data.evidence, groundfault.Plan(judge="janus"), finders=[finders.get(finder)(**settings)]
    )
    run = measure(name, "two", 0, data, "janus")
    testable = [f for f in report.findings if f.verdict is not groundfault.Verdict.UNTESTABLE]
    assert (run.proposed, run.tested, run.confirmed) == (
        len(report.findings),
        len(testable),
        len(report.confirmed),
    )
    assert run.discovery == pytest.approx(sum(abs(f.discovery.lift or 0) for f in testable))
    assert run.holdout == pytest.approx(
        sum(abs(f.holdout.lift or 0) for f in testable if f.holdout)
    )


def test_what_is_planted_is_recalled_by_those_who_can_see_it():
    assert measure("sliceline", "rule", 0, draw("rule"), "janus").recalled == 1
    assert measure("thresholds", "threshold", 0, draw("threshold"), "janus").recalled == 1
    assert measure("confidence", "unsure", 0, draw("unsure"), "janus").recalled == 1
    blind = measure("random", "cluster", 0, draw("cluster"), "janus")
    assert (blind.planted, blind.shown, blind.recalled) == (1, 0, 0)


# runs


def test_a_run_that_does_not_apply_says_so():
    data = draw("rule", rows=300)
    bare = planted_worlds.PlantedWorld(
        replace(data.evidence, frame=data.evidence.frame.drop("embedding")), {}
    )
    assert measure("spotlight", "results", 0, bare, "janus") == LeaderboardRun(
        "janus", "spotlight", "results", 0, applies=False
    )


def test_time_and_memory_are_measured():
    run = measure("sliceline", "rule", 0, draw("rule"), "janus")
    assert 0 < run.seconds < 10
    assert run.megabytes is None or 0 <= run.megabytes < 1000


@pytest.mark.usefixtures("one_matrix")
def test_resumed_equals_uninterrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    place = tmp_path / "runs.jsonl"

    def numbers(board: tuple[leaderboard.PaperTable, ...]) -> list[dict[str, object]]:
        rows = [dict(row.here) for table in board for row in table.rows]
        return [
            {k: v for k, v in here.items() if k not in ("seconds", "megabytes")} for here in rows
        ]

    whole = tables(tmp_path, "janus", 3, place, finders=FEW)
    lines = place.read_text().splitlines()
    assert len(lines) == len(FEW) * (3 + (len(planted_worlds.WORLDS) - 1) + 2)
    place.write_text("\n".join(lines[:20]) + "\n")
    assert numbers(tables(tmp_path, "janus", 3, place, finders=FEW)) == numbers(whole)
    assert [json.loads(a)["finder"] for a in place.read_text().splitlines()] == [
        json.loads(a)["finder"] for a in lines
    ]
    monkeypatch.setattr(
        leaderboard,
        "measure",
        lambda *arguments: LeaderboardRun(arguments[4], arguments[0], arguments[1], arguments[2]),
    )
    assert numbers(tables(tmp_path, "janus", 3, place, finders=FEW)) == numbers(whole), (
        "nothing is run twice"
    )
    place.write_text("not a run\n")
    with pytest.raises(InputError, match="does not hold runs of a leaderboard"):
        tables(tmp_path, "janus", 3, place, finders=FEW)


@pytest.mark.usefixtures("one_matrix")
def test_the_board_counts_what_it_says(tmp_path: Path):
    board, recall, each = tables(tmp_path, "split-holm", 5, finders=FEW)
    rows = {row.label: row.here for row in board.rows}
    assert set(rows) == set(FEW)
    assert rows["sliceline"]["recall"] > rows["random"]["recall"]
    assert all(row["confirmed"] <= row["tested"] <= row["proposed"] for row in rows.values())
    assert all(str(row["false"]).endswith(" of 5") for row in rows.values())
    assert recall.columns.keys() == set(planted_worlds.WORLDS) - {"null"}
    assert [row.label for row in each.rows] == ["results"]
    with pytest.raises(PlanError, match="holds nothing out"):
        tables(tmp_path, "max-t", 5, finders=FEW)


# real results


@pytest.mark.slow
def test_real_results_have_what_every_finder_reads(shared: Path):
    by_name = dict(matrices.matrices(shared / "real"))
    assert len(by_name) >= 15
    for name in ("gsm: gemma-2-2b-it", "mint, 5 turns: gpt-4-0613"):
        assert "embedding" in by_name[name].attributes
        assert not {"response", "answer"} & set(by_name[name].attributes)
    digits = by_name["digits, logistic"]
    assert "label" not in digits.attributes
    assert "probability_9" in digits.attributes


def test_tables_of_janus_agree_where_they_can(shared: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(study_of_finders.janus_audits, "real_audits", lambda folder: iter(()))
    second, fourth = study_of_finders.of_janus(shared)
    rows = {row.label: second.format_row(row)[0] for row in second.rows}
    assert rows["Controlled docs, reconstructed"][2:4] == ["36.3%", "88–95%"]
    verdicts = {
        row.label: row.here.get("verdict")
        for row in fourth.rows
        if row.label.startswith("Simulated null")
    }
    assert verdicts
    assert "confirmed" not in verdicts.values()


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def check(folder: Path, judge: str, replicates: int, keep: Path, progress: object) -> tuple[()]:
        assert (judge, replicates, keep.name) == ("janus", 7, "finders.rows.jsonl")
        return ()

    monkeypatch.setattr(leaderboard, "tables", check)
    (tmp_path / "data").mkdir()
    words = ["finders", "--judge", "janus", "--replicates", "7", "--shared", str(tmp_path / "data")]
    assert CliRunner().invoke(command, [*words, "--out", str(tmp_path)]).exit_code == 0
    assert (tmp_path / "leaderboard.md").exists()
    missing = CliRunner().invoke(
        command, ["finders", "--judge", "janus", "--shared", str(tmp_path / "nowhere")]
    )
    assert isinstance(missing.exception, InputError)


# known holes


def test_the_board_has_a_column_of_known_holes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    task = rng.choice(["add", "sort", "quote", "count"], 2500)
    examples = pl.DataFrame(
        {
            "example_id": [f"e{i:05d}" for i in range(2500)],
            "prompt": [f"{name} the list {i % 7} times" for i, name in enumerate(task)],
            "target": "x",
            "task": task,
            "size": rng.integers(0, 9, 2500),
        }
    )
    hole = pl.Series(task == "sort")
    outcomes = examples.select("example_id", correct=(~hole).cast(pl.Int8), model=pl.lit("sorts#1"))
    folder = tmp_path / "known_holes"
    folder.mkdir()
    examples.write_parquet(folder / "examples.parquet")
    outcomes.write_parquet(folder / "outcomes.parquet")
    examples.select("example_id", sorts=hole).write_parquet(folder / "inside.parquet")
    (folder / "holes.json").write_text('{"sorts#1": {"never_saw": "task = \'sort\'"}}')
    evidence = draw("two", 7, 400).evidence
    monkeypatch.setattr(leaderboard, "matrices", lambda folder: iter([("results", evidence)]))
    monkeypatch.setattr(leaderboard, "SPLITS", 1)
    place = tmp_path / "finders.rows.jsonl"
    board, *_ = tables(tmp_path, "janus", 1, place, finders=("sliceline", "random", "domino"))
    holes = {row.label: row.here["holes"] for row in board.rows}
    assert holes["sliceline"] == "1 (1) of 1"
    assert holes["random"] == "0 (0) of 1"
    assert holes["domino"] == "1 (1) of 1", "clusters of words are applied to new prompts too"
    assert len((tmp_path / "finders.rows.holes.jsonl").read_text().splitlines()) == 3


@pytest.mark.slow
def test_tables_of_papers_go_on_where_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("GROUNDFAULT_SHARED", raising=False)
    monkeypatch.chdir(tmp_path)
    keep = tmp_path / "finders.rows.jsonl"
    whole = study_of_finders.study(seeds=1, keep=keep)
    assert study_of_finders.study(seeds=1, keep=keep, progress=pytest.fail) == whole
