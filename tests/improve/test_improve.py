"""Improve: selective prediction, flipping and active learning, by hand, by law, and in worlds of
known truth.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import pairwise, permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from groundfault.errors import InputError, PlanError
from groundfault.stats.paired import more_errors, sign_flips
from groundfault_lab.improve import (
    AcquisitionRound,
    Auditor,
    Flipping,
    Learning,
    LeastConfident,
    RandomOrder,
    SelectivePrediction,
    SuspectSlices,
    active_learning,
)
from groundfault_lab.improve.active import _renew_names
from groundfault_lab.slicing import Domino, Edisa
from groundfault_lab.stats.improvement import find_best_threshold, reject, relabel, sum_in_order
from groundfault_lab.stats.paired import sign_test

# ------------------------------------------------------------------------------------------ by hand

# six examples of two classes; the model says class 1 with this probability
SAYS_1 = np.array([0.90, 0.60, 0.55, 0.20, 0.45, 0.95])
TRUTH = np.array([0, 1, 0, 0, 1, 1])  # so the first, third and fifth are wrong
PROBABILITY = np.column_stack([1 - SAYS_1, SAYS_1])
PRONE = np.array([True, False, True, True, False, False])
SUSPICION = np.array([0.9, 0.1, 0.8, 0.5, 0.2, 0.0])


def test_rejection_by_hand() -> None:
    result = reject(SUSPICION, PRONE, PROBABILITY, PROBABILITY.argmax(axis=1) != TRUTH)
    # rejected: wrong, wrong, right; by confidence .55, .55, .60: two equals, both wrong, then one
    # that is right
    assert result.original == pytest.approx(3 / 6)
    np.testing.assert_allclose(result.accuracy, [3 / 5, 3 / 4, 2 / 3], rtol=1e-12)
    np.testing.assert_allclose(result.confidence, [3 / 5, 3 / 4, 2 / 3], rtol=1e-12)
    assert (result.steps, result.proportion, result.c_proportion) == (3, 1.0, 0.0)
    assert result.improvement == pytest.approx(1 / 6)
    assert result.c_improvement == 0
    assert result.p == pytest.approx(
        0.5
    )  # two or three wrong of three drawn from three wrong and three right: 10 of 20
    # only one of the suspected and one of the unsure examples is not both: rows 0, 3 against rows
    # 1, 4
    assert result.c_p == pytest.approx(5 / 6)


def test_relabelling_by_hand() -> None:
    new = np.where(PRONE, 1 - PROBABILITY.argmax(axis=1), PROBABILITY.argmax(axis=1))
    result = relabel(SUSPICION, PRONE, PROBABILITY, TRUTH, new)
    np.testing.assert_allclose(result.accuracy, [4 / 6, 5 / 6, 4 / 6], rtol=1e-12)
    np.testing.assert_allclose(result.confidence, [4 / 6, 5 / 6, 4 / 6], rtol=1e-12)
    assert result.improvement == pytest.approx(1 / 6)
    assert result.proportion == 1.0
    assert result.p == pytest.approx(0.5)  # two mended and one broken
    assert result.c_p == pytest.approx(11 / 16)  # rows 0, 1, 3, 4 differ: two for, two against


def test_relabelling_of_several_classes_by_hand() -> None:
    probability = np.array([[0.5, 0.3, 0.2], [0.4, 0.35, 0.25], [0.1, 0.1, 0.8], [0.2, 0.6, 0.2]])
    label, new = (
        np.array([2, 1, 2, 1]),
        np.array([2, 0, 2, 1]),
    )  # the first is mended; the third and fourth stay
    prone = np.array([True, False, True, True])
    result = relabel(np.array([0.9, 0.0, 0.8, 0.7]), prone, probability, label, new)
    assert result.original == 0.5
    np.testing.assert_allclose(
        result.accuracy, [0.75, 0.75, 0.75]
    )  # steps that change nothing are steps
    # least confident: row 1 to its second class, 1 (mended); row 0 to 1 (still wrong); row 3 to 0
    # (broken)
    np.testing.assert_allclose(result.confidence, [0.75, 0.75, 0.5])
    assert result.c_proportion == pytest.approx(1 / 3)
    assert result.c_improvement == pytest.approx(0.25)


def test_a_printed_row_of_the_paper() -> None:
    """CoLA, BERT: 38 of 1043 found, efficacy 63.16 %, error rate 21.86 %; that is an improvement of
    1.56 points.
    """
    wrong = np.zeros(1043, dtype=bool)
    wrong[:24] = True  # 24 of the 38 found
    wrong[38 : 38 + 228 - 24] = True
    prone = np.arange(1043) < 38
    result = reject(prone.astype(float), prone, np.tile([0.4, 0.6], (1043, 1)), wrong)
    assert 100 * result.improvement == pytest.approx(1.56, abs=0.005)
    assert result.p < 1e-6


def test_nothing_found_changes_nothing() -> None:
    nobody = np.zeros(6, dtype=bool)
    for result in (
        reject(SUSPICION, nobody, PROBABILITY, PROBABILITY.argmax(axis=1) != TRUTH),
        relabel(SUSPICION, nobody, PROBABILITY, TRUTH, PROBABILITY.argmax(axis=1)),
    ):
        assert (result.steps, result.improvement, result.c_improvement, result.p, result.c_p) == (
            0,
            0.0,
            0.0,
            1.0,
            1.0,
        )
        assert math.isnan(result.proportion)
        assert math.isnan(result.c_proportion)


def test_everybody_rejected_leaves_no_accuracy() -> None:
    result = reject(
        SUSPICION, np.ones(6, dtype=bool), PROBABILITY, PROBABILITY.argmax(axis=1) != TRUTH
    )
    assert math.isnan(result.accuracy[-1])
    assert math.isnan(result.improvement)
    assert result.p == 1.0
    assert result.summary() == "every example is error-prone, and with all rejected none is left"


def test_best_threshold_relabels_least_among_equals() -> None:
    confidence = np.array([0.3, 0.5, 0.5, 0.9])
    assert find_best_threshold(confidence, np.array([1.0, 0.0, 0.0, 0.0])) == pytest.approx(0.4)
    assert find_best_threshold(confidence, np.array([1.0, 1.0, -1.0, 1.0])) == math.inf
    assert find_best_threshold(confidence, np.array([-1.0, 1.0, 0.0, 0.0])) == 0.0
    assert find_best_threshold(np.array([]), np.array([])) == 0.0


def test_exact_tests_by_hand() -> None:
    assert sign_test(0, 3) == 1.0
    assert sign_test(3, 0) == pytest.approx(1 / 8)
    assert sign_test(8, 2) == pytest.approx((45 + 10 + 1) / 1024)
    assert more_errors(2, 2, 2, 5) == pytest.approx(1 / 10)
    assert more_errors(0, 0, 0, 0) == 1.0
    np.testing.assert_allclose(sign_flips([[1.0], [1.0], [-1.0]]), [1.0])  # |sum| is 1 or 3
    np.testing.assert_allclose(sign_flips(np.ones((6, 1))), [2 / 64])
    np.testing.assert_allclose(sign_flips(np.zeros((6, 2))), [1.0, 1.0])


def test_sign_flips_step_down_by_enumeration() -> None:
    differences = np.random.default_rng(3).normal([0.9, 0.4, 0.0], 1.0, size=(6, 3))
    length = np.sqrt((differences**2).sum(axis=0))
    flips = [np.abs(np.array(s) @ differences) / length for s in product([1, -1], repeat=6)]
    statistic = np.abs(differences.sum(axis=0)) / length
    order = np.argsort(-statistic)
    expected, last = np.empty(3), 0.0
    for place, h in enumerate(order):
        last = max(
            last, np.mean([flip[order[place:]].max() >= statistic[h] - 1e-12 for flip in flips])
        )
        expected[h] = last
    np.testing.assert_allclose(sign_flips(differences), expected, rtol=1e-12)


def test_many_pairs_are_drawn() -> None:
    strong, none = np.ones(40), np.tile([1.0, -1.0], 20)
    p = sign_flips(np.column_stack([strong, none]))
    assert p[0] == pytest.approx(1 / 65536)
    assert p[1] > 0.5


# ------------------------------------------------------------------------------------------- by law

CASES = st.integers(0, 2**32 - 1)


def draw_case(seed: int, classes: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 30))
    probability = rng.dirichlet(np.ones(classes), n).round(
        rng.integers(1, 6)
    )  # rounded, so that there are equals
    probability[:, 0] += 1 - probability.sum(axis=1)
    prone = rng.random(n) < 0.4
    prone[rng.integers(n)] = False
    return rng.random(n).round(1), prone, np.abs(probability), rng.integers(0, classes, n), rng


@given(CASES)
def test_two_classes_rejected_or_flipped_are_ahead_at_the_same_steps(seed: int) -> None:
    suspicion, prone, probability, label, _ = draw_case(seed, 2)
    classes = probability.argmax(axis=1)
    rejection = reject(suspicion, prone, probability, classes != label)
    new = np.where(prone, 1 - classes, classes)
    flipped = relabel(suspicion, prone, probability, label, new)
    ours, theirs = rejection.accuracy - rejection.confidence, flipped.accuracy - flipped.confidence
    np.testing.assert_array_equal(np.sign(ours.round(9)), np.sign(theirs.round(9)))
    if prone.any():
        assert rejection.c_proportion == flipped.c_proportion


@given(CASES)
def test_improvement_depends_on_counts_alone(seed: int) -> None:
    suspicion, prone, probability, label, _ = draw_case(seed, 3)
    wrong = probability.argmax(axis=1) != label
    result = reject(suspicion, prone, probability, wrong)
    n, m, errors, efficacy = len(wrong), prone.sum(), wrong.sum(), wrong[prone].sum()
    assert result.original + result.improvement == pytest.approx(
        (n - errors - (m - efficacy)) / (n - m)
    )


@given(CASES)
def test_curves_do_not_depend_on_the_order_of_rows(seed: int) -> None:
    suspicion, prone, probability, label, rng = draw_case(seed, 3)
    new = rng.integers(0, 3, len(label))
    order = rng.permutation(len(label))
    wrong = probability.argmax(axis=1) != label
    for one, other in (
        (
            reject(suspicion, prone, probability, wrong),
            reject(suspicion[order], prone[order], probability[order], wrong[order]),
        ),
        (
            relabel(suspicion, prone, probability, label, new),
            relabel(suspicion[order], prone[order], probability[order], label[order], new[order]),
        ),
    ):
        np.testing.assert_allclose(one.accuracy, other.accuracy, atol=1e-12)
        np.testing.assert_allclose(one.confidence, other.confidence, atol=1e-12)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-1, 1)), max_size=6))
def test_equals_are_summed_over_all_their_orders(pairs: list[tuple[int, int]]) -> None:
    score, value = (np.array([pair[i] for pair in pairs], dtype=float) for i in (0, 1))
    orders = [
        o
        for o in permutations(range(len(pairs)))
        if all(score[a] >= score[b] for a, b in pairwise(o))
    ]
    expected = np.mean([np.cumsum(value[list(o)]) for o in orders], axis=0) if pairs else []
    np.testing.assert_allclose(sum_in_order(score, value), expected, atol=1e-12)


@given(CASES)
def test_the_best_threshold_is_best(seed: int) -> None:
    rng = np.random.default_rng(seed)
    confidence, gain = rng.random(12).round(1), rng.integers(-1, 2, 12).astype(float)
    threshold = find_best_threshold(confidence, gain)
    every = [gain[confidence < cut].sum() for cut in [0.0, *np.unique(confidence), math.inf]]
    assert gain[confidence < threshold].sum() == max(every)


def test_sign_flips_keep_their_level() -> None:
    rng = np.random.default_rng(0)
    p = np.array([sign_flips(rng.normal(size=(7, 4))).min() for _ in range(600)])
    assert (p <= 0.05).mean() <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 600)
    assert (p <= 0.5).mean() > 0.3  # and are not idle


# ---------------------------------------------------------------------------- worlds of known truth


@dataclass(frozen=True)
class Examples:
    Z: np.ndarray
    y: np.ndarray
    p: np.ndarray

    def parts(self, cut: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple(
            (self.Z[rows], self.y[rows], self.p[rows]) for rows in (slice(cut), slice(cut, None))
        )  # type: ignore[return-value]


def world(seed: int, *, planted: bool, classes: int = 2, n: int = 900) -> Examples:
    """A fifth of all examples in a corner of the embedding; planted, the model takes each class
    there for the next.

    Confidence knows nothing of errors in either world; not planted, errors are chance.
    """
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 3))
    y = rng.integers(0, classes, n)
    corner = rng.random(n) < 0.2
    Z[corner, 0] += 6
    fails = corner if planted else rng.random(n) < 0.2
    answer = np.where(fails, (y + 1) % classes, y)
    Z[:, 2] = 4 * answer + rng.normal(size=n)  # what the model takes it for shows in the embedding
    p = np.full((n, classes), 0.0)
    p[np.arange(n), answer] = rng.uniform(0.6, 0.9, n)
    p[p == 0] = np.repeat((1 - p.max(axis=1)) / (classes - 1), classes - 1)
    return Examples(Z, y, p)


SLICER = Edisa(n_slices=12, embedding_weight=1.0)


@pytest.mark.parametrize("slicer", [SLICER, Domino(n_slices=12)], ids=["edisa", "domino"])
@pytest.mark.parametrize("classes", [2, 4])
def test_planted_failures_are_rejected_and_mended(slicer: Any, classes: int) -> None:
    training, fresh = world(1, planted=True, classes=classes).parts(600)
    rejection = SelectivePrediction(slicer).fit(*training).measure(*fresh)
    assert rejection.improvement > 0.1
    assert max(rejection.p, rejection.c_p) < 1e-6
    assert rejection.c_proportion > 0.9
    flipping = Flipping(slicer).fit(*training)
    flipped = flipping.measure(*fresh)
    assert flipped.improvement > 0.1
    assert max(flipped.p, flipped.c_p) < 1e-6
    Z, y, p = fresh
    assert (flipping.predict(Z, p) == y).mean() == pytest.approx(flipped.accuracy[-1])


@pytest.mark.parametrize("worlds", [8, pytest.param(25, marks=pytest.mark.slow)])
def test_chance_failures_are_not_claimed_to_be_improved(worlds: int) -> None:
    claims = {"rejected": 0, "rejected, ahead": 0, "flipped": 0, "flipped, ahead": 0}
    for seed in range(worlds):
        training, fresh = world(seed, planted=False, classes=2 + seed % 2, n=500).parts(300)
        slicer = replace(
            SLICER, random_state=seed, min_size=2
        )  # tiny slices: there is always one by chance
        rejection = SelectivePrediction(slicer).fit(*training).measure(*fresh)
        flipped = (
            Flipping(slicer, holdout_share=0.2, random_state=seed).fit(*training).measure(*fresh)
        )
        for key, p in zip(
            claims, (rejection.p, rejection.c_p, flipped.p, flipped.c_p), strict=True
        ):
            claims[key] += p <= 0.05
    assert max(claims.values()) <= 0.05 * worlds + 3 * math.sqrt(0.05 * 0.95 * worlds), claims


def test_selective_prediction_says_in_which_order() -> None:
    training, (Z, _, p) = world(2, planted=True).parts(600)
    selective = SelectivePrediction(SLICER).fit(*training)
    order = selective.order(Z, p)
    assert set(order) == set(np.flatnonzero(selective.slicer_.error_prone(Z, p)))
    assert (np.diff(selective.slicer_.error_probability(Z, p)[order]) <= 0).all()
    assert not hasattr(SLICER, "labels_")  # what was given is not fitted


def test_the_threshold_is_chosen_on_examples_the_slicer_has_not_seen() -> None:
    training, _ = world(3, planted=True, classes=3).parts(600)
    flipping = Flipping(SLICER, holdout_share=0.25).fit(*training)
    assert len(flipping.slicer_.labels_) == 450
    assert set(flipping.majority_.values()) <= {0, 1, 2}
    assert 0 < flipping.threshold_ <= math.inf
    two, _ = world(3, planted=True).parts(600)
    assert len(Flipping(SLICER).fit(*two).slicer_.labels_) == 600


def test_bad_input_of_slices_is_said_plainly() -> None:
    training, (Z, y, p) = world(4, planted=True, classes=3).parts(600)
    with pytest.raises(InputError, match="SelectivePrediction is not fitted"):
        SelectivePrediction(SLICER).measure(Z, y, p)
    with pytest.raises(InputError, match="Flipping is not fitted"):
        Flipping(SLICER).predict(Z, p)
    with pytest.raises(PlanError, match="holdout_share=1"):
        Flipping(SLICER, holdout_share=1).fit(*training)
    with pytest.raises(InputError, match="leave none to choose a threshold on"):
        Flipping(SLICER, holdout_share=0.001).fit(*(part[:100] for part in training))
    with pytest.raises(InputError, match="no prediction is wrong"):
        Flipping(SLICER).fit(Z, p.argmax(axis=1), p)
    flipping = Flipping(SLICER).fit(*training)
    with pytest.raises(InputError, match="fitted with 3"):
        flipping.predict(Z, p[:, :2] / p[:, :2].sum(axis=1, keepdims=True))
    with pytest.raises(InputError, match="y_true is 7"):
        flipping.measure(Z, np.full(len(y), 7), p)


# ---------------------------------------------------------------------------------- active learning


def task(seed: int = 0, n: int = 1000) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Two clusters of a class each, and around each four pockets of the other class: a model
    without one errs there.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    x = rng.normal(size=(n, 2)) * 0.5
    x[:, 0] += 24 * y
    pocket = rng.integers(0, 4, n)
    odd = rng.random(n) < 0.2
    x[odd] += 5 * np.column_stack([np.cos(pocket * np.pi / 2), np.sin(pocket * np.pi / 2)])[odd]
    y[odd] = 1 - y[odd]
    return tuple((x[part], y[part]) for part in np.split(np.arange(n), [300, 600]))


def neighbour(x: np.ndarray, y: np.ndarray, seed: int) -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(1).fit(x, y)


SETTINGS: dict[str, Any] = {"start": 12, "batch": 6, "rounds": 4, "seeds": 2}


def test_curves_by_any_trainer_are_the_same_in_parallel_and_resumed(tmp_path: Path) -> None:
    from joblib import parallel_config
    from sklearn.neighbors import KNeighborsClassifier

    policies = [RandomOrder(), LeastConfident(), SuspectSlices(SLICER), Auditor()]
    so_far: list[Learning] = []
    whole = active_learning(neighbour, *task(), policies, **SETTINGS, progress=so_far.append)
    assert whole.policies == ("random", "confidence", "edisa", "auditor")
    assert [len(learning.runs) for learning in so_far] == list(range(1, 9))
    with parallel_config("threading"):
        assert active_learning(neighbour, *task(), policies, **SETTINGS, jobs=2) == whole
    curves = Learning.from_json(so_far[2].to_json())
    assert active_learning(neighbour, *task(), policies, **SETTINGS, resume=curves) == whole
    assert Learning.from_json(whole.to_json()) == whole
    estimator = active_learning(KNeighborsClassifier(1), *task(), policies, **SETTINGS)
    assert estimator.runs == whole.runs
    starts = {seed: {whole.runs[policy, seed][0] for policy in whole.policies} for seed in range(2)}
    assert all(
        len(start) == 1 for start in starts.values()
    )  # all policies start from the same model
    with pytest.raises(InputError, match="another batch"):
        active_learning(neighbour, *task(), policies, **SETTINGS | {"batch": 5}, resume=whole)
    with pytest.raises(InputError, match="another policy edisa"):
        active_learning(
            neighbour,
            *task(),
            [SuspectSlices(replace(SLICER, delta=0.4))],
            **SETTINGS,
            resume=whole,
        )
    with pytest.raises(InputError, match="another data"):
        active_learning(neighbour, *task(1), policies, **SETTINGS, resume=whole)


def test_slices_and_the_auditor_beat_confidence_where_pockets_are_not_learnt() -> None:
    policies = [
        LeastConfident(),
        SuspectSlices(Edisa(n_slices=12, embedding_weight=1.0)),
        Auditor(),
    ]
    learning = active_learning(neighbour, *task(), policies, start=12, batch=4, rounds=4, seeds=8)
    for comparison in learning.compare():
        assert comparison.gain > 0.02
        assert comparison.p < 0.05
        assert comparison.verdict() == "ahead of confidence"
        assert (comparison.difference[0], comparison.p_round[0]) == (0, 1)
    assert learning.compare("edisa")[0].verdict() == "behind edisa"


def test_policies_that_are_the_same_are_not_told_apart() -> None:
    policies = [LeastConfident(), RandomOrder(), RandomOrder("random again")]
    learning = active_learning(neighbour, *task(), policies, start=20, batch=8, rounds=3, seeds=8)
    (comparison,) = [c for c in learning.compare("random") if c.policy == "random again"]
    assert comparison.p > 0.05
    assert comparison.verdict() == "no difference shown"


def a_round(n: int = 60, batch: int = 5, classes: int = 3) -> AcquisitionRound:
    rng = np.random.default_rng(0)
    p, validation = rng.dirichlet(np.ones(classes), n), rng.dirichlet(np.ones(classes), 200)
    Z = rng.normal(size=(200, 4))
    label = np.where(
        Z[:, 0] > 0.5, (validation.argmax(axis=1) + 1) % classes, validation.argmax(axis=1)
    )
    return AcquisitionRound(rng.normal(size=(n, 4)), p, Z, validation, label, batch)


@pytest.mark.parametrize(
    "policy",
    [
        RandomOrder(),
        LeastConfident(),
        SuspectSlices(SLICER),
        Auditor(),
        Auditor("uniform"),
        Auditor("stratified"),
    ],
    ids=lambda policy: getattr(policy, "policy", policy.name),
)
def test_policies_rank_every_row_once_and_by_seed(policy: Any) -> None:
    orders = [policy.rank(a_round(), np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert sorted(orders[0]) == list(range(60))
    np.testing.assert_array_equal(orders[0], orders[1])


def test_the_auditor_looks_where_failures_were_seen() -> None:
    state = a_round(n=200, batch=20)
    first = Auditor().rank(state, np.random.default_rng(0))[:20]
    assert (
        state.embedding[first, 0].mean() > 0.8
    )  # validation examples fail where the first coordinate is high
    few = Auditor(max_validation=60).rank(state, np.random.default_rng(0))[:20]
    assert state.embedding[few, 0].mean() > 0.5
    assert set(few) != set(first)
    with pytest.raises(PlanError, match="max_validation=1"):
        Auditor(max_validation=1)
    assert (
        LeastConfident().rank(state, np.random.default_rng(0))[0]
        == state.probability.max(axis=1).argmin()
    )


def test_without_errors_to_learn_from_slices_are_chance() -> None:
    state = a_round()
    perfect = replace(state, validation_label=state.validation_probability.argmax(axis=1))
    order = SuspectSlices(SLICER).rank(perfect, np.random.default_rng(5))
    np.testing.assert_array_equal(order, RandomOrder().rank(perfect, np.random.default_rng(5)))


def test_classes_that_were_not_learnt_have_probability_0() -> None:
    parts = task()
    odd = [(x, np.where(np.arange(len(y)) % 50 == 0, "c", np.where(y, "a", "b"))) for x, y in parts]
    learning = active_learning(
        neighbour, *odd, [LeastConfident(), SuspectSlices(SLICER)], **SETTINGS
    )
    assert np.isfinite(learning.curves("edisa")).all()


def test_sparse_examples_need_an_embedding() -> None:
    from scipy.sparse import csr_array
    from sklearn.linear_model import LogisticRegression

    parts = [(csr_array(x), y) for x, y in task()]
    with pytest.raises(InputError, match="sparse; give embed"):
        active_learning(LogisticRegression(), *parts, [LeastConfident()], **SETTINGS)
    learning = active_learning(
        LogisticRegression(), *parts, [LeastConfident()], **SETTINGS, embed=lambda _, x: x.toarray()
    )
    assert learning.curves("confidence").shape == (2, 5)


def test_texts_are_learnt_from_as_they_are() -> None:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.pipeline import make_pipeline

    words = [(["it is good" if label else "it is bad" for label in y], y) for _, y in task()]
    texts = make_pipeline(CountVectorizer(), MultinomialNB())
    with pytest.raises(InputError, match="examples are no numbers; give embed"):
        active_learning(texts, *words, [SuspectSlices(SLICER)], **SETTINGS)
    learning = active_learning(
        texts,
        *words,
        [SuspectSlices(SLICER), Auditor()],
        **SETTINGS,
        embed=lambda model, x: model[0].transform(x).toarray(),
    )
    assert (learning.curves("edisa")[:, -1] == 1).all()


class Certain:
    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        return np.ones((len(x), 1))


class Stubborn:
    name = "stubborn"

    def rank(self, state: AcquisitionRound, rng: np.random.Generator) -> np.ndarray:
        return np.zeros(len(state.embedding), dtype=int)


def test_bad_input_of_active_learning_is_said_plainly() -> None:
    from sklearn.linear_model import Perceptron

    pool, validation, test = task()
    run = lambda *args, **more: active_learning(neighbour, *args, **SETTINGS | more)  # noqa: E731
    with pytest.raises(InputError, match=r"validation: x has shape \(5, 2\) and y \(300,\)"):
        run(pool, (validation[0][:5], validation[1]), test, [RandomOrder()])
    with pytest.raises(InputError, match="nothing to learn"):
        run(*((x, np.zeros(len(y))) for x, y in (pool, validation, test)), [RandomOrder()])
    with pytest.raises(PlanError, match="need 1012 examples, and the pool has 300"):
        run(pool, validation, test, [RandomOrder()], batch=250)
    with pytest.raises(PlanError, match="batch must be a whole number"):
        run(pool, validation, test, [RandomOrder()], batch=0)
    with pytest.raises(PlanError, match=r"names of their own.*random, random"):
        run(pool, validation, test, [RandomOrder(), RandomOrder()])
    with pytest.raises(InputError, match="stubborn must rank the 288 rows"):
        run(pool, validation, test, [Stubborn()])
    with pytest.raises(
        PlanError, match=r"with seed \d the start=1 examples are all of class [01]; raise start"
    ):
        run(pool, validation, test, [RandomOrder()], start=1)
    with pytest.raises(InputError, match="Perceptron has no predict_proba"):
        active_learning(Perceptron(), pool, validation, test, [RandomOrder()], **SETTINGS)
    with pytest.raises(InputError, match="predict_proba gave shape"):
        active_learning(
            lambda x, y, seed: Certain(), pool, validation, test, [RandomOrder()], **SETTINGS
        )
    learning = run(pool, validation, test, [RandomOrder(), LeastConfident()])
    with pytest.raises(PlanError, match="no policy 'domino' was run; there are random, confidence"):
        learning.compare("domino")
    part = replace(
        learning, runs={key: curve for key, curve in learning.runs.items() if key != ("random", 1)}
    )
    with pytest.raises(PlanError, match="same seeds"):
        part.compare()
    for text in (
        "{",
        "[]",
        json.dumps({"groundfault_learning": 1, "settings": {"rounds": 3}, "runs": [{}]}),
    ):
        with pytest.raises(InputError, match="not learning curves"):
            Learning.from_json(text)


def test_summaries_say_what_is_not_shown() -> None:
    nothing = reject(
        SUSPICION, np.zeros(6, dtype=bool), PROBABILITY, PROBABILITY.argmax(axis=1) != TRUTH
    )
    assert nothing.summary() == "no example is error-prone, so none was rejected"
    training, fresh = world(1, planted=True).parts(600)
    good = SelectivePrediction(SLICER).fit(*training).measure(*fresh).summary()
    assert "examples rejected: accuracy 8" in good
    assert "not shown" not in good
    few = reject(SUSPICION, PRONE, PROBABILITY, PROBABILITY.argmax(axis=1) != TRUTH).summary()
    assert few == (
        "3 examples rejected: accuracy 50.0% before, 66.7% after, 66.7% by confidence; not shown "
        "to be better than chance (p = 0.5), not shown to be better than confidence (p = 0.83)"
    )


# ---------------------------------------------------------------------------------------- the study


@pytest.mark.slow
def test_the_study_keeps_what_is_done_and_says_what_it_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from rich.console import Console

    from groundfault.render.terminal import show
    from groundfault_studies.improve import act_tables, learn_curves, learning_tasks, study

    keep = tmp_path / "improve.rows.jsonl"
    messages: list[str] = []
    tables = study(tmp_path, seeds=1, keep=keep, progress=messages.append)
    assert tables.lacking
    eleven, left_out, four, twelve, relabelled, five, six, labelled = tables.tables
    sizes = [4 * 4 + 2, 4 * 3, 4 * 2, 4 * 5 + 2, 4 * 3, 4 * 2, 7, 2]
    assert [len(table.rows) for table in tables.tables] == sizes
    rows = {row.label: row.here for table in (eleven, twelve) for row in table.rows}
    digits = rows["digits, logistic: edisa"]
    assert digits["improvement"] > 0.1
    assert digits["verdict"] == "not shown; not shown"  # one seed shows nothing
    # one training has a difference and no interval
    for table, beside in ((eleven, left_out), (twelve, relabelled)):
        by_label = {row.label: row.here for row in table.rows}
        gain = by_label["digits, logistic: fusion"]["improvement"]
        other = by_label["digits, logistic: domino"]["improvement"]
        here = beside.rows[0].here
        assert here["fusion"] == pytest.approx(gain)
        assert here["domino"] == f"{gain - other:+.3f}"
    last = four.rows[0].here["1.0"]
    row_rejected = next(row for row in eleven.rows if row.label == "digits, logistic: edisa").here[
        "improvement"
    ]
    assert last - four.rows[0].here["0"] == pytest.approx(row_rejected)
    assert five.rows[1].label == "digits, logistic: confidence"
    ours = ("edisa", "edisa, our default", "domino", "fusion", "auditor")
    assert [row.label for row in six.rows] == ["confidence", *ours, "random"]
    assert "active learning, digits: 7 of 7 runs" in messages
    after = {row.label: row.here["280"] for row in six.rows}
    assert labelled.rows[1].label == "digits: last round"
    last_round = labelled.rows[1].here
    for rival in ("edisa", "domino", "confidence", "random"):
        assert last_round[rival] == f"{after['fusion'] - after[rival]:+.3f}"
    tables.write(tmp_path)
    assert "85.48%" in (tmp_path / "improve.md").read_text()
    show(tables.make_page(None), Console(width=80))
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80

    (task,) = learning_tasks(tmp_path / "real")
    again: list[str] = []
    learn_curves(task, 1, 1, keep, again.append)
    assert not again  # all of it was kept
    folder = tmp_path / "real"
    assert act_tables(folder, [0], keep=keep, progress=again.append) == tables.tables[:-2]
    assert not again
    keep.write_text("{}\n")
    with pytest.raises(InputError, match=r"improve.rows.jsonl, line 1: not learning curves"):
        learn_curves(task, 1, 1, keep, again.append)


def test_questions_are_learnt_too(shared: Path) -> None:
    from groundfault_studies.improve import learning_tasks

    digits, questions, passed = learning_tasks(shared / "real")
    assert [len(y) for _, y in digits.parts] == [600, 500, 697]
    assert [len(y) for _, y in passed.parts] == [600, 300, 419]
    assert set(passed.parts[0][1]) == {"0", "1"}
    assert [len(y) for _, y in questions.parts] == [1500, 1000, 1500]
    assert len(set(questions.parts[0][1])) > 20


def test_the_room_is_public() -> None:
    assert import_module("groundfault_lab.improve").Flipping is Flipping


def test_a_slicer_that_computes_both_at_once_gives_the_same() -> None:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(400, 3))
    y = rng.integers(0, 2, 400)
    p = np.where((y == 1) ^ (Z[:, 0] > 1), 0.9, 0.1)
    p = np.column_stack([1 - p, p])
    slicer = Edisa(n_slices=6, embedding_weight=1.0).fit(Z, y, p)
    error_prone, suspicion = slicer.suspect(Z, p)
    assert (error_prone == slicer.error_prone(Z, p)).all()
    assert (suspicion == slicer.error_probability(Z, p)).all()


def test_curves_of_an_auditor_of_0_1_0_can_be_resumed() -> None:
    before = {"policy auditor": "Auditor(policy='uniform', shown=5, name='auditor')"}
    now = repr(Auditor("uniform", max_validation=5))
    assert _renew_names(before) == {"policy auditor": now}


def test_curves_of_0_1_0_resume_under_the_new_names_of_policies() -> None:
    from sklearn.naive_bayes import GaussianNB

    x = np.random.default_rng(0).normal(size=(90, 2))
    y = (x[:, 0] > 0).astype(int)
    parts = [(x[i : i + 30], y[i : i + 30]) for i in (0, 30, 60)]
    numbers = {"start": 10, "batch": 5, "rounds": 1}
    once = active_learning(GaussianNB(), *parts, [RandomOrder()], **numbers, seeds=1)
    assert "policy random" in once.settings
    old = Learning(once.settings | {"policy random": "Random(name='random')"}, once.runs)
    again = active_learning(GaussianNB(), *parts, [RandomOrder()], **numbers, seeds=2, resume=old)
    assert again.runs["random", 0] == once.runs["random", 0]


def test_stored_curves_of_0_1_0_are_read_and_written_as_they_were() -> None:
    stored = Path(__file__).resolve().parents[1] / "fixtures" / "v0_1_0" / "frozen"
    text = (stored / "learning.json").read_text(encoding="utf-8")
    assert Learning.from_json(text).to_json() == text.rstrip("\n")
