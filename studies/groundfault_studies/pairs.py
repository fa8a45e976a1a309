"""Pairs of a data set and a trained model, described by a small TOML file: what the benchmark DEIM
is run on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from groundfault.errors import InputError
from groundfault.probes.bank import toml_tables
from groundfault.readers.table import read_table
from groundfault.slicing.embedding import check_embedding, embed
from groundfault_lab.slicing.predictions import EmbeddedPredictions, check_probability
from groundfault_lab.slicing.replays import PROBABILITY
from groundfault_studies import pair_texts
from groundfault_studies.real_models import Predictions, of_text, shipped_classifiers

SHIPPED = Path(__file__).with_name("deim_pairs.toml")
FEWEST = 120
"""A model has to predict so many examples: slices are fitted to two thirds of them."""

_MOST = 4000
_TEXTS: Mapping[str, Callable[[], pair_texts.TextsAndLabels]] = {
    "reviews": pair_texts.reviews,
    "documentation": pair_texts.documentation,
}
_NUMBERS = (
    "digits, logistic",
    "digits, network",
    "breast cancer, naive Bayes",
    "wine, logistic on 3 of 13 columns",
)


@dataclass(frozen=True)
class Pair:
    """A data set, and a model that predicts it.

    Attributes
    ----------
    name : str
    made : str
        Data that come with groundfault or its libraries: ``reviews``, ``documentation``, or a
        classifier of `groundfault_studies.real_models.shipped_classifiers`. Else:
    table : str
        A file of one row an example.
    text, label : str
        Its columns of texts and of true classes; no texts, no Explain.
    probability, embedding : str
        Columns, or globs of columns, of what a model predicted. Left out, one is trained here for
        each seed; given, a seed draws which examples slices are fitted to.
    train, most : int
        How many texts it is trained on, each text once, and how many are used in all.
    """

    name: str
    made: str = ""
    table: str = ""
    text: str = ""
    label: str = ""
    probability: str = ""
    embedding: str = ""
    train: int = 300
    most: int = _MOST

    @property
    def key(self) -> str:
        """What predictions depend on besides the seed: the description, and the content of the
        table.
        """
        content = hashlib.sha256(Path(self.table).read_bytes()).hexdigest() if self.table else ""
        return hashlib.sha256(json.dumps([asdict(self), content]).encode()).hexdigest()[:16]

    def predictions(self, seed: int) -> Predictions:
        """What the model says of examples that it was not trained on, in an order drawn by the
        seed.

        Raises
        ------
        InputError
            If the table cannot be read, a column is missing or holds something else, or there are
            too few examples.
        """
        if self.made in _NUMBERS:
            predictions = next(one for one in shipped_classifiers(seed) if one.name == self.made)
            return replace(predictions, name=self.name)
        if self.made:
            texts, labels = _TEXTS[self.made]()
            return self._train(texts, labels, seed)
        with toml_tables.locate_errors(f"pair {self.name!r}: {self.table}"):
            frame = read_table(self.table)[0]
            return (
                self._read_predictions(frame, seed)
                if self.probability
                else self._of_table(frame, seed)
            )

    def _of_table(self, frame: pl.DataFrame, seed: int) -> Predictions:
        _require(frame, [self.text, self.label])
        there = frame.drop_nulls([self.text, self.label]).unique(
            self.text, keep="first", maintain_order=True
        )
        return self._train(_texts(there, self.text), there[self.label].cast(pl.String), seed)

    def _train(self, texts: pl.Series, labels: pl.Series, seed: int) -> Predictions:
        min_texts = self.train + FEWEST
        if min(len(texts), self.most) < min_texts:
            raise InputError(
                f"there are {len(texts)} texts with a label, of which at most {self.most} are "
                f"used; to train on {self.train} it takes {min_texts}: lower train or give more"
            )
        if labels.n_unique() < 2:
            raise InputError(f"every text has the label {labels[0]!r}; there is nothing to learn")
        try:
            return of_text(self.name, texts, labels, self.train, seed, self.most)
        except ValueError as error:
            raise InputError(
                f"no model can be trained on {self.train} of the texts: {error}"
            ) from None

    def _read_predictions(self, frame: pl.DataFrame, seed: int) -> Predictions:
        probabilities = _matching(frame, self.probability)
        dimensions = _matching(frame, self.embedding) if self.embedding else {}
        names = [name for name in (self.text, self.label) if name]
        _require(frame, names)
        frame = frame.drop_nulls([*names, *probabilities, *dimensions])
        frame = frame[
            np.random.default_rng([seed, frame.height]).permutation(frame.height)[: self.most]
        ]
        texts = _texts(frame, self.text).to_list() if self.text else []
        predictions = EmbeddedPredictions.of_table(frame, dimensions, probabilities, self.label)
        if len(predictions.label) < max(FEWEST, frame.height):
            raise InputError(
                f"{len(predictions.label)} of {frame.height} examples have all numbers; it takes "
                f"all, and {FEWEST}"
            )
        points = predictions.embedding if dimensions else embed(texts)
        probability = check_probability(predictions.probability, frame.height)
        return Predictions(
            self.name, check_embedding(points), predictions.label, probability, tuple(texts)
        )


def read_pairs(path: str | Path = SHIPPED) -> tuple[Pair, ...]:
    """Read the pairs of a TOML file.

    Parameters
    ----------
    path : path
        Of a file of ``[[pair]]`` tables, whose keys are the attributes of `Pair`. Paths of tables
        start from it.

    Raises
    ------
    InputError
        If the file cannot be read, holds anything else, or two pairs share a name.

    Examples
    --------
    >>> [pair.name for pair in read_pairs()][:2]
    ['made reviews, words', 'documentation, words']
    """
    place = Path(path)
    data = toml_tables.read(place, "file of pairs")
    file = toml_tables.convert(data, _PairFile, str(place))
    pairs = tuple(_pair(one, place, n) for n, one in enumerate(file.pair, 1))
    if not pairs:
        raise InputError(f"{place} describes no pair; write [[pair]] tables")
    names = [pair.name for pair in pairs]
    if twice := {name for name in names if names.count(name) > 1}:
        raise InputError(
            f"{place}: two pairs are named {min(twice)!r}; give each a name of its own"
        )
    return pairs


@dataclass(frozen=True)
class _PairFile:
    """The tables of a file of pairs."""

    pair: list[dict[str, Any]] = field(default_factory=list)


def _pair(table: Mapping[str, Any], place: Path, number: int) -> Pair:
    where = f"{place}, pair {number}"
    for key in ("train", "most"):
        if isinstance(value := table.get(key, 1), bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"{where}: {key} must be a whole number of at least 1, not {value!r}")
    pair = toml_tables.convert({"name": table.get("made", "")} | dict(table), Pair, where)
    if bool(pair.made) == bool(pair.table):
        raise InputError(f"{where}: give either a table, or made = one of {_list_names()}")
    if pair.made and pair.made not in (*_TEXTS, *_NUMBERS):
        raise InputError(f"{where}: made = {pair.made!r} is none of {_list_names()}")
    if not pair.name:
        raise InputError(f'{where}: name is missing; write name = "..."')
    if pair.made:
        return pair
    if not pair.label:
        raise InputError(
            f'{where}: label is missing: the column of true classes; write label = "..."'
        )
    if not pair.text and not (pair.probability and pair.embedding):
        raise InputError(
            f"{where}: give text, the column of texts, or both probability and embedding"
        )
    if pair.embedding and not pair.probability:
        raise InputError(
            f"{where}: an embedding goes with the predictions of the same model; give probability "
            "too"
        )
    return replace(pair, table=str(place.parent / pair.table))


def _list_names() -> str:
    return ", ".join(map(repr, (*_TEXTS, *_NUMBERS)))


def _require(frame: pl.DataFrame, names: list[str]) -> None:
    for name in names:
        if name not in frame.columns:
            raise InputError(
                f"there is no column {name!r}; there are {', '.join(frame.columns[:12])}"
            )


def _matching(frame: pl.DataFrame, pattern: str) -> dict[str, str]:
    columns = {name: pattern for name in frame.columns if fnmatchcase(name, pattern)}
    if not columns:
        raise InputError(
            f"no column is named, or matches, {pattern!r} (such as {PROBABILITY}); there are "
            f"{', '.join(frame.columns[:12])}"
        )
    return columns


def _texts(frame: pl.DataFrame, name: str) -> pl.Series:
    if frame[name].dtype != pl.String:
        raise InputError(f"column {name!r} holds {frame[name].dtype}, not text")
    return frame[name]
