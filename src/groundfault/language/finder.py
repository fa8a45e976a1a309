"""Linguistic features of texts: "question has a negation"."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from groundfault.core.candidate import Candidate
from groundfault.core.columns import take_sample
from groundfault.core.evidence import Evidence
from groundfault.core.rules import quote
from groundfault.finders.text import drop_uninformative, select_texts
from groundfault.finders.thresholds import choose_cuts
from groundfault.language import AIDED, DEFAULT, SETS, Feature, load_pipeline, select_features
from groundfault.language.column import LanguageColumn
from groundfault.slicing.parameters import Parameters


@dataclass(frozen=True)
class Language(Parameters):
    """Propose linguistic features of texts: a feature that a text has, or more of one than most.

    Features of degree are cut at quantiles of the discovery examples. What all or none of these
    have is left out, and so is what marks the same examples as an earlier candidate of its column.
    So are features that the pipeline cannot tell, and those that depend on more than the text: its
    words in a corpus or a table of norms (see ``groundfault features``). Examples without a text
    are left out of these candidates.

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
