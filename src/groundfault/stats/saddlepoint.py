"""Sums over random subsets of losses on no grid, by a double saddlepoint approximation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# points of the grid; the outward rounding of mass by one cell stays below 0.5 % of a deviation
_CELLS = 4096


def saddlepoint(values: Floats, k: int) -> tuple[float, float, Floats]:
    """Approximate distribution of the sum over a random k-subset: start, step, probabilities.

    Double saddlepoint (Skovgaard 1987, doi:10.2307/3214219) in the modified signed-root form,
    solved on a grid of tilts and interpolated on the normal scale. Each cell's mass is put at its
    outer edge, so tails are not understated by the discretisation. Relative error of tails is about
    5 % down to 5e-3, and 12 % to 4e-4."""
    from scipy.interpolate import PchipInterpolator
    from scipy.special import ndtr

    n, total = len(values), float(values.sum())
    mean = k * total / n
    deviation = float(np.sqrt(k * (n - k) / max(n - 1, 1) * values.var()))
    if deviation == 0 or k in (0, n):
        return mean, 1.0, np.ones(1)
    # geometric, and without 0: at the mean the signed root is 0/0, and the curve is interpolated
    # across
    tilts = np.concatenate([-np.geomspace(12, 0.1, 24), np.geomspace(0.1, 12, 24)]) / deviation
    sums, roots = _saddle_curve(np.asarray(values, dtype=np.float64), float(k), tilts)
    finite = np.isfinite(roots) & np.isfinite(sums)
    order = np.argsort(sums[finite])
    # rounding may break the order in the far tail, and a distribution function must not fall
    sums, roots = sums[finite][order], np.maximum.accumulate(roots[finite][order])
    distinct_sums = np.concatenate([[True], np.diff(sums) > 1e-12 * deviation])
    curve: Callable[[Floats], Floats] = PchipInterpolator(
        sums[distinct_sums], roots[distinct_sums], extrapolate=False
    )
    losses_in_order = np.sort(values)
    edges = np.linspace(
        max(losses_in_order[:k].sum(), mean - 9 * deviation),
        min(losses_in_order[n - k :].sum(), mean + 9 * deviation),
        _CELLS,
    )
    inner = np.clip(edges, sums[0], sums[-1])
    below = ndtr(np.asarray(curve(inner)))
    # sums beyond the last tilt share its tail: the ends take what is left
    below[0], below[-1] = 0.0, 1.0
    mass = np.diff(np.maximum.accumulate(below))
    pmf = np.zeros(_CELLS)
    # away from the mean: a p-value from this table errs upwards
    outward = edges[1:] > mean
    np.add.at(pmf, np.arange(_CELLS - 1) + outward, mass)
    return float(edges[0]), float(edges[1] - edges[0]), pmf


@njit(cache=True, parallel=True)
def _saddle_curve(
    values: Floats, k: float, tilts: Floats
) -> tuple[Floats, Floats]:  # pragma: no cover - compiled
    n = len(values)
    p = k / n
    centre = values.mean()
    sums, roots = np.empty(len(tilts)), np.empty(len(tilts))
    for g in prange(len(tilts)):
        t = tilts[g]
        shift = 0.0
        for _ in range(200):
            count, slope = 0.0, 0.0
            for i in range(n):
                e = 1.0 / (1.0 + (1.0 - p) / p * np.exp(-shift - t * (values[i] - centre)))
                count += e
                slope += e * (1.0 - e)
            # Newton with steps of at most 1: far from the root the slope is nearly flat
            move = (count - k) / max(slope, 1e-300)
            shift -= min(max(move, -1.0), 1.0)
            if abs(count - k) < 1e-10 * n:
                break
        cumulant, s, a, b, c = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(n):
            x = values[i] - centre
            exponent = shift + t * x
            # log of a sum of exponentials with the larger one taken out: no overflow for large
            # tilts
            top = max(exponent, 0.0)
            cumulant += top + np.log((1.0 - p) * np.exp(-top) + p * np.exp(exponent - top))
            e = 1.0 / (1.0 + (1.0 - p) / p * np.exp(-exponent))
            v = e * (1.0 - e)
            s += e * x
            a += v
            b += v * x
            c += v * x * x
        inside = 2.0 * (shift * k + t * s - cumulant)
        # Skovgaard 1987, the signed root w and its correction log(u / w) / w
        w = np.sign(t) * np.sqrt(max(inside, 0.0))
        u = t * np.sqrt(max(a * c - b * b, 0.0) / (n * p * (1.0 - p)))
        sums[g] = s + k * centre
        roots[g] = w + np.log(u / w) / w if w != 0.0 and u / w > 0.0 else np.nan
    return sums, roots
