"""Null laws against SciPy, exhaustive enumeration and random draws."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from groundfault.stats import null_distributions
from groundfault.stats.contingency import EFFECTS, ContingencyTables, common_grid
from groundfault.stats.saddlepoint import saddlepoint
from groundfault.stats.subsets import subset_sums


def margins_of(
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
    law = null_distributions.from_errors(ContingencyTables(*ones), pooled=False)
    x = law.start[0] + np.arange(len(law.pmf))
    assert law.pmf == pytest.approx(
        scipy_stats.hypergeom(n, total, on).pmf(x), rel=1e-9, abs=1e-300
    )
    assert law.pmf.sum() == pytest.approx(1, abs=1e-13)


@given(values=st.lists(st.integers(0, 5), min_size=2, max_size=9), data=st.data())
def test_counted_subsets_are_all_subsets(values: list[int], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(values) - 1))
    start, step, pmf = subset_sums(np.array(values), np.array([k]))[k]
    sums = [sum(subset) for subset in combinations(values, k)]
    assert step == 1
    for i, p in enumerate(pmf):
        assert p == pytest.approx(sums.count(int(start) + i) / len(sums), abs=1e-13)
    assert pmf.sum() == pytest.approx(1, abs=1e-12)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(5, 9), graded=st.booleans())
@settings(max_examples=40, deadline=None)
def test_pooled_tails_count_every_relabelling(seed: int, n: int, graded: bool) -> None:
    """Decoys of a small library, enumerated: every set of units is equally likely to be the
    slice.
    """
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 5 if graded else 2, n)
    sizes = rng.integers(1, n, 4)
    sums = [int(rng.permutation(values)[:k].sum()) for k in sizes]
    margins = margins_of(values, sizes.tolist(), sums, 4 if graded else 1)
    distinct, which, counts = null_distributions.find_distinct(margins)
    law = (
        null_distributions.from_values(values, distinct)
        if graded
        else null_distributions.from_errors(distinct, pooled=True)
    )
    levels = np.unique(margins.score())
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
            sum(lift >= _as_fraction(margins, level) for lift in lifts) / len(lifts)
            for level in levels
        ]
        own[j] = sum(lift >= abs(margins.fraction(j)) for lift in lifts) / len(lifts)
    assert law.pool_tail(counts, levels) == pytest.approx(expected, abs=1e-12)
    assert law.two_sided(which, np.asarray(sums, dtype=float)) == pytest.approx(own, abs=1e-12)


def _as_fraction(margins: ContingencyTables, level: float) -> Fraction:
    return next(
        abs(margins.fraction(j)) for j in range(len(margins)) if margins.score()[j] == level
    )


def test_one_sided_tails_are_scipys() -> None:
    margins = ContingencyTables(*(np.array([v, v]) for v in (80, 30, 25)), np.array([14, 4]))
    law, which = (
        null_distributions.from_errors(null_distributions.find_distinct(margins)[0], pooled=False),
        null_distributions.find_distinct(margins)[1],
    )
    up = law.one_sided(which, margins.on_sum.astype(float), np.array([1, 1]))
    down = law.one_sided(which, margins.on_sum.astype(float), np.array([-1, -1]))
    assert up == pytest.approx(scipy_stats.hypergeom(80, 25, 30).sf(np.array([13, 3])), rel=1e-10)
    assert down == pytest.approx(
        scipy_stats.hypergeom(80, 25, 30).cdf(np.array([14, 4])), rel=1e-10
    )


def test_the_tail_of_a_rare_event_keeps_its_digits() -> None:
    margins = ContingencyTables(*(np.array([v]) for v in (2000, 600, 500, 400)))
    p = null_distributions.from_errors(margins, pooled=False).two_sided(
        np.array([0]), np.array([400.0])
    )[0]
    up = scipy_stats.hypergeom(2000, 500, 600).sf(399)
    assert p == pytest.approx(up, rel=1e-6)
    assert 0 < p < 1e-100


@pytest.mark.parametrize("shape", ["lognormal", "beta", "mostly zero"])
def test_saddlepoint_tails_are_those_of_draws(shape: str) -> None:
    rng = np.random.default_rng(3)
    values = {
        "lognormal": rng.lognormal(size=200) / 20,
        "beta": rng.beta(0.4, 1.2, 200),
        "mostly zero": np.where(rng.random(200) < 0.7, 0, rng.random(200)),
    }[shape]
    k = 40
    sums = np.sort([values[rng.permutation(200)[:k]].sum() for _ in range(40_000)])
    start, step, pmf = saddlepoint(values, k)
    atoms = start + step * np.arange(len(pmf))
    assert pmf.sum() == pytest.approx(1, abs=1e-9)
    for share in (0.2, 0.05, 0.01):
        for tail, edge in (
            (lambda x: pmf[atoms >= x].sum(), 1 - share),
            (lambda x: pmf[atoms <= x].sum(), share),
        ):
            bar = sums[int(edge * len(sums))]
            assert tail(bar) == pytest.approx(share, rel=0.12)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(4, 60),
    graded=st.booleans(),
    sign=st.sampled_from([-1, 1]),
)
@settings(max_examples=50, deadline=None)
def test_likelihood_ratios_expect_one(seed: int, n: int, graded: bool, sign: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 4 if graded else 2, n)
    k = int(rng.integers(1, n))
    margins = margins_of(values, [k], [0], 3 if graded else 1)
    law = (
        null_distributions.from_values(values, margins)
        if graded
        else null_distributions.from_errors(margins, pooled=False)
    )
    sums = law.start[0] + np.arange(len(law.pmf))
    which, direction = np.zeros(len(sums), dtype=np.intp), np.full(len(sums), sign)
    e = law.likelihood_ratio(which, sums, direction, np.log([1.5, 3, 8]))
    assert (e * law.pmf).sum() == pytest.approx(1, abs=1e-9)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_every_effect_scores_decoys_and_descriptors_alike(seed: int) -> None:
    """The size computed for a descriptor is among the sizes computed for its decoys, to the last
    bit.
    """
    rng = np.random.default_rng(seed)
    n, on, total = 60, int(rng.integers(5, 55)), int(rng.integers(1, 60))
    on_sum = int(rng.hypergeometric(total, n - total, on)) if total < n else on
    margins = ContingencyTables(*(np.array([v]) for v in (n, on, total, on_sum)))
    law = null_distributions.from_errors(margins, pooled=False)
    for effect in EFFECTS:
        score = margins.score(effect)
        own = law.pool_tail(np.ones(1), score, effect)[0]
        above = law.pool_tail(np.ones(1), np.nextafter(score, 9), effect)[0]
        assert own - above >= law.pmf[on_sum - int(law.start[0])] * (1 - 1e-9)


def test_threads_change_no_bit() -> None:
    import numba

    rng = np.random.default_rng(0)
    margins = ContingencyTables(
        np.full(300, 500), rng.integers(50, 450, 300), np.full(300, 180), rng.integers(0, 50, 300)
    )
    law = null_distributions.from_errors(margins, pooled=True)
    levels = np.linspace(0.01, 0.5, 200)
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        alone = law.pool_tail(np.ones(300), levels)
    finally:
        numba.set_num_threads(before)
    assert (alone == law.pool_tail(np.ones(300), levels)).all()


@given(k=st.integers(1, 100), seed=st.integers(0, 999))
def test_the_grid_of_losses_is_found(k: int, seed: int) -> None:
    numerators = np.append(np.random.default_rng(seed).integers(0, k + 1, 30), 1 if k > 1 else 0)
    grid = common_grid(numerators / k)
    assert grid
    assert k % grid == 0 or np.allclose(numerators / k * grid, np.rint(numerators / k * grid))
    assert common_grid(np.array([0.1234567, 0.5])) == 0
    assert common_grid(np.array([0.0, 1.0, np.nan])) == 1


def test_lifts_compare_as_the_decimals_they_are() -> None:
    """0.5 - 0.4 is less than 0.1 in floats, and exactly 0.1 in fact."""
    margins = ContingencyTables(*(np.array([v]) for v in (20, 10, 9, 5)))
    assert float(margins.on_rate[0] - margins.off_rate[0]) < 0.1
    assert margins.reaches(Fraction("0.10"))[0]
    assert not margins.reaches(Fraction("0.1000001"))[0]
    assert margins.fraction(0) == Fraction(1, 10)
