"""Judges of codes: how often one is right, weighted by the design, and a share corrected for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import polars as pl
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from groundfault.base.arrays import Bools
from groundfault.core.evidence import Evidence
from groundfault.errors import InputError, require_name
from groundfault.review.notes import Floats, Side, bound_shares
from groundfault.stats.intervals import clopper_pearson, rogan_gladen

_HALF = 0.5
"""Share of coders that is no label, and a grade that says neither."""
Rate = tuple[float | None, float, float]
"""A share and its limits; None where there is nothing to count."""


class JudgeValidation(Struct, frozen=True, kw_only=True):
    """Say how often a judge of a code is right, and the code's share corrected for its errors.

    Attributes
    ----------
    code, side : str
    hits, positives : int
        Labelled runs with the code that the judge flags, and all labelled runs with it.
    tpr : tuple of float
        The true positive rate and its 95 % limits, each run weighted by its chance to be drawn;
        None without any. Where the chances are equal it is hits among positives, and exact.
    rejections, negatives : int
        Labelled runs without the code: those that the judge does not flag, and all.
    tnr : tuple of float
        The true negative rate and its limits.
    flagged, graded : int
        Runs that the judge flags among all that it graded.
    share, low, high : float
        Share of the code among all runs of this side, by the labels with the grades beside them;
        the limits hold at every look, for any judge.
    rogan_gladen : tuple of float
        The corrected share and its approximate 95 % limits by Rogan and Gladen, to compare; None
        where the judge is no better than a coin.
    parts : dict of str to tuple of int
        For each rule hits, positives, rejections and negatives where it holds.
    rates : dict of str to tuple
        For each rule the true positive and the true negative rate there, with limits.
    """

    code: str
    side: Side
    hits: int
    positives: int
    tpr: Rate
    rejections: int
    negatives: int
    tnr: Rate
    flagged: int
    graded: int
    share: float
    low: float
    high: float
    rogan_gladen: Rate
    parts: dict[str, tuple[int, int, int, int]] = {}
    rates: dict[str, tuple[Rate, Rate]] = {}


class WeightedRate(NamedTuple):
    """The share of runs that are right, with limits, and as successes and trials of equal weight.

    Unequal weights count as fewer trials (Korn and Graubard 1998, Survey Methodology 24:193).
    """

    ends: Rate
    counts: tuple[float, float]


class Labels(NamedTuple):
    """Labelled runs of a side: shares of their coders that give the code, what the judge says, the
    cells they were drawn from, and whether they were labelled after its prompt."""

    shares: Floats
    grades: Floats
    cells: NDArray[np.int64]
    fresh: Bools


def weigh(cells: NDArray[np.int64], every: NDArray[np.int64], usable: Bools) -> Floats:
    """Return for each labelled run how many runs it stands for, those not usable left out."""
    of, read = Counter(every.tolist()), Counter(cells[usable].tolist())
    return np.array([of[cell] / max(1, read[cell]) for cell in cells.tolist()])


def bound_rate(right: Bools, weights: Floats) -> WeightedRate:
    """Return the weighted share of runs for which a judge is right, with limits at 95 %.

    Examples
    --------
    >>> bound_rate(np.array([True, True, False]), np.ones(3)).counts
    (2.0, 3.0)
    """
    if not len(weights):
        return WeightedRate((None, 0.0, 1.0), (0.0, 0.0))
    share = float(weights[right].sum() / weights.sum())
    trials = round(float(weights.sum() ** 2 / (weights**2).sum()), 6)
    successes = round(share * trials, 6)
    low, high = clopper_pearson(successes, trials)
    return WeightedRate((share, float(low), float(high)), (successes, trials))


def validate_side(
    code: str,
    side: Side,
    labels: Labels,
    every: tuple[Floats, NDArray[np.int64]],
    masks: Mapping[str, Bools],
) -> JudgeValidation:
    """Measure a judge on the labels of one side, and correct the share that it flags.

    Parameters
    ----------
    code, side : str
    labels : Labels
    every : pair of arrays
        Grades and cells of all runs of the side.
    masks : mapping of str to bool array
        Labelled runs for which each rule holds.
    """
    # coders who disagree without an adjudicator give no label to compare a judge with
    usable = labels.fresh & (labels.shares != _HALF) & ~np.isnan(labels.grades)
    yes, right = labels.shares > _HALF, (labels.shares > _HALF) == (labels.grades > _HALF)
    weights = weigh(labels.cells, every[1], usable)

    def count(where: Bools) -> tuple[int, int, int, int]:
        of = (yes & right, yes, ~yes & right, ~yes)
        hits, positives, rejections, negatives = (int((one & where).sum()) for one in of)
        return hits, positives, rejections, negatives

    def rate(where: Bools) -> list[WeightedRate]:
        return [bound_rate(right[of], weights[of]) for of in (where & yes, where & ~yes)]

    parts = {rule: usable & mask for rule, mask in masks.items()}
    (hits, positives, rejections, negatives), (tpr, tnr) = count(usable), rate(usable)
    flagged, graded = int((every[0] > _HALF).sum()), int((~np.isnan(every[0])).sum())
    (share,), (low,), (high,) = bound_shares(
        labels.shares, labels.cells, every[1], (labels.grades, every[0]), labels.fresh
    )
    return JudgeValidation(
        code=code,
        side=side,
        hits=hits,
        positives=positives,
        tpr=tpr.ends,
        rejections=rejections,
        negatives=negatives,
        tnr=tnr.ends,
        flagged=flagged,
        graded=graded,
        share=float(share),
        low=float(low),
        high=float(high),
        rogan_gladen=rogan_gladen(flagged, graded, tpr.counts, tnr.counts),
        parts={rule: count(where) for rule, where in parts.items()},
        rates={rule: (rate(w)[0].ends, rate(w)[1].ends) for rule, w in parts.items()},
    )


def read_grades(evidence: Evidence, grades: str | ArrayLike) -> Floats:
    """Return grades of a judge, of a column or given: 1, 0 or NaN for each run."""
    if isinstance(grades, str):
        require_name("column", grades, evidence.frame.columns, InputError)
        name, grades = repr(grades), evidence.frame[grades].cast(pl.Float64, strict=False)
    else:
        name = "the judge"
    values = np.asarray(grades, dtype=np.float64)
    is_grade = np.isin(values, (0, 1)) | np.isnan(values)
    if values.shape != (len(evidence),) or not is_grade.all():
        raise InputError(
            f"grades of {name} are 1, 0 or missing, one for each of the {len(evidence):,} rows"
        )
    return values
