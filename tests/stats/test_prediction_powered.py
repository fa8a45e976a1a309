"""Bets with a grader's help: valid at any time whatever the grades, and fewer labels where good."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray
from scipy.stats import binom, fisher_exact

from groundfault.stats.prediction_powered import (
    GradedBets,
    GradedDifference,
    allow_chance,
    find_interval,
)

Floats = NDArray[np.float64]
ALPHA = 0.1


def draw(rows: int, size: int, rate: float, accuracy: float, seed: int) -> tuple[Floats, Floats]:
    """Labels of which exactly a share are 1, in random order, and grades that are often right."""
    rng = np.random.default_rng(seed)
    labels = np.zeros((rows, size))
    labels[:, : round(rate * size)] = 1.0
    labels = rng.permuted(labels, axis=1)
    right = rng.random((rows, size)) < accuracy
    return labels, np.where(right, labels, 1.0 - labels)


def bet(labels: Floats, grades: Floats, means: Floats, count: int) -> tuple[GradedBets, Floats]:
    """After so many labels, and the largest log wealth on the way."""
    bets = GradedBets.begin(means, labels.shape[1], grades.sum(axis=1), ALPHA)
    best = bets.log_wealth
    for t in range(count):
        bets = bets.update(labels[:, t], grades[:, t])
        best = np.maximum(best, bets.log_wealth)
    return bets, best


WORLDS = [
    (40, 0.3, 0.9),
    (400, 0.05, 0.5),
    (400, 0.3, 0.8),
    (400, 0.5, 0.1),  # a grader who says the opposite
    (400, 0.9, 1.0),
]


@pytest.mark.parametrize(("size", "rate", "accuracy"), WORLDS)
def test_the_true_mean_is_seldom_refuted_at_any_time(
    size: int, rate: float, accuracy: float
) -> None:
    rows = 600
    labels, grades = draw(rows, size, rate, accuracy, seed=1)
    _, best = bet(labels, grades, np.array([rate]), min(size, 150))
    count = int((best[:, 0] >= np.log(1 / ALPHA)).sum())
    assert binom.sf(count - 1, rows, ALPHA) > 0.005


def test_grades_that_follow_the_label_in_part_of_the_group_only_are_valid_too() -> None:
    rows, size = 600, 300
    labels, grades = draw(rows, size, 0.4, 1.0, seed=2)
    grades[:, size // 3 :] = np.random.default_rng(3).random((rows, size - size // 3))
    order = np.random.default_rng(4).permuted(np.tile(np.arange(size), (rows, 1)), axis=1)
    labels, grades = (np.take_along_axis(x, order, axis=1) for x in (labels, grades))
    _, best = bet(labels, grades, np.array([0.4]), 120)
    assert binom.sf((best[:, 0] >= np.log(1 / ALPHA)).sum() - 1, rows, ALPHA) > 0.005


@pytest.mark.parametrize("chooser", ["in turns", "where it failed last"])
def test_equal_groups_seldom_differ_whoever_chooses_what_to_label(chooser: str) -> None:
    rows = 400
    inside, outside = (draw(rows, size, 0.3, 0.8, seed) for size, seed in ((50, 5), (200, 6)))
    sums = (inside[1].sum(axis=1), outside[1].sum(axis=1))
    if chooser == "in turns":
        count = int(_find_differences(inside, outside, sums).sum())
    else:
        count = sum(
            _follow_failures(
                [x[row] for x in inside], [x[row] for x in outside], [s[row] for s in sums]
            )
            for row in range(rows // 4)
        )
        rows //= 4
    assert binom.sf(count - 1, rows, ALPHA) > 0.005


def _find_differences(
    inside: tuple[Floats, Floats], outside: tuple[Floats, Floats], sums: tuple[Floats, Floats]
) -> NDArray[np.bool_]:
    test = GradedDifference.begin((50, 200), sums, ALPHA, allow_no_excess(50))
    best = test.log_e
    for t in range(80):
        labels, grades = outside if t % 2 else inside
        test = test.update(labels[:, t // 2], grades[:, t // 2], inside=t % 2 == 0)
        best = np.maximum(best, test.log_e)
    return best >= np.log(1 / ALPHA)


def allow_no_excess(steps: int) -> tuple[Floats, Floats]:
    """Edge of the null that the mean inside is at most the one outside."""
    ends = np.linspace(0.0, 1.0, steps + 1)
    return ends[1:], ends[:-1]


def _follow_failures(inside: list[Floats], outside: list[Floats], sums: list[Floats]) -> bool:
    """Stays with the group whose last label was a failure."""
    test = GradedDifference.begin((50, 200), (sums[0], sums[1]), ALPHA, allow_no_excess(25))
    counts, group = [0, 0], 0
    for _ in range(50):
        labels, grades = outside if group else inside
        t = counts[group]
        counts[group] += 1
        test = test.update(labels[t], grades[t], inside=group == 0)
        if test.log_e[0] >= np.log(1 / ALPHA):
            return True
        group = group if labels[t] else 1 - group
        group = 1 if counts[0] == 50 else group
    return False


def test_a_good_grader_saves_labels_and_a_bad_one_costs_few() -> None:
    labels, grades = draw(30, 600, 0.3, 0.95, seed=7)
    noise = draw(30, 600, 0.3, 0.5, seed=8)[1]
    widths = {}
    for name, each in {"good": grades, "none": np.zeros_like(labels), "noise": noise}.items():
        low, high = find_interval(
            labels[:, :100], each[:, :100], 600, each.sum(axis=1), ALPHA, steps=100
        )
        widths[name] = float((high - low).mean())
    assert widths["good"] < 0.6 * widths["none"]
    assert widths["noise"] < 1.15 * widths["none"]


def test_wider_than_the_normal_interval_of_prediction_powered_inference_by_a_known_factor() -> None:
    # many labels of a large group, all at once: sequences pay for every look with about twice the
    # width, with the grader's help as without it
    size, count = 20_000, 800
    labels, grades = draw(4, size, 0.3, 0.9, seed=9)
    y, g = labels[:, :count], grades[:, :count]
    share = np.array([np.cov(a, b)[0, 1] / b.var() for a, b in zip(y, g, strict=True)])
    normal = 2 * 1.645 * (y - share[:, None] * g).std(axis=1) / np.sqrt(count)
    low, high = find_interval(y, g, size, grades.sum(axis=1), ALPHA, horizon=count, steps=1000)
    assert ((low <= 0.3) & (high >= 0.3)).all()
    assert ((high - low) < 2 * normal).all()
    assert ((high - low) > normal).all()


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=25),
    st.integers(0, 30),
)
def test_wealth_falls_along_the_means(units: list[tuple[float, float]], more: int) -> None:
    # what is refuted at a mean is refuted below it: a grid of means loses nothing
    labels, grades = (np.array(x)[None] for x in zip(*units, strict=True))
    means = np.linspace(0, 1, 41)
    bets = GradedBets.begin(means, len(units) + more, grades.sum() + more * 0.5, ALPHA)
    for t in range(len(units)):
        bets = bets.update(labels[:, t], grades[:, t])
        assert (np.diff(np.minimum(bets.log_wealth, 1e9), axis=1) <= 1e-9).all()


def test_labels_that_exceed_what_a_mean_allows_refute_it_for_certain() -> None:
    bets = GradedBets.begin([0.2, 0.5], 10, 5.0, ALPHA)
    for _ in range(3):
        bets = bets.update(1.0, 0.5, bet=False)
    assert bets.log_wealth.tolist() == [[np.inf, 0.0]]


@pytest.mark.parametrize(("inside", "outside", "steps"), [(7, 12, 200), (30, 40, 200), (9, 50, 8)])
def test_chance_allows_what_fishers_test_of_all_labels_does_not_reject(
    inside: int, outside: int, steps: int
) -> None:
    above, below = allow_chance((inside, outside), 0.05, steps)
    assert len(above) <= steps
    for x in range(outside + 1):
        edge = above[np.flatnonzero(below <= x / outside + 1e-12)[-1]]
        for k in range(inside + 1):
            p = fisher_exact([[k, inside - k], [x, outside - x]], alternative="greater").pvalue
            if p > 0.05 or steps >= outside:
                assert (k / inside <= edge + 1e-12) == (p > 0.05)


def test_all_labels_leave_no_doubt() -> None:
    labels, grades = draw(1, 30, 0.4, 0.7, seed=10)
    low, high = find_interval(labels, grades, 30, grades.sum(), ALPHA, steps=300)
    assert low[0] <= 0.4 <= high[0] < low[0] + 0.01


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot add up"):
        GradedBets.begin([0.5], 10, 11.0, ALPHA)
    bets = GradedBets.begin([0.5], 1, 0.5, ALPHA).update(1.0, 0.5)
    with pytest.raises(ValueError, match="all 1 units"):
        bets.update(1.0, 0.5)
