"""Intervals of effects: one oracle, and coverage by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest
from statsmodels.stats.proportion import confint_proportions_2indep

from groundfault.stats import intervals
from groundfault.stats.intervals import wilson


def test_newcombe_is_statsmodels() -> None:
    for a, n, b, m in ((26, 40, 4, 40), (0, 12, 5, 30), (7, 7, 0, 9), (50, 300, 60, 400)):
        low, high = intervals.newcombe(*(np.array([float(v)]) for v in (a, n, b, m)), 0.9)
        expected = confint_proportions_2indep(a, n, b, m, method="newcomb", alpha=0.1)
        assert (low[0], high[0]) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kind", ["welch", "newcombe", "risk_ratio", "odds_ratio"])
def test_intervals_cover_as_often_as_they_say(kind: str) -> None:
    rng = np.random.default_rng(1)
    count, on, off = 4000, 60, 90
    if kind == "welch":
        a, b = rng.beta(2, 3, (count, on)), rng.beta(1, 4, (count, off))
        low, high = intervals.welch(
            *((np.full(count, float(x.shape[1])), x.sum(1), (x**2).sum(1)) for x in (a, b)), 0.9
        )
        truth = 0.4 - 0.2
    else:
        p, q = 0.35, 0.2
        a, b = rng.binomial(on, p, count).astype(float), rng.binomial(off, q, count).astype(float)
        sizes = np.full(count, float(on)), np.full(count, float(off))
        if kind == "newcombe":
            low, high = intervals.newcombe(a, sizes[0], b, sizes[1], 0.9)
            truth = p - q
        else:
            low, high = intervals.log_ratio(kind, a, sizes[0], b, sizes[1], 0.9)
            truth = p / q if kind == "risk_ratio" else p / (1 - p) / (q / (1 - q))
    assert 0.885 < ((low <= truth) & (truth <= high)).mean() < 0.93


@pytest.mark.parametrize(("x", "n"), [(0, 30), (7, 10), (11, 11), (3, 200)])
def test_wilson_is_scipys(x: int, n: int) -> None:
    ends = binomtest(x, n).proportion_ci(0.95, method="wilson")
    low, high = wilson([x], [n])
    assert (low[0], high[0]) == pytest.approx((ends.low, ends.high), abs=1e-12)


def test_clopper_pearson_is_scipys() -> None:
    for x, n in ((0, 7), (3, 10), (10, 10), (1, 1)):
        low, high = intervals.clopper_pearson(x, n, 0.9)
        expected = binomtest(x, n).proportion_ci(0.9, method="exact")
        assert (float(low), float(high)) == pytest.approx((expected.low, expected.high), abs=1e-9)
    low, high = intervals.clopper_pearson(0, 0)
    assert (float(low), float(high)) == (0.0, 1.0)


def test_rogan_gladen_gives_the_prevalence_back_and_covers_it() -> None:
    # an oracle without samples: what a grader of these rates flags of 30 %
    value, low, high = intervals.rogan_gladen(345, 1000, (800, 1000), (850, 1000))
    assert value == pytest.approx(0.3)
    assert low < 0.3 < high
    assert intervals.rogan_gladen(5, 10, (3, 6), (3, 6))[0] is None
    rng = np.random.default_rng(0)
    covered = 0
    for truth, tpr, tnr in [(0.3, 0.8, 0.9), (0.1, 0.9, 0.85)] * 500:
        labels = rng.random(60) < truth
        grades = np.where(labels, rng.random(60) < tpr, rng.random(60) > tnr)
        flagged = rng.binomial(1000, truth * tpr + (1 - truth) * (1 - tnr))
        _, low, high = intervals.rogan_gladen(
            int(flagged),
            1000,
            (int((labels & grades).sum()), int(labels.sum())),
            (int((~labels & ~grades).sum()), int((~labels).sum())),
        )
        covered += low <= truth <= high
    assert covered / 1000 > 0.93


def test_the_limit_of_unseen_kinds_holds_where_kinds_are_many_and_rare() -> None:
    rng = np.random.default_rng(1)
    above = {20: 0, 60: 0}
    estimates: list[float] = []
    for power in (0.6, 1.5):
        chances = np.arange(1, 61) ** -power
        chances /= chances.sum()
        for n in above:
            for _ in range(500):
                drawn = rng.choice(60, n, p=chances)
                unseen = 1 - chances[np.unique(drawn)].sum()
                found = intervals.estimate_unseen([[str(kind)] for kind in drawn])
                above[n] += unseen > found.high
                estimates.append(found.value - unseen)
    assert max(above.values()) / 1000 < 0.05 + 3 * (0.05 * 0.95 / 1000) ** 0.5
    assert abs(np.mean(estimates)) < 0.01
    nothing = intervals.estimate_unseen([])
    assert (nothing.value, nothing.high) == (1.0, 1.0)
