"""Agreement coefficients against published examples, other libraries, their own laws and simulated
raters.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from profiles import count_examples
from scipy.stats import binom
from sklearn.metrics import adjusted_rand_score, cohen_kappa_score
from statsmodels.stats import inter_rater

from groundfault.stats.agreement import (
    MISSING,
    MOST_CHANCE,
    Agreement,
    are_copies,
    cohen,
    gwet,
    krippendorff,
    raw,
)
from groundfault_lab.stats.partitions import adjusted_rand, best_jaccard

X = MISSING
MEASURES = {"raw": raw, "alpha": krippendorff, "ac1": gwet}


def of(measure: Any, table: Any, categories: int = 3, **options: Any) -> Agreement:
    return measure(np.asarray(table), categories, np.random.default_rng(0), **options)


def tables(raters: Any, missing: bool = True, categories: int = 3) -> Any:
    one = st.integers(-1 if missing else 0, categories - 1)
    return raters.flatmap(
        lambda r: st.lists(st.lists(one, min_size=r, max_size=r), min_size=1, max_size=12)
    )


# ------------------------------------------------------------------------------- published examples


def test_krippendorffs_worked_examples() -> None:
    """Krippendorff (2011): binary data, nominal data without and with missing ratings."""
    binary = [[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]]
    assert of(krippendorff, np.transpose(binary), 2).value == pytest.approx(0.095, abs=5e-4)
    ben, gerry = (
        [ord(letter) - 97 for letter in value] for value in ("aabbdcccedda", "babbbcccEddd".lower())
    )
    assert of(krippendorff, np.transpose([ben, gerry]), 5).value == pytest.approx(0.692, abs=5e-4)


FOUR = np.transpose(
    [
        [0, 1, 2, 2, 1, 0, 3, 0, 1, X, X, X],
        [0, 1, 2, 2, 1, 1, 3, 0, 1, 4, X, 2],
        [X, 2, 2, 2, 1, 2, 3, 1, 1, 4, 0, X],
        [0, 1, 2, 2, 1, 3, 3, 0, 1, 4, 0, X],
    ]
)


def test_four_raters_with_holes() -> None:
    """The same data in Krippendorff (2011), and as Gwet's irrCAC computes them."""
    assert of(krippendorff, FOUR, 5).value == pytest.approx(0.743, abs=5e-4)
    assert of(gwet, FOUR, 5).value == pytest.approx(0.77544, abs=5e-6)
    assert of(raw, FOUR, 5).value == pytest.approx(0.81818, abs=5e-6)
    assert of(krippendorff, FOUR, 5).items == 11


# ---------------------------------------------------------------------------------- other libraries


@given(tables(st.just(2), missing=False))
@settings(max_examples=count_examples(60))
def test_kappa_is_that_of_scikit_learn_and_statsmodels(table: list[list[int]]) -> None:
    first, second = np.transpose(table)
    kappa = of(cohen, table, resamples=5)
    counts = np.zeros((3, 3))
    np.add.at(counts, (first, second), 1)
    if len({*first, *second}) == 1:
        assert np.isnan(kappa.value)
        assert "one category" in kappa.reason
    else:
        assert kappa.value == pytest.approx(cohen_kappa_score(first, second))
        assert kappa.value == pytest.approx(inter_rater.cohens_kappa(counts).kappa)


@given(tables(st.integers(2, 5), missing=False))
@settings(max_examples=count_examples(60))
def test_alpha_is_fleiss_kappa_corrected_for_small_samples(table: list[list[int]]) -> None:
    """Where nothing is missing, 1 - alpha is (1 - kappa)(1 - 1/n) of n ratings."""
    alpha = of(krippendorff, table, resamples=5)
    if len(np.unique(table)) == 1:
        assert np.isnan(alpha.value)
        return
    fleiss = inter_rater.fleiss_kappa(inter_rater.aggregate_raters(np.asarray(table))[0])
    assert 1 - alpha.value == pytest.approx((1 - fleiss) * (1 - 1 / np.size(table)))


# --------------------------------------------------------------------------------------------- laws


