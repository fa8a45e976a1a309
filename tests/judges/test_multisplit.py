"""Multi-split e-values: selected by e-BH, and fair under the null."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from groundfault import Plan, judges
from groundfault.core.units import Units
from groundfault.judges.multisplit import _compute_split_e_values
from groundfault.stats import multiple

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
