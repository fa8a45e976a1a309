"""Words that stand where a model failed, counted against a plain loop."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from groundfault import Evidence
from groundfault.auditing.leaks import measure_columns
from groundfault.auditing.text_leaks import count_word_mistakes

texts = st.lists(
    st.tuples(st.sampled_from(["a b", "b, c!", "A c", "", None]), st.booleans()), min_size=1
)


@given(texts)
def test_the_best_word_is_the_one_that_a_loop_over_all_words_gives(
    rows: list[tuple[str | None, bool]],
) -> None:
    failures = np.array([failed for _, failed in rows])
    best = min(failures.sum(), (~failures).sum())
    for word in "abc":
        inside = np.array([word in re.findall(r"\w+", (text or "").lower()) for text, _ in rows])
        parts = [failures[inside], failures[~inside]]
        best = min(best, sum(min(part.sum(), (~part).sum()) for part in parts))
    column = pl.Series([text for text, _ in rows], dtype=pl.String)
    assert count_word_mistakes(column, failures) == best


def test_of_many_texts_a_sample_is_read_and_scaled() -> None:
    failures = np.arange(20_000) % 3 == 0
    column = pl.Series([f"{i} {'bad' if failed else 'good'}" for i, failed in enumerate(failures)])
    assert count_word_mistakes(column, failures) == 0
    assert 6000 < count_word_mistakes(column.str.slice(0, 2), failures) < 7500


def test_a_remark_is_a_leak_and_the_question_is_not() -> None:
    wrong = np.arange(300) % 4 == 0
    words = [f"item {i} {'is negated' if bad else 'is plain'}" for i, bad in enumerate(wrong)]
    frame = pl.DataFrame({"notes": words, "question": words, "error": wrong.astype(int)})
    shares = measure_columns(Evidence.from_table(frame, outcome="error"), ["notes", "question"])
    assert shares == {"notes": 1.0, "question": 0.0}
