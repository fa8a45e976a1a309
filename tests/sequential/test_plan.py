"""Default alternatives: what they are, what they cost, and that no null world is found guilty."""

from __future__ import annotations

from dataclasses import fields
from inspect import signature

import numpy as np
import pytest

from groundfault.sequential import SequentialAudit, SequentialPlan, e_process
from groundfault.sequential.plan import FurtherSettings

PAPER_SHARES = (0.60 / 0.85, 0.655 / 0.85, 0.71 / 0.85, 0.765 / 0.85, 0.82 / 0.85)


def count_labels(rate: float, threshold: float, steps: int) -> np.ndarray:
    """Labels until the model's null falls, in 1,000 audits of one group; ``steps + 1`` if never."""
    plan = SequentialPlan(threshold=threshold)
    scores = (np.random.default_rng(0).random((1000, steps)) < rate).astype(float)
    log_e = e_process(scores, threshold, bet="lr-ui", grid=plan.grid, eta=plan.eta)
    rejected = log_e >= np.log(20)
    return np.where(rejected.any(axis=1), rejected.argmax(axis=1) + 1, steps + 1)


@pytest.mark.parametrize("threshold", [0.01, 0.2, 0.5, 0.85, 0.999])
def test_alternatives_keep_the_ratio_of_odds(threshold):
    def odds(p):
        return np.asarray(p) / (1 - np.asarray(p))

    points = (0.2, 0.4, 0.6, 0.655, 0.71, 0.765, 0.82)
    grid = SequentialPlan(threshold=threshold).grid
    np.testing.assert_allclose(odds(grid) / odds(threshold), odds(points) / odds(0.85), rtol=1e-9)


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.85])
def test_the_papers_are_in_proportion_to_the_last_digit(threshold):
    plan = SequentialPlan(threshold=threshold, sampling="paper")
    assert plan.grid == tuple(threshold * share for share in PAPER_SHARES)
    assert plan.alternative == threshold * PAPER_SHARES[-1]


def test_a_group_far_below_a_low_threshold_costs_little():
    # a bettor who knew the .2 would need 13; alternatives in proportion needed 19
    assert np.median(count_labels(0.2, 0.5, 60)) <= 16


@pytest.mark.parametrize(("threshold", "rate", "most"), [(0.85, 0.6, 17), (0.2, 0.05, 32)])
def test_other_failures_are_found_soon(threshold, rate, most):
    assert np.median(count_labels(rate, threshold, 150)) <= most


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.85, 0.95])
def test_whoever_stops_when_it_suits_is_wrong_at_most_as_often_as_alpha(threshold):
    wrong = np.mean(count_labels(threshold, threshold, 200) <= 200)
    assert wrong <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 1000)


def test_an_audit_takes_every_setting_of_a_plan() -> None:
    given = signature(SequentialAudit).parameters.keys() | FurtherSettings.__annotations__.keys()
    assert {field.name for field in fields(SequentialPlan)} <= given
    types = {name: one.__forward_arg__ for name, one in FurtherSettings.__annotations__.items()}
    # a warm-up that is left out is the policy's own
    assert types == {n: SequentialPlan.__annotations__[n] for n in types} | {
        "warm_up": "int | None"
    }
