"""What changed since a baseline: one test on shared units, counts where there are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from msgspec import structs
from runs import RULES, make_evidence, make_runs
from scipy import stats

import groundfault
from groundfault import Candidate, Report
from groundfault.auditing.report_examples import match_evidence
from groundfault.auditing.since_baseline import OutcomeChange, ReportPair
from groundfault.core.finding import Finding

FRAME = make_runs(n=800, shift=0.2)


def audit_run(frame: pl.DataFrame, run: str, **options: Any) -> Report:
    candidates = [Candidate(name, rule) for name, rule in RULES.items()]
    evidence = make_evidence(frame).select_model(run)
    return groundfault.audit(evidence, None, candidates, finders=(), ledger=False, **options)


@pytest.fixture(scope="module")
def then() -> Report:
    return audit_run(FRAME, "old")


@pytest.fixture(scope="module")
def now() -> Report:
    return audit_run(FRAME, "new")


def pair(now: Report, then: Report, *, table: bool = True) -> ReportPair:
    audit = match_evidence(now.data, make_evidence(FRAME)) if table else None
    return ReportPair(now.data, then.data, audit, 0.1)


def find(report: Report, name: str) -> Finding:
    (finding,) = [f for f in report.findings if f.name == name]
    return finding


def search(pair: ReportPair) -> OutcomeChange:
    (change,) = pair.list_changes()
    return change


def test_shared_units_are_searched_like_two_models(now: Report, then: Report) -> None:
    change = search(pair(now, then))
    wide = FRAME.pivot("run", index="id", values="error")
    hard = FRAME.filter("hard").pivot("run", index="id", values="error")
    assert change.overall.error_rates == (wide["old"].mean(), wide["new"].mean())
    assert change.overall.confirmed
    (mode,) = change.modes
    assert mode.rule in ("hard", '"hard"')
    assert mode.change is not None
    assert (mode.n, mode.errors) == (hard.height, hard["new"].sum())
    assert mode.change.before == hard["old"].sum()
    worse = hard.filter((pl.col("new") == 1) & (pl.col("old") == 0))
    assert mode.change.worse == worse.height
    assert {example.id for example in mode.examples("failing")} <= set(worse["id"])
    compared = groundfault.audit(make_evidence(FRAME), compare=("old", "new"), ledger=False)
    assert [m.rule.strip('"') for m in compared.modes] == ["hard"]
    assert compared.modes[0].change == mode.change


def test_without_the_table_stored_slices_are_tested(now: Report, then: Report) -> None:
    """Those of the baseline, and those that the report confirmed, each paid for."""
    change = search(pair(now, then, table=False))
    assert [mode.meaning for mode in change.modes] == ["hard"]
    assert change.search.bars == "bonferroni"
    sizes = {each.name: each.rules for each in change.search.classes}
    assert sizes == {"overall": 1, "own": now.candidates.distinct + len(then.modes)}


def test_other_units_are_two_samples(then: Report, now: Report) -> None:
    parted = ReportPair(now.data, structs.replace(then.data, units=None), None, 0.1)
    assert not list(parted.list_changes())
    since = parted.measure_counts(find(now, "hard"))
    assert since is not None
    assert not since.shared
    counts = [
        (int(frame["error"].sum()), frame.height)
        for frame in (FRAME.filter("hard", run=run) for run in ("new", "old"))
    ]
    table = [[errors, size - errors] for errors, size in counts]
    p = stats.fisher_exact(table, alternative="greater")[1]
    assert since.p == pytest.approx(min(1, p * now.candidates.distinct))


def test_few_shared_units_are_not_enough(now: Report) -> None:
    renamed = FRAME.with_columns(
        id=pl.when(pl.col("id") > "q0200").then("x" + pl.col("id")).otherwise("id")
    )
    assert not list(pair(now, audit_run(renamed, "old")).list_changes())


def test_ids_that_name_other_examples_are_not_shared(now: Report) -> None:
    other = audit_run(make_runs(seed=5, n=800, shift=0.2), "new")
    assert find(other, "hard").confirmed
    assert not list(pair(now, other).list_changes())


def test_what_neither_has_cannot_be_compared(then: Report, now: Report) -> None:
    none = structs.replace(then.data, units=None, findings=())
    alone = ReportPair(now.data, none, None, 0.1)
    assert alone.measure_counts(find(now, "hard")) is None
    assert not alone.has_anything_alike()
    assert pair(now, then).has_anything_alike()
    parted = structs.replace(then.data, units=None)
    assert ReportPair(now.data, parted, None, 0.1).has_anything_alike()
    other = structs.replace(then.data, outcomes=("a", "b"))
    assert not ReportPair(now.data, other, None, 0.1).has_anything_alike()


def test_a_column_that_tells_the_outcome_is_no_rule() -> None:
    """A grader's remark would name every example that got worse."""
    frame = make_runs(n=600)
    remark = np.where(frame["error"] == 1, "it is wrong so", "it is fine so")
    frame = frame.with_columns(note=pl.Series(remark) + " " + pl.col("id"))
    old, new = (make_evidence(frame.filter(run=run)) for run in ("old", "new"))
    then, now = (groundfault.audit(one, ledger=False) for one in (old, new))
    verdict = groundfault.gate(now, baseline=then, evidence=new)
    assert verdict.passed, verdict.new


def test_a_rule_that_got_worse_fails_the_gate(now: Report, then: Report) -> None:
    evidence = make_evidence(FRAME)
    verdict = groundfault.gate(now, "kind = 'mode'", baseline=then, evidence=evidence)
    assert not verdict.passed
    assert [match.name for match in verdict.new] == ["hard"]
    assert groundfault.gate(now, "kind = 'mode'", baseline=now, evidence=evidence).passed
    back = groundfault.gate(then, baseline=now, evidence=evidence)
    assert back.passed
    assert [mode.is_less_frequent for mode in back.modes] == [True]


def test_a_trusted_column_that_decides_the_outcome_is_named() -> None:
    """As in the report: what is known before the answer is no leak since a baseline either."""
    rng = np.random.default_rng(5)
    kind = rng.choice(["a", "b", "c", "d"], 400)
    frame = pl.DataFrame({"id": [f"q{i}" for i in range(400)], "kind": kind})

    def audit_build(error: Any, **roles: Any) -> tuple[Report, Any]:
        table = frame.with_columns(error=error)
        evidence = groundfault.Evidence.from_table(table, id="id", outcome="error", **roles)
        return groundfault.audit(evidence, None, finders=(), ledger=False), evidence

    (then, _), noise = audit_build(rng.random(400) < 0.1), rng.random(400) < 0.01
    for roles, named in (({"allow_leakage": ("kind",)}, ["kind is c"]), ({}, [])):
        now, evidence = audit_build((kind == "c") | noise, **roles)
        audit = match_evidence(now.data, evidence)
        change = search(ReportPair(now.data, then.data, audit, 0.1))
        assert [mode.meaning for mode in change.modes][:1] == named, roles
