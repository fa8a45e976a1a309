"""A linguistic feature as a derived column, so that candidates that read it apply to any texts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from groundfault.core.candidate import FittedColumn
from groundfault.errors import InputError, RuleError
from groundfault.language.feature import FEATURES
from groundfault.language.pipeline import AIDED, BLANK, is_package, load_pipeline


@dataclass(frozen=True, eq=False)
class LanguageColumn(FittedColumn):
    """A feature of a column of texts; ``function`` is ``language``.

    Attributes
    ----------
    feature : str
        Of those that depend on the text alone.
    pipeline : str
        The spaCy pipeline that annotates; see `groundfault.language.load_pipeline`. Its numbers are
        as reproducible as the pipeline: the same one has to be installed where the candidate is
        applied.

    Raises
    ------
    RuleError
        If there is no such feature, or it depends on more than the text.
    """

    feature: str = ""
    pipeline: str = BLANK

    def __post_init__(self) -> None:
        if self.feature not in FEATURES or FEATURES[self.feature].need in AIDED:
            raise RuleError(
                f"{self.source}: {self.feature!r} is no linguistic feature of a text alone"
            )
        if len(self.columns) != 1:
            raise RuleError(
                f"{self.source}: a linguistic feature is of one column of texts, not "
                f"{len(self.columns)}"
            )

    @classmethod
    def of(cls, text: str, feature: str, pipeline: str) -> LanguageColumn:
        """Return the column of a feature of the texts in ``text``."""
        return cls("language", "language", (text,), {}, feature, pipeline)

    @property
    def name(self) -> str:
        """Return the column's name, different for another feature, column or pipeline."""
        # a part of the name, so that two pipelines can stand in one table
        parts = repr((self.columns, self.feature, self.pipeline))
        digest = hashlib.sha256(parts.encode()).hexdigest()
        return f"{self.source}_{self.feature}_{digest[:12]}"

    def apply(self, frame: pl.DataFrame) -> pl.Series:
        """Return the feature of each row.

        NULL where the text is missing or the feature has no value.

        Raises
        ------
        InputError
            If the column holds no texts, or the pipeline cannot tell the feature.
        MissingExtraError
            If the pipeline is not installed.
        """
        texts = frame[self.columns[0]]
        if texts.dtype not in (pl.String, pl.Null):
            raise InputError(f"column {texts.name!r} holds {texts.dtype}, not text")
        pipeline, feature = load_pipeline(self.pipeline), FEATURES[self.feature]
        if reason := pipeline.lacking(feature):
            raise InputError(f"the linguistic feature {self.feature} is {reason}")
        present = texts.is_not_null().to_numpy()
        values = np.full(len(texts), np.nan)
        # missing texts are not measured as empty ones, which have values
        values[present] = pipeline.measure(texts.drop_nulls().to_list(), (feature,))[:, 0]
        return pl.Series(self.name, values).fill_nan(None)

    def to_dict(self) -> dict[str, Any]:
        """Return the column as plain words; `from_dict` gives an equal one back."""
        return {**super().to_dict(), "feature": self.feature, "pipeline": self.pipeline}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LanguageColumn:
        """Read what `to_dict` wrote.

        Raises
        ------
        InputError
            If its pipeline is a folder: the code of one runs as it is loaded.
        """
        columns = tuple(str(column) for column in data["columns"])
        if not is_package(str(data["pipeline"])):
            raise InputError(
                f"the spaCy pipeline {str(data['pipeline'])!r} is no installed package, and none "
                "is loaded from a folder because a file names it; install it as a package"
            )
        source, feature, pipeline = (str(data[key]) for key in ("source", "feature", "pipeline"))
        return cls(source, "language", columns, {}, feature, pipeline)
