"""Near-duplicates among texts: copies, parts, typing errors, and strangers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st
from sklearn.feature_extraction.text import HashingVectorizer

from groundfault.stats.near_duplicates import (
    _hash_to_column,
    _hash_to_columns,
    find_near_duplicates,
    normalise_text,
)

TEXT = "The quick brown fox jumps over the lazy dog while twelve sleepy cats look on from a wall"


def test_a_copy_in_other_case_is_a_duplicate() -> None:
    pairs = find_near_duplicates([TEXT.upper()], ["something else entirely", TEXT])
    assert {(pair.text, pair.other, pair.value) for pair in pairs} == {(0, 1, 1.0)}
    assert {pair.how for pair in pairs} == {"jaccard", "containment", "letters"}


def test_a_text_within_another_is_contained() -> None:
    longer = f"{TEXT} and then the whole story begins again with other animals in other places"
    hows = [pair.how for pair in find_near_duplicates([longer], [TEXT])]
    assert hows == ["containment"]


def test_texts_are_compared_with_those_before_them() -> None:
    pairs = find_near_duplicates([TEXT, TEXT.replace("quick", "quikc")], [], letters=0.9)
    assert [(pair.text, pair.other, pair.how) for pair in pairs] == [(1, 0, "letters")]


def test_strangers_and_nothing() -> None:
    assert find_near_duplicates([TEXT], ["Six green bottles stand in a row by the door"]) == []
    assert find_near_duplicates([], [TEXT]) == []
    assert find_near_duplicates(["", "One two"], ["one TWO", "two one"])[0].other == 0


@given(st.lists(st.text("ab cd", max_size=40), max_size=12), st.sampled_from([0.3, 0.6, 0.92]))
def test_texts_of_their_own_are_set_aside_only_without_parts(
    texts: list[str], least: float
) -> None:
    pairs = find_near_duplicates(texts, [], jaccard=least)
    others = [pair for pair in pairs if pair.how != "containment"]
    assert find_near_duplicates(texts, [], jaccard=least, containment=math.inf) == others


@given(st.text("aA_-  .9\tßK\n", max_size=20))
def test_plain_letters_are_normalised_as_others_are(text: str) -> None:
    assert normalise_text(text + "日")[:-1].rstrip() == normalise_text(text)


@pytest.mark.parametrize("gram", ["abcd", "1 2 ", "größ", "日本語の", "a😀b", "zz"])
def test_grams_stand_in_the_columns_of_scikit_learn(gram: str) -> None:
    count = HashingVectorizer(analyzer=list, n_features=1 << 14, alternate_sign=False, norm=None)
    assert count.transform([[gram]]).indices.tolist() == [_hash_to_column(gram)]


def test_long_texts_are_hashed_gram_by_gram() -> None:
    text = "how many eggs, größer als 日本語の 4 a😀b?"
    grams = [text[i : i + 4] for i in range(len(text) - 3)]
    assert _hash_to_columns(text).tolist() == [_hash_to_column(gram) for gram in grams]
    assert _hash_to_columns("abc").size == 0