@pytest.mark.parametrize("name", MEASURES)
@given(table=tables(st.integers(2, 4)), order=st.randoms(use_true_random=False))
@settings(max_examples=count_examples(40))
def test_names_of_items_raters_and_categories_do_not_matter(
    name: str, table: list[list[int]], order: Any
) -> None:
    before = of(MEASURES[name], table, resamples=5)
    rows, columns, words = list(range(len(table))), list(range(len(table[0]))), [0, 1, 2]
    for each in (rows, columns, words):
        order.shuffle(each)
    renamed = np.array([*words, X])[np.asarray(table)[rows][:, columns]]
    after = of(MEASURES[name], renamed, resamples=5)
    assert (after.items, after.reason.startswith("no item")) == (
        before.items,
        before.reason.startswith("no item"),
    )
    assert after.value == pytest.approx(before.value, nan_ok=True)


@pytest.mark.parametrize("name", MEASURES)
@given(table=tables(st.integers(2, 4)))
@settings(max_examples=count_examples(40))
def test_a_coefficient_is_at_most_1_and_1_only_where_all_agree(
    name: str, table: list[list[int]]
) -> None:
    result = of(MEASURES[name], table, resamples=50)
    if np.isnan(result.value):
        assert result.reason
        assert np.isnan(result.low)
        return
    alike = all(len(set(row) - {X}) <= 1 for row in table)
    assert result.value <= 1 + 1e-12
    assert (result.value > 1 - 1e-12) == alike
    assert np.isnan(result.low) == bool(result.reason)
    if not result.reason:
        assert result.low <= result.high <= 1 + 1e-12


@given(tables(st.just(2)))
def test_items_that_one_rater_left_out_do_not_change_kappa(table: list[list[int]]) -> None:
    both = [row for row in table if X not in row]
    if both:
        whole, part = of(cohen, table, resamples=5), of(cohen, both, resamples=5)
        assert whole.value == pytest.approx(part.value, nan_ok=True)
        assert whole.items == part.items == len(both)


def test_one_category_that_prevails_ruins_kappa_and_not_ac1() -> None:
    table = [[0, 0]] * 96 + [[0, 1]] * 2 + [[1, 0]] * 2
    assert of(raw, table, 2).value == 0.96
    assert of(cohen, table, 2).value < 0
    assert of(gwet, table, 2).value > 0.95


# --------------------------------------------------------------------------------- degenerate cases


@pytest.mark.parametrize("measure", [raw, cohen, krippendorff, gwet])
@pytest.mark.parametrize(
    "table", [np.empty((0, 2)), [[X, X]], [[0, X], [X, 1]]], ids=["none", "empty", "apart"]
)
def test_without_an_item_in_common_there_is_a_reason(measure: Any, table: Any) -> None:
    result = of(measure, table)
    assert np.isnan([result.value, result.low, result.high]).all()
    assert result.reason == "no item was rated by two raters"
    assert result.items == 0


def test_where_all_ratings_are_alike() -> None:
    table = [[1, 1]] * 9
    assert np.isnan(of(cohen, table).value)
    assert np.isnan(of(krippendorff, table).value)
    for measure in (raw, gwet):
        assert of(measure, table).value == 1
        assert np.isnan(of(measure, table).low)  # nine items do not make sure of the tenth
        assert "no doubt" in of(measure, table).reason
    assert np.isnan(of(gwet, np.zeros((3, 2)), 1).value)


def test_too_few_items_have_no_interval() -> None:
    result = of(krippendorff, [[0, 0], [0, 0], [1, 2]])
    assert not np.isnan(result.value)
    assert np.isnan(result.low)
    assert "too few" in result.reason


@pytest.mark.parametrize("table", [[[0, 3]], [[-2, 0]], [0, 1], [[[0, 1]]]])
def test_what_is_no_table_of_ratings_is_refused(table: Any) -> None:
    with pytest.raises(ValueError, match="ratings are a table"):
        of(raw, table)


def test_kappa_is_of_two() -> None:
    with pytest.raises(ValueError, match="two raters"):
        of(cohen, FOUR, 5)


# ---------------------------------------------------------------------------------------- intervals


