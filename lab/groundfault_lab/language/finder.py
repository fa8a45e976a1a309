"""Linguistic features of texts: "question has a negation"."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from groundfault.core.candidate import Candidate, FittedColumn
from groundfault.core.columns import take_sample
from groundfault.core.evidence import Evidence
from groundfault.core.rules import quote
from groundfault.errors import InputError, RuleError
from groundfault.finders import Parameters
from groundfault.finders.columns import choose_cuts, drop_uninformative, select_texts
from groundfault_lab.language import AIDED, BLANK, DEFAULT, FEATURES, SETS, Feature, select_features
from groundfault_lab.language.pipeline import is_package, load_pipeline, require_texts


@dataclass(frozen=True, eq=False)
class LanguageColumn(FittedColumn):
    """A feature of a column of texts; ``function`` is ``language``.

    Attributes
    ----------
    feature : str
        Of those that depend on the text alone.
    pipeline : str
        The spaCy pipeline that annotates; see `groundfault_lab.language.load_pipeline`. Its
        numbers are as reproducible as the pipeline: the same one has to be installed where the
        candidate is applied.

    Raises
    ------
    RuleError
        If there is no such feature, or it depends on more than the text.
    """

    feature: str = ""
    pipeline: str = BLANK

    def __post_init__(self) -> None:
        what, n = f"{self.source}: {self.feature!r}", len(self.columns)
        if self.feature not in FEATURES or FEATURES[self.feature].need in AIDED:
            raise RuleError(f"{what} is no linguistic feature of a text alone")
        if n != 1:
            raise RuleError(f"{what}: a linguistic feature is of one column of texts, not {n}")

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
        require_texts(frame[self.columns[0]])
        pipeline, feature = load_pipeline(self.pipeline), FEATURES[self.feature]
        if reason := pipeline.lacking(feature):
            raise InputError(f"the linguistic feature {self.feature} is {reason}")
        values = pipeline.measure_column(frame[self.columns[0]], (feature,))[:, 0]
        return pl.Series(self.name, values).fill_nan(None)

    def to_dict(self) -> dict[str, Any]:
        """Return the column as plain words; `from_dict` gives an equal one back."""
        return {**super().to_dict(), "feature": self.feature, "pipeline": self.pipeline}

    @classmethod
    def read_more(cls, data: Mapping[str, Any]) -> dict[str, Any]:
        """Read the feature and the pipeline.

        Raises
        ------
        InputError
            If its pipeline is a folder: the code of one runs as it is loaded.
        """
        if not is_package(str(data["pipeline"])):
            raise InputError(
                f"the spaCy pipeline {str(data['pipeline'])!r} is no installed package, and none "
                "is loaded from a folder because a file names it; install it as a package"
            )
        return {key: str(data[key]) for key in ("feature", "pipeline")}


@dataclass(frozen=True)
class Language(Parameters):
    """Propose linguistic features of texts: a feature that a text has, or more of one than most.

    Features of degree are cut at quantiles of the discovery examples. What all or none of these
    have is left out, and so is what marks the same examples as an earlier candidate of its column.
    So are features that the pipeline cannot tell, and those that depend on more than the text: its
    words in a corpus or a table of norms (see ``groundfault lab features``). Examples without a
    text are left out of these candidates.

    Parameters
    ----------
    columns : tuple of str, optional
        Names or globs; without them every attribute of text that is neither a category nor a code.
    sets : tuple of str
        Sets of features, or names of features.
    pipeline : str
        The spaCy pipeline that annotates, or ``blank`` for the features that need no parser.
    quantiles : tuple of float
        In (0, 1).

    Raises
    ------
    InputError
        If a named column is not there or holds no text.
    MissingExtraError
        If spaCy or the pipeline is not installed.
    PlanError
        If there is no such feature or set.

    Warns
    -----
    UserWarning
        Of features that the pipeline cannot tell, and what they need.

    Notes
    -----
    A candidate says what texts are like on which errors are more frequent, not that this causes
    them: features go together, and with what texts are about.
    """

    columns: tuple[str, ...] | None = None
    sets: tuple[str, ...] = SETS
    pipeline: str = DEFAULT
    quantiles: tuple[float, ...] = (0.5, 0.75, 0.9)
    name: str = "language"

    def propose(self, discovery: Evidence) -> Iterator[Candidate]:
        """Propose candidates such as ``question has a negation``, column by column."""
        table = take_sample(select_texts(discovery, self.columns))
        there = self._features() if table.columns else ()
        for column in table.columns:
            # a fitted column, so that a frozen candidate can be applied to other texts
            derived = {f.name: LanguageColumn.of(column, f.name, self.pipeline) for f in there}
            values = table.select(column).with_columns(one.apply(table) for one in derived.values())
            candidates = [
                c for f in there for c in self._candidates(column, f, derived[f.name], values)
            ]
            yield from drop_uninformative(values, candidates)

    def _features(self) -> tuple[Feature, ...]:
        pipeline = load_pipeline(self.pipeline)
        # a feature that depends on a corpus would change its values on the holdout
        alone = [f for f in select_features(self.sets) if f.need not in AIDED]
        reasons = {f.name: pipeline.lacking(f) for f in alone}
        # one warning a reason, not one a feature
        for reason in dict.fromkeys(filter(None, reasons.values())):
            names = ", ".join(name for name, why in reasons.items() if why == reason)
            warnings.warn(f"{names} {reason}", stacklevel=3)
        return tuple(f for f in alone if not reasons[f.name])

    def _candidates(
        self, column: str, feature: Feature, derived: LanguageColumn, table: pl.DataFrame
    ) -> Iterator[Candidate]:
        rule, says = quote(derived.name), f"{column} {feature.says}"
        if not feature.graded:
            yield Candidate(says, f"{rule} > 0", says, self.name, "drop", fitted_column=derived)
            return
        for cut in choose_cuts(table, [derived.name], self.quantiles).get(derived.name, []):
            says = f"{column} {feature.above(cut)}"
            yield Candidate(says, f"{rule} > {cut}", says, self.name, "drop", fitted_column=derived)
