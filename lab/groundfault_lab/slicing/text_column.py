"""Slices of texts as a column: the texts are embedded first, so it applies to any texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from groundfault.base.arrays import Floats
from groundfault.core.candidate import FittedColumn
from groundfault.errors import InputError
from groundfault.slicing.embedding import Embedding

_POINTS = "embedding of the texts"


@dataclass(frozen=True, eq=False)
class EmbeddedTextColumn(FittedColumn):
    """Each text's slice of a mixture; ``function`` is ``texts``.

    The first of ``columns`` holds the texts, the others are the probabilities of the classes.

    Attributes
    ----------
    embedding : Embedding
        Embedding fitted to the discovery texts, which also places other texts.
    """

    embedding: Embedding = field(default_factory=lambda: Embedding("tfidf"), repr=False)

    def __post_init__(self) -> None:
        """Check no columns: `apply` raises if it cannot be used."""

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
    def read_more(cls, data: Mapping[str, Any]) -> dict[str, Any]:
        """Read the embedding.

        Raises
        ------
        InputError
            If it is missing or damaged.
        """
        return {"embedding": Embedding.from_dict(data["embedding"])}


def embed_column(texts: pl.Series, embedding: Embedding) -> Floats:
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


def make_points(points: Floats) -> pl.Series:
    """Return points as one column of a table."""
    return pl.Series(_POINTS, points, dtype=pl.Array(pl.Float64, points.shape[1]))
