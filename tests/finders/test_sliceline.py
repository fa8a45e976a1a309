"""SliceLine: exact against brute force and golden lists, sound where bounded, honest where
calibrated.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations
from math import fsum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given, settings, strategies as st
from profiles import count_examples

import groundfault
from groundfault import finders
from groundfault.core.evidence import Evidence
from groundfault.errors import InputError, PlanError
from groundfault_lab.slicing.levels import Levels, Range, spell_levels
from groundfault_lab.slicing.sliceline import SliceLine
from groundfault_lab.stats import slice_search
from groundfault_lab.stats.slice_search import replay, search
from groundfault_lab.stats.slices import Errors, Objective, Predicates
from groundfault_lab.testing import check_finder

GOLDEN = ("bc10", "bc30", "diabetes", "janus_like_160", "syn5k", "syn50k_skew")


# the truth: every conjunction, one by one


def brute(
    X: np.ndarray, errors: Iterable[float], finder: SliceLine, ties: str = "keep"
) -> list[tuple[Any, ...]]:
    """Every slice there is, ranked as declared: (predicates, exact score, size, error sum, largest
    error).
    """
    errors = np.asarray(errors, dtype=float)
    n, total, alpha = len(X), Fraction(fsum(errors)), Fraction(str(finder.alpha))
    slices = []
    for count in range(1, min(finder.max_level, X.shape[1]) + 1):
        for columns in combinations(range(X.shape[1]), count):
            for values in np.unique(X[:, columns], axis=0).tolist():
                on = [X[:, f] == v for f, v in zip(columns, values, strict=True)]
                rows = np.logical_and.reduce(on)
                if rows.sum() < finder.min_support or any(o.all() for o in on):
                    continue
                size, error = int(rows.sum()), fsum(errors[rows])
                score = alpha * (Fraction(error) * n / (size * total) - 1) - (1 - alpha) * (
                    Fraction(n, size) - 1
                )
                if score > 0:
                    predicate_values = dict(zip(columns, values, strict=True))
                    slices.append((predicate_values, score, size, error, errors[rows].max()))
    slices.sort(key=lambda s: (-s[1], -s[2], len(s[0]), list(s[0].items())))
    if ties == "keep" and len(slices) > finder.k:
        return [s for s in slices if s[1] >= slices[finder.k - 1][1]]
    return slices[: finder.k]


def list_slices(finder: SliceLine) -> list[tuple[Any, ...]]:
    return [(s.predicates, s.score, s.size, s.error_sum, s.max_error) for s in finder.slices_]


def list_expected(truth: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [(predicates, float(score), *rest) for predicates, score, *rest in truth]


KINDS = {
    "binary": st.sampled_from([0.0, 1.0]),
    "grades": st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    "counts": st.integers(0, 5).map(float),
    "real": st.floats(0, 100, allow_subnormal=False),
    "wide": st.floats(-12, 6).map(lambda x: 10.0**x),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, SliceLine]:
    n, m = draw(st.integers(4, 40)), draw(st.integers(1, 5))
    top = draw(st.integers(1, 3))
    X = np.array(
        draw(
            st.lists(st.lists(st.integers(0, top), min_size=m, max_size=m), min_size=n, max_size=n)
        )
    )
    kind = draw(st.sampled_from(sorted(KINDS)))
    errors = np.array(draw(st.lists(KINDS[kind], min_size=n, max_size=n)))
    if errors.min() == errors.max():
        errors[0] = errors[0] + 1.0
    finder = SliceLine(
        k=draw(st.integers(1, 12)),
        alpha=draw(st.sampled_from([0.3, 0.5, 0.75, 0.95, 1.0])),
        max_level=draw(st.integers(1, 5)),
        min_support=draw(st.integers(1, 4)),
        ties=draw(st.sampled_from(["keep", "cut"])),
    )
    return X, errors, finder


@given(tables())
@settings(max_examples=count_examples(250, fast=60), deadline=None)
def test_every_slice_is_the_one_that_brute_force_finds(
    drawn: tuple[np.ndarray, np.ndarray, SliceLine],
):
    X, errors, finder = drawn
    assert list_slices(finder.fit(X, errors)) == list_expected(
        brute(X, errors, finder, finder.ties)
    )
    assert finder.missed_ == -np.inf


@pytest.mark.parametrize("errors", ["binary", "real"])
def test_wide_and_deep_tables_too(errors: str):
    rng = np.random.default_rng(7)
    X = rng.integers(0, 2, (70, 9))
    loss = (rng.random(70) < 0.3).astype(float) if errors == "binary" else rng.gamma(1.0, 1.0, 70)
    for alpha in (0.9, 1.0):
        finder = SliceLine(k=25, alpha=alpha, max_level=6, min_support=2).fit(X, loss)
        assert list_slices(finder) == list_expected(brute(X, loss, finder))


@given(
    st.integers(1, 60),
    st.integers(1, 40),
    st.integers(1, 9),
    st.sampled_from([0.1, 0.3, 0.5, 0.9, 1.0]),
    st.data(),
)
@settings(max_examples=count_examples(200, fast=60), deadline=None)
def test_the_bound_is_the_best_that_a_part_can_score(
    size: int, error: int, top: int, alpha: float, data: st.DataObject
):
    n, least = size + data.draw(st.integers(0, 60)), data.draw(st.integers(1, size))
    total = error + data.draw(st.integers(0, 60))
    objective = Objective(n, float(total), total, top, alpha, least, 0.0)
    bound = objective.bound(*(np.array([x]) for x in (size, error, top)))[0]
    rows = np.unique(np.append(np.arange(least, size + 1.0), np.clip(error / top, least, size)))
    best = max(objective.score(rows, np.minimum(rows * top, error)))
    assert bound == pytest.approx(best, abs=1e-9)


def test_more_predicates_than_rows_do_not_break_the_bound():
    """The published bound takes the number of predicates for the number of rows, and loses slices
    here.
    """
    rng = np.random.default_rng(1)
    X = rng.integers(0, 4, (50, 30))
    errors = (rng.random(50) < 0.2).astype(float)
    finder = SliceLine(k=10, max_level=2, min_support=3).fit(X, errors)
    assert list_slices(finder) == list_expected(brute(X, errors, finder))


def test_scores_that_tie_as_fractions_tie():
    """At alpha = 0.95 and 38 errors, 3 errors in 10 rows score as 4 in 20, whatever rounding makes
    of it.
    """
    X, errors = np.zeros((400, 2), dtype=int), np.zeros(400)
    X[:10, 0], X[10:30, 1] = 1, 1
    errors[:3], errors[10:14], errors[30:61] = 1, 1, 1
    finder = SliceLine(k=1, max_level=1).fit(X, errors)
    assert [s.predicates for s in finder.slices_] == [{1: 1}, {0: 1}], "both, the larger first"
    assert list_slices(finder) == list_expected(brute(X, errors, finder))
    finder = SliceLine(k=1, max_level=1, ties="cut").fit(X, errors)
    assert [s.predicates for s in finder.slices_] == [{1: 1}]


# golden lists


@pytest.fixture(scope="session")
def golden(shared: Path) -> Any:
    folder = shared / "sliceline_public"
    spec = importlib.util.spec_from_file_location("gen_slice", folder / "gen_slice.py")
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    cases = json.loads((folder / "golden.json").read_text())

    def load(name: str) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        case = cases[name]
        if (folder / f"{name}.npz").exists():
            arrays = np.load(folder / f"{name}.npz")
            X, errors = arrays["X"], arrays["errors"]
        else:
            g = case["generator"]
            X, errors = generator.synth(
                g["seed"],
                g["n"],
                g["m"],
                g["dom"],
                g["planted"],
                base=g["base"],
                skew=g.get("skew", 0.0),
            )
        assert int(X.sum()) == case["checksum_X"]
        assert errors.sum() == pytest.approx(case["checksum_e"])
        return X, errors, case

    return load


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_lists(golden: Any, name: str):
    X, errors, case = golden(name)
    p = case["params"]
    finder = SliceLine(k=p["k"], alpha=p["alpha"], max_level=p["max_l"], min_support=p["sig"]).fit(
        X, errors
    )
    assert len(finder.slices_) == len(case["exact"])
    for mine, gold in zip(finder.slices_, case["exact"], strict=True):
        assert mine.predicates == dict(map(tuple, gold["conj"]))
        assert mine.score == pytest.approx(gold["score"], abs=1e-9)
        assert mine.size == gold["size"]
        assert mine.error_sum == pytest.approx(gold["err_sum"], abs=1e-9)
        assert mine.max_error == pytest.approx(gold["max_err"], abs=1e-9)


# what must not change the answer


def noisy(
    n: int = 3000, m: int = 8, errors: str = "binary", seed: int = 3
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n, m), dtype=np.int8)
    bad = (X[:, 0] == 1) & (X[:, 3] == 2)
    if errors == "binary":
        return X, (rng.random(n) < np.where(bad, 0.6, 0.1)).astype(float)
    return X, rng.gamma(1.0, np.where(bad, 0.6, 0.1))


@pytest.mark.parametrize("errors", ["binary", "real"])
def test_threads_and_batches_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch, errors: str):
    X, loss = noisy(errors=errors)
    plain = SliceLine(max_level=4).fit(X, loss)
    monkeypatch.setattr(slice_search, "_WORTH_THREADS", 0)
    monkeypatch.setattr(slice_search, "_JOINED", 50)
    monkeypatch.setattr(slice_search, "_FIRST_BATCH", 7)
    monkeypatch.setattr(slice_search, "_LAST_BATCH", 100)
    assert SliceLine(max_level=4).fit(X, loss).slices_ == plain.slices_


@given(st.permutations(range(40)), st.integers(0, 20))
@settings(max_examples=30, deadline=None)
def test_order_of_rows_and_scale_of_errors_do_not_matter(order: list[int], power: int):
    X, loss = noisy(40, 4, "real", seed=5)
    first = SliceLine(min_support=3).fit(X, loss)
    again = SliceLine(min_support=3).fit(X[order], loss[order] * 2.0**power)
    assert [s.predicates for s in first.slices_] == [s.predicates for s in again.slices_]
    assert [s.score for s in first.slices_] == pytest.approx(
        [s.score for s in again.slices_], abs=1e-12
    )


def test_the_type_of_numbers_does_not_matter():
    X, loss = noisy(500, 5)
    plain = SliceLine().fit(X, loss)
    for other in (
        X.astype(np.int64),
        X.astype(np.uint16),
        np.asfortranarray(X),
        pl.DataFrame(X.astype(int)).to_numpy(),
    ):
        assert SliceLine().fit(other, loss.astype(bool)).slices_ == plain.slices_
    frame = pl.DataFrame({str(f): X[:, f] for f in range(5)})
    for table in (frame, frame.lazy(), frame.to_pandas(), frame.to_dict()):
        columns = SliceLine().fit(table, loss).slices_
        assert [(s.score, {int(c): v for c, v in s.predicates.items()}) for s in columns] == [
            (s.score, s.predicates) for s in plain.slices_
        ]


def test_numbers_far_apart_and_negative_are_levels():
    X = np.array([[-5, 10**12], [-5, 0], [7, 10**12], [7, 0]] * 10)
    slices = SliceLine(k=1).fit(X, (X[:, 0] == -5) & (X[:, 1] > 0)).slices_[0]
    assert slices.predicates == {0: -5, 1: 10**12}
    small = np.array([[-128, 127], [127, -128]] * 10, dtype=np.int8)
    assert SliceLine(k=1, ties="cut").fit(small, small[:, 0] < 0).slices_[0].predicates == {0: -128}
    truth = np.array([[True, False], [False, True], [True, True]] * 20)
    assert SliceLine(k=1).fit(truth, truth.all(axis=1)).slices_[0].predicates == {0: True, 1: True}


# bounded memory


@pytest.mark.parametrize("errors", ["binary", "real"])
@pytest.mark.parametrize("most", [1, 3, 10, 20])
def test_what_bounded_memory_missed_is_told(
    monkeypatch: pytest.MonkeyPatch, errors: str, most: int
):
    X, loss = noisy(400, 7, errors)
    full = SliceLine(k=20, max_level=4, alpha=0.95).fit(X, loss)
    with pytest.warns(UserWarning, match=f"max_parents={most}: .* not extended; a slice missed"):
        bounded = SliceLine(k=20, max_level=4, alpha=0.95, max_parents=most).fit(X, loss)
    assert np.isfinite(bounded.missed_)
    certain = [s.predicates for s in full.slices_ if s.score > bounded.missed_ + 1e-9]
    assert [s.predicates for s in bounded.slices_][: len(certain)] == certain
    assert all(level.extended <= most for level in bounded.levels_)
    for name in (
        "_JOINED",
        "_FIRST_BATCH",
        "_LAST_BATCH",
    ):  # what is held meanwhile is cut back more often
        monkeypatch.setattr(slice_search, name, 7)
    with pytest.warns(UserWarning, match="not extended"):
        again = SliceLine(k=20, max_level=4, alpha=0.95, max_parents=most).fit(X, loss)
    assert (again.slices_, again.missed_) == (
        bounded.slices_,
        pytest.approx(bounded.missed_, abs=1e-9),
    )


@pytest.mark.slow
def test_deep_searches_end_and_say_what_they_may_have_missed():
    rng = np.random.default_rng(0)
    X, loss = rng.integers(0, 5, (5_000, 45)), rng.random(5_000) < 0.2
    with pytest.warns(UserWarning, match="3 predicates were not extended; a slice missed .* most"):
        finder = SliceLine(alpha=1, max_level=4).fit(X, loss)
    assert finder.levels_[2].extended == 1_000_000
    assert np.isfinite(finder.missed_)


def test_a_bound_that_does_not_bind_says_nothing(recwarn: pytest.WarningsRecorder):
    X, loss = noisy(400, 4)
    bounded = SliceLine(max_parents=100_000).fit(X, loss)
    assert bounded.slices_ == SliceLine().fit(X, loss).slices_
    assert bounded.missed_ == -np.inf
    assert not recwarn


# calibration


@pytest.mark.parametrize("errors", ["binary", "grades", "real"])
def test_a_replay_is_the_search_on_permuted_errors(errors: str):
    X, loss = noisy(300, 6, "real" if errors == "real" else "binary")
    if errors == "grades":
        loss = np.random.default_rng(0).integers(0, 5, 300) / 4
    finder = SliceLine(permutations=12, seed=9, alpha=0.99).fit(X, loss)
    assert finder.null_.min() > 0
    for stream, best in zip(np.random.default_rng(9).spawn(12), finder.null_, strict=True):
        errors_dealt = np.empty(300)
        errors_dealt[stream.permutation(300)] = loss
        once = SliceLine(k=1, alpha=0.99).fit(X, errors_dealt).slices_
        assert best == pytest.approx(once[0].score, abs=1e-9)
    expected_p = [(1 + np.sum(finder.null_ >= s.score - 1e-9)) / 13 for s in finder.slices_]
    assert [s.p for s in finder.slices_] == expected_p
    assert SliceLine(alpha=0.99).fit(X, loss).slices_[0].p is None


def test_calibrated_p_of_mined_slices_is_honest_without_any_cause():
    """In 80 tables of noise the best slice has p <= 1/20 about 4 times; a plain test of it would
    reject in most.
    """
    rng = np.random.default_rng(20)
    small = 0
    for _ in range(80):
        X, loss = rng.integers(0, 3, (60, 4)), (rng.random(60) < 0.3).astype(float)
        slices = SliceLine(
            k=1, max_level=2, min_support=4, permutations=19, seed=int(rng.integers(1e9))
        ).fit(X, loss)
        small += bool(slices.slices_) and slices.slices_[0].p <= 0.05
    assert 1 <= small <= 10, "within 3.2 standard errors of 80 / 20"


def test_a_planted_slice_has_the_least_p():
    X, loss = noisy(600, 6)
    finder = SliceLine(permutations=99).fit(X, loss)
    assert finder.slices_[0].predicates == {0: 1, 3: 2}
    assert finder.slices_[0].p == 0.01


# groups


def test_groups_hold_parts_wholes_and_equals():
    X, loss = noisy(2000, 6)
    X = np.column_stack([X, X[:, 0]])  # a copy: the same rows under another name
    finder = SliceLine(k=30).fit(X, loss)
    leaders = {s.group: s for s in reversed(finder.slices_)}
    assert sorted(leaders) == list(range(len(leaders)))
    best = set(leaders[0].predicates.items())
    assert {(0, 1), (3, 2)} <= {*best, (0, 1) if (6, 1) in best else (3, 2)}
    copies = [
        s
        for s in finder.slices_
        if s.predicates in ({0: 1, 3: 2}, {3: 2, 6: 1}, {0: 1, 3: 2, 6: 1})
    ]
    assert {s.group for s in copies} == {0}
    for slices in finder.slices_:
        terms, leader = set(slices.predicates.items()), leaders[slices.group]
        same = (slices.size, slices.error_sum) == (leader.size, leader.error_sum)
        assert (
            terms <= set(leader.predicates.items())
            or terms >= set(leader.predicates.items())
            or same
        )


# columns of any kind


def people(n: int = 400, seed: int = 2) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 900, n)
    return pl.DataFrame(
        {
            "words": words,
            "ratio": [None if i % 11 == 0 else float(x) for i, x in enumerate(rng.normal(size=n))],
            "lang": [["de", "en", "it's", None][i] for i in rng.integers(0, 4, n)],
            "hard": rng.random(n) < 0.4,
            "few": rng.integers(1, 4, n),
            "zeros": np.where(rng.random(n) < 0.9, 0.0, rng.random(n)),
            "kind": pl.Series([["a", "b"][i] for i in rng.integers(0, 2, n)], dtype=pl.Categorical),
            "single": pl.Series(rng.integers(0, 3, n) / 10, dtype=pl.Float32),
        }
    )


@pytest.mark.parametrize("missing", ["value", "unmatched"])
@pytest.mark.parametrize("seed", range(4))
def test_every_rule_is_true_for_the_rows_of_its_slice(missing: str, seed: int):
    frame = people(seed=seed)
    loss = np.random.default_rng(seed).random(400)
    slices = (
        SliceLine(k=400, alpha=1.0, max_level=2, missing=missing, min_support=3)
        .fit(frame, loss)
        .slices_
    )
    assert len(slices) >= 100
    for entry in slices:
        on = frame.select(
            groundfault.Candidate("c", entry.rule).parsed.to_polars().fill_null(False)
        ).to_series()
        assert int(on.sum()) == entry.size, entry.rule
        assert fsum(loss[on.to_numpy()]) == entry.error_sum
    values = {
        column: {str(s.predicates[column]) for s in slices if column in s.predicates}
        for column in frame.columns
    }
    assert ("None" in values["lang"]) == (missing == "value")
    assert values["few"] <= {"1", "2", "3"}
    assert all(isinstance(s.predicates["words"], Range) for s in slices if "words" in s.predicates)


def test_ranges_cover_every_number_once():
    frame = people()
    coded = Levels.of(frame, 5, "value")
    for f in range(frame.width):
        assert coded.codes[f].max() + 1 == coded.counts[f] == len(coded.values[f])
    ranges = [v for v in coded.values[0] if v is not None]
    assert ranges[0].low is None
    assert ranges[-1].high is None
    assert [a.high for a in ranges[:-1]] == [b.low for b in ranges[1:]]
    assert all(60 <= c <= 100 for c in np.bincount(coded.codes[0]))
    assert coded.values[5] == [
        Range(None, coded.values[5][0].high),
        Range(coded.values[5][1].low, None),
    ]


@given(st.lists(st.floats(allow_nan=False, width=64), min_size=12, max_size=60), st.integers(2, 6))
@example([0.1 + i * 1e-17 for i in range(20)] + [float("inf"), -float("inf")], 3)
@settings(max_examples=count_examples(100, fast=60), deadline=None)
def test_any_numbers_can_be_cut(numbers: list[float], bins: int):
    frame = pl.DataFrame({"x": numbers})
    coded = Levels.of(frame, bins, "value")
    assert len(coded.values[0]) <= max(2 * bins, bins)
    for level, value in enumerate(coded.values[0]):
        if value == Range(None, None):  # one range that covers all
            continue
        _, rule, _ = spell_levels({"x": value})
        on = (
            frame.select(groundfault.Candidate("c", rule).parsed.to_polars())
            .to_series()
            .fill_null(False)
        )
        assert on.to_list() == (coded.codes[0] == level).tolist(), (rule, numbers)


def test_float_arrays_with_gaps():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    X[:50, 1] = np.nan
    loss = np.isnan(X[:, 1]).astype(float)
    assert SliceLine(k=1).fit(X, loss).slices_[0].predicates == {1: None}
    without = SliceLine(k=5, missing="unmatched").fit(X, loss).slices_
    assert not any(None in s.predicates.values() for s in without)


# bad input


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"k": 0}, "k must be a whole number from 1, not 0"),
        ({"k": 2.5}, "k must be a whole number"),
        ({"alpha": 0}, "alpha must be above 0 and at most 1, not 0"),
        ({"alpha": float("nan")}, "alpha must be a number"),
        ({"max_level": 0}, "max_level must be a whole number from 1"),
        ({"min_support": 0}, "min_support must be a number of rows"),
        ({"min_support": 2.5}, "min_support must be a number of rows"),
        ({"bins": 1}, "bins must be a whole number from 2"),
        ({"missing": "drop"}, "missing must be value or unmatched"),
        ({"ties": "any"}, "ties must be keep or cut"),
        ({"max_parents": 0}, "max_parents must be a whole number from 1"),
        ({"min_share": 1.0}, r"min_share must be a share in \[0, 1\)"),
        ({"permutations": -1}, "permutations must be a whole number from 0"),
    ],
)
def test_impossible_settings(settings_: dict[str, Any], message: str):
    finder = SliceLine(**settings_)  # the constructor only stores
    with pytest.raises(PlanError, match=message):
        finder.fit(np.zeros((20, 2), dtype=int), np.arange(20))


X20 = np.arange(40).reshape(20, 2) % 3


@pytest.mark.parametrize(
    ("X", "errors", "message"),
    [
        (X20, np.zeros(20), "there are no errors"),
        (X20, np.ones(20), "every row has the same error, 1"),
        (X20, np.arange(19), r"errors must have shape \(20,\)"),
        (X20, [np.nan] + [1.0] * 19, "the error of row 0 is nan"),
        (X20, -np.arange(20.0), "not negative"),
        (X20, ["bad"] * 20, "the errors are not numbers"),
        (X20, np.arange(20) * 1e302, "scale the errors"),
        (X20[:5], np.arange(5), "min_support=10 asks for 10 rows, and there are 5"),
        (X20[:0], np.zeros(0), "must be a table of rows and columns"),
        (X20[0], np.arange(2), "must be a table of rows and columns"),
        (X20.astype(complex), np.arange(20), "give whole numbers or floats"),
        ("results.csv", np.arange(20), "X is a str"),
        (pl.DataFrame({"d": [[1]] * 20}), np.arange(20), "column 'd' holds List"),
        (pl.DataFrame(), np.arange(20), "nothing to search"),
        (pd.DataFrame({"d": [object()] * 20}), np.arange(20), "cannot read the DataFrame"),
    ],
)
def test_bad_tables_and_errors(X: Any, errors: Any, message: str):
    with pytest.raises(InputError, match=message):
        SliceLine().fit(X, errors)


def test_constant_columns_and_noise_without_slices():
    X = np.column_stack([np.zeros(40, dtype=int), np.arange(40) % 2])
    loss = (np.arange(40) % 2).astype(float)
    slices = SliceLine().fit(X, loss)
    assert [s.predicates for s in slices.slices_] == [{1: 1}], (
        "what holds for every row is no predicate"
    )
    assert SliceLine(permutations=5).fit(X[:, :1], loss).slices_ == ()
    assert SliceLine(min_support=0.6).fit(X, loss).slices_ == ()
    with pytest.raises(AttributeError, match="slices_"):
        SliceLine().slices_  # noqa: B018


def test_the_least_support_may_be_a_share():
    X, loss = noisy(1000, 5)
    assert (
        SliceLine(min_support=0.1).fit(X, loss).slices_
        == SliceLine(min_support=100).fit(X, loss).slices_
    )


# the finder


def results(n: int = 1200, planted: bool = True, seed: int = 0) -> Evidence:
    rng = np.random.default_rng(seed)
    words, lang = rng.integers(0, 1000, n), np.array(["de", "en", "fr"])[rng.integers(0, 3, n)]
    hard = rng.random(n) < 0.5
    bad = (words >= 500) & (lang == "de") if planted else np.zeros(n, dtype=bool)
    table = {
        "item": [f"i{i:05d}" for i in range(n)],
        "error": (rng.random(n) < np.where(bad, 0.75, 0.15)).astype(int),
        "words": words,
        "lang": lang,
        "hard": hard,
        "note": [f"remark number {i} of this item" for i in range(n)],
        "score": rng.normal(size=n),
    }
    return Evidence.from_table(pl.DataFrame(table), id="item", outcome="error")


def test_the_finder_keeps_the_contract():
    assert finders.get("sliceline") is SliceLine is finders.SliceLine
    library = check_finder(SliceLine(bins=2), results())
    assert library.sources.keys() == {"sliceline"}
    first = library[0]
    assert "lang" in first.columns
    assert "words" in first.columns
    assert first.missing == "off"
    assert len(library) <= 10
    with pytest.raises(AttributeError, match="Nonsense"):
        finders.Nonsense  # noqa: B018


@pytest.mark.parametrize(
    ("judge", "finder"),
    [
        ("janus", SliceLine(k=5, bins=2)),
        ("split-holm", SliceLine(k=5, min_share=0, min_support=20)),
    ],
)
def test_a_planted_slice_is_confirmed_and_noise_is_not(judge: str, finder: SliceLine):
    plan = groundfault.Plan(judge=judge, seed=1)
    findings = groundfault.audit(results(), plan, finders=[finder], modes=False).findings
    confirmed = [f for f in findings if f.verdict is groundfault.Verdict.CONFIRMED]
    assert any(
        {"lang", "words"} <= set(groundfault.Candidate(f.name, f.rule).columns) for f in confirmed
    )
    assert {f.source for f in findings} == {"sliceline"}
    false = 0
    for seed in range(4):
        null = results(planted=False, seed=seed)
        report = groundfault.audit(null, plan, finders=[finder], modes=False)
        false += any(f.verdict is groundfault.Verdict.CONFIRMED for f in report.findings)
    assert false <= 1, "2 of 4 has a chance of 1 in 70 at level 0.05"


def test_slices_too_small_for_the_judge_are_not_proposed():
    data = results()
    candidates = [
        data.frame.select(c.parsed.to_polars()).to_series().sum() for c in SliceLine().propose(data)
    ]
    assert min(candidates) >= 120
    smaller = SliceLine(min_share=0).propose(data)
    assert min(data.frame.select(c.parsed.to_polars()).to_series().sum() for c in smaller) < 120


def test_hidden_outcomes_are_refused_in_words():
    with pytest.raises(PlanError, match="sliceline searches the outcomes"):
        groundfault.audit(results(200), groundfault.Plan(judge="max-t"), finders=["sliceline"])


def test_several_models_repeats_and_gaps():
    one = results(300)
    frame = one.frame
    both = pl.concat([frame.with_columns(model=pl.lit(m)) for m in ("a", "b")])
    two = Evidence.from_table(both, id="item", outcome="error", model="model")
    rules = [c.rule for c in SliceLine().propose(two)]
    assert rules == [c.rule for c in SliceLine().propose(one)]
    gaps = frame.with_columns(
        error=pl.when(pl.col("item").str.ends_with("7")).then(None).otherwise("error")
    )
    some = Evidence.from_table(gaps, id="item", outcome="error", null_outcome="missing")
    has_loss = Evidence.from_table(gaps.drop_nulls("error"), id="item", outcome="error")
    assert [c.rule for c in SliceLine().propose(some)] == [
        c.rule for c in SliceLine().propose(has_loss)
    ]


def test_columns_may_be_named():
    data = results()
    assert {c.columns for c in SliceLine(columns=("la*",)).propose(data)} == {("lang",)}
    with pytest.raises(InputError, match="no attribute is named"):
        list(SliceLine(columns=("langg",)).propose(data))


def test_stats_can_be_used_alone():
    X, loss = noisy(500, 5)
    errors = Errors.of(loss)
    objective = errors.objective(0.95, 10)
    predicates = Predicates.of(np.ascontiguousarray(X.T).astype(np.uint8), np.full(5, 4), objective)
    result = search(predicates, errors, objective, k=3, levels=2)
    assert result.words > 0
    assert [level.predicates for level in result.levels] == [1, 2]
    null = replay(predicates, errors, objective, np.random.default_rng(1), 4, levels=2)
    assert null.shape == (4,)
    assert result.scores.max() > null.max()
