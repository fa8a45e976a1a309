"""Janus: the exact floor, and drawn decoys that come close to it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from groundfault import Plan, judges
from groundfault.core.units import Units
from groundfault.judges.janus import count_expected_decoys, draw_scores
from groundfault.judges.rule import draw_null_worlds
from groundfault.stats.decoys import procedure_a
from groundfault_lab.testing import World

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


def test_the_bar_of_one_true_candidate_is_where_procedure_a_lets_it_through() -> None:
    plan = Plan(judge="janus", q="0.3").resolve(lift_ranked=True, gated=True)
    units = World(units=200, candidates=25).draw(np.random.default_rng(0))
    hypotheses = np.arange(25)
    bar = judges.get("janus").find_bar(units, hypotheses, plan, np.random.default_rng(1))
    distributions, _, counts = units.null_distributions(hypotheses, pooled=True)
    worlds = list(draw_null_worlds(units, hypotheses, np.random.default_rng(1)))
    assert len(worlds) == len(bar.floors) == len(bar.rivals)
    assert len(set(bar.floors)) > 1
    for world, floor, rivals in zip(worlds, bar.floors, bar.rivals, strict=True):
        nulls = world.tables.score()
        assert rivals == (nulls >= floor).sum()
        for score, passes in ((floor + 1e-6, True), (floor - 1e-6, False)):
            scores = np.append(nulls, score)
            levels = np.unique(scores)
            expected = distributions.pool_tail(counts, levels)
            survives = procedure_a(scores, expected, 0.3).survives(scores)
            assert survives[-1] == passes


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
