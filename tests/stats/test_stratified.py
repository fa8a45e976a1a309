"""Stratified lifts: one stratum gives the plain lift, and confounding by stratum disappears."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.contingency_tables import StratifiedTable

from groundfault.stats.stratified import lift


def test_one_stratum_gives_the_plain_lift() -> None:
    rng = np.random.default_rng(0)
    on, losses = rng.random((3, 80)) < 0.4, rng.random(80)
    value, _ = lift(on, losses, np.zeros(80, dtype=np.int64))
    assert value == pytest.approx([losses[row].mean() - losses[~row].mean() for row in on])


def test_z_is_the_root_of_the_mantel_haenszel_statistic() -> None:
    rng = np.random.default_rng(1)
    on, strata = rng.random(300) < 0.5, rng.integers(0, 4, 300)
    losses = (rng.random(300) < 0.2 + 0.15 * strata + 0.1 * on).astype(np.int64)
    tables = [
        [[(cell & (losses == y)).sum() for y in (1, 0)] for cell in (on & inside, ~on & inside)]
        for inside in (strata == s for s in range(4))
    ]
    oracle = StratifiedTable([np.array(table) for table in tables]).test_null_odds()
    _, z = lift(on[None], losses, strata)
    assert z[0] ** 2 == pytest.approx(oracle.statistic)


def test_a_descriptor_that_only_names_the_stratum_has_no_lift() -> None:
    strata = np.repeat([0, 1], 50)
    losses = np.concatenate([np.zeros(50), np.ones(50)])
    value, z = lift((strata == 1)[None], losses, strata)
    assert (value[0], z[0]) == (0, 0)


def test_weights_are_so_many_units_of_a_kind() -> None:
    rng = np.random.default_rng(2)
    on, losses, strata = rng.random((3, 40)) < 0.5, rng.integers(0, 2, 40), rng.integers(0, 3, 40)
    defined, weights = on | (rng.random((3, 40)) < 0.7), rng.integers(0, 5, 40)
    repeated = lift(
        np.repeat(on, weights, axis=1),
        np.repeat(losses, weights),
        np.repeat(strata, weights),
        np.repeat(defined, weights, axis=1),
    )
    np.testing.assert_allclose(lift(on, losses, strata, defined, weights), repeated, rtol=1e-12)
