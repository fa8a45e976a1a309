"""The axis of the holdout: examples, models, time or groups never stand on both sides."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from groundfault import Evidence, Plan, audit
from groundfault.auditing.preparation import prepare
from groundfault.auditing.verification import verify
from groundfault.core.candidate import Candidate
from groundfault.errors import InputError, LedgerError, PlanError

AXES = ("examples", "models", "time", "groups")


def simulate(path: Path, seed: int = 0) -> Path:
    """240 examples of 80 documents over 24 days, run by 4 models that fail more on long ones."""
    rng = np.random.default_rng(seed)
    number = np.arange(240)
    long = (rng.random(80) < 0.4)[number % 80]
    first = date(2025, 1, 1)
    tables = [
        pl.DataFrame(
            {
                "item": [f"i{i:03}" for i in number],
                "model": model,
                "document": [f"d{i % 80:02}" for i in number],
                "day": [str(first + timedelta(days=int(i) // 10)) for i in number],
                "long": long,
                "error": (rng.random(240) < np.where(long, 0.7, 0.15)).astype(int),
            }
        )
        for model in ("ant", "bee", "cat", "dog")
    ]
    pl.concat(tables).write_csv(path)
    return path


def read(path: Path, axis: str) -> Evidence:
    group = "document" if axis == "groups" else None
    return Evidence.from_table(path, id="item", model="model", outcome="error", group=group)


def plan_of(axis: str) -> Plan:
    return Plan(holdout_axis=axis, holdout_column="day" if axis == "time" else None, seed=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("axis", AXES)
def test_an_audit_with_each_axis_runs_and_verifies(axis: str, tmp_path: Path) -> None:
    source = simulate(tmp_path / "evidence.csv")
    ledger = tmp_path / "ledger.db"
    report = audit(
        read(source, axis), plan_of(axis), [Candidate.from_text("long: long = true")], ledger=ledger
    )
    assert report.counts()["confirmed"] >= 1
    report.write(tmp_path / "report")
    result = verify(tmp_path / "report", ledger=ledger)
    assert result.differences == ()
    assert result.reproduces
    with pytest.raises(LedgerError):  # the opening is recorded on every axis
        audit(
            read(source, axis),
            plan_of(axis),
            [Candidate.from_text("short: long = false")],
            ledger=ledger,
        )


@pytest.mark.parametrize("axis", AXES)
def test_settings_survive_and_the_seal_is_of_the_axis(axis: str) -> None:
    plan = plan_of(axis)
    assert Plan.from_settings(plan.settings) == plan
    assert (plan.seal() == Plan(seed=3).seal()) == (axis == "examples")


def test_settings_of_the_default_axis_are_those_of_0_1_0() -> None:
    assert not any(key.startswith("holdout_") for key in Plan().settings)


def test_no_model_stands_on_both_sides(tmp_path: Path) -> None:
    evidence = read(simulate(tmp_path / "evidence.csv"), "models")
    for seed in range(20):
        plan = Plan(holdout_axis="models", seed=seed)
        discovery, holdout = plan.split_models(evidence)
        assert len(holdout) == 2
        assert sorted(discovery + holdout) == list(evidence.models)
    audited = prepare(evidence, plan, finders=["categories", "thresholds"])
    assert audited.evidence.models == audited.plan.holdout_models == holdout
    assert audited.visible_evidence.models == discovery


def test_finders_see_no_example_of_the_holdout_for_any_model(tmp_path: Path) -> None:
    evidence = read(simulate(tmp_path / "evidence.csv"), "models")
    audited = prepare(evidence, Plan(holdout_axis="models"), finders=["categories"])
    names = audited.evidence.unit_names
    holdout_names = names.filter(pl.Series(~audited.discovery_mask))
    assert not set(audited.visible_evidence.unit_names) & set(holdout_names)
    assert len(audited.visible_evidence.unit_names) == audited.discovery_mask.sum()


def test_models_are_held_out_by_name(tmp_path: Path) -> None:
    evidence = read(simulate(tmp_path / "evidence.csv"), "models")
    plan = Plan(holdout_axis="models", holdout_models=("dog",))
    assert plan.split_models(evidence) == (("ant", "bee", "cat"), ("dog",))
    report = audit(evidence, plan, [Candidate.from_text("long: long = true")])
    assert report.manifest.models == ("dog",)


def test_no_day_stands_on_both_sides_and_the_latest_are_held_out(tmp_path: Path) -> None:
    evidence = read(simulate(tmp_path / "evidence.csv"), "time")
    for share in ("0.1", "0.5", "0.33"):
        plan = Plan(holdout_axis="time", holdout_column="day", holdout=share)
        rows = plan.discovery_units(evidence)[evidence.unit_index]
        days = evidence.frame["day"]
        before, after = days.filter(pl.Series(rows)), days.filter(pl.Series(~rows))
        assert before.cast(str).max() < after.cast(str).min()  # type: ignore[operator]
        assert abs((~rows).mean() - float(share)) <= 0.5 / 24


def test_no_group_stands_on_both_sides(tmp_path: Path) -> None:
    evidence = read(simulate(tmp_path / "evidence.csv"), "groups")
    rows = plan_of("groups").discovery_units(evidence)[evidence.unit_index]
    groups = evidence.frame["document"]
    assert not set(groups.filter(pl.Series(rows))) & set(groups.filter(pl.Series(~rows)))


def test_an_axis_that_the_evidence_lacks_is_refused(tmp_path: Path) -> None:
    evidence = read(simulate(tmp_path / "evidence.csv"), "examples")
    with pytest.raises(InputError, match="without a group column"):
        Plan(holdout_axis="groups").discovery_units(evidence)
    with pytest.raises(InputError, match="there is no column 'when'"):
        Plan(holdout_axis="time", holdout_column="when").discovery_units(evidence)
    with pytest.raises(InputError, match="results of 1 only"):
        Plan(holdout_axis="models").split_models(evidence.select_model("ant"))
    with pytest.raises(InputError, match="no results of this model"):
        Plan(holdout_axis="models", holdout_models=("eel",)).split_models(evidence)
    every = Plan(holdout_axis="models", holdout_models=evidence.models)
    with pytest.raises(InputError, match="no model is left to find candidates in"):
        audit(evidence, every, finders=["categories"])


@pytest.mark.parametrize(
    "settings",
    [
        {"holdout_axis": "rows"},
        {"holdout_axis": "time"},
        {"holdout_column": "day"},
        {"holdout_models": ("ant",)},
    ],
)
def test_axes_that_do_not_fit_their_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(PlanError, match="holdout"):
        Plan(**settings)  # type: ignore[arg-type]


def test_two_models_are_not_compared_across_held_out_models(tmp_path: Path) -> None:
    evidence = read(simulate(tmp_path / "evidence.csv"), "models")
    with pytest.raises(PlanError, match="comparison"):
        audit(
            evidence,
            Plan(holdout_axis="models"),
            [Candidate.from_text("long: long = true")],
            compare=("ant", "bee"),
        )
