"""Null worlds of a taxonomy: the bar for directions, and the p-values of draws."""

from __future__ import annotations

import pytest

from groundfault_lab.taxonomy.fitting.nulls import Test, find_bar


@pytest.mark.parametrize("level", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("worlds", [19, 39, 99])
def test_a_direction_clears_the_bar_where_its_p_is_at_most_the_level(
    worlds: int, level: float
) -> None:
    draws = [float(number) for number in range(worlds)]
    bar = find_bar(draws, level)
    # between the draws, and above and below all of them
    for strength in (number - 0.5 for number in range(worlds + 1)):
        p = Test("direction", strength, tuple(draws)).p
        assert (strength > bar) == (p <= level)


def test_with_few_draws_the_bar_is_the_largest() -> None:
    assert find_bar([3.0, 1.0, 2.0], 0.05) == 3.0


def test_a_p_value_counts_the_data_and_ties() -> None:
    draws = (1.0, 2.0, 3.0)
    observed = (0.5, 2.0, 3.5)
    assert [Test("any", one, draws).p for one in observed] == [1.0, 0.75, 0.25]
