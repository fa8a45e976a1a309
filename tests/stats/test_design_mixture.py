"""Mixtures of designs: averages of their powers, and the chance to be tested at all."""

from __future__ import annotations

from math import comb

import pytest

from groundfault.stats.design_mixture import DesignMixture, chance_of_support
from groundfault.stats.power import Design, minimum_detectable_lift

STRICT, LAX = (
    Design.full_sample(n=400, on=120, error_rate=0.3, level=level) for level in (0.001, 0.1)
)


def test_power_is_the_mean_of_the_designs_times_the_chance_to_be_tested() -> None:
    mixture = DesignMixture((STRICT, LAX), (0.25, 0.75), 0.9)
    expected = 0.9 * (0.25 * STRICT.power(0.2) + 0.75 * LAX.power(0.2))
    assert mixture.power(0.2) == pytest.approx(expected)
    assert mixture.units == 400
    assert mixture.largest == LAX.largest


def test_what_is_seldom_tested_is_detected_at_no_lift() -> None:
    assert minimum_detectable_lift(DesignMixture((LAX,), (1.0,), 0.79)) is None
    both = DesignMixture((STRICT, LAX), (0.5, 0.5))
    least = [minimum_detectable_lift(each) for each in (LAX, both, STRICT)]
    assert None not in least
    assert least == sorted(least)


@pytest.mark.parametrize(("n", "on", "part"), [(12, 5, 6), (20, 3, 5), (9, 8, 4)])
def test_the_chance_of_a_support_counts_the_draws(n: int, on: int, part: int) -> None:
    expected = sum(
        comb(on, k) * comb(n - on, part - k) / comb(n, part)
        for k in range(part + 1)
        if 1 <= k <= 3 and 1 <= on - k <= 4
    )
    assert chance_of_support(n, on, part, (1, 3), (1, 4)) == pytest.approx(expected)


def test_nothing_is_left_to_chance_where_all_units_are_one_part() -> None:
    assert chance_of_support(10, 4, 10, (4, 9), (0, 0)) == 1.0
    assert chance_of_support(10, 4, 10, (5, 9), (0, 0)) == 0.0
    assert chance_of_support(10, 4, 0, (0, 0), (4, 4)) == 1.0
