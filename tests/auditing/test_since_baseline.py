"""What changed since a baseline: signed tests on shared units, and the level over everything."""

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
from groundfault.auditing.since_baseline import (
    KNOWN_MODE_SHARE,
    MODE_SHARE,
    ReportPair,
    SinceBaseline,
)
from groundfault.core.finding import Finding


def audit_run(frame: pl.DataFrame, run: str, **options: Any) -> Report:
    candidates = [Candidate(name, rule) for name, rule in RULES.items()]
    evidence = make_evidence(frame).select_model(run)
    return groundfault.audit(evidence, None, candidates, finders=(), ledger=False, **options)


FRAME = make_runs(n=800, shift=0.2)


@pytest.fixture(scope="module")
def then() -> Report:
    return audit_run(FRAME, "old", modes=False)


@pytest.fixture(scope="module")
def now() -> Report:
    return audit_run(FRAME, "new", modes=False)


def find(report: Report, name: str) -> Finding:
    (finding,) = [f for f in report.findings if f.name == name]
    return finding


def test_shared_units_take_the_one_sided_sign_test(then: Report, now: Report) -> None:
    since = ReportPair(now.data, then.data).measure(find(now, "hard"))
    assert since is not None
    assert since.shared
    wide = FRAME.filter("hard").pivot("run", index="id", values="error")
    worse = wide.filter((pl.col("new") == 1) & (pl.col("old") == 0)).height
    better = wide.filter((pl.col("new") == 0) & (pl.col("old") == 1)).height
    expected = stats.binomtest(worse, worse + better, alternative="greater").pvalue
    assert since.p == pytest.approx(expected)
    assert (since.before, since.now) == (wide["old"].mean(), wide["new"].mean())
    back = ReportPair(then.data, now.data).measure(find(then, "hard"))
    assert back is not None
    assert back.p > 0.99


def test_other_units_are_two_samples(then: Report, now: Report) -> None:
    parted = structs.replace(then.data, units=None)
    since = ReportPair(now.data, parted).measure(find(now, "hard"))
    assert since is not None
    assert not since.shared
    counts = [
        (int(frame["error"].sum()), frame.height)
        for frame in (FRAME.filter("hard", run=run) for run in ("new", "old"))
    ]
    table = [[errors, size - errors] for errors, size in counts]
    assert since.p == pytest.approx(stats.fisher_exact(table, alternative="greater")[1])


def test_few_shared_units_are_not_enough(now: Report) -> None:
    renamed = FRAME.with_columns(
        id=pl.when(pl.col("id") > "q0200").then("x" + pl.col("id")).otherwise("id")
    )
    since = ReportPair(now.data, audit_run(renamed, "old").data).measure(find(now, "hard"))
    assert since is not None
    assert not since.shared


def test_what_neither_has_cannot_be_compared(then: Report, now: Report) -> None:
    none = structs.replace(then.data, units=None, findings=())
    assert ReportPair(now.data, none).measure(find(now, "hard")) is None
    assert not ReportPair(now.data, none).has_anything_alike()
    assert ReportPair(now.data, then.data).has_anything_alike()
    assert ReportPair(now.data, structs.replace(then.data, units=None)).has_anything_alike()
    other = structs.replace(then.data, outcomes=("a", "b"))
    assert not ReportPair(now.data, other).has_anything_alike()


def test_the_churn_is_how_often_answers_change(then: Report, now: Report) -> None:
    wide = FRAME.pivot("run", index="id", values="error")
    changes = (wide["new"] - wide["old"]).to_numpy()
    assert ReportPair(now.data, then.data).find_churn() == pytest.approx(np.mean(changes**2))
    assert ReportPair(now.data, structs.replace(then.data, units=None)).find_churn() is None


def decide(now: Report, then: Report, kinds: str, p: list[float]) -> list[bool]:
    """What is decided of p-values of findings (f), modes (m), and modes of the baseline (k)."""
    are_modes = [kind != "f" for kind in kinds]
    changes = [
        SinceBaseline(0.1, 0.2, 100, True, each, known_slice=kind == "k")
        for kind, each in zip(kinds, p, strict=True)
    ]
    return ReportPair(now.data, then.data).decide_worse(are_modes, changes, 0.1)


def test_the_level_is_shared_by_everything_that_was_tested(now: Report, then: Report) -> None:
    assert now.candidates.distinct == 3
    assert decide(now, then, "ff", [0.03, 0.06]) == [True, False]
    assert decide(now, then, "ff", [0.03, 0.049]) == [True, True]
    assert decide(now, then, "ff", [0.04, 0.001]) == [True, True]
    searched = audit_run(FRAME, "new")
    assert searched.mode_search is not None
    least = 0.1 * MODE_SHARE / searched.mode_search.rules
    p = [0.9 * least, 1.2 * least, 0.03, 0.026]
    assert decide(searched, then, "mmff", p) == [True, False, True, True]
    assert decide(now, then, "", []) == []


def test_modes_of_the_baseline_share_a_level_of_their_own(searches: tuple[Report, Report]) -> None:
    then, now = searches
    known = len(then.modes)
    assert known
    assert now.mode_search is not None
    least = 0.1 * KNOWN_MODE_SHARE / known
    assert decide(now, then, "k", [0.9 * least]) == [True]
    assert decide(now, then, "k", [1.1 * least]) == [False]
    # what is the same mode of the baseline counts once
    later = 0.1 * KNOWN_MODE_SHARE / max(1, known - 1)
    assert decide(now, then, "kkk", [0.5 * least, 0.5 * least, 1.1 * later])[2] == (known > 2)
    candidates = 0.1 * (1 - MODE_SHARE - KNOWN_MODE_SHARE) / 3
    assert decide(now, then, "ff", [0.99 * candidates, 1.01 * candidates]) == [True, True]
    assert decide(now, then, "f", [1.01 * candidates]) == [False]


@pytest.fixture(scope="module")
def searches() -> tuple[Report, Report]:
    """Reports with failure modes: hard questions fail, and fail .2 more often in the second."""
    return audit_run(FRAME, "old"), audit_run(FRAME, "new")


def test_a_mode_of_the_baseline_is_compared_on_its_own_slice(
    searches: tuple[Report, Report],
) -> None:
    then, now = searches
    place = next(i for i, mode in enumerate(now.modes) if "hard" in mode.rule)
    since = ReportPair(now.data, then.data).measure(now.modes[place])
    assert since is not None
    assert since.known_slice
    earlier = next(mode for mode in then.modes if "hard" in mode.rule)
    assert since.units == earlier.n
    assert since.before == pytest.approx(earlier.rate)
    # a mode that the baseline does not have pays for the search
    others = structs.replace(then.data, modes=())
    assert not ReportPair(now.data, others).measure(now.modes[place]).known_slice


def test_a_mode_that_got_worse_fails_the_gate(searches: tuple[Report, Report]) -> None:
    then, now = searches
    verdict = groundfault.gate(now, "kind = 'mode'", baseline=then)
    assert not verdict.passed
    assert any("hard" in match.name for match in verdict.new)
    assert groundfault.gate(now, "kind = 'mode'", baseline=now).passed
