"""Janus-lite: the 95th percentile of decoys."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from groundfault import Plan, judges
from groundfault.core.units import Units
from groundfault.judges.janus import draw_scores

HYPOTHESES = np.arange(10)


def test_the_threshold_is_the_percentile_of_decoys(planted: Units, plan: Plan) -> None:
    rng = np.random.default_rng(0)
    screening = judges.get("janus-lite").screen(planted, HYPOTHESES, plan, rng)
    assert screening.floor is not None
    decoys = draw_scores(planted, HYPOTHESES, 4000, plan.effect, rng)
    assert (decoys > screening.floor.threshold).mean() == pytest.approx(0.05, abs=0.015)
    assert screening.survives[0]


def test_a_score_equal_to_the_threshold_does_not_survive(planted: Units, plan: Plan) -> None:
    rng = np.random.default_rng(0)
    floor = judges.get("janus-lite").screen(planted, HYPOTHESES, plan, rng).floor
    assert floor is not None
    assert floor.survives(np.array([floor.threshold])).tolist() == [False]
    with_draws = replace(plan, decoys=2000)
    other = judges.get("janus-lite").screen(planted, HYPOTHESES, with_draws, rng).floor
    assert other is not None
    assert other.threshold == pytest.approx(floor.threshold, abs=0.03)
