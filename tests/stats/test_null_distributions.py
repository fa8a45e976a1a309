"""Null distributions against SciPy, exhaustive enumeration and random draws."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from profiles import count_examples
from scipy import stats as scipy_stats

from groundfault.stats import null_distributions
from groundfault.stats.contingency import EFFECTS, ContingencyTables
from groundfault.stats.null_distributions import countable, subset_sums


def tables_of(
    values: np.ndarray, sizes: list[int], sums: list[int], denominator: int = 1
) -> ContingencyTables:
    count = len(sizes)
    return ContingencyTables(
        np.full(count, len(values)),
        np.array(sizes),
        np.full(count, values.sum()),
        np.array(sums),
        denominator,
    )


@given(n=st.integers(2, 400), data=st.data())
def test_hypergeometric_is_scipys(n: int, data: st.DataObject) -> None:
    on, total = data.draw(st.integers(1, n - 1)), data.draw(st.integers(0, n))
    ones = [np.array([v]) for v in (n, on, total, 0)]
    null = null_distributions.from_errors(ContingencyTables(*ones), pooled=False)
    x = null.start[0] + np.arange(len(null.pmf))
    assert null.pmf == pytest.approx(
        scipy_stats.hypergeom(n, total, on).pmf(x), rel=1e-9, abs=1e-300
    )
    assert null.pmf.sum() == pytest.approx(1, abs=1e-13)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(5, 9), graded=st.booleans())
@settings(max_examples=count_examples(40), deadline=None)
def test_pooled_tails_count_every_relabelling(seed: int, n: int, graded: bool) -> None:
    """Decoys of a small library, enumerated: every set of units is equally likely to be the
    slice.
    """
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 5 if graded else 2, n)
    sizes = rng.integers(1, n, 4)
    sums = [int(rng.permutation(values)[:k].sum()) for k in sizes]
    tables = tables_of(values, sizes.tolist(), sums, 4 if graded else 1)
    distinct, which, counts = null_distributions.find_distinct(tables)
    null = (
        null_distributions.from_values(values, distinct)
        if graded
        else null_distributions.from_errors(distinct, pooled=True)
    )
    levels = np.unique(tables.score())
    expected = np.zeros(len(levels))
    own = np.zeros(4)
    for j, k in enumerate(sizes):
        lifts = [
            abs(
                Fraction(
                    n * sum(c) - int(k) * int(values.sum()),
                    int(k) * (n - int(k)) * (4 if graded else 1),
                )
            )
            for c in combinations(values.tolist(), int(k))
        ]
        expected += [
            sum(lift >= _as_fraction(tables, level) for lift in lifts) / len(lifts)
            for level in levels
        ]
        own[j] = sum(lift >= _lift(tables, j) for lift in lifts) / len(lifts)
    assert null.pool_tail(counts, levels) == pytest.approx(expected, abs=1e-12)
    assert null.two_sided(which, np.asarray(sums, dtype=float)) == pytest.approx(own, abs=1e-12)


def _as_fraction(tables: ContingencyTables, level: float) -> Fraction:
    return next(_lift(tables, j) for j in range(len(tables)) if tables.score()[j] == level)


def _lift(tables: ContingencyTables, j: int) -> Fraction:
    n, k, s, t = (int(each[j]) for each in (tables.n, tables.on, tables.on_sum, tables.total))
    return abs(Fraction(n * s - k * t, k * (n - k) * tables.unit))


def test_one_sided_tails_are_scipys() -> None:
    tables = ContingencyTables(*(np.array([v, v]) for v in (80, 30, 25)), np.array([14, 4]))
    null, which = (
        null_distributions.from_errors(null_distributions.find_distinct(tables)[0], pooled=False),
        null_distributions.find_distinct(tables)[1],
    )
    up = null.one_sided(which, tables.on_sum.astype(float), np.array([1, 1]))
    down = null.one_sided(which, tables.on_sum.astype(float), np.array([-1, -1]))
    assert up == pytest.approx(scipy_stats.hypergeom(80, 25, 30).sf(np.array([13, 3])), rel=1e-10)
    assert down == pytest.approx(
        scipy_stats.hypergeom(80, 25, 30).cdf(np.array([14, 4])), rel=1e-10
    )


def test_the_tail_of_a_rare_event_keeps_its_digits() -> None:
    tables = ContingencyTables(*(np.array([v]) for v in (2000, 600, 500, 400)))
    p = null_distributions.from_errors(tables, pooled=False).two_sided(
        np.array([0]), np.array([400.0])
    )[0]
    up = scipy_stats.hypergeom(2000, 500, 600).sf(399)
    assert p == pytest.approx(up, rel=1e-6)
    assert 0 < p < 1e-100


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(4, 60),
    graded=st.booleans(),
    sign=st.sampled_from([-1, 1]),
)
@settings(max_examples=count_examples(50), deadline=None)
def test_likelihood_ratios_expect_one(seed: int, n: int, graded: bool, sign: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 4 if graded else 2, n)
    k = int(rng.integers(1, n))
    tables = tables_of(values, [k], [0], 3 if graded else 1)
    null = (
        null_distributions.from_values(values, tables)
        if graded
        else null_distributions.from_errors(tables, pooled=False)
    )
    sums = null.start[0] + np.arange(len(null.pmf))
    which, direction = np.zeros(len(sums), dtype=np.intp), np.full(len(sums), sign)
    e = null.likelihood_ratio(which, sums, direction, np.log([1.5, 3, 8]))
    assert (e * null.pmf).sum() == pytest.approx(1, abs=1e-9)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_every_effect_scores_decoys_and_descriptors_alike(seed: int) -> None:
    """The size computed for a descriptor is among the sizes computed for its decoys, to the last
    bit.
    """
    rng = np.random.default_rng(seed)
    n, on, total = 60, int(rng.integers(5, 55)), int(rng.integers(1, 60))
    on_sum = int(rng.hypergeometric(total, n - total, on)) if total < n else on
    tables = ContingencyTables(*(np.array([v]) for v in (n, on, total, on_sum)))
    null = null_distributions.from_errors(tables, pooled=False)
    for effect in EFFECTS:
        score = tables.score(effect)
        own = null.pool_tail(np.ones(1), score, effect)[0]
        above = null.pool_tail(np.ones(1), np.nextafter(score, 9), effect)[0]
        assert own - above >= null.pmf[on_sum - int(null.start[0])] * (1 - 1e-9)


def test_threads_change_no_bit() -> None:
    import numba

    rng = np.random.default_rng(0)
    tables = ContingencyTables(
        np.full(300, 500), rng.integers(50, 450, 300), np.full(300, 180), rng.integers(0, 50, 300)
    )
    null = null_distributions.from_errors(tables, pooled=True)
    levels = np.linspace(0.01, 0.5, 200)
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        alone = null.pool_tail(np.ones(300), levels)
    finally:
        numba.set_num_threads(before)
    assert (alone == null.pool_tail(np.ones(300), levels)).all()


@pytest.mark.parametrize("n", [300, 4_500, 40_000])
@pytest.mark.parametrize("side", [1, -1])
def test_likelihood_ratios_are_numbers_however_large_the_table(n: int, side: int) -> None:
    """Beside an exact computation with whole numbers: pmf and tilt underflow and overflow alone."""
    on, total = 2 * n // 5, 2 * n // 5
    observed = on * total // n + side * n // 20
    table = ContingencyTables(*(np.array([v]) for v in (n, on, total, observed)))
    null = null_distributions.from_errors(table, pooled=False)
    which, direction = np.array([0]), np.array([side])
    e = null.likelihood_ratio(which, np.array([float(observed)]), direction, np.log([2.0]))
    x = np.arange(max(0, on + total - n), min(on, total) + 1)
    log_mass = scipy_stats.hypergeom(n, total, on).logpmf(x) + side * np.log(2) * x
    expected = side * np.log(2) * observed - np.logaddexp.reduce(log_mass)
    assert np.log(e)[0] == pytest.approx(np.clip(expected, None, 230.0), rel=1e-6)
    opposite = null.likelihood_ratio(which, np.array([float(observed)]), -direction, np.log([2.0]))
    assert 0 <= opposite[0] < 1


def test_likelihood_ratios_are_fair_under_their_distribution() -> None:
    table = ContingencyTables(*(np.array([v]) for v in (200, 60, 80, 0)))
    null = null_distributions.from_errors(table, pooled=False)
    sums = null.start[0] + np.arange(len(null.pmf))
    which, up = np.zeros(len(sums), dtype=np.intp), np.ones(len(sums), dtype=np.int64)
    e = null.likelihood_ratio(which, sums, up, np.log([1.5, 8.0]))
    assert e @ null.pmf == pytest.approx(1, abs=1e-12)


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
