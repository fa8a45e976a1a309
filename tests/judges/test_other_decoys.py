"""Judges with other decoys: they answer as judges must, keep their level, and see what they
compare."""

from __future__ import annotations

import numpy as np
import pytest

from groundfault_lab.judges.decoys import (
    _score_controls,
    _select,
    draw_by_model,
    draw_second_order,
)
from groundfault_lab.testing import check_judge
from groundfault_lab.testing.calibration import PLANTED, SPECIAL
from groundfault_lab.testing.worlds import World


@pytest.mark.slow
@pytest.mark.parametrize("judge", ["janus-hash", "janus-knockoffs", "janus-model-knockoffs"])
def test_a_judge_keeps_its_level(judge: str) -> None:
    worlds = [World(units=160), World(units=500), *SPECIAL, *PLANTED]
    check_judge(judge, replicates=100, worlds=worlds)


@pytest.mark.parametrize("judge", ["janus-hash", "janus-knockoffs", "janus-model-knockoffs"])
def test_a_judge_answers_as_a_judge_must(judge: str) -> None:
    """The order of rows and candidates, copies and complements change nothing."""
    check_judge(judge, replicates=4, worlds=[World(units=160)])


def draw_features(n: int = 4_000) -> np.ndarray:
    rng = np.random.default_rng(0)
    first = rng.random(n) < 0.4
    second = np.where(rng.random(n) < 0.8, first, rng.random(n) < 0.4)
    on = np.column_stack([first, second, rng.random(n) < 0.2]).astype(float)
    return (on - on.mean(axis=0)) / on.std(axis=0)


@pytest.mark.parametrize("draw", [draw_second_order, draw_by_model])
def test_knockoffs_go_with_the_others_as_their_features_do(draw: object) -> None:
    features = draw_features()
    knockoffs = draw(features, np.random.default_rng(1))  # type: ignore[operator]
    theirs, ours = (np.corrcoef(each.T) for each in (features, knockoffs))
    across = np.corrcoef(features.T, knockoffs.T)[:3, 3:]
    assert np.abs(theirs - ours).max() < 0.07
    off = ~np.eye(3, dtype=bool)
    assert np.abs(across - theirs)[off].max() < 0.07
    # and are no copies
    assert (np.diag(across) < 0.9).all()


def test_near_copies_do_not_make_copies_of_all_knockoffs() -> None:
    """With equal gaps every knockoff was as near to its feature as the nearest pair."""
    features = draw_features()
    twin = features[:, 0] + 0.05 * np.random.default_rng(2).standard_normal(len(features))
    features = np.column_stack([features, twin / twin.std()])
    knockoffs = draw_second_order(features, np.random.default_rng(1))
    across = np.corrcoef(features.T, knockoffs.T)[:4, 4:]
    assert min(across[0, 0], across[3, 3]) > 0.9
    assert across[2, 2] < 0.2


def test_knockoffs_find_a_cause_beside_its_proxies() -> None:
    check_judge("janus-knockoffs", replicates=60, worlds=[PLANTED[-1]])


def test_the_filter_by_hand() -> None:
    statistics = np.array([5.0, 4.0, 3.0, -1.0, 0.5, 0.0])
    assert _select(statistics, 0.1).tolist() == [True, True, True, False, False, False]
    assert _select(statistics, 0.25).tolist() == [True, True, True, False, True, False]
    assert not _select(-statistics, 0.1)[:3].any()


def test_hash_controls_reach_the_lifts_that_chance_gives() -> None:
    units = World(units=400, candidates=5).draw(np.random.default_rng(0))
    scores = _score_controls(units, np.arange(5), "risk_difference", 7)
    table = units.tables
    rate = float(table.total[0] / table.n[0])
    on = table.on / table.n
    expected = np.sqrt(rate * (1 - rate) / (400 * on * (1 - on)))
    # the mean size of a normal lift is .8 of its deviation
    assert scores.mean() == pytest.approx(0.8 * expected.mean(), rel=0.1)
