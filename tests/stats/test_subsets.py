"""Sums over random subsets against enumeration."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundfault.stats.subsets import countable, subset_sums


@given(values=st.lists(st.integers(0, 5), min_size=2, max_size=9), data=st.data())
def test_counted_subsets_are_all_subsets(values: list[int], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(values) - 1))
    start, step, pmf = subset_sums(np.array(values), np.array([k]))[k]
    sums = [sum(subset) for subset in combinations(values, k)]
    assert step == 1
    for i, p in enumerate(pmf):
        assert p == pytest.approx(sums.count(int(start) + i) / len(sums), abs=1e-13)
    assert pmf.sum() == pytest.approx(1, abs=1e-12)


def test_a_large_subset_is_the_complement_of_a_small_one() -> None:
    values = np.array([0, 1, 1, 3, 4, 7])
    distributions = subset_sums(values, np.array([2, 4]))
    small, large = distributions[2], distributions[4]
    assert large[0] + len(large[2]) - 1 == values.sum() - small[0]
    assert large[2] == pytest.approx(small[2][::-1], abs=1e-15)


def test_only_small_tables_are_counted() -> None:
    assert countable(np.ones(100, dtype=np.int64), np.array([10, 50]))
    assert not countable(np.full(20_000, 100), np.array([10_000]))
