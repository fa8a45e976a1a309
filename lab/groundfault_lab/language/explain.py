"""Explain: which linguistic features mark each error slice, measured as in the benchmark DEIM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.base.long_work import Progress, listener
from groundfault.core.candidate import Candidate, add_fitted_columns
from groundfault.core.columns import match_attributes, select_example_rows
from groundfault.core.evidence import Evidence
from groundfault.core.plan import Plan
from groundfault.core.rules import Rule
from groundfault.errors import InputError
from groundfault_lab.language.feature import Feature, select_features
from groundfault_lab.language.pipeline import DEFAULT, Pipeline, load_pipeline
from groundfault_lab.slicing.predictions import example_losses
from groundfault_lab.slicing.replays import describe_chance
from groundfault_lab.stats import slice_features
from groundfault_lab.stats.slice_features import average_v

# the customary level of a test
LEVEL = 0.05
# the smallest p-value is then 0.0001
PERMUTATIONS = 9_999
MIN_TEXTS = 8
"""Smaller slices are not explained: a handful of texts has many features in common."""


@dataclass(frozen=True, eq=False)
class FeatureValues:
    """Features of n texts. Make one with `measured`.

    Attributes
    ----------
    features : tuple of Feature, length F
        Those that are available.
    values : float64 array, shape (F, n)
        A text for which a feature has no value, such as the frequency of no words, is taken for
        average.
    lacking : dict of str to str
        Features that are not available, with the reason.
    """

    features: tuple[Feature, ...]
    values: NDArray[np.float64]
    lacking: dict[str, str]

    @property
    def features_shown(self) -> NDArray[np.bool_]:
        """Return which texts show each feature, shape (F, n).

        See `groundfault_lab.stats.slice_features.mark_features`.
        """
        return slice_features.mark_features(self.values, [f.graded for f in self.features])


@dataclass(frozen=True)
class Mark:
    """A feature that may mark a slice.

    Attributes
    ----------
    feature, says : str
    inside, outside : float
        Mean of the feature, a share where a text has it or not.
    p, adjusted : float
        One-sided permutation p-value, and adjusted for all slices and features; the second is at
        least the p-value of the slice, since it speaks of an error slice that the feature marks.
    homogeneity, completeness, v : float
        See `groundfault_lab.stats.slice_features.Fit`.
    """

    feature: str
    says: str
    graded: bool
    inside: float
    outside: float
    p: float
    adjusted: float
    homogeneity: float
    completeness: float
    v: float


@dataclass(frozen=True)
class SliceProfile:
    """A slice and the features compared in it, the smallest p first.

    Attributes
    ----------
    name, rule, meaning : str
    size, wrong : int
        Examples on it that were compared, and how many of these are errors.
    marks : tuple of Mark
    p : float or None
        Share of searches on permuted errors that find a slice as good; None where the search was
        not repeated.
    """

    name: str
    rule: str
    meaning: str
    size: int
    wrong: int
    marks: tuple[Mark, ...]
    p: float | None = None

    def select_marks(self, level: float = LEVEL, *, corrected: bool = True) -> tuple[Mark, ...]:
        """Return the features with a p-value below a level, corrected or as in the paper."""
        return tuple(m for m in self.marks if (m.adjusted if corrected else m.p) < level)


@dataclass(frozen=True)
class Explanation:
    """Slices explained by linguistic features.

    Attributes
    ----------
    slices : tuple of Slice
    lacking : dict of str to str
        Features that are not available, with the reason.
    features : int
        Features that were compared.
    n, wrong : int
        Examples compared, and errors among them.
    level : float
    permutations : int
        Of each test of a feature.
    searches : int
        Times that the search for slices was repeated on permuted errors.
    """

    slices: tuple[SliceProfile, ...]
    lacking: dict[str, str]
    features: int
    n: int
    wrong: int
    level: float
    permutations: int
    searches: int = 0

    @property
    def caveat(self) -> str:
        """Say in a sentence, to be read first, how the slices compare with those of chance."""
        best = min((one.p for one in self.slices if one.p is not None), default=None)
        return describe_chance(best, self.searches, self.level)

    def select_marks(self, *, corrected: bool = True) -> tuple[Mark, ...]:
        """Return every pair of slice and feature that counts as a mark."""
        each = (s.select_marks(self.level, corrected=corrected) for s in self.slices)
        return tuple(chain.from_iterable(each))

    def summary(self, *, corrected: bool = True) -> dict[str, float]:
        """Return share of features that mark a slice, and mean scores of the marks; NaN for none.

        V is the mean of the V of each mark, not that of the two means. A mark that no error shows
        has no completeness and no V, and counts in neither mean.
        """
        marks = self.select_marks(corrected=corrected)
        share = len({m.feature for m in marks}) / self.features if self.features else float("nan")
        names = ("homogeneity", "completeness", "v")
        means = {name: _mean([getattr(mark, name) for mark in marks]) for name in names}
        weighted = average_v([share], [means["v"]])
        return {"marks": len(marks), "feature_prop": share, **means, "weighted_v": weighted}

    def to_dict(self) -> dict[str, Any]:
        """Return plain words and numbers, with None for what is not defined."""
        summaries = {"corrected": self.summary(), "uncorrected": self.summary(corrected=False)}
        content = {"caveat": self.caveat, **asdict(self), **summaries}
        return dict(msgspec.json.decode(msgspec.json.encode(content)))


def explain(
    evidence: Evidence,
    slices: Sequence[Candidate],
    text: str,
    *,
    sets: Sequence[str] = ("surface", "syntax", "pragmatic"),
    pipeline: str | Pipeline = DEFAULT,
    plan: Plan | None = None,
    permutations: int = PERMUTATIONS,
    level: float = LEVEL,
    chances: Mapping[str, float | None] | None = None,
    searches: int = 0,
    progress: Progress | None = None,
) -> Explanation:
    """Say which linguistic features are larger on each slice than off it, in discovery examples.

    Parameters
    ----------
    evidence : Evidence
        Of one model.
    slices : sequence of Candidate
        Such as what `groundfault_lab.slicing.proposals.propose` gives; those that hold, or leave
        out, fewer than eight examples are passed over.
    text : str
        The column of texts.
    sets : sequence of str
        Sets of features, or features.
    pipeline : str or Pipeline
    plan : Plan, optional
        Whose split and seed count; held-out examples are not looked at.
    permutations : int
    level : float
        In (0, 1), of the p-values.
    chances : mapping of str to float, optional
        The p-value of each slice by its name, such as those that
        `groundfault_lab.slicing.proposals.propose` gives with ``permutations``. Without it
        nothing tells error slices from those of chance.
    searches : int
        Searches on permuted errors that the p-values are from.
    progress : callable, optional

    Raises
    ------
    InputError
        If the column holds no texts, or there are several models.

    Notes
    -----
    Slices are always found, also in noise, and slices cut by what texts are like have features by
    construction: also where errors are dealt out at random. `chances` tells the two apart, and no
    adjusted p-value is below that of its slice. What marks a slice need not be what its errors come
    from. A feature is a candidate of its own with the finder ``language``,
    which an audit judges on the holdout.
    """
    plan = plan or Plan()
    frame, wrong = _select_texts(evidence, text, plan)
    report = listener(progress)
    report(f"reading {len(frame):,} texts")
    values = measure_features(frame[text].to_list(), sets, pipeline)
    # rules may read columns that a finder fitted, such as clusters
    table = add_fitted_columns(frame, slices)
    on = [
        # a rule is NULL where its column is missing: not on the slice
        table.select(Rule.parse(c.rule).to_polars().fill_null(False)).to_series().to_numpy()
        for c in slices
    ]
    members = np.array(on, dtype=np.bool_).reshape(len(slices), frame.height)
    report(f"{permutations:,} permutations")
    return compare(
        members,
        values,
        wrong,
        plan.rng("explain"),
        slices_by_name=[(c.name, c.rule, c.meaning) for c in slices],
        permutations=permutations,
        level=level,
        chances=[(chances or {}).get(c.name) for c in slices],
        searches=searches,
    )


def measure_features(
    texts: Sequence[str], sets: Sequence[str], pipeline: str | Pipeline = DEFAULT
) -> FeatureValues:
    """Measure features of texts.

    Raises
    ------
    InputError, MissingExtraError, PlanError
        As `groundfault_lab.language.load_pipeline` and `groundfault_lab.language.chosen`.
    """
    loaded = pipeline if isinstance(pipeline, Pipeline) else load_pipeline(pipeline)
    reasons = {f: loaded.lacking(f) for f in select_features(sets)}
    features = tuple(f for f, reason in reasons.items() if not reason)
    lacking = {f.name: reason for f, reason in reasons.items() if reason}
    values = loaded.measure(texts, features).T
    there = ~np.isnan(values)
    means = np.where(there, values, 0.0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
    # the mean: a text without a value then speaks for neither side
    return FeatureValues(features, np.where(there, values, means[:, None]), lacking)


def compare(
    members: NDArray[np.bool_],
    texts: FeatureValues,
    wrong: NDArray[np.bool_],
    rng: np.random.Generator,
    *,
    slices_by_name: Sequence[tuple[str, str, str]] | None = None,
    permutations: int = PERMUTATIONS,
    level: float = LEVEL,
    chances: Sequence[float | None] | None = None,
    searches: int = 0,
) -> Explanation:
    """Compare features on and off slices of texts.

    Parameters
    ----------
    members : bool array, shape (S, n)
        Slices that hold, or leave out, fewer than eight texts are left out.
    texts : FeatureValues
        Of the n texts.
    wrong : bool array, shape (n,)
        Which are errors.
    rng : numpy.random.Generator
        Of the permutations.
    slices_by_name : sequence of tuple of str, optional
        Name, rule and meaning of every slice; left out, slices are numbered.
    permutations : int
    level : float
        In (0, 1), of the p-values.
    chances : sequence of float, optional
        The p-value of every slice, None where there is none.
    searches : int
        Searches that these are from.
    """
    names = slices_by_name or [(str(number), "", "") for number in range(len(members))]
    # also slices that leave out few: the comparison is with the rest
    eligible = [s for s, on in enumerate(members) if MIN_TEXTS <= on.sum() <= len(on) - MIN_TEXTS]
    on = members[eligible]
    profiles = []
    for s, own in zip(eligible, _list_marks(texts, on, wrong, permutations, rng), strict=True):
        p = None if chances is None else chances[s]
        # that a feature marks an error slice claims both: that errors gather there, and that the
        # feature does. The larger p-value tests the two together (Berger 1982, intersection-union)
        marks = tuple(replace(mark, adjusted=max(mark.adjusted, p or 0.0)) for mark in own)
        counts = int(members[s].sum()), int((members[s] & wrong).sum())
        profiles.append(SliceProfile(*names[s], *counts, marks, p))
    sizes = len(texts.features), len(wrong), int(wrong.sum())
    return Explanation(tuple(profiles), texts.lacking, *sizes, level, permutations, searches)


def _select_texts(
    evidence: Evidence, text: str, plan: Plan
) -> tuple[pl.DataFrame, NDArray[np.bool_]]:
    """Return the discovery examples with a text and an outcome, and which of them are errors."""
    # errors of several models on one text are not independent
    if len(evidence.models) > 1:
        raise InputError(f"there are {len(evidence.models)} models; explain one (--model NAME)")
    match_attributes(evidence, [text])
    discovery = evidence.take(plan.discovery_units(evidence)[evidence.unit_index])
    frame, losses = select_example_rows(discovery), example_losses(discovery)
    if frame[text].dtype != pl.String:
        raise InputError(f"column {text!r} holds {frame[text].dtype}, not text")
    there = frame[text].is_not_null() & losses.is_not_null()
    if there.sum() < 2:
        raise InputError(
            f"there are {there.sum()} discovery examples with a text in {text!r} and an outcome"
        )
    # the paper's errors are 0/1; a graded loss counts from one half on
    return frame.filter(there), losses.filter(there).to_numpy() >= 0.5


def _list_marks(
    texts: FeatureValues,
    members: NDArray[np.bool_],
    wrong: NDArray[np.bool_],
    permutations: int,
    rng: np.random.Generator,
) -> list[tuple[Mark, ...]]:
    tests = slice_features.compare_means(members, texts.values, permutations, rng)
    fits = slice_features.measure_fit(members, wrong, texts.features_shown)
    columns = [tests.inside, tests.outside, tests.p, tests.p_adjusted]
    columns += [fits.homogeneity, fits.completeness, fits.v]
    out = []
    for s in range(len(members)):
        marks = [
            Mark(f.name, f.says, f.graded, *(float(column[s, j]) for column in columns))
            for j, f in enumerate(texts.features)
        ]
        marks.sort(key=lambda m: (m.p, m.adjusted, -m.v if m.v == m.v else 0.0))
        out.append(tuple(marks))
    return out


def _mean(values: Sequence[float]) -> float:
    present = [value for value in values if not np.isnan(value)]
    return float(np.mean(present)) if present else float("nan")
