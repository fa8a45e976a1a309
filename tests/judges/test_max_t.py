"""Max-T: pairs that are no hypotheses do not compete."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from groundfault import Plan, judges
from groundfault.core.units import Marks, Units
from groundfault.stats import bits

HYPOTHESES = np.arange(10)


def test_the_planted_candidate_survives(planted: Units, plan: Plan) -> None:
    screening = judges.get("max-t").screen(planted, HYPOTHESES, plan, np.random.default_rng(0))
    assert screening.survives[0]
    assert screening.p_adjusted[0] == pytest.approx(1 / 200)
    assert (screening.p_adjusted >= 1 / 200).all()


def test_a_smaller_family_has_smaller_p_values(planted: Units, plan: Plan) -> None:
    judge = judges.get("max-t")
    whole = judge.screen(planted, HYPOTHESES, plan, np.random.default_rng(1)).p_adjusted[3:5]
    part = judge.screen(planted, np.array([3, 4]), plan, np.random.default_rng(1)).p_adjusted
    assert (part <= whole).all()
    less = replace(plan, permutations=19)
    assert (
        judge.screen(planted, HYPOTHESES, less, np.random.default_rng(1)).p_adjusted.min() >= 0.05
    )


def test_the_bar_counts_correlated_candidates_as_fewer() -> None:
    plan = Plan(judge="max-t", alpha="0.1").resolve(lift_ranked=False, gated=False)
    rng = np.random.default_rng(0)
    rows = rng.random((40, 400)) < 0.4
    copies = np.repeat(rows[:4], 10, axis=0) ^ (rng.random((40, 400)) < 0.01)
    losses = (rng.random((1, 400)) < 0.3).astype(float)
    levels = []
    for on in (rows, copies):
        units = Units.of(Marks(400, bits.pack(on), None, ("",) * 40), losses)
        bar = judges.get("max-t").find_bar(units, np.arange(40), plan, np.random.default_rng(1))
        assert bar.level is not None
        levels.append(bar.level(160, 0))
        # the last of many that are confirmed competes with fewer
        assert bar.level(160, 30) > bar.level(160, 0)
    independent, correlated = levels
    assert 0.1 / 40 <= independent < 0.1 / 25
    assert 0.1 / 20 < correlated < 0.1 / 3
