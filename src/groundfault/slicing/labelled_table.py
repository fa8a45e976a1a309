"""A table of predictions of which some have a true class: what learns, and what it is for."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.core.candidate import matrix
from groundfault.errors import InputError
from groundfault.slicing.embedding import embed
from groundfault.slicing.predictions import (
    EMBEDDING,
    PROBABILITY,
    EmbeddedPredictions,
    check_probability,
)


@dataclass(frozen=True, eq=False)
class ScoredExamples:
    """Examples with a model's output.

    Attributes
    ----------
    embedding, probability : float64 arrays, shapes (n, d) and (n, c)
    """

    embedding: NDArray[np.float64]
    probability: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """Examples with a true class, and those without. Make one with `of`.

    Attributes
    ----------
    frame : polars.DataFrame
    label_column : str
    classes : tuple of str
        Names of the c classes.
    labelled, fresh : ScoredExamples
        Rows with a class, and without one.
    label : int64 array
        Classes of the labelled, in 0 .. c - 1.
    fresh_rows : tuple of int
        Which rows of ``frame`` the fresh ones are.
    incomplete : int
        Rows that lack a number, and are in neither part.
    """

    frame: pl.DataFrame
    label_column: str
    classes: tuple[str, ...]
    labelled: ScoredExamples
    label: NDArray[np.int64]
    fresh: ScoredExamples
    fresh_rows: tuple[int, ...]
    incomplete: int

    @classmethod
    def of(
        cls,
        frame: pl.DataFrame,
        label: str = "label",
        embedding: str = EMBEDDING,
        probability: str = PROBABILITY,
        text: str | None = None,
    ) -> LabelledTable:
        """Read a table of one row an example.

        Parameters
        ----------
        frame : polars.DataFrame
        label : str
            Column of the true class, NULL where it is not known: named as the probability columns
            are, or numbered from 0.
        embedding, probability : str
            Columns, or globs of columns.
        text : str, optional
            Column of texts. Where there is no embedding, theirs (TF-IDF) is taken, learnt from all
            rows; a missing text is an empty one.

        Raises
        ------
        InputError
            If a column is missing or holds something else.
        """
        if text is not None and not _match(frame, embedding, label):
            points = embed(frame[text].cast(pl.String).fill_null("").to_list())
            frame = frame.with_columns(
                pl.Series("embedding", points, dtype=pl.Array(pl.Float64, points.shape[1]))
            )
            embedding = "embedding"
        views = [
            _require(frame, pattern, label, need)
            for pattern, need in (
                (embedding, "embedding of the examples (--embedding), or texts to embed (--text)"),
                (probability, "model's probability of each class (--probability)"),
            )
        ]
        views[0] = {name: pattern for name, pattern in views[0].items() if name not in views[1]}
        is_known = frame[label].is_not_null()
        known = EmbeddedPredictions.of_table(frame.filter(is_known), views[0], views[1], label)
        points, chances = (matrix(frame, list(view)) for view in views)
        is_complete = ~(np.isnan(points).any(axis=1) | np.isnan(chances).any(axis=1))
        rows = np.flatnonzero(is_complete & ~is_known.to_numpy())
        return cls(
            frame,
            label,
            known.classes,
            ScoredExamples(known.embedding, check_probability(known.probability, len(known.label))),
            known.label,
            ScoredExamples(points[rows], check_probability(chances[rows], len(rows))),
            tuple(rows.tolist()),
            int((~is_complete).sum()),
        )


def _match(frame: pl.DataFrame, pattern: str, label: str) -> dict[str, str]:
    """Return the columns that a name or glob selects, each with the pattern."""
    names = [
        name
        for name in frame.columns
        if name != label and (name == pattern or fnmatchcase(name, pattern))
    ]
    return dict.fromkeys([pattern] if pattern in names else names, pattern)


def _require(frame: pl.DataFrame, pattern: str, label: str, need: str) -> dict[str, str]:
    names = _match(frame, pattern, label)
    if not names:
        raise InputError(
            f"no column is named, or matches, {pattern!r}: name those of the {need}; the table has "
            f"{', '.join(name for name in frame.columns[:12] if name != label)}"
        )
    return names
