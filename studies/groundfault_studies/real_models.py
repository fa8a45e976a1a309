"""Classifiers trained here on real data, and the mistakes they make: what slice finders are
compared on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_MOST_TEXTS = 4000
JUDGED = "Qwen2-7B-Instruct"


@dataclass(frozen=True)
class Predictions:
    """What a classifier says of examples it was not trained on.

    Attributes
    ----------
    name : str
    embedding : float64 array, shape (n, d)
    label : int64 array, shape (n,)
    probability : float64 array, shape (n, c)
    texts : tuple of str, length n
        Of examples that are texts; else empty.
    """

    name: str
    embedding: Floats
    label: NDArray[np.int64]
    probability: Floats
    texts: tuple[str, ...] = ()

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Where the likeliest class is not the true one."""
        return np.asarray(self.probability.argmax(axis=1) != self.label)

    def split(self, share: float) -> tuple[Predictions, Predictions]:
        """The first examples, on which slices are fitted, and the rest."""
        cut = int(len(self.label) * share)
        first, rest = (
            Predictions(
                self.name,
                self.embedding[part],
                self.label[part],
                self.probability[part],
                self.texts[part],
            )
            for part in (slice(cut), slice(cut, None))
        )
        return first, rest


def shipped_classifiers(seed: int) -> Iterator[Predictions]:
    """Classifiers of data that ship with scikit-learn, trained on few examples so that they err.

    The order of the examples, and with it what is trained on, follows the seed.
    """
    from sklearn import datasets
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neural_network import MLPClassifier

    x, y = _shuffle(datasets.load_digits(return_X_y=True), seed)
    x = x / 16
    yield _predict("digits, logistic", LogisticRegression(C=0.03, max_iter=500), x, y, 150)
    network = MLPClassifier((32,), max_iter=60, random_state=seed)
    yield _predict("digits, network", network, x, y, 200, _hidden_layer)
    x, y = _shuffle(datasets.load_breast_cancer(return_X_y=True), seed)
    yield _predict(
        "breast cancer, naive Bayes", GaussianNB(), (x - x[:60].mean(0)) / x[:60].std(0), y, 60
    )
    x, y = _shuffle(datasets.load_wine(return_X_y=True), seed)
    x = (x - x[:20].mean(0)) / x[:20].std(0)
    yield _predict(
        "wine, logistic on 3 of 13 columns", _FirstColumns(LogisticRegression(C=0.05), 3), x, y, 20
    )


def digits_network(train: int, seed: int) -> Predictions:
    """A network trained to the end on the first digits, and what its hidden layer makes of the
    others.
    """
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    x, y = _shuffle(load_digits(return_X_y=True), seed)
    network = MLPClassifier((32,), max_iter=400, random_state=seed)
    return _predict("digits, network trained to the end", network, x / 16, y, train, _hidden_layer)


def of_texts(folder: Path, seed: int) -> Iterator[Predictions]:
    """Classifiers of real questions: which task a question belongs to, and whether a model answers
    it.
    """
    yield of_text("BIG-Bench Hard, task of a question", *tasks(folder), 300, seed)
    yield of_text(f"GSM8K, whether {JUDGED} passes", *passes(folder), 400, seed)


def passes(folder: Path) -> tuple[pl.Series, pl.Series]:
    """Questions of GSM8K, and whether `JUDGED` answers each of them right: 1 or 0."""
    answers = pl.read_parquet(
        folder / "zeroeval" / "outcomes.parquet", columns=["example_id", "model", "correct"]
    )
    questions = pl.read_parquet(
        folder / "zeroeval" / "examples.parquet", columns=["example_id", "benchmark", "question"]
    )
    answers = answers.filter(pl.col("model") == JUDGED, pl.col("correct").is_not_null()).join(
        questions, on="example_id"
    )
    graded = answers.filter(pl.col("benchmark").str.contains("(?i)gsm")).sort("example_id")
    return graded["question"], graded["correct"].cast(pl.Int64).cast(pl.String)


def tasks(folder: Path) -> tuple[pl.Series, pl.Series]:
    """Questions of BIG-Bench Hard, and the task that each belongs to."""
    table = pl.read_parquet(folder / "bbh_codex" / "outcomes.parquet", columns=["question", "task"])
    table = table.unique("question", maintain_order=True)
    return table["question"], table["task"]


class _FirstColumns:
    """A classifier that sees the first columns alone."""

    def __init__(self, model: Any, columns: int) -> None:
        self.model, self.columns = model, columns

    def fit(self, x: Floats, y: NDArray[np.int64]) -> _FirstColumns:
        self.model.fit(x[:, : self.columns], y)
        self.classes_ = self.model.classes_
        return self

    def predict_proba(self, x: Floats) -> Floats:
        return np.asarray(self.model.predict_proba(x[:, : self.columns]))


def _shuffle(data: tuple[Floats, NDArray[np.int64]], seed: int) -> tuple[Floats, NDArray[np.int64]]:
    order = np.random.default_rng([seed, len(data[1])]).permutation(len(data[1]))
    return data[0][order], data[1][order]


def _hidden_layer(network: Any, x: Floats) -> Floats:
    """What the hidden layer of a network makes of examples."""
    return np.asarray(np.maximum(x @ network.coefs_[0] + network.intercepts_[0], 0.0))


def _predict(
    name: str,
    model: Any,
    x: Any,
    y: NDArray[np.int64],
    train: int,
    embed: Callable[[Any, Any], Floats] | None = None,
    embedding: Floats | None = None,
) -> Predictions:
    import warnings

    with warnings.catch_warnings():  # few steps on few examples: these models are meant to be poor
        warnings.simplefilter("ignore")
        model.fit(x[:train], y[:train])
    probability = np.zeros((x.shape[0] - train, int(y.max()) + 1))
    probability[:, model.classes_] = model.predict_proba(x[train:])
    points = embed(model, x) if embed else x if embedding is None else embedding
    return Predictions(name, np.asarray(points[train:]), y[train:], probability)


def of_text(
    name: str,
    texts: pl.Series,
    labels: pl.Series,
    train: int,
    seed: int,
    max_texts: int = _MOST_TEXTS,
) -> Predictions:
    """A logistic regression of weighted words, trained on the first texts of an order drawn by the
    seed.

    Parameters
    ----------
    name : str
    texts, labels : polars.Series, length n
    train : int
        How many texts the model is trained on; it predicts the others.
    seed : int
    max_texts : int
        How many texts are used in all.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    order = np.random.default_rng([seed, len(texts)]).permutation(len(texts))[:max_texts]
    selection = [texts[int(i)] for i in order]
    y = np.unique(labels.to_numpy(), return_inverse=True)[1][order]
    words = TfidfVectorizer(min_df=2, sublinear_tf=True).fit(selection[:train])
    x = words.transform(selection)
    embedding = TruncatedSVD(64, random_state=seed).fit_transform(x)
    predictions = _predict(name, LogisticRegression(max_iter=200), x, y, train, embedding=embedding)
    return replace(predictions, texts=tuple(selection[train:]))
