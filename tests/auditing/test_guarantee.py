"""Guarantees: a first look, several looks, looks of unlike kinds, and none that is known."""

from __future__ import annotations

from pathlib import Path

import pytest
from audit_tables import make_planted_table

import groundfault
from groundfault import Evidence, LedgerError, Plan, judges
from groundfault.auditing.messages import (
    describe_guarantee,
    describe_level,
    describe_looks,
    spend_level,
)
from groundfault.base.holdout_events import Look

HOLM, BH = Look("holm", 0.1), Look("bh", 0.05)


@pytest.mark.parametrize("name", judges.NAMES)
def test_every_judge_has_a_guarantee(name: str) -> None:
    judge, plan = judges.get(name), Plan(judge=name)
    text = describe_level(judge, plan, 34)
    assert "{" not in text
    assert "over 1 candidates" not in describe_level(judge, plan, 1)
    assert "documentation" not in text
    level = spend_level(judge, plan)
    assert ("no error rate is guaranteed" in text) == (level is None)
    several = describe_looks([Look(name, level)] * 2, 2)
    assert ("at most 20% over the 2 looks" in several) == (level is not None)


def test_the_level_that_is_spent_is_the_one_of_the_judge() -> None:
    plan = Plan(alpha="0.05", q="0.2")
    assert spend_level(judges.get("max-t"), plan) == 0.05
    assert spend_level(judges.get("by"), plan) == 0.2
    assert spend_level(judges.get("janus-a"), plan) is None


def test_levels_add_up_over_looks() -> None:
    assert describe_looks([HOLM, HOLM, HOLM], 3) == (
        "family-wise error at most 30% over the 3 looks at these outcomes, if no look was "
        "chosen by the result of an earlier one"
    )
    assert "at most 3.3% over the 3 looks" in describe_looks([Look("holm", 0.011)] * 3, 3)


def test_a_false_discovery_rate_is_what_unlike_looks_share() -> None:
    assert describe_looks([HOLM, BH], 2) == (
        "false discovery rate at most 15% over the 2 looks at these outcomes, if candidates "
        "depend positively and if no look was chosen by the result of an earlier one"
    )


@pytest.mark.parametrize(
    ("looks", "times"),
    [
        ([HOLM] * 10, 10),
        ([HOLM, Look("janus-a", None)], 2),
        ([HOLM, Look("", None)], 2),
        ([HOLM, Look("of a plug-in", 0.1)], 2),
        ([], 2),
    ],
)
def test_nothing_is_guaranteed_from_a_whole_on_or_after_an_unknown_look(
    looks: list[Look], times: int
) -> None:
    assert describe_looks(looks, times) == (
        f"no error rate is guaranteed any more, after {times} looks at these outcomes"
    )


def test_what_nobody_recorded_holds_for_a_first_look_only() -> None:
    judge, plan = judges.get("holm"), Plan(judge="holm")
    first = describe_guarantee(judge, plan, 3, None)
    assert first == (
        "family-wise error at most 10% over 3 candidates, if this is the first look at these "
        "outcomes (not recorded)"
    )
    lite = judges.get("janus-lite")
    assert describe_guarantee(lite, plan, 3, None) == describe_level(lite, plan, 3)


def test_a_report_states_the_level_over_all_openings(tmp_path: Path) -> None:
    evidence = Evidence.from_table(make_planted_table(), id="id", outcome="error")
    place, reports = tmp_path / "ledger.db", []
    for seed in range(10):
        plan = Plan(judge="split-holm", seed=seed)
        if seed in (1, 9):
            with pytest.raises(LedgerError, match="--reopen"):
                groundfault.audit(evidence, plan, ledger=place, modes=False)
        reason = f"seed {seed}" if seed else None
        report = groundfault.audit(evidence, plan, ledger=place, reopen=reason, modes=False)
        reports.append(report)
    assert (
        reports[0].guarantee
        == "family-wise error at most 10% over the candidates tested on the holdout"
    )
    assert "at most 30% over the 3 looks" in reports[2].guarantee
    assert "no error rate is guaranteed any more, after 10 looks" in reports[9].guarantee
    for report in (reports[0], reports[2], reports[9]):
        assert any(report.guarantee in f.sentence for f in report.confirmed)
    again = groundfault.audit(evidence, Plan(judge="split-holm"), ledger=place, modes=False)
    assert again.ledger.replay
    assert again.guarantee == reports[9].guarantee, "later looks count for the first plan too"


def test_another_judge_window_or_least_lift_is_another_look(tmp_path: Path) -> None:
    evidence = Evidence.from_table(make_planted_table(), id="id", outcome="error")
    place = tmp_path / "ledger.db"
    groundfault.audit(evidence, ledger=place, modes=False)
    plans = (
        Plan(judge="janus"),
        Plan(judge="max-t", prevalence=("0.3", "0.7")),
        Plan(judge="max-t", min_lift="0.05"),
    )
    for count, plan in enumerate(plans, start=2):
        with pytest.raises(LedgerError, match="--reopen"):
            groundfault.audit(evidence, plan, ledger=place, modes=False)
        report = groundfault.audit(evidence, plan, ledger=place, reopen="to see", modes=False)
        assert f"at most {count}0% over the {count} looks" in report.guarantee
