"""Overlap of tables by samples: what is shared is measured, and nothing else is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from groundfault.base.row_sketch import (
    ANSWERS,
    ROWS,
    RowSample,
    measure_overlap,
    measure_shared_answers,
    sample_rows,
)
from groundfault.errors import LedgerError

SALT = "0a" * 16
RNG = np.random.default_rng(4)
NAMES = [f"q{i}".encode() for i in range(12_000)]
FAILURES = (RNG.random(len(NAMES)) < 0.2).astype(float)


def take(rows: slice | np.ndarray[Any, Any], outcomes: Any = FAILURES) -> RowSample:
    return sample_rows(list(np.array(NAMES)[rows]), outcomes[rows], SALT)


WHOLE = take(slice(None))


@pytest.mark.parametrize(
    ("rows", "share"),
    [(slice(1, None), 1), (slice(0, 6_000), 0.5), (slice(0, 700), 0)],
)
def test_all_of_a_part_is_known_and_of_the_whole_as_much_as_the_part_has(
    rows: slice, share: float
) -> None:
    part = take(rows)
    assert measure_overlap(part, WHOLE) == 1
    # less than a tenth is not said
    assert measure_overlap(WHOLE, part) == pytest.approx(share, abs=0.03)


@settings(max_examples=8)
@given(st.floats(0.15, 1), st.floats(0.1, 0.9), st.integers(0, 10**6))
def test_the_share_is_that_of_the_tables(share: float, rate: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    outcomes = (rng.random(12_000) < rate).astype(float)
    earlier = take(slice(0, 6_000), outcomes)
    start = round(6_000 * (1 - share))
    now = take(slice(start, start + 6_000), outcomes)
    measured = measure_overlap(now, RowSample.from_json(earlier.to_json()))
    assert measured == pytest.approx(share, abs=0.05)


@pytest.mark.parametrize("rate", [0.0, 0.01, 0.2, 0.5, 0.99, 1.0])
def test_other_outcomes_under_the_same_names_are_another_table(rate: float) -> None:
    others = (np.random.default_rng(9).random(len(NAMES)) < rate).astype(float)
    assert measure_overlap(take(slice(None), others), WHOLE) == 0
    assert measure_overlap(WHOLE, take(slice(None), others)) == 0


def test_other_names_or_another_salt_have_nothing_in_common() -> None:
    other = sample_rows([b"x" + name for name in NAMES], FAILURES, SALT)
    assert measure_overlap(other, WHOLE) == 0
    salted = sample_rows(NAMES, FAILURES, "0b" * 16)
    assert measure_overlap(salted, WHOLE) == 0
    assert len(np.intersect1d(salted.keys, WHOLE.keys)) < 20


def test_graded_outcomes_and_rare_failures_are_known_too() -> None:
    graded = np.random.default_rng(2).random(len(NAMES))
    assert measure_overlap(take(slice(1, None), graded), take(slice(None), graded)) == 1
    rare = np.zeros(len(NAMES))
    rare[::400] = 1
    sample = take(slice(None), rare)
    assert ROWS < len(sample.keys) < len(NAMES)
    assert measure_overlap(take(slice(1, None), rare), sample) == 1


def test_a_sample_is_small_and_shows_no_outcome_without_its_name() -> None:
    assert len(WHOLE.keys) == ROWS
    assert len(WHOLE.to_json()["rows"]) == ROWS * 8
    # hashes of outcomes say nothing by themselves: as many different ones for one outcome
    failing = WHOLE.kinds == 1
    assert len(np.unique(WHOLE.outcomes[failing])) > 0.9 * failing.sum()


@pytest.mark.parametrize(
    "change",
    [
        {"rows": "no base64!"},
        {"rows": "AAAA"},
        {"rows": 7},
        {"salt": "no hex"},
        {"bound": "x"},
        {"bound": None},
        {"bound": float("inf")},
    ],
)
def test_what_is_no_sample_is_an_altered_ledger(change: dict[str, Any]) -> None:
    with pytest.raises(LedgerError, match="cannot be read"):
        RowSample.from_json(WHOLE.to_json() | change)
    with pytest.raises(LedgerError, match="cannot be read"):
        RowSample.from_json({})


def test_a_table_without_rows_overlaps_with_nothing() -> None:
    empty = sample_rows([], np.array([]), SALT)
    assert measure_overlap(empty, WHOLE) == measure_overlap(WHOLE, empty) == 0


def test_answers_are_known_by_their_log_whatever_their_scores() -> None:
    def take_logs(log: str, rows: slice, outcomes: Any = FAILURES) -> RowSample:
        names = NAMES[rows]
        sample = sample_rows(names, outcomes[rows], SALT, [log] * len(names))
        return RowSample.from_json(sample.to_json())

    everything = slice(None)
    first = take_logs("a", everything)
    assert first.answers is not None
    assert len(first.answers) == ANSWERS
    assert measure_shared_answers(take_logs("a", everything, 1 - FAILURES), first) == 1
    assert measure_shared_answers(take_logs("a", slice(0, 90)), first) == 1
    half = measure_shared_answers(first, take_logs("a", slice(0, 6_000)))
    assert half == pytest.approx(0.5, abs=0.1)
    # the same examples in another log are of another model, or another run
    assert measure_shared_answers(take_logs("b", everything), first) == 0
    assert measure_shared_answers(WHOLE, first) == 0


def test_a_sample_of_answers_that_was_altered_is_refused() -> None:
    content = WHOLE.to_json()
    for answers in (1, "x", ["a"]):
        with pytest.raises(LedgerError, match="it was altered"):
            RowSample.from_json({**content, "answers": answers})
