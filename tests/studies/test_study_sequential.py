"""`groundfault lab study sequential`: settings, one trajectory for all bets, figures, and going on
after a kill.
"""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

from groundfault.errors import InputError, PlanError
from groundfault.sequential import SequentialAudit, SequentialPlan
from groundfault_studies import audit_runs, sequential
from groundfault_studies.audit_runs import MAIN, Method, digits

FEW = (
    Method("LR, oracle", "oracle", "lr"),
    Method("LR, stratified", "stratified", "lr"),
    Method(MAIN, "stratified", "sr-lr-ui"),
)


@pytest.fixture
def few(monkeypatch, tmp_path):
    """Two quick policies, and no shared data unless named."""
    monkeypatch.setattr(audit_runs, "METHODS", FEW)
    monkeypatch.setattr(sequential, "METHODS", FEW)
    monkeypatch.setattr(sequential, "digits", lambda: replace(digits(), budget=80))
    monkeypatch.delenv("GROUNDFAULT_SHARED", raising=False)
    monkeypatch.chdir(tmp_path)


def rows_of(table):
    return {row.label: row.here for row in table.rows}


def test_digits_alone_where_there_are_no_data(few):
    result = sequential.study(replicates=2)
    assert "experiments 1 and 2" in result.lacking[0]
    verdicts, attention = result.tables
    oracle = rows_of(verdicts)["digits: LR, oracle"]
    assert oracle["found"] == 1.0
    assert oracle["median"] < rows_of(verdicts)["digits: LR, stratified"]["median"]
    shares = [row["share"] for row in rows_of(attention).values() if "share" in row]
    assert sum(shares) == pytest.approx(1.0)
    assert -1 <= rows_of(attention)["Spearman correlation"]["rho"] <= 1
    assert set(result.figures) == {
        f"figure-e3-{kind}" for kind in ("verdicts", "labels", "wealth", "frequency")
    }
    for svg in result.figures.values():
        assert ElementTree.fromstring(svg).tag.endswith("svg")


@pytest.mark.slow
def test_the_experiments_of_the_paper_in_form(few, shared, monkeypatch):
    for name in ("read_pool", "read_bank"):  # two of four degradations are enough here
        whole = getattr(audit_runs, name)
        monkeypatch.setattr(sequential, name, lambda folder, whole=whole: whole(folder)[::3])
    result = sequential.study(shared, replicates=1, only=[10])
    titles = [table.title for table in result.tables]
    assert len(titles) == 6
    for start in ("Figure C.1 (a), m = 10", "Figure C.1 (b), m = 10", "Figure 3", "Figure E.3"):
        assert any(title.startswith(start) for title in titles), start
    first = rows_of(result.tables[0])
    assert first["Large: LR, oracle"]["found"] == 1.0
    assert first["None: LR, oracle"]["found"] == 0.0
    [attention] = [table for table in result.tables if table.title.startswith("Figure 3: where")]
    assert len(attention.rows) > 28
    assert attention.rows[-1].paper == {"rho": "−0.84"}
    assert "figure-c1a-verdicts" in result.figures


def test_one_policy_alone_has_its_lines(few):
    result = sequential.study(replicates=1, methods=["oracle"])
    assert [row.label for row in result.tables[0].rows] == ["digits: LR, oracle"]
    with pytest.raises(PlanError, match=r"no policy 'luck' here; choose from \['oracle', 'strat"):
        sequential.study(replicates=1, methods=["luck"])


def test_burn_ins_without_a_figure_are_refused(few):
    with pytest.raises(PlanError, match=r"no figure of burn-in 20; choose from \[10, 40, 70\]"):
        sequential.study(replicates=1, only=[40, 20])


def test_one_trajectory_serves_all_bets_and_burn_ins(few):
    setting = replace(digits(), budget=80)
    together = audit_runs.run_audits(setting, "stratified", (10, 70), 1)
    assert [(row["method"], row["m"]) for row in together] == [
        (label, m) for label in ("LR, stratified", MAIN) for m in (10, 70)
    ]
    scores = setting.scores(1)
    for row, bet in zip(together, ("lr", "lr", "sr-lr-ui", "sr-lr-ui"), strict=True):
        plan = SequentialPlan(
            threshold=0.85,
            burn_in=row["m"],
            policy="stratified",
            bet=bet,
            seed=1,
            claim="declared-groups",
            budget=80,
        )
        alone = SequentialAudit.of(setting.pool, plan)
        alone.run(lambda query: float(scores[setting.pool.position[query.id]]))
        assert (alone.verdict, alone.labelled) == (row["verdict"], row["labelled"])


