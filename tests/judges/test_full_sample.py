"""Corrections on all units: nested as their guarantees are."""

from __future__ import annotations

import numpy as np
import pytest

from groundfault import Plan, judges
from groundfault.core.units import Units
from groundfault.stats import multiple

HYPOTHESES = np.arange(10)


@pytest.mark.parametrize("name", ["holm", "bh", "by"])
def test_the_planted_candidate_survives(name: str, planted: Units, plan: Plan) -> None:
    screening = judges.get(name).screen(planted, HYPOTHESES, plan, np.random.default_rng(0))
    assert screening.survives[0]
    assert screening.survives.sum() <= 2


def test_adjusted_p_values_are_corrections_of_the_exact_ones(planted: Units, plan: Plan) -> None:
    rng = np.random.default_rng(0)
    holm, bh, by = (
        judges.get(name).screen(planted, HYPOTHESES, plan, rng) for name in ("holm", "bh", "by")
    )
    assert holm.p_adjusted == pytest.approx(multiple.holm(holm.p))
    assert (bh.p_adjusted <= np.minimum(holm.p_adjusted, by.p_adjusted) + 1e-12).all()
