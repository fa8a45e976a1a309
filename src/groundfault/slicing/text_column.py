"""Slices of texts: a fitted column that embeds its texts first, so that it applies to any texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.core.candidate import FittedColumn, decode_array
from groundfault.core.columns import Kind, list_examples, profile
from groundfault.core.evidence import Evidence
from groundfault.errors import InputError
from groundfault.slicing.embedding import Embedding

_POINTS = "embedding of the texts"


@dataclass(frozen=True, eq=False)
class EmbeddedTextColumn(FittedColumn):
    """The slice of a mixture that each text is in; ``function`` is ``texts``.

    The first of ``columns`` holds the texts, the others are the probabilities of the classes.

    Attributes
    ----------
    embedding : Embedding
        As it was fitted to the discovery texts: others are put where they would have been then.
    """

    embedding: Embedding = field(default_factory=lambda: Embedding("tfidf"), repr=False)

    def __post_init__(self) -> None:
        """Check nothing: what cannot be applied says so."""

    @cached_property
    def name(self) -> str:
        """Return the column's name, different for other slices or another embedding."""
        whole = json.dumps(self.to_dict(), sort_keys=True)
        return f"{self.source}_{hashlib.sha256(whole.encode()).hexdigest()[:16]}"

    def apply(self, frame: pl.DataFrame) -> pl.Series:
        """Return the slice of each row; NULL where its text or a probability is missing.

        Raises
        ------
        InputError
            If the columns hold something else than when it was fitted.
        """
        text, *others = self.columns
        points = embed_column(frame[text], self.embedding)
        inner = FittedColumn(self.source, "mixture", (_POINTS, *others), self.arrays)
        table = pl.DataFrame([*(frame[name] for name in others), make_points(points)])
        return inner.apply(table).alias(self.name)

    def to_dict(self) -> dict[str, Any]:
        """Return the column as plain words and numbers; `from_dict` gives an equal one back."""
        return {**super().to_dict(), "embedding": self.embedding.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> EmbeddedTextColumn:
        """Read what `to_dict` wrote.

        Raises
        ------
        InputError, KeyError, TypeError, ValueError
            If it is something else.
        """
        arrays = {str(key): decode_array(array) for key, array in dict(data["arrays"]).items()}
        columns = tuple(str(column) for column in data["columns"])
        embedding = Embedding.from_dict(data["embedding"])
        return cls(str(data["source"]), "texts", columns, arrays, embedding)


def embed_column(texts: pl.Series, embedding: Embedding) -> NDArray[np.float64]:
    """Return points of a column of texts, shape (n, d); NaN where a text is missing.

    Raises
    ------
    InputError
        If the column holds no texts.
    """
    if texts.dtype not in (pl.String, pl.Null):
        raise InputError(f"column {texts.name!r} holds {texts.dtype}, not text")
    points = embedding.apply(texts.cast(pl.String).fill_null("").to_list())
    points[texts.is_null().to_numpy()] = np.nan
    return points


def make_points(points: NDArray[np.float64]) -> pl.Series:
    """Return points as one column of a table."""
    return pl.Series(_POINTS, points, dtype=pl.Array(pl.Float64, points.shape[1]))


def find_text(evidence: Evidence) -> str | None:
    """Return the column of prose with the longest texts, among the attributes.

    None where there is none.

    Of attributes alone, so that no outcome has a part in the choice.
    """
    table = list_examples(evidence)
    names = [column.name for column in profile(table) if column.kind is Kind.TEXT]
    lengths = {name: table[name].str.len_chars().mean() or 0 for name in names}
    return max(lengths, key=lambda name: lengths[name], default=None)
