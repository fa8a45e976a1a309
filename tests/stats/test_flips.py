"""Changes: flips are exact where they can be counted, valid where variances differ, and fair to
contrasts; of graded changes the mean is tested, whatever their shape.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray
from scipy import stats

from groundfault.stats import bits, flips

Floats = NDArray[np.float64]


def enumerate_max_t(on: NDArray[np.bool_], differences: Floats) -> Floats:
    """Single-step adjusted p-values from all flips, by brute force."""
    scale = np.sqrt(on @ differences**2)
    scale = np.where(scale > 0, scale, np.inf)
    observed = np.abs(on @ differences) / scale
    signs = np.array(list(product([-1, 1], repeat=len(differences))))
    largest = np.max(np.abs((signs * differences) @ on.T) / scale, axis=1)
    return np.array([(largest >= value * (1 - 1e-12)).mean() for value in observed])


def test_max_t_is_that_of_all_flips() -> None:
    rng = np.random.default_rng(3)
    on = rng.random((6, 10)) < 0.5
    differences = rng.choice([-1.0, 0.0, 1.0], 10)
    exact = enumerate_max_t(on, differences)
    p = flips.max_t(bits.pack(on), differences, 19_999, np.random.default_rng(0))
    first = int(np.argmin(exact))
    # step down agrees with the single step where the statistic is the largest
    assert p[first] == pytest.approx(exact[first], abs=0.015)
    assert (p <= exact + 0.02).all()


@given(
    st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=40),
    st.sampled_from([None, 1, -1]),
)
@settings(max_examples=60)
def test_differences_of_one_size_take_the_sign_test(values: list[float], side: int | None) -> None:
    differences = np.array(values)
    on = np.ones((1, len(values)), dtype=np.bool_)
    direction = None if side is None else np.array([side])
    p = flips.p_values(bits.pack(on), differences, direction)[0]
    wins, pairs = int((differences > 0).sum()), int((differences != 0).sum())
    names = {None: "two-sided", 1: "greater", -1: "less"}
    expected = stats.binomtest(wins, pairs, alternative=names[side]).pvalue if pairs else 1.0
    assert p == pytest.approx(expected, rel=1e-9)


def test_graded_differences_are_bet_on() -> None:
    """One over the wealth of the bettor, staked by hand."""
    differences = np.array([0.5, 0.2, 0.7, -0.1, 0.0, 0.4, 0.3, 0.6, 0.9])
    on = bits.pack(np.array([[True] * 9, [False] * 3 + [True] * 2 + [False] * 4]))
    wealth = np.mean([np.prod(1 + stake * differences) for stake in flips.STAKES])
    up, down = (flips.p_values(on, differences, np.full(2, side)) for side in (1, -1))
    assert up[0] == pytest.approx(1 / wealth)
    assert down[0] == up[1] == 1
    assert flips.p_values(on, differences)[0] == pytest.approx(2 / wealth)
    adjusted = flips.max_t(on, differences, 99, np.random.default_rng(0))
    assert adjusted.tolist() == [pytest.approx(4 / wealth), 1]


def draw_skewed(rng: np.random.Generator, mean: float, n: int) -> Floats:
    """Changes of this mean: nine in ten a little worse, one in ten much better."""
    rare = rng.random(n) < 0.1
    return np.where(rare, -0.9, 0.1) + mean + rng.uniform(-0.02, 0.02, n)


def test_skewed_changes_of_mean_0_are_none() -> None:
    """Flips confirm a change in a third of these worlds: most units are a little worse."""
    rng = np.random.default_rng(8)
    slices = bits.pack(np.repeat(np.eye(8, dtype=np.bool_), 30, axis=1))
    worlds = 200
    hits = 0
    for _ in range(worlds):
        p = flips.max_t(slices, draw_skewed(rng, 0.0, 240), 99, rng)
        hits += bool((p <= 0.1).any())
    assert stats.binomtest(hits, worlds).proportion_ci(0.99).low <= 0.1, hits / worlds


def test_a_mean_change_of_120_units_is_found() -> None:
    rng = np.random.default_rng(9)
    slices = bits.pack(np.repeat(np.eye(8, dtype=np.bool_), 120, axis=1))
    found = 0
    for _ in range(40):
        changes = draw_skewed(rng, 0.0, 960)
        changes[:120] = np.clip(rng.normal(0.12, 0.2, 120), -1, 1)
        found += bool(flips.max_t(slices, changes, 99, rng)[0] <= 0.1)
    assert found >= 34


def test_the_data_count_among_the_flips() -> None:
    """No flip of 99 turns all 40 differences the same way again, and still p is not 0."""
    on = bits.pack(np.ones((1, 40), dtype=np.bool_))
    assert flips.max_t(on, np.ones(40), 99, np.random.default_rng(0)).tolist() == [1 / 100]


def test_nothing_that_changed_is_no_finding() -> None:
    on = bits.pack(np.array([[True, True, False, False], [True, False, True, False]]))
    rng = np.random.default_rng(0)
    assert flips.max_t(on, np.zeros(4), 99, rng).tolist() == [1.0, 1.0]
    assert flips.p_values(on, np.zeros(4)).tolist() == [1.0, 1.0]
    # the same change everywhere is none unlike the rest
    assert flips.max_t(on, np.ones(4), 99, rng, elsewhere=~on & np.uint64(15)).tolist() == [1, 1]


def draw_runs(rng: np.random.Generator, shift: float) -> tuple[NDArray[np.bool_], Floats]:
    """Slices and changes of two runs whose changes are the rarer the easier a unit is."""
    n = 400
    hard = rng.random(n) < 0.2
    on = np.vstack([hard, rng.random((9, n)) < 0.3])
    rate = np.where(hard, 0.45, 0.03)
    first, second = (rng.random(n) < rate + extra for extra in (0.0, shift))
    return on, second.astype(float) - first


@pytest.mark.parametrize(("shift", "contrast"), [(0.0, False), (0.0, True), (0.1, True)])
def test_the_level_holds_where_variances_differ(shift: float, contrast: bool) -> None:
    """A real change of every unit alike is none between slices, whatever their variances."""
    rng = np.random.default_rng(5)
    hits, worlds = 0, 250
    for _ in range(worlds):
        on, changes = draw_runs(rng, shift)
        rest = bits.pack(~on) if contrast else None
        hits += (flips.max_t(bits.pack(on), changes, 199, rng, elsewhere=rest) <= 0.1).any()
    low = stats.binomtest(hits, worlds).proportion_ci(0.99).low
    assert low <= 0.1, hits / worlds


def test_a_slice_without_changes_by_chance_is_not_unlike_the_rest() -> None:
    """Of a change of 2% everywhere, a slice or a rest of 20 units has none two times in three."""
    rng = np.random.default_rng(8)
    hits = 0
    for _ in range(60):
        on = rng.random((10, 1000)) < np.array([[0.02, 0.98] * 5]).T
        changes = (rng.random(1000) < 0.02).astype(float)
        p = flips.max_t(bits.pack(on), changes, 99, rng, elsewhere=bits.pack(~on))
        hits += bool((p <= 0.1).any())
    # with a level of 0.1, over 13 of 60 have a chance of .003
    assert hits <= 13


def test_a_change_unlike_the_rest_is_one() -> None:
    rng = np.random.default_rng(6)
    on, changes = draw_runs(rng, 0.0)
    changes[on[0]] = (rng.random(on[0].sum()) < 0.4).astype(float)
    p = flips.max_t(bits.pack(on), changes, 499, rng, elsewhere=bits.pack(~on))
    assert p[0] < 0.02
    assert (p[1:] > 0.02).all()


def test_batches_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    on, changes = draw_runs(np.random.default_rng(7), 0.05)
    whole = flips.max_t(bits.pack(on), changes, 300, np.random.default_rng(0))
    monkeypatch.setattr(flips, "_SLICES", 800)
    monkeypatch.setattr(flips, "_BATCH", 400 * 7)
    parts = flips.max_t(bits.pack(on), changes, 300, np.random.default_rng(0))
    # other draws of signs where batches differ, the same distribution
    assert np.abs(whole - parts).max() < 0.12


def test_columns_whose_mix_changes_together_are_no_change() -> None:
    """A cell of two columns fails more and becomes twice as frequent; no column does by itself."""
    deviates = []
    for seed in range(24):
        rng = np.random.default_rng([seed, 5])
        topic, lang = rng.integers(0, 6, 1600), rng.integers(0, 4, 1600)
        second = np.arange(1600) >= 800
        away, back = (np.flatnonzero(second & (topic == i) & (lang == i - 2)) for i in (2, 3))
        moved = min(len(away), len(back))
        lang[away[:moved]], lang[back[:moved]] = 1, 0
        cell = (topic == 2) & (lang == 1)
        on = np.array([*(topic == i for i in range(6)), *(lang == i for i in range(4))])
        losses = (rng.random(1600) < np.where(cell, 0.6, 0.12)).astype(float)
        samples = flips.Samples(on, losses, second, rng)
        spread = np.sqrt(samples.variance[cell].sum())
        deviates.append(samples.changes[cell].sum() / spread)
    # conditions of one column alone leave a mean of 1.2
    assert abs(np.mean(deviates)) < 0.8
