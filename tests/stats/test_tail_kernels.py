"""Compiled tails are those computed without a compiler, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

from groundfault.stats import contingency, tail_kernels


@pytest.mark.parametrize("strata", [1, 2, 5])
@pytest.mark.parametrize("most", [3, 60, 5_000])
def test_a_tail_is_the_same_with_and_without_a_compiler(strata: int, most: int) -> None:
    rng = np.random.default_rng(most)
    for _ in range(30):
        size = rng.integers(1, most + 1, strata)
        on, errors = rng.integers(0, size + 1), rng.integers(0, size + 1)
        least = int((on * errors / size).sum())
        for errors_on in (0, least, least + 2, int(np.minimum(on, errors).sum()) + 1):
            strata_of = (tuple(each.tolist()) for each in (on, errors, size))
            plain = contingency._compute_log_tail(errors_on, *strata_of)
            assert plain == tail_kernels.log_tail(errors_on, on, errors, size)


def test_who_asks_often_is_answered_by_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    table = (np.array([20]), np.array([30]), np.array([90]))
    plain = contingency.log_tail(12, *table)
    monkeypatch.setattr(contingency, "_WORTH_COMPILING", 0)
    monkeypatch.setattr(contingency, "_compute_log_tail", None)
    assert contingency.log_tail(12, *table) == plain < -3
