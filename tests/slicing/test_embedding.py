"""Embeddings: deterministic, fitted once and applied later, saved as numbers, and clear about what
cannot be.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from groundfault.errors import InputError, MissingExtraError
from groundfault.slicing.embedding import Embedding, embed, fit

TOPICS = {
    "sums": [
        "add two and three",
        "two plus three times four",
        "add four and two",
        "three minus two plus four",
    ],
    "places": [
        "the capital of France",
        "the river of Spain",
        "the capital of Spain",
        "the river of France",
    ],
}
TEXTS = [text for texts in TOPICS.values() for text in texts]


def test_texts_of_one_topic_lie_together():
    points = embed(TEXTS, dimensions=2)
    same = np.linalg.norm(points[:4] - points[:4].mean(axis=0), axis=1).max()
    assert points.shape == (8, 2)
    assert points.dtype == np.float64
    assert np.linalg.norm(points[:4].mean(axis=0) - points[4:].mean(axis=0)) > same


def test_the_same_texts_give_the_same_numbers():
    np.testing.assert_array_equal(embed(TEXTS, seed=3), embed(TEXTS, seed=3))


def test_fit_then_apply_is_embed_and_new_texts_need_no_refit():
    embedding = fit(TEXTS, dimensions=3)
    np.testing.assert_array_equal(embedding.apply(TEXTS), embed(TEXTS, dimensions=3))
    new = embedding.apply(["the capital of Spain", "entirely unknown vocabulary"])
    np.testing.assert_allclose(new[0], embedding.apply(TEXTS)[6], atol=1e-15)
    np.testing.assert_array_equal(new[1], 0)
    assert embedding.apply([]).shape == (0, 3)


def test_the_projection_is_the_leading_one():
    """Oracle: the exact SVD of scikit-learn's own weights."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    weights = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True).fit_transform(TEXTS).toarray()
    ours = embed(TEXTS, dimensions=3)
    np.testing.assert_allclose(
        np.linalg.norm(ours, axis=0), np.linalg.svd(weights)[1][:3], rtol=1e-9
    )


def test_a_fitted_embedding_survives_json():
    embedding = fit(TEXTS, dimensions=3)
    again = Embedding.from_dict(json.loads(json.dumps(embedding.to_dict())))
    np.testing.assert_array_equal(again.apply(TEXTS), embedding.apply(TEXTS))
    incomplete = {**embedding.to_dict(), "words": ["two"]}
    for data in ({}, {"how": "tfidf"}, incomplete, {**incomplete, "axes": 3}):
        with pytest.raises(InputError, match="not a fitted embedding"):
            Embedding.from_dict(data)


def test_there_are_no_more_directions_than_texts():
    assert embed(["one text", "another"], dimensions=64).shape == (2, 2)


@pytest.mark.parametrize(
    ("texts", "how", "dimensions", "message"),
    [
        (["a text", None], "tfidf", 2, "row 1 is missing"),
        (["a text", 3], "tfidf", 2, "row 1 is int, not text"),
        ("a text", "tfidf", 2, "put it in a list"),
        ([], "tfidf", 2, "no word to learn from in 0 texts"),
        (["!", "?"], "tfidf", 2, "no word to learn from in 2 texts"),
        (TEXTS, "word2vec", 2, "it is tfidf, sentence or sentence:MODEL"),
        (TEXTS, "tfidf", 0, "dimensions must be"),
    ],
)
def test_what_cannot_be_embedded(texts, how, dimensions, message):
    with pytest.raises(InputError, match=message) as error:
        embed(texts, how, dimensions=dimensions)
    assert "\n" not in str(error.value)


def test_the_extra_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'groundfault\[embed\]'"):
        fit(TEXTS, "sentence")
