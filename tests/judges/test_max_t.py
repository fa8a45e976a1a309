"""Max-T: pairs that are no hypotheses do not compete."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from groundfault import Plan, judges
from groundfault.core.units import Units

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
