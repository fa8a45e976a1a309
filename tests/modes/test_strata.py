"""Strata: how surprising a rule is, and what is expected of units that no mode covers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray
from scipy.stats import fisher_exact, hypergeom

from groundfault.modes.strata import Losses, Scores, Strata
from groundfault.stats.bits import Layout

N = 150
RNG = np.random.default_rng(1)
ROWS = RNG.random((4, N)) < np.array([0.2, 0.3, 0.5, 0.1])[:, None]
GROUPS = RNG.integers(0, 3, N)


def make(losses: NDArray[np.float64], groups: NDArray[np.int64] | None = None) -> Strata:
    layout = Layout(np.zeros(N, np.int64) if groups is None else groups)
    return Strata(layout, Losses.of(losses, layout))


def make_errors(seed: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    return (rng.random(N) < 0.2 + 0.4 * ROWS[0] + 0.1 * GROUPS).astype(float)


def convolve(on: NDArray[np.bool_], errors: NDArray[np.float64], code: NDArray[np.int64]) -> float:
    """Log p of the exact conditional test, by hand."""
    mass = np.ones(1)
    for one in np.unique(code):
        here = code == one
        k, n = int(errors[here].sum()), int(on[here].sum())
        mass = np.convolve(mass, hypergeom.pmf(np.arange(n + 1), here.sum(), k, n))
    return math.log(mass[int(errors[on].sum()) :].sum())


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=400), st.integers(0, 2**32))
def test_what_is_packed_is_unpacked(groups: list[int], seed: int) -> None:
    code = np.unique(groups, return_inverse=True)[1].astype(np.int64)
    layout = Layout(code)
    rows = np.random.default_rng(seed).random((3, len(code))) < 0.5
    packed = layout.pack(rows)
    assert packed.shape == (3, len(layout.words))
    assert np.array_equal(layout.unpack(packed), rows)
    # the units of one stratum have words of their own
    for stratum in range(code.max() + 1):
        row = layout.pack((code == stratum)[None])[0]
        first, last = layout.runs[stratum], layout.runs[stratum + 1]
        assert not row[:first].any()
        assert not row[last:].any()
        assert (layout.words[first:last] == stratum).all()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_one_stratum_is_fishers_exact_test(seed: int) -> None:
    errors = make_errors(seed)
    strata = make(errors)
    for row in ROWS:
        table = [[(row & (errors == y)).sum(), (~row & (errors == y)).sum()] for y in (1, 0)]
        expected = math.log(fisher_exact(table, alternative="greater").pvalue)
        got = strata.log_p(strata.layout.pack(row[None])[0])
        assert got == pytest.approx(expected, abs=1e-9)


def test_strata_are_those_of_the_layout_divided_by_the_first_mode_that_holds() -> None:
    errors = make_errors(3)
    layout = Layout(GROUPS)
    losses = Losses.of(errors, layout)
    strata = Strata(layout, losses, list(layout.pack(ROWS[:2])))
    first = np.where(ROWS[0], 1, np.where(ROWS[1], 2, 0))
    assert np.array_equal(strata.new, first == 0)
    for row in ROWS[2:]:
        got = strata.log_p(layout.pack(row[None])[0])
        assert got == pytest.approx(convolve(row, errors, 3 * first + GROUPS), abs=1e-9)
    # the order of the modes matters where they overlap
    turned = Strata(layout, losses, list(layout.pack(ROWS[[1, 0]])))
    mask = layout.pack(ROWS[2][None])[0]
    assert turned.log_p(mask) != pytest.approx(strata.log_p(mask), abs=1e-6)


def test_strata_of_patterns_tell_every_combination_of_modes_apart() -> None:
    errors = make_errors(4)
    layout = Layout(GROUPS)
    losses = Losses.of(errors, layout)
    strata = Strata.of_patterns(layout, losses, list(layout.pack(ROWS[:2])))
    pattern = ROWS[0] + 2 * ROWS[1]
    for row in ROWS[2:]:
        got = strata.log_p(layout.pack(row[None])[0])
        assert got == pytest.approx(convolve(row, errors, 3 * pattern + GROUPS), abs=1e-9)
    # a mode says nothing beyond itself
    assert strata.log_p(layout.pack(ROWS[:1])[0]) == 0.0


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_only_tested_units_are_looked_at(groups: NDArray[np.int64] | None) -> None:
    errors = make_errors(5)
    strata = make(errors, groups)
    tested = np.random.default_rng(5).random(N) < 0.6
    code = np.zeros(N, np.int64) if groups is None else groups
    for row in ROWS:
        got = strata.log_p(strata.layout.pack(row[None])[0], tested)
        expected = convolve((row & tested)[tested], errors[tested], code[tested])
        assert got == pytest.approx(expected, abs=1e-9)
        # whatever the others failed
        other = make(np.where(tested, errors, 1 - errors), groups)
        assert other.log_p(other.layout.pack(row[None])[0], tested) == pytest.approx(got, abs=1e-9)


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_graded_losses_are_tested_on_the_units_tested(
    groups: NDArray[np.int64] | None,
) -> None:
    losses = np.random.default_rng(6).binomial(4, 0.3 + 0.3 * ROWS[0]) / 4
    strata = make(losses, groups)
    tested = np.random.default_rng(7).random(N) < 0.6
    mask = strata.layout.pack(ROWS[:1])[0]
    got = strata.log_p(mask, tested)
    other = make(np.where(tested, losses, 1 - losses), groups)
    assert other.log_p(mask, tested) == pytest.approx(got, abs=1e-9)
    rows = np.flatnonzero(tested)
    code = np.zeros(N, np.int64) if groups is None else groups
    rng = np.random.default_rng(8)
    sums = np.zeros(4_000)
    for i in range(len(sums)):
        for one in np.unique(code[rows]):
            here = losses[rows[code[rows] == one]]
            sums[i] += rng.permutation(here)[ROWS[0][rows[code[rows] == one]]].sum()
    # its mean and spread give the tail
    z = (losses[ROWS[0] & tested].sum() - 0.125 - sums.mean()) / sums.std()
    from scipy.stats import norm

    assert got == pytest.approx(norm.logsf(z), rel=0.15)


@pytest.mark.parametrize("graded", [False, True])
def test_new_units_their_losses_and_what_is_expected_of_them(graded: bool) -> None:
    rng = np.random.default_rng(9)
    losses = rng.integers(0, 128, N) / 127 if graded else make_errors(9)
    losses[0] = 1  # planes are exact for multiples of a 127th of the largest loss
    layout = Layout(GROUPS)
    strata = Strata(layout, Losses.of(losses, layout), list(layout.pack(ROWS[:1])))
    new = ~ROWS[0]
    rate = np.array([losses[new & (g == GROUPS)].mean() for g in range(3)])[GROUPS]
    units, sums, expected = strata.count_new(layout.pack(ROWS))
    for i, row in enumerate(ROWS):
        on = row & new
        assert units[i] == on.sum()
        assert sums[i] == pytest.approx(losses[on].sum(), abs=1e-9)
        assert expected[i] == pytest.approx(rate[on].sum(), abs=1e-9)


def test_planes_come_near_any_loss_and_meet_errors_exactly() -> None:
    layout = Layout(np.zeros(N, np.int64))
    values = np.random.default_rng(10).random(N)
    losses = Losses.of(values, layout)
    planes = layout.unpack(losses.planes)
    assert not losses.binary
    assert np.abs(losses.scale @ planes - values).max() <= 0.5 / 127 + 1e-12
    assert losses.step == 0.0
    assert Losses.of(np.rint(values * 4) / 4, layout).step == 0.25
    errors = Losses.of(np.rint(values), layout)
    assert errors.binary
    assert np.array_equal(errors.scale @ layout.unpack(errors.planes), np.rint(values))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("graded", [False, True])
def test_rules_have_no_score_where_losses_do_not_vary(graded: bool) -> None:
    home = np.repeat([0, 1], 20)
    scores = Scores(home, home.astype(np.float64), graded=graded)
    drawn = scores.permute(np.random.default_rng(0), 5)
    on = np.random.default_rng(1).random((3, 40)) < 0.5
    assert not scores.find_largest(on, drawn, np.zeros(6, dtype=np.float32)).any()
