"""Plans: what is sealed, and judges given by name, as objects and with settings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import groundfault
from groundfault import judges
from groundfault.core.judge import Screening
from groundfault.core.plan import Plan
from groundfault.errors import PlanError
from groundfault.judges.full_sample import Holm


@dataclass(frozen=True)
class Largest:
    """Confirms what has the smallest Holm p-values, at most so many."""

    name: str = "largest"
    confirmation: str = "none"
    lift_ranked: bool = False
    distinct: bool = True
    count: int = 2

    def screen(self, units: Any, hypotheses: Any, plan: Any, rng: Any) -> Screening:
        screening = Holm().screen(units, hypotheses, plan, rng)
        assert screening.p is not None
        first = np.argsort(screening.p, kind="stable")[: self.count]
        return replace(screening, survives=np.isin(np.arange(len(hypotheses)), first))


def test_a_judge_at_its_defaults_is_sealed_like_its_name() -> None:
    assert Plan(judge=Holm()).seal() == Plan(judge="holm").seal()
    assert "judge_settings" not in Plan(judge=Holm()).settings


def test_settings_of_a_judge_are_sealed_and_read_back() -> None:
    plan = Plan(judge=Largest(count=3))
    assert plan.settings["judge"] == plan.judge_name == "largest"
    assert plan.settings["judge_settings"] == {"count": 3}
    again = Plan.from_settings(plan.settings)
    assert again.settings == plan.settings
    assert again.seal() == plan.seal() != Plan(judge=Largest()).seal()


def test_what_is_no_judge_is_refused() -> None:
    with pytest.raises(PlanError, match="a name or a judge"):
        Plan(judge=3)  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="for a judge that is named"):
        Plan(judge=Holm(), judge_settings={"name": "x"})
    with pytest.raises(PlanError, match="cannot be made with its settings"):
        judges.get("holm", {"nonsense": 1})
    judge = Largest()
    assert judges.get(judge) is judge


def test_an_audit_by_a_judge_object_is_verified_with_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lang = rng.choice(["de", "en", "fr"], 200)
    error = (rng.random(200) < np.where(lang == "de", 0.7, 0.2)).astype(int)
    pl.DataFrame({"id": range(200), "lang": lang, "error": error}).write_csv(tmp_path / "t.csv")
    evidence = groundfault.Evidence.from_table(tmp_path / "t.csv", id="id", outcome="error")
    report = groundfault.audit(evidence, Plan(judge=Largest(count=1)))
    assert report.data.judge == "largest"
    assert len(report.confirmed) == 1
    report.write(tmp_path / "report")
    with pytest.raises(PlanError, match=r"verify\(directory, judge="):
        groundfault.verify(tmp_path / "report")
    assert groundfault.verify(tmp_path / "report", judge=Largest(count=1)).reproduces
    assert not groundfault.verify(tmp_path / "report", judge=Largest(count=2)).reproduces


def test_later_settings_leave_old_seals_as_they_were() -> None:
    plain = Plan(judge="janus")
    assert {"depth", "within"}.isdisjoint(plain.settings)
    assert plain.seal() == "cf377c52ea057b39d035eb269acf146d3b5d0a33573bc207125f8e547fa20629"
    fixed = Plan(judge="janus", depth=2, within=["lang"])
    assert fixed.settings["within"] == ["lang"]
    assert Plan.from_settings(fixed.settings) == fixed
    assert fixed.seal() != plain.seal()


@dataclass(frozen=True, kw_only=True)
class _LaterPlan(Plan):
    """A plan of a later version, which has one more setting."""

    colour: str = "red"
    shades: tuple[str, ...] = ()


def test_a_setting_that_is_added_changes_no_seal_until_it_is_set() -> None:
    assert _LaterPlan(judge="janus").seal() == Plan(judge="janus").seal()
    assert "colour" not in _LaterPlan().settings
    blue = _LaterPlan(judge="janus", colour="blue", shades=("dark",))
    assert (blue.settings["colour"], blue.settings["shades"]) == ("blue", ["dark"])
    assert blue.seal() != Plan(judge="janus").seal()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"depth": 4}, "depth must be 1, 2 or 3"),
        ({"depth": 0}, "depth must be 1, 2 or 3"),
        ({"within": "lang"}, "list of columns"),
        ({"judge_settings": {"count": 2}}, "judge_settings need a named judge"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        Plan(**settings)


def test_a_plan_asks_for_a_holdout_by_axis_or_share() -> None:
    assert not Plan().asks_for_holdout
    assert not Plan(holdout=0.5).asks_for_holdout
    assert Plan(holdout=0.3).asks_for_holdout
    assert Plan(holdout_axis="models").asks_for_holdout