def test_an_interrupted_study_goes_on(few, tmp_path, monkeypatch):
    keep, calls = tmp_path / "sub" / "rows.jsonl", []
    real = audit_runs.run_audits

    def count(*job):
        calls.append(job)
        return real(*job)

    monkeypatch.setattr(audit_runs, "run_audits", count)
    whole = sequential.study(replicates=2, keep=keep)
    assert len(calls) == 4
    lines = keep.read_text().splitlines(keepends=True)
    keep.write_text("".join(lines[:2]) + lines[2][:40])  # killed while it wrote the third
    again = sequential.study(replicates=2, keep=keep)
    assert len(calls) == 6
    assert again.to_json() == whole.to_json()
    assert sequential.study(replicates=2, keep=keep).to_json() == whole.to_json()
    assert len(calls) == 6
    assert all(json.loads(line) for line in keep.read_text().splitlines() if line != lines[2][:40])


def test_wrong_verdicts_count_as_the_budget(few):
    setting = digits()
    row = {"experiment": "3", "setting": "digits", "labelled": 12, "right": setting.right(1)}
    assert row["right"] == "failure mode found"
    for verdict, until in (
        ("failure mode found", 12),
        ("audit passed", 250),
        ("inconclusive", 250),
    ):
        [labelled] = sequential._with_labels([{**row, "verdict": verdict}], [setting])
        assert labelled["until"] == until


def test_the_settings_are_what_they_say(shared):
    skills = audit_runs.skills(shared)
    right, pool = skills.scores(1), skills.pool
    assert len(skills.accuracy) >= 28
    for name, members in zip(pool.groups[1:], pool.members[1:], strict=True):
        assert 36 <= members.sum() <= 81
        assert np.mean(right[members]) == pytest.approx(skills.accuracy[name])
    assert min(skills.accuracy.values()) < skills.threshold < right.mean()
    easy = audit_runs.read_pool(shared)[3]
    assert easy.scores(1).mean() > 0.9
    assert easy.pool.sizes.min() >= 0.05 * len(easy.pool)
    assert "audit passed" in {
        easy.right(r) for r in range(1, 20)
    }  # by luck, a small group may fall short
    bank, sound = (audit_runs.read_bank(shared)[i] for i in (0, 3))
    assert (bank.right(1), sound.right(1)) == ("failure mode found", "audit passed")
    assert bank.failing in bank.pool.groups
    assert (bank.scores(1) != bank.scores(2)).any()


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="no folder"):
        sequential.study(tmp_path / "nowhere")


def work(number):
    return [{"number": number}]


def test_rows_are_shown_on_the_way_and_not_twice(tmp_path):
    rounds = [{f"{r} {part}": (10 * r + part,) for part in (1, 2)} for r in range(1, 6)]
    calls, messages = [], []

    def run(show):
        keep = tmp_path / "rows.jsonl"
        return audit_runs.resume_rounds(rounds, work, keep, 1, messages.append, show)

    rows = run(lambda rows, count: calls.append((count, [row["number"] for row in rows])))
    assert calls == [(1, [11, 12]), (2, [11, 12, 21, 22]), (4, [row["number"] for row in rows[:8]])]
    assert messages[2] == "round 2 of 5, 1 of 2: 2 1"
    assert run(pytest.fail) == rows  # all of it was in the file


@pytest.mark.slow
def test_the_tables_so_far_are_those_of_a_shorter_study(few, tmp_path):
    from groundfault_lab.commands.study import study

    result = CliRunner().invoke(study, ["sequential", "--replicates", "2", "--out", "tables"])
    assert "So far, after 1 replicate:" in result.stderr
    assert "So far" not in result.stdout
    so_far = []
    keep = tmp_path / "tables" / "other.jsonl"
    sequential.study(replicates=2, keep=keep, show=so_far.append)
    assert so_far[0].to_json() == sequential.study(replicates=1, keep=keep).to_json()
