"""Units of small worlds, for the tests of single judges."""

from __future__ import annotations

import numpy as np
import pytest

from groundfault import Plan
from groundfault.core.units import Marks, Units
from groundfault.stats import bits


@pytest.fixture
def planted() -> Units:
    """Ten descriptors of 300 units, the first of which doubles the error rate."""
    rng = np.random.default_rng(0)
    matrix = rng.random((10, 300)) < 0.4
    losses = (rng.random(300) < np.where(matrix[0], 0.7, 0.2)).astype(np.float64)
    return Units.of(Marks(300, bits.pack(matrix), None, ("",) * 10), losses[None])


@pytest.fixture
def plan() -> Plan:
    return Plan(min_lift=0.1, permutations=199, splits=6).resolve(lift_ranked=True, gated=True)
