"""Rises: what could be found on a slice whose errors come on top of few others."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import hypergeom

from groundfault.stats import rises
from groundfault.stats.power import Design, minimum_detectable_lift


def make_design(min_effect: float = 0.1, rate: float = 0.01) -> Design:
    return Design.full_sample(n=2000, on=600, error_rate=rate, level=0.01, min_effect=min_effect)


def test_where_errors_are_rare_only_added_ones_make_a_large_lift() -> None:
    design = make_design()
    assert minimum_detectable_lift(design) is None
    least = rises.minimum_detectable_rise([design], [1.0])
    assert least is not None
    assert 0.1 < least < 0.13
    assert rises.raise_rate(design, least).power(least) >= 0.8
    assert rises.raise_rate(design, 0.95 * least).power(0.95 * least) < 0.8


def test_the_power_is_that_of_simulated_slices() -> None:
    design = rises.raise_rate(make_design(0.02), 0.03)
    rng = np.random.default_rng(0)
    on, off = rng.binomial(600, 0.04, 4000), rng.binomial(1400, 0.01, 4000)
    p = 2 * hypergeom.sf(on - 1, 2000, on + off, 600)
    found = (p <= 0.01) & (on / 600 - off / 1400 >= 0.02)
    assert design.power(0.03) == pytest.approx(found.mean(), abs=0.05)


def test_what_is_seldom_tested_is_not_found() -> None:
    assert rises.minimum_detectable_rise([make_design()], [0.7]) is None
    assert rises.minimum_detectable_rise([make_design(rate=1.0)], [1.0]) is None


def test_graded_losses_vary_more_with_a_slice_that_stands_out() -> None:
    graded = Design.full_sample(
        n=2000, on=600, error_rate=0.05, level=0.01, min_effect=0.0, variance=0.01
    )
    raised = rises.raise_rate(graded, 0.2)
    assert raised.error_rate == pytest.approx(0.11)
    assert raised.variance == pytest.approx(0.01 + 0.3 * 0.7 * 0.04)
