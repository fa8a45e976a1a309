"""Janus: the exact floor, and drawn decoys that come close to it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from groundfault import Plan, judges
from groundfault.core.units import Units
from groundfault.judges.janus import count_expected_decoys

HYPOTHESES = np.arange(10)


@pytest.mark.parametrize("name", ["janus", "janus-a"])
def test_the_planted_candidate_clears_the_floor(name: str, planted: Units, plan: Plan) -> None:
    screening = judges.get(name).screen(planted, HYPOTHESES, plan, np.random.default_rng(0))
    assert screening.survives[0]
    assert screening.floor is not None
    scores = planted.tables[HYPOTHESES].score()
    assert (screening.survives == (scores >= screening.floor.threshold)).all()


def test_drawn_decoys_come_close_to_the_expected_number(planted: Units, plan: Plan) -> None:
    levels, rng = np.array([0.02, 0.05, 0.1]), np.random.default_rng(0)
    exact = count_expected_decoys(planted, HYPOTHESES, levels, plan, rng)
    sample = replace(plan, decoys=5000)
    estimate = count_expected_decoys(planted, HYPOTHESES, levels, sample, rng)
    assert estimate == pytest.approx(exact, abs=0.3)
    assert (np.diff(exact) < 0).all()
