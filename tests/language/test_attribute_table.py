"""Attributes of texts as columns: numbers, categories and flags, with names of their own."""

from __future__ import annotations

import polars as pl

from groundfault_lab.language.attribute_table import tabulate_attributes

TEXTS = [
    text
    for i in range(20, 60)
    for text in (
        f"What is {i} plus 7, if you please?",
        f"Was ist {i} plus 1200? Bitte nicht raten.",
        None,
        f"HOW MANY ARE {i} OF THEM",
    )
]


def test_a_column_each() -> None:
    attributes = tabulate_attributes(pl.Series("q", TEXTS))
    columns = {one.values.name: one for one in attributes}
    assert len(columns) == len(attributes)
    first = {name: one.values.to_list()[:4] for name, one in columns.items()}
    assert first["q_numbers"] == [2, 2, None, 1]
    assert first["q_digits"] == [2, 4, None, 2]
    assert first["q_sentences"] == [1, 2, None, 1]
    assert first["q_commas"] == [1, 0, None, 0]
    assert first["q_language"] == ["English", "German", None, "English"]
    assert first["q_last_sentence"] == ["what", "bitte", None, "how"]
    assert first["q_all_in_capitals"] == [0, 0, None, 1]
    templates = first["q_template"]
    assert templates[0] != templates[1] != templates[3]
    assert templates[2] is None
    assert columns["q_all_in_capitals"].meaning == "q is all in capitals"
    assert columns["q_last_sentence"].meaning == "first word of the last sentence of q"


def test_words_and_opposites_are_left_out() -> None:
    names = [one.values.name for one in tabulate_attributes(pl.Series("q", TEXTS))]
    assert not any("not" in name.split("_") or "word_please" in name for name in names)


def test_missing_texts_alone_give_counts_of_nothing() -> None:
    attributes = tabulate_attributes(pl.Series("q", [None, None], dtype=pl.String))
    assert all(one.values.to_list() == [None, None] for one in attributes)
