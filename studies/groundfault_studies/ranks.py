"""Kendall's tau-b, Spearman's rho and the area under the curve; and intervals over folds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_EXACT = 12  # digits: what rounding leaves between equal rates is a tie


def tau_b(x: Floats, y: Floats) -> Floats:
    """Kendall's tau-b along the last axis, of pairs that are known on both sides.

    Parameters
    ----------
    x, y : float64 arrays, shape (..., k)
        NaN is left out.

    Returns
    -------
    float64 array, shape (...)
        In [-1, 1]; NaN where one side has fewer than two different known values.

    Notes
    -----
    Kendall 1945, doi:10.1093/biomet/33.3.239.
    """
    first, second = np.triu_indices(x.shape[-1], 1)
    a, b = np.broadcast_arrays(np.round(x, _EXACT), np.round(y, _EXACT))
    up, across = np.sign(a[..., first] - a[..., second]), np.sign(b[..., first] - b[..., second])
    defined = ~(np.isnan(up) | np.isnan(across))
    up, across = np.where(defined, up, 0.0), np.where(defined, across, 0.0)
    # tau-b: pairs tied on one side count in neither sum of squares
    scale = np.sqrt((up**2).sum(axis=-1) * (across**2).sum(axis=-1))
    return np.where(scale > 0, (up * across).sum(axis=-1) / np.where(scale > 0, scale, 1.0), np.nan)


def rho(x: Floats, y: Floats) -> float:
    """Spearman's rank correlation; NaN where one side is constant."""
    from scipy.stats import rankdata

    a, b = (np.asarray(rankdata(np.round(side, _EXACT))) for side in (x, y))
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a**2).sum() * (b**2).sum()))
    return float((a * b).sum() / scale) if scale > 0 else float("nan")


def area(score: Floats, positive: NDArray[np.bool_]) -> float:
    """Chance that a positive scores above a negative, ties one half; NaN without either."""
    from scipy.stats import rankdata

    yes = int(positive.sum())
    no = len(positive) - yes
    if not yes or not no:
        return float("nan")
    rank = rankdata(np.round(score, _EXACT))
    # Mann and Whitney's U over its largest value; mid-ranks count a tie one half
    return float((rank[positive].sum() - yes * (yes + 1) / 2) / (yes * no))


def bootstrap_bands(
    values: Floats, level: float = 0.95, *, draws: int = 4000, seed: int = 0
) -> tuple[Floats, Floats, Floats]:
    """Means over folds with intervals that hold for all columns at once.

    Parameters
    ----------
    values : float64 array, shape (folds, k)
        Without NaN. A fold is the unit: trials within one are averaged before.
    level : float
        Joint coverage, in (0, 1).
    draws : int
        Resamples of folds.
    seed : int

    Returns
    -------
    tuple of float64 arrays, shape (k,)
        Means, lower and upper ends. With fewer than three folds the ends are infinite.

    Notes
    -----
    Bootstrap of the largest deviation in standard errors; one column gives the ordinary interval,
    symmetric about its mean. Assumes independent folds; folds of one data set share training
    models, so that coverage is approximate."""
    folds = len(values)
    mean = values.mean(axis=0)
    if folds < 3:
        return mean, np.full_like(mean, -np.inf), np.full_like(mean, np.inf)
    error = values.std(axis=0, ddof=1) / np.sqrt(folds)
    # counts of each fold in a resample of folds: the bootstrap, as one matrix product
    weight = np.random.default_rng(seed).multinomial(folds, np.full(folds, 1 / folds), size=draws)
    deviation = np.abs(weight @ values / folds - mean) / np.where(error > 0, error, np.inf)
    # the largest deviation of all columns, so that the band holds for all at once; sqrt(f / (f -
    # 1)) because a resample of f folds varies by that much less than a sample
    reach = float(np.quantile(deviation.max(axis=1, initial=0.0), level)) * np.sqrt(
        folds / (folds - 1)
    )
    return mean, mean - reach * error, mean + reach * error
