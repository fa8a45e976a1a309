"""Comparisons: what changed overall, on slices, and unlike the rest."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from runs import compare_runs, make_evidence, make_runs
from scipy import stats

import groundfault
from groundfault import Evidence, Plan, PlanError
from groundfault.auditing import changes
from groundfault.auditing.gate_rows import make_overall_row
from groundfault.render.audit_page import make_summary
from groundfault.render.page import Paragraph
from groundfault.stats import paired


def test_the_overall_change_is_mcnemars() -> None:
    frame = make_runs(shift=0.15)
    report = compare_runs(frame, modes=False)
    wide = frame.pivot("run", index="id", values="error")
    worse = wide.filter((pl.col("new") == 1) & (pl.col("old") == 0)).height
    better = wide.filter((pl.col("new") == 0) & (pl.col("old") == 1)).height
    change = report.change
    assert change is not None
    assert change.error_rates == (wide["old"].mean(), wide["new"].mean())
    assert change.change == pytest.approx((worse - better) / 1000)
    assert change.p == pytest.approx(stats.binomtest(worse, worse + better).pvalue)
    assert change.interval[0] < change.change < change.interval[1]
    assert change.confirmed
    assert report.outcomes == ("",)
    assert report.error_rate == change.error_rates[1]


@pytest.mark.parametrize("judge", [None, "max-t", "holm", "bh", "by", "split-holm"])
def test_a_slice_that_got_worse_is_named_with_both_rates(judge: str | None) -> None:
    plan = Plan() if judge is None else Plan(judge=judge, permutations=499)
    report = compare_runs(make_runs(n=2000, shift=0.25), plan)
    unlike = [f for f in report.confirmed if f.elsewhere and f.elsewhere.differs]
    assert [f.name for f in unlike] == ["hard"]
    (finding,) = unlike
    cell = finding.holdout or finding.full
    assert cell.lift == pytest.approx(cell.on_errors / cell.on - cell.off_errors / cell.off)
    assert cell.on == cell.off
    assert finding.sentence.startswith(
        f"Confirmed change: new fails more often than old when {finding.meaning} ("
    )
    assert f"old {cell.off_errors:g} of {cell.off}, new {cell.on_errors:g} of {cell.on}" in (
        finding.sentence
    )
    assert "It differs from the change elsewhere" in finding.sentence
    assert finding.elsewhere is not None
    assert finding.elsewhere.difference == pytest.approx(cell.lift - finding.elsewhere.change)
    low, high = finding.elsewhere.interval
    assert low < finding.elsewhere.difference < high


def test_graded_changes_speak_of_the_mean_loss() -> None:
    frame = make_runs(n=2000, shift=0.25).with_columns(pl.col("error") * 0.9 + 0.05)
    report = compare_runs(frame)
    sentences = {f.name: f.sentence for f in report.findings}
    start = "Confirmed change: new has a larger mean loss than old when hard ("
    assert sentences["hard"].startswith(f"{start}old 0.3")
    assert "fails" not in " ".join([*sentences.values(), make_summary(report).verdict])
    page = report.to_markdown()
    assert "A rise of the mean loss below " in page
    assert "| Loss before | Now |" in page
    assert report.change is not None
    row = make_overall_row(report.data, report.change)
    assert row.sentence.startswith("Overall, new has a larger mean loss than old (old 0.")


def test_a_change_of_all_alike_is_no_slice_of_its_own() -> None:
    report = compare_runs(make_runs(n=3000, everywhere=0.1))
    assert report.change is not None
    assert report.change.confirmed
    assert {f.name for f in report.confirmed} == {"hard", "odd", "long"}
    assert not any(f.elsewhere and f.elsewhere.differs for f in report.confirmed)
    page = make_summary(report)
    assert page.verdict == "new fails more often than old overall"
    lines = [block.line[0] for block in page.lead if isinstance(block, Paragraph)]
    assert any(str(line).startswith("Overall, from old to new: +") for line in lines)
    assert "Changed like everything else: hard" in report.to_markdown()


def test_two_runs_of_one_model_differ_nowhere() -> None:
    report = compare_runs(make_runs(seed=1))
    assert not report.confirmed
    assert not report.modes
    assert report.mode_search is not None
    assert report.mode_search.overall is not None
    assert min(report.mode_search.overall) > 0.1
    assert make_summary(report).verdict == "No change from old to new beyond chance"
    assert "lift" not in report.conclusion


def test_the_reverse_has_the_opposite_sign() -> None:
    frame = make_runs(shift=0.25, n=2000)
    back = groundfault.audit(
        make_evidence(frame), compare=("new", "old"), ledger=False, plan=Plan()
    )
    assert back.change is not None
    assert back.change.change < 0
    assert not back.weaknesses
    strengths = [f for f in back.strengths if f.elsewhere and f.elsewhere.differs]
    assert {f.name for f in strengths} == {"hard"}
    assert "fails less often" in strengths[0].sentence
    # examples are those that got better
    wide = frame.pivot("run", index="id", values="error")
    better = set(wide.filter((pl.col("new") == 1) & (pl.col("old") == 0))["id"])
    assert set(back.examples["hard"]) <= better


def test_a_slice_and_its_complement_are_two_facts() -> None:
    frame = make_runs(1, shift=0.3, n=2000)
    candidates = [groundfault.Candidate("hard", "hard"), groundfault.Candidate("easy", "not hard")]
    report = groundfault.audit(
        make_evidence(frame), Plan(), candidates, finders=(), compare=("old", "new"), ledger=False
    )
    assert [f.name for f in report.confirmed] == ["hard"]
    assert all(not f.aliases for f in report.findings)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (Plan(judge="janus"), "janus cannot compare two models"),
        (Plan(judge="multisplit-e"), "judge by max-t, holm or split-holm"),
        (Plan(effect="risk_ratio"), "of differences"),
        (Plan(within=("odd",)), "holds every column fixed"),
    ],
)
def test_what_is_no_comparison_is_refused(plan: Plan, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        compare_runs(make_runs(), plan)


def test_unscored_answers_count_for_neither_model() -> None:
    frame = make_runs().with_columns(
        pl.when((pl.col("run") == "new") & (pl.col("words") > 90))
        .then(pl.lit("refused"))
        .otherwise(pl.lit("scored"))
        .alias("status")
    )
    evidence = Evidence.from_table(frame, id="id", model="run", outcome="error", status="status")
    report = groundfault.audit(evidence, compare=("old", "new"), ledger=False)
    assert report.change is not None
    assert (
        report.change.n == frame.filter((pl.col("run") == "old") & (pl.col("words") <= 90)).height
    )


def test_conclusions_say_what_could_have_been_seen() -> None:
    assert changes.conclude(None, 0.3).startswith("This comparison is too small")
    assert "A change of at least 12 points in 30%" in changes.conclude(0.12, 0.3)


def test_the_interval_covers_the_change() -> None:
    rng = np.random.default_rng(2)
    rates = np.array([0.7, 0.2, 0.1])
    draws = rng.multinomial(60, rates, 4000)
    total, squares = draws[:, 1] - draws[:, 2], draws[:, 1] + draws[:, 2]
    low, high = paired.change(total, squares, np.full(4000, 60), 0.9)
    assert 0.88 <= ((low <= 0.1) & (high >= 0.1)).mean() <= 0.94


def test_a_real_change_smaller_than_asked_for_is_not_called_chance() -> None:
    rng = np.random.default_rng(0)
    n = 4000
    on = rng.random(n) < 0.5
    old = rng.random(n) < 0.3
    new = old ^ ((rng.random(n) < 0.1) & on & ~old)
    rows = [
        {"id": i, "model": model, "here": bool(on[i]), "error": int(losses[i])}
        for model, losses in (("old", old), ("new", new))
        for i in range(n)
    ]
    evidence = groundfault.Evidence.from_table(
        pl.DataFrame(rows), id="id", model="model", outcome="error"
    )
    plan = groundfault.Plan(judge="holm", min_lift="0.2")
    report = groundfault.audit(
        evidence, plan, [groundfault.Candidate("here", "here")], compare=("old", "new"), ledger=None
    )
    [finding] = report.findings
    assert finding.verdict == "too_small"
    assert finding.sentence.startswith("A real change, smaller than was asked for")
