"""Corrections on all units: nested as their guarantees are."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from groundfault import Plan, judges
from groundfault.auditing.messages import describe_level
from groundfault.core.units import Units
from groundfault.stats import multiple
from groundfault_lab.testing.card import Promise

HYPOTHESES = np.arange(10)


@pytest.mark.parametrize("name", ["holm", "bh", "by"])
def test_the_planted_candidate_survives(name: str, planted: Units, plan: Plan) -> None:
    screening = judges.get(name).screen(planted, HYPOTHESES, plan, np.random.default_rng(0))
    assert screening.survives[0]
    assert screening.survives.sum() <= 2


def test_adjusted_p_values_are_corrections_of_the_exact_ones(planted: Units, plan: Plan) -> None:
    rng = np.random.default_rng(0)
    holm, bh, by = (
        judges.get(name).screen(planted, HYPOTHESES, plan, rng) for name in ("holm", "bh", "by")
    )
    assert holm.p_adjusted == pytest.approx(multiple.holm(holm.p))
    assert (bh.p_adjusted <= np.minimum(holm.p_adjusted, by.p_adjusted) + 1e-12).all()


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ("false discovery", "false discovery rate at most 20%"),
        ("family-wise", "family-wise error at most 10%"),
        ("none", "no error rate is guaranteed"),
        (None, "see its own documentation"),
    ],
)
def test_what_a_judge_says_it_bounds_is_what_reports_and_cards_say(
    bounds: str | None, said: str
) -> None:
    judge = SimpleNamespace(name="mine", confirmation="none", lift_ranked=False, distinct=True)
    if bounds is not None:
        judge.bounds = bounds
    plan = Plan(q="0.2", alpha="0.1")
    assert said in describe_level(judge, plan, 5)
    promise = Promise.of(judge, plan)
    assert promise.rate == (bounds or "family-wise")
    assert promise.level == {"false discovery": 0.2, "none": 1.0}.get(bounds or "", 0.1)
