"""Multi-split e-values: selected by e-BH, and fair under the null."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from groundfault import Plan, judges
from groundfault.core.units import Marks, Units
from groundfault.judges.multisplit import _compute_split_e_values, _weigh
from groundfault.stats import bits, multiple

HYPOTHESES = np.arange(10)


def test_the_planted_candidate_survives(planted: Units, plan: Plan) -> None:
    judge = judges.get("multisplit-e")
    screening = judge.screen(planted, HYPOTHESES, plan, np.random.default_rng(0))
    assert screening.survives[0]
    again = judge.screen(planted, HYPOTHESES, replace(plan), np.random.default_rng(0))
    assert again.p_adjusted == pytest.approx(screening.p_adjusted)


def test_null_e_values_sum_to_their_number_at_most(planted: Units) -> None:
    """Compound e-values: over random losses their sum has a mean of at most the number of them."""
    rng, sums = np.random.default_rng(1), []
    for _ in range(150):
        losses = (rng.random(300) < 0.3).astype(np.float64)
        units = Units.of(planted.marks, losses[None])
        half = np.zeros(300, dtype=np.bool_)
        half[rng.permutation(300)[:150]] = True
        sums.append(_compute_split_e_values(units.only(half), units.only(~half), HYPOTHESES).sum())
    assert np.mean(sums) <= 10 + 4 * np.std(sums) / np.sqrt(len(sums))
    assert multiple.e_benjamini_hochberg(np.full(10, 10.0), 0.1).all()


def test_over_all_orders_of_the_holdout_e_values_sum_to_their_number_exactly() -> None:
    """Each order is as likely as any other under the null, so this mean is the expectation."""
    on = np.array([[1, 1, 1, 1, 0, 0, 0, 0], [1, 0, 1, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0, 1, 0]])
    marks = Marks(8, bits.pack(on.astype(np.bool_)), None, ("",) * 3)
    discovery = Units.of(marks, np.array([[1.0, 1, 1, 1, 0, 0, 0, 0]]))
    sums = []
    for failures in combinations(range(8), 3):
        losses = np.isin(np.arange(8), failures).astype(np.float64)
        e = _compute_split_e_values(discovery, Units.of(marks, losses[None]), np.arange(3))
        sums.append(e.sum())
    assert np.mean(sums) == pytest.approx(3)


def test_a_smaller_p_on_discovery_weighs_more_and_a_large_one_nothing() -> None:
    assert _weigh(np.array([0.01, 0.04, 0.2, 0.25])).tolist() == pytest.approx(
        [10, 5, 0.2**-0.5, 0]
    )
