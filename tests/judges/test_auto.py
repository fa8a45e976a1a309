"""The judge that is chosen by what finders see."""

from __future__ import annotations

import polars as pl
import pytest
from audit_tables import make_planted_evidence, make_planted_table

import groundfault
from groundfault import Candidate, Evidence, Plan
from groundfault.auditing.preparation import prepare, start_audit
from groundfault.judges import choose_judge


def test_all_units_test_what_owes_nothing_to_outcomes() -> None:
    plan, reason = choose_judge(Plan(), make_planted_evidence().roles, mined=False)
    assert (plan.judge, plan.permutations) == ("max-t", 999)
    assert "all rows were used" in reason
    more = Plan(permutations=20_000)
    assert choose_judge(more, make_planted_evidence().roles, mined=False)[0].permutations == 20_000


def test_a_named_judge_stays_and_needs_no_reason() -> None:
    plan = Plan(judge="janus")
    assert choose_judge(plan, make_planted_evidence().roles, mined=True) == (plan, "")


@pytest.mark.parametrize(
    ("plan", "mined", "reason"),
    [
        (Plan(), True, "found by looking at outcomes"),
        (Plan(holdout="0.3"), False, "asks for a holdout"),
        (Plan(holdout_axis="time", holdout_column="words"), False, "asks for a holdout"),
    ],
)
def test_a_holdout_tests_what_was_mined_or_where_one_is_asked_for(
    plan: Plan, mined: bool, reason: str
) -> None:
    chosen, why = choose_judge(plan, make_planted_evidence().roles, mined=mined)
    assert chosen.judge == "split-holm"
    assert reason in why


def test_a_split_column_asks_for_a_holdout() -> None:
    part = pl.when(pl.int_range(pl.len()) % 2 == 0).then(pl.lit("discovery"))
    frame = make_planted_table().with_columns(part=part.otherwise(pl.lit("holdout")))
    evidence = Evidence.from_table(frame, id="id", outcome="error", split="part")
    report = groundfault.audit(evidence)
    assert report.judge == "split-holm"
    assert report.judge_reason.startswith("the column 'part' says what is held out")
    assert report.n_holdout == 200


def test_finders_and_candidates_decide_in_an_audit() -> None:
    evidence = make_planted_evidence()
    assert groundfault.audit(evidence).judge == "max-t"
    mining = prepare(evidence, finders=["thresholds", "sliceline"])
    assert mining.judge.name == "split-holm"
    assert mining.plan.judge == "split-holm", "the seal covers it"
    mined = [c for c in mining.library if c.mined]
    assert mined
    assert prepare(evidence, None, mined).judge.name == "split-holm"
    assert prepare(make_planted_evidence(300), None, mined).judge.name == "max-t", "other outcomes"
    assert prepare(evidence, None, [Candidate("long", "words > 50")]).judge.name == "max-t"
    assert start_audit(evidence).judge.name == "split-holm", "finders that follow may look"
