"""What slice finders read of an example: embedding, class probabilities and true class."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from groundfault.base.arrays import Bools, Floats, Ints
from groundfault.core.candidate import matrix
from groundfault.core.columns import (
    Kind,
    list_examples,
    match_attributes,
    profile,
    select_example_rows,
)
from groundfault.core.evidence import Evidence
from groundfault.errors import InputError
from groundfault.slicing.embedding import to_numbers
from groundfault_lab.slicing.replays import PROBABILITY

EMBEDDING = "embedding*"

EXAMPLES_A_SLICE = 20
"""Examples of a slice on average: with fewer, slices fit noise."""

# probabilities are often stored in single precision, or printed with four digits
_SUMS_TO_ONE = 1e-3


@dataclass(frozen=True)
class EmbeddedPredictions:
    """Examples as slice finders see them, those without a missing number or label.

    Attributes
    ----------
    embedding_columns, probability_columns : tuple of str
        Where the numbers come from.
    embedding : float64 array, shape (n, d)
    probability : float64 array, shape (n, c)
        Columns of the evidence or, where it has none, certainty that the example passes: the two
        classes are then "passes" and "fails", and there are no probability columns.
    label : int64 array, shape (n,)
        True class, in 0 .. c - 1.
    classes : tuple of str
        Names of the classes.
    """

    embedding_columns: tuple[str, ...]
    probability_columns: tuple[str, ...]
    embedding: Floats
    probability: Floats
    label: Ints
    classes: tuple[str, ...]

    @property
    def has_probabilities(self) -> bool:
        """Return whether the probabilities are columns of the evidence."""
        return bool(self.probability_columns)

    @property
    def wrong(self) -> Bools:
        """Return where the likeliest class is not the true one."""
        return np.asarray(self.probability.argmax(axis=1) != self.label)

    def explain_unfit(self, min_examples: int, min_classes: int = 1) -> str:
        """Return why no slices can be fitted with these minimums; empty where they can."""
        wrong = int(self.wrong.sum())
        if len(self.label) < min_examples:
            count = len(self.label)
            return f"{count} discovery examples have all it reads, and it needs {min_examples}"
        if len(set(self.label.tolist())) < min_classes:
            return f"every discovery example is of class {self.classes[self.label[0]]}"
        if not 0 < wrong < len(self.label):
            return f"{'every' if wrong else 'no'} prediction on discovery is wrong"
        return ""

    @classmethod
    def of(
        cls,
        evidence: Evidence,
        embedding: str,
        probability: str | None,
        label: str,
        points: pl.Series | None = None,
    ) -> EmbeddedPredictions:
        """Read the columns of the evidence, one row an example.

        Parameters
        ----------
        evidence : Evidence
        embedding : str
            A column of lists of numbers, or a glob of columns of numbers.
        probability : str, optional
            A column of lists, or a glob such as ``probability*``: a column for each class, named
            after it. Left out, columns of that name are read if there are any.
        label : str
            Column of the true class, named as the probability columns are, or numbered from 0; read
            with probabilities alone.
        points : polars.Series, optional
            An embedding that is no column of the evidence, one point an example.

        Raises
        ------
        InputError
            If a column is missing or holds something else, or a label is none of the classes.
        """
        frame = select_example_rows(evidence)
        if points is None:
            names = match_attributes(evidence, [embedding])
        else:
            frame, names = frame.with_columns(points), {points.name: points.name}
        prefix = PROBABILITY.rstrip("*")
        if probability is None and not any(c.startswith(prefix) for c in evidence.attributes):
            # pass and fail are the classes then, and the same constant prediction for all
            fails = (example_losses(evidence) > 0.5).cast(pl.Float64).to_numpy()
            certain, columns = np.tile([1.0, 0.0], (frame.height, 1)), tuple(names)
            points_of = matrix(frame, columns)
            return cls._complete((columns, ()), points_of, certain, fails, ("passes", "fails"))
        chances = match_attributes(evidence, [probability or PROBABILITY])
        return cls.of_table(frame, names, chances, label)

    @classmethod
    def of_table(
        cls,
        frame: pl.DataFrame,
        embedding_columns: dict[str, str],
        probability_columns: dict[str, str],
        label: str,
    ) -> EmbeddedPredictions:
        """Read a table of one row per example, by the columns of embedding and probability.

        Raises
        ------
        InputError
            As `of`.
        """
        names = tuple(name for name in embedding_columns if name not in probability_columns)
        what = f"the columns {', '.join(probability_columns)}"
        probability = check_shape(matrix(frame, list(probability_columns)), what)
        classes = _name_classes(probability_columns, probability.shape[1])
        if label not in frame.columns:
            raise InputError(
                f"there are predicted probabilities but no column {label!r} with the true class; "
                "name it with label="
            )
        columns = names, tuple(probability_columns)
        numbers = _number_labels(frame[label], classes)
        return cls._complete(columns, matrix(frame, names), probability, numbers, classes)

    @classmethod
    def _complete(
        cls,
        columns: tuple[tuple[str, ...], tuple[str, ...]],
        embedding: Floats,
        probability: Floats,
        label: Floats,
        classes: tuple[str, ...],
    ) -> EmbeddedPredictions:
        rows = ~np.isnan(np.column_stack([embedding, probability, label])).any(axis=1)
        numbers = label[rows].astype(np.int64)
        return cls(*columns, embedding[rows], probability[rows], numbers, classes)


def example_losses(evidence: Evidence) -> pl.Series:
    """Return mean loss of each example over models and repeats; NULL where nothing was scored."""
    key = evidence.roles.id or ""
    losses = evidence.frame.select(key).with_columns(loss=evidence.loss)
    return losses.group_by(key, maintain_order=True).agg(pl.col("loss").mean())["loss"]


def _name_classes(columns: dict[str, str], count: int) -> tuple[str, ...]:
    """Return class names: what follows the constant part of a glob, or numbers."""
    if len(columns) != count:
        return tuple(str(i) for i in range(count))
    prefixes = [re.split(r"[*?\[]", pattern, maxsplit=1)[0] for pattern in columns.values()]
    pairs = zip(columns, prefixes, strict=True)
    return tuple(name.removeprefix(prefix).lstrip("_") or name for name, prefix in pairs)


def _number_labels(labels: pl.Series, classes: Sequence[str]) -> Floats:
    """Return labels as class numbers, NaN where missing."""
    if labels.dtype == pl.Boolean or labels.dtype.is_float():
        labels = labels.cast(pl.Int64)
    names = labels.cast(pl.String)
    unknown = names.filter(names.is_not_null() & ~names.is_in(list(classes)))
    if len(unknown):
        raise InputError(
            f"column {labels.name!r} holds {unknown[0]!r}, which is none of the classes "
            f"{', '.join(classes[:10])}"
        )
    numbers = range(len(classes))
    return names.replace_strict(list(classes), numbers, return_dtype=pl.Float64).to_numpy()


def check_shape(array: Floats, what: str) -> Floats:
    """Return the same array, if it has a column for each of two or more classes.

    Raises
    ------
    InputError
        If it has not.
    """
    if array.ndim != 2 or array.shape[1] < 2:
        raise InputError(
            f"{what} must give the probability of each of at least two classes, in columns; "
            "of one probability p make two columns, 1 - p and p"
        )
    return array


def check_probability(values: ArrayLike, rows: int, classes: int | None = None) -> Floats:
    """Return class probabilities as an array of shape (rows, c).

    Raises
    ------
    InputError
        If the shape is another, or the probabilities of an example are not in [0, 1] or do not sum
        to 1.
    """
    what = "y_proba"
    array = check_shape(to_numbers(values, what), what)
    if len(array) != rows:
        raise InputError(f"{what} has {len(array)} rows, but Z has {rows}")
    if classes is not None and array.shape[1] != classes:
        raise InputError(
            f"{what} has {array.shape[1]} classes, but the slices were fitted with {classes}"
        )
    if not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise InputError(f"{what} holds {array[row, column]} in row {row}, column {column}")
    # a little slack below 0 and around 1, for single precision; logits are far outside
    total = array.sum(axis=1)
    bad = (array < -1e-9).any(axis=1) | (np.abs(total - 1) > _SUMS_TO_ONE)
    if bad.any():
        row = int(bad.argmax())
        raise InputError(
            f"{what} is no probability in row {row}: its entries must be at least 0 and sum to 1, "
            f"but the smallest is {array[row].min():g} and the sum {total[row]:g} "
            f"({int(bad.sum())} such rows); scores need a softmax first"
        )
    return array


def check_labels(values: ArrayLike, rows: int, classes: int) -> Ints:
    """Return true classes as whole numbers, shape (rows,).

    Raises
    ------
    InputError
        If they are not the numbers of columns of ``y_proba``.
    """
    array = np.asarray(values)
    if array.shape != (rows,):
        raise InputError(
            f"y_true has shape {array.shape}, but Z has {rows} rows; "
            "it must hold one class an example"
        )
    hint = "with names of classes, pass np.searchsorted(model.classes_, y_true)"
    is_number = array.dtype.kind in "biuf"
    if not is_number or not np.array_equal(array, np.round(array.astype(np.float64))):
        raise InputError(
            f"y_true must hold numbers of columns of y_proba, not {array.flat[0]!r}; {hint}"
        )
    # labels counted from 1 would otherwise shift every class unnoticed
    bad = (array < 0) | (array >= classes)
    if bad.any():
        row = int(bad.argmax())
        raise InputError(
            f"y_true is {array[row]} in row {row}, but y_proba has {classes} columns, "
            f"numbered from 0; {hint}"
        )
    return array.astype(np.int64)


def require_errors(wrong: NDArray[Any]) -> None:
    """Raise `InputError` unless some predictions are wrong and some right."""
    if not wrong.any():
        raise InputError("no prediction is wrong, so there are no error slices to find")
    if wrong.all():
        raise InputError(
            "every prediction is wrong: either all of it is one error slice, "
            "or the labels are shifted"
        )


def find_text(evidence: Evidence) -> str | None:
    """Return the column of prose with the longest texts, among the attributes.

    None where there is none.

    Of attributes alone, so that no outcome has a part in the choice.
    """
    table = list_examples(evidence)
    names = [column.name for column in profile(table) if column.kind is Kind.TEXT]
    lengths = {name: table[name].str.len_chars().mean() or 0 for name in names}
    return max(lengths, key=lambda name: lengths[name], default=None)
