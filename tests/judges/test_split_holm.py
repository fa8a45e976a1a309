"""Split-Holm: whatever is big enough on discovery goes on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from groundfault import Plan, judges
from groundfault.core.units import Units
from groundfault.judges.rule import is_big_enough
from groundfault_lab.testing import World

HYPOTHESES = np.arange(10)


def test_the_screen_is_the_smallest_effect(planted: Units, plan: Plan) -> None:
    judge = judges.get("split-holm")
    screening = judge.screen(planted, HYPOTHESES, plan, np.random.default_rng(0))
    assert (screening.survives == is_big_enough(planted.tables[HYPOTHESES], plan)).all()
    assert screening.survives[0]
    assert judge.confirmation == "exact"


@pytest.mark.parametrize("min_lift", ["0.05", "0.3", "0.9"])
def test_a_larger_smallest_effect_leaves_fewer(min_lift: str, planted: Units, plan: Plan) -> None:
    judge, rng = judges.get("split-holm"), np.random.default_rng(0)
    survivors = judge.screen(planted, HYPOTHESES, replace(plan, min_lift=min_lift), rng).survives
    lifts = np.abs(planted.tables[HYPOTHESES].lift)
    assert (survivors == (lifts >= float(min_lift))).all()


def test_its_bar_counts_the_null_candidates_that_reach_the_least_effect() -> None:
    plan = Plan(judge="split-holm").resolve(lift_ranked=False, gated=True)
    units = World(units=150, candidates=30).draw(np.random.default_rng(0))
    bar = judges.get("split-holm").find_bar(units, np.arange(30), plan, np.random.default_rng(1))
    distributions, _, counts = units.null_distributions(np.arange(30), pooled=True)
    expected = distributions.pool_tail(counts, np.array([0.1]))[0]
    assert bar.rivals.mean() == pytest.approx(expected, rel=0.15)
    assert set(bar.floors) == {0.1}
