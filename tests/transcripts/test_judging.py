"""What an audit says of runs of agents: null worlds, a planted cause, and real ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from agent_worlds import call, make_chats, read, read_mint, read_tau_bench
from pages import Page

from groundfault import Evidence, Report, audit, verify
from groundfault.auditing.report_examples import look_up_runs
from groundfault.errors import InputError
from groundfault.render import to_html
from groundfault.render.transcript_page import make_run_page
from groundfault.stats import risk_sets
from groundfault.transcripts.behaviours import find_behaviours
from groundfault.transcripts.judging import judge_transcripts
from groundfault.transcripts.steps import tabulate_steps


def test_behaviours_have_the_turn_at_which_they_happen() -> None:
    again = call("look", '{"q": 1}', "Error: it is not there at all")
    chat = [*call("read"), *again, *again, *call("write"), {"role": "assistant", "content": "done"}]
    plain = [{"role": "assistant", "content": "I am sorry"}, {"role": "user", "content": "no"}]
    steps = tabulate_steps(enumerate([chat] * 12 + [plain] * 12))
    found = find_behaviours(steps, 25)
    turns = {name: int(row[0]) for name, row in zip(found.names, found.first, strict=True)}
    never = int(risk_sets.NEVER)
    assert found.turns.tolist() == [5] * 12 + [1] * 12 + [0]
    expected = {
        "calls look": 2, "calls read first": 1, "calls look after read": 2, "a call errs": 2,
        "repeats a call": 3, "repeats a call that erred": 3, "gets the same result again": 3,
        "error: Error: it is not there at all": 2, "speaks without a call": 5,
        "apologises": never, "the user corrects it": never,
    }  # fmt: skip
    assert {name: turns.get(name) for name in expected} == expected
    assert "writes before it reads" not in turns


def test_success_without_the_call_that_does_it_is_told_where_runs_write() -> None:
    done = {"role": "assistant", "content": "It is done."}
    empty, whole = [*call("read"), done], [*call("read"), *call("write"), done]
    told, never = "claims success without a call that writes", int(risk_sets.NEVER)
    for chats, turns in (([empty, whole], [2, never]), ([empty, empty], None)):
        found = find_behaviours(tabulate_steps(enumerate(chats * 12)), 24)
        first = {n: f[:2].tolist() for n, f in zip(found.names, found.first, strict=True)}
        assert first.get(told) == turns


def test_who_writes_more_often_than_it_reads_is_told_from_the_turn_on() -> None:
    chat = [*call("read"), *call("write"), *call("write"), *call("look")]
    found = find_behaviours(tabulate_steps(enumerate([chat] * 12)), 12)
    turns = {name: int(row[0]) for name, row in zip(found.names, found.first, strict=True)}
    assert turns["writes more often than it reads"] == 3
    assert "writes before it reads" not in turns


def test_who_hands_in_an_answer_and_goes_on_was_wrong_and_that_is_no_behaviour() -> None:
    wrong = {"role": "judge", "content": "Your answer is wrong"}
    chats = [[*call("submit", result=None), wrong, *call("look")], [*call("look"), *call("read")]]
    steps = tabulate_steps(enumerate(chats * 12))
    found = find_behaviours(steps, 24)
    assert not any("submit" in name for name in found.names)
    assert found.untold.tolist() == [1, 2] * 12
    assert found.turns.tolist() == [2, 2] * 12


@pytest.mark.parametrize(("trials", "models"), [(1, 1), (4, 1), (1, 5)])
def test_null_worlds_of_unequal_length_say_nothing(
    trials: int, models: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(risk_sets, "DRAWS", 199)
    claims = 0
    for seed in range(20):
        table = make_chats(seed, tasks=200 // trials // models, trials=trials, models=models)
        told = judge_transcripts(read(table), 0.1)
        claims += bool(told.announcements or any((b.p or 1) <= 0.1 for b in told.behaviours))
    # of 20 worlds of 10 %, more than 5 are a chance of 1 %
    assert claims <= 5


@pytest.fixture(scope="module")
def planted() -> Report:
    table = make_chats(7, tasks=60, trials=5, cause=0.8)
    kinds = ["booking" if int(t[1:]) % 3 else "refund" for t in table["id"]]
    return audit(read(table.with_columns(kind=pl.Series(kinds))), ledger=False)


def test_behaviours_of_the_same_runs_are_one_row() -> None:
    rng = np.random.default_rng(0)
    rows = []
    for i in range(120):
        hasty = rng.random() < 0.4
        failed = int(rng.random() < (0.9 if hasty else 0.1))
        chat = [*call("pay" if hasty else "check"), *call("search"), *call("search")]
        rows.append((f"t{i // 4}", i % 4, failed, json.dumps(chat)))
    names = ["id", "trial", "error", "messages"]
    table = pl.DataFrame(rows, names, orient="row")
    evidence = Evidence.from_table(table, id="id", repeat="trial", outcome="error")
    report = audit(evidence, ledger=None)
    assert sum("pay" in one.name for one in report.behaviours) >= 3
    page = Page(to_html(report)).text
    assert "calls pay, calls pay first" in page


def test_a_cause_at_the_second_turn_is_told(planted: Report, tmp_path: Path) -> None:
    first = planted.behaviours[0]
    assert "stray" in first.name
    assert first.p is not None
    assert first.p <= 0.01
    assert first.first_turn == 2
    assert first.failed > first.expected + 10
    assert first.interval[0] < first.failing / first.failing_runs < first.interval[1]
    told = {(a.landmark, a.behaviour) for a in planted.announcements}
    assert (2, "calls stray") in told
    assert not any(landmark == 1 for landmark, _ in told)
    assert planted.transcripts is not None
    assert planted.transcripts.within == "of the same task"
    planted.write(tmp_path / "report")
    again = Report.load(tmp_path / "report")
    assert again.behaviours == planted.behaviours
    assert again.announcements == planted.announcements
    page = to_html(again)
    assert not planted.modes
    assert "with failing</h2>" in page
    assert "How it fails" in page
    assert "What announces failure" in page
    frame = again.where_how()
    assert frame.height == len(planted.modes)


def test_groups_of_single_runs_are_described_and_not_tested() -> None:
    table = make_chats(1, tasks=120, trials=1).with_columns(group=pl.Series([*range(40)] * 3))
    evidence = Evidence.from_table(table, id="id", outcome="error", group="group", ignore=["trial"])
    told = judge_transcripts(evidence, 0.1)
    assert told.behaviours
    assert all(b.p is None for b in told.behaviours)
    assert told.transcripts is not None
    assert not told.transcripts.tested


def test_hostile_names_run_nowhere(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    hostile = [*call(evil, evil, f"Error: {evil}"), *call(evil)]
    chats = [hostile * (1 + i % 2) if i % 3 else call("look") * 2 for i in range(60)]
    rows = [(str(i), i % 2, json.dumps(chat)) for i, chat in enumerate(chats)]
    table = pl.DataFrame(rows, schema=["id", "error", "messages"], orient="row")
    report = audit(Evidence.from_table(table, id="id", outcome="error"), ledger=False)
    assert any(evil in b.name for b in report.behaviours)
    assert evil not in to_html(report)


def test_mint_announces_an_error_of_the_first_call(shared: Path) -> None:
    told = judge_transcripts(read_mint(shared), 0.1)
    assert told.transcripts is not None
    assert told.transcripts.runs == 2930
    # runs that go on after the first turn and have not handed in a wrong answer
    announced = {a.behaviour: a for a in told.announcements if a.landmark == 1}
    first = announced["the first call errs"]
    assert first.failed / first.runs > 0.8
    assert first.rest_failed / first.rest < 0.5
    assert first.p <= 0.01
    # consequences: no run that fails is shorter, and who proposed and goes on was wrong
    assert not any("solution" in b.name for b in told.behaviours)


def test_modes_of_mint_are_benchmarks_and_no_consequence(shared: Path) -> None:
    report = audit(read_mint(shared).select_model("gpt-4-0613"), ledger=False)
    shares = {mode.columns: [] for mode in report.modes}
    for mode in report.modes:
        shares[mode.columns].append((mode.rule, round(mode.errors / mode.n, 2)))
    assert set(shares) == {("benchmark",)}
    # three benchmarks fail alike, in .43 to .53 of their tasks: one mode
    assert shares["benchmark",] == [("\"benchmark\" IN ('math', 'mbpp', 'hotpotqa')", 0.47)]


def test_nothing_is_announced_on_tau_bench(shared: Path) -> None:
    told = judge_transcripts(read_tau_bench(shared), 0.1)
    assert not told.announcements
    assert all(b.p is None or b.p > 0.05 for b in told.behaviours)
    assert told.transcripts is not None
    assert 0.2 < told.transcripts.detectable["1"] < 0.6


def test_failed_runs_alone_are_described(shared: Path) -> None:
    table = pl.read_parquet(shared / "real" / "who_and_when" / "traces.parquet")
    table = table.with_columns(error=pl.lit(1))
    told = judge_transcripts(Evidence.from_table(table, id="example_id", outcome="error"), 0.1)
    assert told.transcripts is not None
    assert told.transcripts.failing == 126
    shares = {b.name: b.failing for b in told.behaviours}
    assert shares["a call errs"] > 30
    assert shares["hands over to another agent"] > 60


def test_a_failing_and_a_passing_run_of_a_task_are_shown_step_by_step(tmp_path: Path) -> None:
    table = make_chats(3, tasks=20, trials=4)
    table.write_parquet(tmp_path / "runs.parquet")
    names = {"id": "id", "repeat": "trial", "outcome": "error"}
    report = audit(Evidence.from_table(tmp_path / "runs.parquet", **names), ledger=False)
    report.write(tmp_path / "report")
    task = table.group_by("id").agg(pl.col("error").mean()).filter(pl.col("error") == 0.5)["id"][0]
    runs = look_up_runs(tmp_path / "report", task, evidence=tmp_path / "runs.parquet")
    assert list(runs) == ["failing", "passing"]
    mark = "error (first)"
    lines = list(make_run_page(task, runs).lead)
    text = str(lines)
    assert f"task {task[1:]}" in text
    wrong = any((steps["status"] != "ok").any() for steps in runs.values())
    assert (mark in text) == wrong
    with pytest.raises(InputError, match="no steps of an example 'nobody'"):
        look_up_runs(tmp_path / "report", "nobody", evidence=tmp_path / "runs.parquet")


def test_a_report_has_the_decisive_steps_of_a_failing_and_a_passing_run(tmp_path: Path) -> None:
    table = make_chats(3, tasks=50, trials=4, cause=0.6)
    evil = "<script>alert(1)</script>"
    table = table.with_columns(pl.col("messages").str.replace_all("some words", evil))
    table = table.with_columns(pl.col("messages").str.replace_all("found 0", f"{evil} 0"))
    table.write_parquet(tmp_path / "runs.parquet")
    names = {"id": "id", "repeat": "trial", "outcome": "error"}
    evidence = Evidence.from_table(tmp_path / "runs.parquet", **names)
    report = audit(evidence, ledger=tmp_path / "ledger.db")
    stray = [one for one in report.excerpts if one.behaviour == "calls stray"]
    failing, passing = stray
    assert (failing.failing, failing.turn, failing.example) == (True, 2, passing.example)
    assert failing.steps[0].startswith("assistant call stray")
    assert not passing.failing
    assert not any("stray" in step for step in passing.steps)
    page = to_html(report)
    assert "Runs that show it" in page
    assert "assistant call stray" in page
    assert evil not in page
    report.write(tmp_path / "report")
    assert verify(tmp_path / "report", ledger=tmp_path / "ledger.db").verdict == "reproduces"
    quiet = audit(evidence, ledger=False, texts=False)
    assert quiet.excerpts == ()
    assert quiet.behaviours == report.behaviours