def test_the_bootstrap_is_that_over_items() -> None:
    """Resampling patterns by their counts gives the same law as resampling rows."""
    rng = np.random.default_rng(1)
    table = rng.integers(0, 2, (40, 2))
    values = [
        of(krippendorff, table[rng.integers(0, 40, 40)], 2, resamples=2).value for _ in range(3000)
    ]
    result = of(krippendorff, table, 2, resamples=3000)
    assert [result.low, result.high] == pytest.approx(np.quantile(values, [0.025, 0.975]), abs=0.04)
    assert of(krippendorff, table, 2, resamples=3000) == result


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name == "alpha" else pytest.mark.slow)
        for name in [*MEASURES, "kappa"]
    ],
)
def test_intervals_cover_in_a_simulated_world(name: str) -> None:
    """Two raters err one time in ten, 80 items of two categories: 95% intervals hold the truth
    about as often.
    """
    rng = np.random.default_rng(7)
    measure = {**MEASURES, "kappa": cohen}[name]

    def world(size: int) -> Any:
        truth = rng.random(size) < 0.3
        return (truth[:, None] ^ (rng.random((size, 2)) < 0.1)).astype(int)

    value = of(measure, world(400_000), 2, resamples=2).value
    result = [measure(world(80), 2, rng, resamples=300) for _ in range(400)]
    covered = np.mean([each.low <= value <= each.high for each in result])
    assert 0.90 <= covered <= 0.98


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(*[st.integers(0, n)] * 2, st.just(n))))
def test_it_is_a_binomial_tail_and_a_share(counts: tuple[int, int, int]) -> None:
    agreeing, commonest, shared = counts
    tail = binom.sf(agreeing - 1, shared, commonest / shared)
    room = shared - commonest
    expected = room > 0 and agreeing - commonest >= 0.8 * room and tail <= MOST_CHANCE
    assert are_copies(agreeing, shared, commonest) == expected


def test_no_source_without_knowledge_agrees_so_well() -> None:
    # every answer that a source can give, with its chance: 3 of 12 fail, and it says so of each
    # case with a chance of its own
    truth = np.array([1] * 3 + [0] * 9)
    for chances in ([0.25] * 12, [0.9] * 3 + [0.1] * 9, [0.0] * 12):
        agree = np.where(truth == 1, chances, 1 - np.array(chances))
        if agree.sum() > 9:
            continue  # it knows more than how common failing is
        exact = np.zeros(13)
        for hits in product([0, 1], repeat=12):
            exact[sum(hits)] += np.prod(np.where(np.array(hits) == 1, agree, 1 - agree))
        for least in range(10, 13):
            assert exact[least:].sum() <= binom.sf(least - 1, 12, 9 / 12) + 1e-12


def test_copies_with_corrections_are_known_and_two_runs_of_hard_cases_are_not() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        rate = rng.uniform(0.05, 0.95)
        size = int(rng.integers(300, 3000))
        first = rng.random(size) < rate
        common = max(first.sum(), size - first.sum())
        # one label in a hundred of the rarer outcome was corrected
        wrong = rng.random(size) < 0.01 * min(rate, 1 - rate)
        assert are_copies(int((first == (first ^ wrong)).sum()), size, common)
        other = rng.random(size) < rate
        assert not are_copies(int((first == other).sum()), size, common)
        # another run: two cases in three are decided by how hard they are
        again = np.where(rng.random(size) < 2 / 3, first, other)
        assert not are_copies(int((first == again).sum()), size, common)


def test_where_all_is_alike_nothing_is_known() -> None:
    assert not are_copies(5000, 5000, 5000)
    assert not are_copies(0, 0, 0)


@settings(max_examples=20)
@given(st.integers(0, 2**31))
def test_rand_is_scikit_learns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(-1, 4, (2, 60))
    a[0] = b[0] = 0
    both = (a >= 0) & (b >= 0)
    assert adjusted_rand(a, b) == pytest.approx(adjusted_rand_score(a[both], b[both]), abs=1e-12)
    assert np.isnan(adjusted_rand(np.array([-1]), np.array([0])))


def test_jaccard_of_the_cluster_most_alike() -> None:
    a, b = np.array([0, 0, 0, 1, 1, -1]), np.array([1, 1, 0, 0, -1, 1])
    np.testing.assert_allclose(best_jaccard(a, b, 3), [2 / 4, 1 / 3, np.nan])
    np.testing.assert_allclose(best_jaccard(a, np.full(6, -1), 2), [0, 0])
