"""Compiled passes over null distributions give what those without a compiler give, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

from groundfault.stats import null_distributions
from groundfault.stats.contingency import ContingencyTables


def draw_tables() -> ContingencyTables:
    rng = np.random.default_rng(0)
    n = rng.choice([1, 7, 60, 2_000, 300_000], 60)
    on, total = (n * rng.choice([0.0, 0.01, 0.3, 0.5, 0.98, 1.0], 60)).astype(np.int64), n // 3
    return ContingencyTables(n, on, total, np.minimum(on, total) // 2)


@pytest.mark.parametrize("pooled", [True, False])
def test_distributions_and_tails(pooled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = draw_tables()

    def compute() -> tuple[np.ndarray, ...]:
        null = null_distributions.from_errors(tables, pooled=pooled)
        which, on_sum = np.arange(60), tables.on_sum.astype(np.float64)
        sides = null.two_sided(which, on_sum), null.one_sided(which, on_sum, np.ones(60, int))
        return (null.pmf, *sides)

    plain = compute()
    for limit in ("_WORTH_COMPILING", "_WORTH_COMPILING_POOLED"):
        monkeypatch.setattr(null_distributions, limit, 0)
    for one, other in zip(plain, compute(), strict=True):
        np.testing.assert_array_equal(one, other)
