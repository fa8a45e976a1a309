"""Plans for a budget: which modes so many labels confirm, and whether as often as it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from groundfault import Candidate, Case, Evidence, PlanError
from groundfault.case.parts import join_parts
from groundfault.case.settings import name_mode
from groundfault.case.simulation import POWER, BudgetPlan, plan_budget
from groundfault.sequential.confirmation import SequentialConfirmation


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A case whose audit has two modes: one of every third unit, and a rare one."""
    rng = np.random.default_rng(2)
    wide, rare = rng.random(240) < 0.33, rng.random(240) < 0.13
    error = rng.random(240) < np.where(wide | rare, 0.95, 0.02)
    ids = [f"i{k:03}" for k in range(240)]
    columns = {"id": ids, "wide": wide, "rare": rare, "error": error.astype(int)}
    evidence = Evidence.from_table(pl.DataFrame(columns), outcome="error", id="id")
    case = Case.create(tmp_path_factory.mktemp("plan") / "case", evidence, seed=1)
    assert len(case.audit().modes) == 2
    return case


def test_a_mode_that_the_budget_cannot_confirm_is_left_out(audited: Case) -> None:
    said: list[str] = []
    plan = plan_budget(audited, 40, lift=0.7, runs=10, progress=said.append)
    assert len(plan.powers) == len(plan.dropped) == 1
    assert min(plan.powers.values()) >= POWER > max(plan.dropped.values())
    assert [line.split(" of ", 1)[1] for line in said] == ["2 of the modes", "1 of the modes"]


def test_without_a_lift_units_fail_at_the_lower_end_of_the_audits_interval(audited: Case) -> None:
    assert audited.report is not None
    lower = min(mode.interval[0] for mode in audited.report.modes)
    plan = plan_budget(audited, 40, runs=10)
    assert (plan.lift, len(plan.powers)) == (None, 1)
    strong = plan_budget(audited, 40, lift=lower - plan.rates[""], runs=10)
    [(number, power)] = plan.powers.items()
    assert power >= strong.powers.get(number, strong.dropped.get(number, 1.0))


def test_few_labels_confirm_nothing(audited: Case) -> None:
    plan = plan_budget(audited, 3, lift=0.7, runs=2)
    assert (plan.powers, sorted(plan.dropped)) == ({}, [1, 2])


@pytest.mark.parametrize("wrong", [{"budget": 0}, {"lift": 1.2}, {"lift": 0.0}, {"runs": 0}])
def test_what_is_no_plan(audited: Case, wrong: dict[str, float]) -> None:
    with pytest.raises(PlanError, match=r"a plan needs|so a difference is"):
        plan_budget(audited, **{"budget": 9, "lift": 0.2, "runs": 1, **wrong})  # type: ignore[arg-type]


def confirm(case: Case, plan: BudgetPlan, seed: int) -> tuple[str, ...]:
    """One real confirmation of what the plan names, on outcomes of the world that it imagines."""
    report = case.report
    assert report is not None
    assert plan.lift is not None
    on, rate = case.mark_fresh_units([1, 2]).any(axis=0), plan.rates[""]
    rng = np.random.default_rng([seed, 7])
    fails = rng.random(len(on)) < np.where(on, rate + plan.lift, rate)
    lost = dict(zip(case.fresh_evidence.unit_names.to_list(), fails, strict=True))
    confirmation = SequentialConfirmation(
        join_parts(case.audit_evidence, case.fresh_evidence),
        replace(case.settings.confirmation_plan, seed=seed),
        [
            Candidate(name_mode(number), report.modes[number - 1].rule, missing="off")
            for number in plan.powers
        ],
        finders=[],
        budget=plan.budget,
        ledger=False,
    )
    return confirmation.run(lambda query: 0.0 if lost[query.id] else 1.0)


@pytest.mark.slow
def test_power_is_what_the_plan_says(audited: Case) -> None:
    plan = plan_budget(audited, 34, lift=0.7)
    assert plan.powers
    runs = [confirm(audited, plan, seed) for seed in range(600)]
    for number, power in plan.powers.items():
        share = np.mean([name_mode(number) in confirmed for confirmed in runs])
        assert share == pytest.approx(power, abs=0.05)
