"""Mixtures of designs: averages of their powers, and the chance to be tested at all."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from designs import full_sample
from scipy.stats import hypergeom

from groundfault.stats import power
from groundfault.stats.power import (
    Design,
    DesignMixture,
    chance_of_support,
    minimum_detectable_lift,
)

STRICT, LAX = (full_sample(n=400, on=120, error_rate=0.3, level=level) for level in (0.001, 0.1))


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


def make_design(min_effect: float = 0.1, rate: float = 0.01) -> Design:
    return full_sample(n=2000, on=600, error_rate=rate, level=0.01, min_effect=min_effect)


def test_where_errors_are_rare_only_added_ones_make_a_large_lift() -> None:
    design = make_design()
    assert minimum_detectable_lift(design) is None
    least = power.minimum_detectable_rise([design], [1.0])
    assert least is not None
    assert 0.1 < least < 0.13
    assert power.raise_rate(design, least).power(least) >= 0.8
    assert power.raise_rate(design, 0.95 * least).power(0.95 * least) < 0.8


def test_the_power_is_that_of_simulated_slices() -> None:
    design = power.raise_rate(make_design(0.02), 0.03)
    rng = np.random.default_rng(0)
    on, off = rng.binomial(600, 0.04, 4000), rng.binomial(1400, 0.01, 4000)
    p = 2 * hypergeom.sf(on - 1, 2000, on + off, 600)
    found = (p <= 0.01) & (on / 600 - off / 1400 >= 0.02)
    assert design.power(0.03) == pytest.approx(found.mean(), abs=0.05)


def test_what_is_seldom_tested_is_not_found() -> None:
    assert power.minimum_detectable_rise([make_design()], [0.7]) is None
    assert power.minimum_detectable_rise([make_design(rate=1.0)], [1.0]) is None


def test_graded_losses_vary_more_with_a_slice_that_stands_out() -> None:
    graded = full_sample(n=2000, on=600, error_rate=0.05, level=0.01, min_effect=0.0, variance=0.01)
    raised = power.raise_rate(graded, 0.2)
    assert raised.error_rate == pytest.approx(0.11)
    assert raised.variance == pytest.approx(0.01 + 0.3 * 0.7 * 0.04)
