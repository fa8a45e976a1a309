"""Synthetic detection: are errors that show one feature, among other examples, found and named?

References
----------
Hua et al., "Discover, Explain, Improve: An Automatic Slice Detection Benchmark for Natural Language
Processing", TACL 11, 2023, sections 4.2 and 5.2. https://doi.org/10.1162/tacl_a_00617
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groundfault.core.plan import Plan
from groundfault_lab.language.explain import LEVEL, PERMUTATIONS, FeatureValues, Mark, compare

Bools = NDArray[np.bool_]

FEWEST = 40
"""A feature that fewer errors show is not planted: the paper takes those "with a relatively large
number".
"""


@dataclass(frozen=True, eq=False)
class Mix:
    """The errors that show a feature, and as many other examples.

    Attributes
    ----------
    feature : str
        The gold feature.
    rows : int64 array, shape (m,)
        Examples, in rising order.
    target : bool array, shape (m,)
        Which of them are errors that show the feature.
    """

    feature: str
    rows: NDArray[np.int64]
    target: Bools


@dataclass(frozen=True)
class DetectionScore:
    """Precision, recall and their harmonic mean; NaN where there is nothing to take a share of."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """Harmonic mean; 0 where precision or recall is 0."""
        if self.recall == 0 or self.precision == 0:
            return 0.0
        return 2 * self.precision * self.recall / (self.precision + self.recall)


@dataclass(frozen=True)
class Detection:
    """What error slices made of a mix.

    Attributes
    ----------
    feature : str
        The gold feature.
    targets, size, suspects, hits : int
        Errors that show it, examples of the mix, those that are on an error slice, and targets
        among these.
    slices : int
        Error slices that are large enough for a test.
    named, corrected : tuple of str
        Features that are significantly larger on some error slice than off it, by the paper's rule,
        and corrected for all slices and features.
    first : str
        The feature named before all others: of the smallest p, then of the largest V; empty where
        there is no slice.
    """

    feature: str
    targets: int
    size: int
    suspects: int
    hits: int
    slices: int
    named: tuple[str, ...]
    corrected: tuple[str, ...]
    first: str

    @property
    def grouping(self) -> DetectionScore:
        """Of the targets on error slices: what the paper reports."""
        return DetectionScore(
            self.hits / self.suspects if self.suspects else float("nan"), self.hits / self.targets
        )


def make_mixes(
    texts: FeatureValues, wrong: Bools, plan: Plan, *, min_targets: int = FEWEST
) -> list[Mix]:
    """One mix for each feature that enough errors show.

    Parameters
    ----------
    texts : FeatureValues
        Of n texts.
    wrong : bool array, shape (n,)
        Which are errors.
    plan : Plan
        Whose seed draws the other examples.
    min_targets : int
        Features that fewer errors show are left out.

    Notes
    -----
    The paper mixes "randomly selected datapoints from the original dataset with the same number";
    here they are drawn without the targets, so that no example comes twice. Where there are not as
    many, all of them are taken. They may be errors, or show the feature, but not both."""
    mixtures = []
    for feature, features_shown in zip(texts.features, texts.features_shown, strict=True):
        target = features_shown & wrong
        count = int(target.sum())
        if count < min_targets:
            continue
        rest = np.flatnonzero(~target)
        # a stream for each feature: leaving one out changes no other mix
        sample = plan.rng(f"mix {feature.name}").permutation(rest)[:count]
        # the order tells nothing of which half an example came from
        rows = np.sort(np.concatenate([np.flatnonzero(target), sample]))
        mixtures.append(Mix(feature.name, rows, target[rows]))
    return mixtures


def detect(
    mix: Mix,
    members: Bools,
    texts: FeatureValues,
    wrong: Bools,
    plan: Plan,
    *,
    permutations: int = PERMUTATIONS,
    level: float = LEVEL,
) -> Detection:
    """How many targets of a mix its error slices hold, and which features mark these.

    Parameters
    ----------
    mix : Mix
    members : bool array, shape (S, m)
        Which examples of the mix each error slice holds; slices may overlap.
    texts : FeatureValues
    wrong : bool array, shape (n,)
        Of all examples, as for `mixes`.
    plan : Plan
        Whose seed draws the permutations.
    permutations : int
    level : float

    Notes
    -----
    The tests are exact for slices that do not depend on the features. A slicer that groups the
    targets cuts by the feature, as it should; what goes with the feature, or with being an error,
    is larger on its slices too, and named."""
    here = FeatureValues(texts.features, texts.values[:, mix.rows], texts.lacking)
    rng = plan.rng(f"mix {mix.feature} tests")
    explanation = compare(
        members, here, wrong[mix.rows], rng, permutations=permutations, level=level
    )
    # slices may overlap; an example counts once
    prone = members.any(axis=0)
    return Detection(
        mix.feature,
        int(mix.target.sum()),
        len(mix.rows),
        int(prone.sum()),
        int((prone & mix.target).sum()),
        len(explanation.slices),
        _names(explanation.select_marks(corrected=False)),
        _names(explanation.select_marks()),
        min((mark for one in explanation.slices for mark in one.marks), key=_order).feature
        if explanation.slices
        else "",
    )


def score_naming(
    detections: Sequence[Detection], feature: str, *, corrected: bool = True
) -> DetectionScore:
    """Precision and recall with which error slices name the feature of their mix.

    Parameters
    ----------
    detections : sequence of Detection
        Of mixes of several features, and perhaps several draws.
    feature : str
    corrected : bool
        Named with the correction for all slices and features, or by the paper's rule.
    """
    rates = [d for d in detections if feature in (d.corrected if corrected else d.named)]
    gold = [d for d in detections if d.feature == feature]
    right = sum(d.feature == feature for d in rates)
    return DetectionScore(
        right / len(rates) if rates else float("nan"), right / len(gold) if gold else float("nan")
    )


def _names(marks: Sequence[Mark]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(mark.feature for mark in marks))


def _order(mark: Mark) -> tuple[float, float, float]:
    return mark.adjusted, mark.p, -mark.v if mark.v == mark.v else 0.0
