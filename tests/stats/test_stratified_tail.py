"""Tails of errors and of losses within strata, against scipy, enumeration and permutations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray
from scipy.stats import hypergeom

from groundfault.stats.contingency import LOG_FLOOR, log_tail, log_tail_of_losses

Tables = list[tuple[int, int, int]]
Strata = list[NDArray[np.float64]]


def tail(errors_on: int, tables: Tables) -> float:
    """`log_tail` of strata given as (on, errors, size)."""
    on, errors, size = np.array(tables, dtype=np.int64).T.copy()
    return log_tail(errors_on, on, errors, size)


def reference(errors_on: int, tables: Tables) -> float:
    """P(K >= errors_on), all atoms convolved."""
    mass = np.ones(1)
    for on, errors, size in tables:
        mass = np.convolve(mass, hypergeom.pmf(np.arange(on + 1), size, errors, on))
    return math.fsum(mass[max(errors_on, 0) :])


def tail_of_losses(total: float, strata: Strata, on: list[int], step: float) -> float:
    """`log_tail_of_losses` of strata of losses."""
    rows = [
        (h, value, count)
        for h, losses in enumerate(strata)
        for value, count in zip(*np.unique(losses, return_counts=True), strict=True)
    ]
    home, values, counts = (np.array(column) for column in zip(*rows, strict=True))
    return log_tail_of_losses(total, step, np.array(on), home, values, counts)


tables = st.integers(1, 40).flatmap(
    lambda size: st.tuples(st.integers(0, size), st.integers(0, size), st.just(size))
)


@settings(max_examples=150, deadline=None)
@given(st.lists(tables, min_size=1, max_size=3), st.integers(-1, 125))
def test_errors_of_up_to_three_strata_are_their_convolution(strata: Tables, k: int) -> None:
    p = reference(k, strata)
    expected = max(math.log(p), LOG_FLOOR) if p > 1e-29 else LOG_FLOOR
    got = tail(k, strata)
    if p > 1e-29:
        assert got == pytest.approx(expected, abs=1e-9)
    else:
        assert LOG_FLOOR <= got <= math.log(1e-28)


@settings(max_examples=60, deadline=None)
@given(st.lists(tables, min_size=1, max_size=3))
def test_more_errors_are_never_likelier(strata: Tables) -> None:
    most = sum(on for on, _, _ in strata)
    values = [tail(k, strata) for k in range(most + 3)]
    assert values[0] == 0.0
    assert all(a >= b for a, b in itertools.pairwise(values))
    assert values[-1] == LOG_FLOOR


def test_nothing_on_and_nothing_but_errors_are_certain() -> None:
    assert tail(0, [(0, 5, 20)]) == 0.0
    assert tail(7, [(7, 20, 20)]) == 0.0
    assert tail(5, [(20, 5, 20)]) == 0.0
    # and one more than there can be has no probability
    assert tail(1, [(0, 5, 20)]) == LOG_FLOOR
    assert tail(8, [(7, 20, 20)]) == LOG_FLOOR


@pytest.mark.parametrize(
    ("on", "errors", "size", "ks"),
    [
        (1_000, 30_000, 1_000_000, (25, 31, 60, 90)),
        (300_000, 100_000, 1_000_000, (29_000, 30_000, 30_500, 31_000)),
        (40, 40, 1_000_000, (1, 2, 4)),
        (999_000, 500_000, 1_000_000, (499_500, 499_560)),
    ],
)
def test_a_million_units_as_scipy(on: int, errors: int, size: int, ks: tuple[int, ...]) -> None:
    for k in ks:
        expected = float(hypergeom.logsf(k - 1, size, errors, on))
        assert tail(k, [(on, errors, size)]) == pytest.approx(expected, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize(
    ("on", "errors", "size"),
    [
        ([40], [50], [200]),
        ([30, 20], [40, 10], [100, 150]),
        ([12, 5, 9], [20, 60, 8], [90, 70, 80]),
    ],
)
def test_losses_of_0_and_1_are_errors(on: list[int], errors: list[int], size: list[int]) -> None:
    strata = [np.repeat([1.0, 0.0], [e, n - e]) for e, n in zip(errors, size, strict=True)]
    cells = list(zip(on, errors, size, strict=True))
    mean = sum(o * e / n for o, e, n in cells)
    checked = 0
    for k in range(math.ceil(mean) + 1, sum(on) + 1):
        exact = tail(k, cells)
        if exact < math.log(1e-12):
            break
        assert tail_of_losses(k, strata, on, 1.0) == pytest.approx(exact, rel=0.05, abs=0.03)
        checked += 1
    assert checked > 5


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), min_size=12, max_size=14),
    st.integers(4, 6),
)
def test_graded_losses_against_every_sample(losses: list[float], on: int) -> None:
    population = np.array(losses)
    sums = np.array([sum(s) for s in itertools.combinations(losses, on)])
    for total in np.unique(sums[sums > on * population.mean() + 0.25]):
        exact = math.log((sums >= total - 1e-9).mean())
        got = tail_of_losses(float(total), [population], [on], 0.25)
        # a dozen units, most of them tied: what is asymptotic is off by up to one in the logarithm
        assert got == pytest.approx(exact, rel=0.1, abs=1.0)


@pytest.mark.parametrize("strata", [1, 2])
@pytest.mark.parametrize("step", [0.25, 0.0])
def test_graded_losses_against_permutations(strata: int, step: float) -> None:
    rng = np.random.default_rng(strata)
    groups, on = [], [25, 40][:strata]
    for h in range(strata):
        raw = rng.beta(0.5, 1.5 + h, 120 + 60 * h)
        groups.append(np.rint(raw * 4) / 4 if step else raw)
    # sums of samples without replacement, the smallest of random keys first
    sums = np.zeros(200_000)
    for block in range(0, 200_000, 20_000):
        for losses, count in zip(groups, on, strict=True):
            keys = rng.random((20_000, len(losses)), dtype=np.float32)
            rows = np.argpartition(keys, count, axis=1)[:, :count]
            sums[block : block + 20_000] += losses[rows].sum(axis=1)
    for share in (0.3, 0.1, 0.03, 0.01, 0.003, 0.001):
        total = float(np.quantile(sums, 1 - share))
        total = round(total * 4) / 4 if step else total
        p = float((sums >= total - 1e-9).mean())
        noise = 4 * math.sqrt((1 - p) / (p * 200_000))
        got = tail_of_losses(total, groups, on, step)
        assert got == pytest.approx(math.log(p), abs=0.05 + noise)


def test_no_tail_is_below_the_probability_of_the_largest_sum() -> None:
    losses = np.repeat([1.0, 0.5, 0.0], [12, 8, 60])
    for on, ways in ((6, math.comb(12, 6)), (12, 1), (15, math.comb(8, 3))):
        largest = float(np.sort(losses)[-on:].sum())
        exact = math.log(ways / math.comb(80, on))
        got = tail_of_losses(largest, [losses], [on], 0.5)
        assert exact - 1e-9 <= got <= exact + 1.2
        # a sum that none reaches is no rarer than the largest
        assert tail_of_losses(largest + 0.5, [losses], [on], 0.5) >= exact - 1e-9


def test_the_largest_sum_of_two_strata_takes_the_largest_of_each() -> None:
    groups = [np.repeat([1.0, 0.0], [5, 20]), np.repeat([0.75, 0.25], [4, 30])]
    exact = -math.log(math.comb(25, 3)) + math.log(math.comb(5, 3)) - math.log(math.comb(34, 4))
    got = tail_of_losses(3 + 3.0, groups, [3, 4], 0.25)
    assert exact - 1e-9 <= got <= exact + 1.2


def test_losses_at_or_below_their_mean_are_certain_and_rare_ones_have_a_floor() -> None:
    losses = np.repeat([1.0, 0.5, 0.0], [30, 30, 40])
    assert tail_of_losses(9.0, [losses], [20], 0.5) == 0.0
    many = np.repeat([1.0, 0.0], [500, 9_500])
    assert tail_of_losses(400.0, [many], [500], 1.0) == LOG_FLOOR
    assert tail_of_losses(500.0, [many], [500], 1.0) == LOG_FLOOR


def test_a_stratum_that_is_on_as_a_whole_adds_a_constant() -> None:
    losses = np.repeat([1.0, 0.5, 0.0], [10, 20, 60])
    alone = tail_of_losses(9.0, [losses], [20], 0.5)
    whole = tail_of_losses(9.0 + 2.0, [losses, np.array([1.0, 0.5, 0.5])], [20, 3], 0.5)
    assert whole == pytest.approx(alone, abs=1e-6)
    assert tail_of_losses(9.0, [losses, np.ones(4)], [20, 0], 0.5) == pytest.approx(alone, abs=1e-6)
