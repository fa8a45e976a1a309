"""Features of slices: which are larger inside than outside, and which fit a slice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# equal statistics summed in another order may differ in the last digits; a tie counts against
_TIE = 1e-9
_EVEN, _MAX_SKEW = 1e-3, 8.0
"""Skew below which a distribution counts as symmetric, and the largest one corrected for.

Beyond the second no value would be low.
"""


@dataclass(frozen=True)
class LargerInside:
    """Features compared inside and outside of slices. All arrays have shape (S, F).

    Attributes
    ----------
    inside, outside : float64 array
        Mean of the feature.
    p : float64 array
        One-sided permutation p-value of the mean inside being the larger.
    p_adjusted : float64 array
        The same, adjusted for all slices and features together (Westfall and Young).
    """

    inside: Floats
    outside: Floats
    p: Floats
    p_adjusted: Floats


def compare_means(
    members: Bools, values: Floats, permutations: int, rng: np.random.Generator
) -> LargerInside:
    """Return permutation tests of features having a larger mean inside a slice than outside.

    Parameters
    ----------
    members : bool array, shape (S, n)
        Which examples each slice holds; at least one, and not all.
    values : float64 array, shape (F, n)
        Features, without missing values.
    permutations : int
        Number B of random permutations; p-values are (1 + exceedances) / (B + 1).
    rng : numpy.random.Generator

    Notes
    -----
    The null hypothesis is that the examples of a slice were dealt at random: exact for slices fixed
    without looking at the features. Slices cut by what the texts are like have features of their
    own by construction; then a small p says what marks the slice, and nothing of errors. The
    adjustment is single-step max-T over the standardised means of all slices and features, permuted
    jointly, so that it knows how they go together; the paper corrects for nothing. Means are evened
    out for the skew of their permutations (Wilson and Hilferty), or rare features of small slices,
    whose means are sometimes huge, would drown the others. A feature that does not vary has p = 1.
    Westfall and Young 1993; Ge, Dudoit and Speed 2003, doi:10.1007/BF02595811.

    Raises
    ------
    ValueError
        If a slice is empty or holds everything, or shapes do not fit.
    """
    size, n = members.sum(axis=1), members.shape[1]
    if values.shape[1:] != (n,) or not ((size > 0) & (size < n)).all():
        raise ValueError(
            "each slice must hold some, not all, of the examples, "
            "and features have one value for each"
        )
    inside = members.astype(np.float64)
    centred = values - values.mean(axis=1, keepdims=True)
    deviation = np.sqrt(np.outer(size * (n - size) / (n * (n - 1.0)), (centred**2).sum(axis=1)))
    # a constant feature has a deviation of rounding alone, and would give huge statistics
    varies = deviation > _TIE * np.maximum(1.0, np.abs(values).max(axis=1, initial=0.0))
    scale = np.where(varies, deviation, np.inf)
    sums = inside @ centred.T
    statistics = sums / scale - _TIE
    skew = _skew(size, centred) / scale**3
    level = _remove_skew(statistics, skew)
    exceed = np.zeros(sums.shape, dtype=np.int64)
    beyond = np.zeros(sums.shape, dtype=np.int64)
    for _ in range(permutations):
        z = inside @ centred[:, rng.permutation(n)].T / scale
        exceed += z >= statistics
        beyond += _remove_skew(z, skew).max(initial=-np.inf) >= level
    total = values.sum(axis=1)
    within = inside @ values.T
    return LargerInside(
        within / size[:, None],
        (total - within) / (n - size)[:, None],
        np.where(varies, (1 + exceed) / (1 + permutations), 1.0),
        np.where(varies, (1 + beyond) / (1 + permutations), 1.0),
    )


def _skew(size: NDArray[np.int64], centred: Floats) -> Floats:
    """Return third central moments of sums over slices when examples are permuted, shape (S, F)."""
    n = centred.shape[1]
    return np.outer(
        size * (n - size) * (n - 2.0 * size) / (n * (n - 1.0) * max(n - 2, 1)),
        (centred**3).sum(axis=1),
    )


def _remove_skew(z: Floats, skew: Floats) -> Floats:
    """Return standardised values, transformed so that one size is about as rare at any skew."""
    # the cube root of Wilson and Hilferty 1931, doi:10.1073/pnas.17.12.684; near no skew it is 0/0,
    # and the smallest skew stands in
    s = np.where(np.abs(skew) < _EVEN, _EVEN, np.clip(skew, -_MAX_SKEW, _MAX_SKEW))
    return np.asarray((np.cbrt(1 + s * z / 2) - 1) * 6 / s + s / 6)


def mark_features(values: Floats, graded: Sequence[bool]) -> Bools:
    """Return examples that have each feature; of graded ones, a deviation above the mean.

    Parameters
    ----------
    values : float64 array, shape (F, n)
    graded : sequence of bool, length F

    Returns
    -------
    bool array, shape (F, n)

    Notes
    -----
    The paper writes f(d) = 1 of all features; the line for those of degree is that of its synthetic
    data."""
    high = values > values.mean(axis=1, keepdims=True) + values.std(axis=1, keepdims=True)
    return np.where(np.asarray(graded, dtype=np.bool_)[:, None], high, values > 0)


@dataclass(frozen=True)
class Fit:
    """How well slices and features fit each other. All arrays have shape (S, F).

    Attributes
    ----------
    homogeneity : float64 array
        Errors of the slice that show the feature, as a share of the slice.
    completeness : float64 array
        The same as a share of all errors that show the feature; NaN where none does.
    v : float64 array
        Their harmonic mean; 0 where both are.
    """

    homogeneity: Floats
    completeness: Floats
    v: Floats


def measure_fit(members: Bools, wrong: Bools, marks: Bools) -> Fit:
    """Return homogeneity, completeness and V of slices and features (Hua et al. 2023, footnote 7).

    Parameters
    ----------
    members : bool array, shape (S, n)
    wrong : bool array, shape (n,)
    marks : bool array, shape (F, n)
        From `mark_features`.

    Notes
    -----
    The footnote divides by k, which elsewhere is the number of slices; a share needs the size of
    the slice, as used here. doi:10.1162/tacl_a_00617"""
    errors = (marks & wrong).astype(np.float64)
    both = members.astype(np.float64) @ errors.T
    size, total = members.sum(axis=1)[:, None], errors.sum(axis=1)[None]
    with np.errstate(divide="ignore", invalid="ignore"):
        homogeneity, completeness = both / size, both / total
    return Fit(homogeneity, completeness, v_measure(homogeneity, completeness))


def v_measure(homogeneity: Floats, completeness: Floats) -> Floats:
    """Return harmonic mean; 0 where both are 0."""
    total = homogeneity + completeness
    return np.asarray(2 * homogeneity * completeness / np.where(total == 0, 1.0, total))


def average_v(proportions: Sequence[float], v: Sequence[float]) -> float:
    """Return V over data sets, weighted by the share of features found (Hua et al. 2023, Eq. 12).

    Parameters
    ----------
    proportions, v : sequence of float, of one length
        Of each data set the share of features that mark a slice, and its mean V; one without any
        mark, whose V is NaN, counts as 0. NaN where there are no data sets.

    Examples
    --------
    >>> average_v([0.5, 1.0, 0.0], [0.3, 0.6, float("nan")])
    0.25
    """
    products = np.nan_to_num(
        np.asarray(proportions, dtype=np.float64) * np.asarray(v, dtype=np.float64)
    )
    return float(products.mean()) if len(products) else float("nan")
