"""Passes over many null distributions, compiled: see `groundfault.stats.null_distributions`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, prange, vectorize
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# a smaller e-value is also an e-value, and e^230 times any weight is still a number
_LARGEST_LOG_E = 230.0
# partial sums over the same distributions for any number of threads: float sums depend on their
# order
CHUNKS = 16
# far below any reported p-value and far above the smallest float: denormal numbers, which are
# slow, do not occur
_NEGLIGIBLE = 1e-60


@njit(cache=True, inline="always")
def score_one(
    effect: int, n: float, on: float, total: float, on_sum: float, unit: float
) -> Any:  # pragma: no cover - compiled
    """Compute the size of an effect from a table of floats, for descriptors and for decoys."""
    if effect == 0:
        return abs(n * on_sum - on * total) / (on * (n - on) * unit)
    # whole numbers before a single division: equal ratios, also of complements, are equal to the
    # last bit
    a, b = 2.0 * on_sum + unit, 2.0 * (total - on_sum) + unit
    if effect == 1:
        up, down = a * (n - on + 1.0), b * (on + 1.0)
    else:
        up, down = a * (2.0 * unit * (n - on + 1.0) - b), b * (2.0 * unit * (on + 1.0) - a)
    return np.log(max(up, down) / min(up, down))


@vectorize(cache=True)
def score_each(effect, n, on, total, on_sum, unit):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Compute `score_one` over arrays."""
    return score_one(effect, n, on, total, on_sum, unit)


# error_model numpy: a ratio that is no number has its place, and without checks loops vectorise
@njit(cache=True, nogil=True, error_model="numpy")
def fill_hypergeometric(
    n: NDArray[np.int64],
    on: NDArray[np.int64],
    total: NDArray[np.int64],
    low: NDArray[np.int64],
    offset: NDArray[np.int64],
    pmf: Floats,
    first_row: int,
    row_step: int,
) -> None:  # pragma: no cover - compiled
    """Compute probabilities by ratios of neighbours, outward from the mode: no cancellation."""
    for u in range(first_row, len(n), row_step):
        p = pmf[offset[u] : offset[u + 1]]
        units, draws, errors, first = float(n[u]), float(on[u]), float(total[u]), float(low[u])
        mode = (on[u] + 1) * (total[u] + 1) // (n[u] + 2) - low[u]
        mode = min(max(mode, 0), len(p) - 1)
        # the ratios first, which the compiler vectorises; then their running products
        for i in range(mode + 1, len(p)):
            x = first + i
            p[i] = (errors - x + 1.0) * (draws - x + 1.0) / (x * (units - errors - draws + x))
        for i in range(mode):
            x = first + i + 1.0
            p[i] = x * (units - errors - draws + x) / ((errors - x + 1.0) * (draws - x + 1.0))
        # the mode is the largest: no overflow, and underflows are too small to matter
        p[mode] = 1.0
        above, below = mode + 1, mode - 1
        mass_above, mass_below = 1.0, 0.0
        # both ways in one loop: each product waits for the one before it, not for the other's
        while above < len(p) and below >= 0:
            p[above] *= p[above - 1]
            p[below] *= p[below + 1]
            mass_above += p[above]
            mass_below += p[below]
            above, below = above + 1, below - 1
        for i in range(above, len(p)):
            p[i] *= p[i - 1]
            mass_above += p[i]
        for i in range(below, -1, -1):
            p[i] *= p[i + 1]
            mass_below += p[i]
        scale = 1.0 / (mass_above + mass_below)
        for i in range(len(p)):
            p[i] *= scale


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def _sum(values: Floats, first: int, last: int) -> float:  # pragma: no cover - compiled
    """Add in an order that the compiler chooses, so that it can add several at once."""
    total = 0.0
    for i in range(first, last):
        total += values[i]
    return total


# error_model numpy: a size that is no number, of a table without a side, has its place
@njit(cache=True, nogil=True, error_model="numpy")
def pool(
    effect: int,
    n: Floats,
    on: Floats,
    total: Floats,
    start: Floats,
    step: Floats,
    offset: NDArray[np.int64],
    pmf: Floats,
    unit: float,
    weights: Floats,
    thresholds: Floats,
    lookup: NDArray[np.uint32],
    scale: float,
    hist: Floats,
    first_chunk: int,
    chunk_step: int,
) -> None:  # pragma: no cover - compiled
    """Sum the mass of atoms between thresholds, in partial sums that do not depend on threads.

    ``thresholds`` ends with infinity. Those before ``lookup[c]`` do not exceed sizes in cell c.
    """
    levels = len(thresholds) - 1
    top = thresholds[levels - 1]
    sizes = np.empty(np.max(offset[1:] - offset[:-1]))
    for c in range(first_chunk, CHUNKS, chunk_step):
        row = hist[c]
        for u in range(c * len(n) // CHUNKS, (c + 1) * len(n) // CHUNKS):
            first, atoms = offset[u], offset[u + 1] - offset[u]
            if effect == 0:  # `score_one`, with constants of all atoms computed before the loop
                centre, rise = n[u] * start[u] - on[u] * total[u], n[u] * step[u]
                scaled = on[u] * (n[u] - on[u]) * unit
                for i in range(atoms):
                    sizes[i] = abs(centre + rise * i) / scaled
            else:
                for i in range(atoms):
                    sizes[i] = score_one(
                        effect, n[u], on[u], total[u], start[u] + step[u] * i, unit
                    )
            # sizes fall, then rise: atoms beyond all levels are at both ends
            low, high = 0, atoms
            while low < atoms and not sizes[low] < top:  # also NaN, which has no place to look up
                low += 1
            while high > low and not sizes[high - 1] < top:
                high -= 1
            weight, p = weights[u], pmf[first : first + atoms]
            row[levels] += weight * (_sum(p, 0, low) + _sum(p, high, atoms))
            for i in range(low, high):
                size = sizes[i]
                at = np.int64(lookup[int(size * scale)])
                # one step without a branch, which is one too few hardly ever
                at += np.int64(thresholds[at] <= size)
                while thresholds[at] <= size:
                    at += 1
                row[at] += weight * p[i]


@njit(cache=True)
def compute_sizes(
    effect: int,
    n: Floats,
    on: Floats,
    total: Floats,
    start: Floats,
    step: Floats,
    offset: NDArray[np.int64],
    pmf: Floats,
    unit: float,
) -> Floats:  # pragma: no cover - compiled
    """Compute sizes of effect of all atoms."""
    out = np.empty(len(pmf))
    for u in range(len(n)):
        for i in range(offset[u], offset[u + 1]):
            out[i] = score_one(
                effect, n[u], on[u], total[u], start[u] + step[u] * (i - offset[u]), unit
            )
    return out


@njit(cache=True, nogil=True)
def sum_tails(
    side: Floats,
    which: NDArray[np.intp],
    on_sum: Floats,
    n: Floats,
    on: Floats,
    total: Floats,
    start: Floats,
    step: Floats,
    offset: NDArray[np.int64],
    pmf: Floats,
    out: Floats,
    first: int,
    row_step: int,
) -> None:  # pragma: no cover - compiled
    """Sum tails at and beyond observed sums: two-sided where ``side`` is 0, else on that side."""
    for h in range(first, len(which), row_step):
        u = which[h]
        observed = n[u] * on_sum[h] - on[u] * total[u]
        # whole numbers compare exactly; sums of reals differ in the last digits by the order of
        # addition
        slack = 0.0 if step[u] == 1.0 else 1e-9 * abs(observed)
        tail = 0.0
        for i in range(offset[u], offset[u + 1]):
            shift = n[u] * (start[u] + step[u] * (i - offset[u])) - on[u] * total[u]
            gap, bar = (
                (abs(shift), abs(observed))
                if side[h] == 0.0
                else (side[h] * shift, side[h] * observed)
            )
            if gap >= bar - slack:
                tail += pmf[i]
        out[h] = min(tail, 1.0)


@njit(cache=True, nogil=True)
def sum_tilted(
    which: NDArray[np.intp],
    on_sum: Floats,
    direction: Floats,
    log_odds: Floats,
    start: Floats,
    step: Floats,
    offset: NDArray[np.int64],
    pmf: Floats,
    unit: float,
    out: Floats,
    first: int,
    row_step: int,
) -> None:  # pragma: no cover - compiled
    """Average likelihood ratios of tilted distributions over the tilts."""
    for h in range(first, len(which), row_step):
        u = which[h]
        last = start[u] + step[u] * (offset[u + 1] - offset[u] - 1)
        observed = min(max(on_sum[h], start[u]), last)
        for t in range(len(log_odds)):
            tilt = direction[h] * log_odds[t] / unit
            # in logarithms, the largest term taken out: far from the mean a probability underflows
            # and an exponential overflows, and their product is no number
            top = -np.inf
            for i in range(offset[u], offset[u + 1]):
                if pmf[i] > 0.0:
                    shift = start[u] + step[u] * (i - offset[u]) - observed
                    top = max(top, np.log(pmf[i]) + tilt * shift)
            normal = 0.0
            for i in range(offset[u], offset[u + 1]):
                if pmf[i] > 0.0:
                    shift = start[u] + step[u] * (i - offset[u]) - observed
                    normal += np.exp(np.log(pmf[i]) + tilt * shift - top)
            # a mean of e-values is an e-value, so the tilts need not be chosen by the data
            out[h] += np.exp(min(-top - np.log(normal), _LARGEST_LOG_E)) / len(log_odds)


@njit(parallel=True, cache=True)
def count_subsets(
    values: NDArray[np.int64], largest: int, top: int
) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:  # pragma: no cover - compiled
    """Compute probabilities of sums over random subsets of each size, and their windows."""
    old = np.zeros((largest + 1, top + 1))
    new = np.zeros((largest + 1, top + 1))
    low = np.full(largest + 1, top + 1)
    high = np.full(largest + 1, -1)
    new_low, new_high = low.copy(), high.copy()
    old[0, 0] = 1.0
    low[0], high[0], new_low[0], new_high[0] = 0, 0, 0, 0
    new[0, 0] = 1.0
    # values come sorted, the small ones first, so that windows widen as late as possible
    for i in range(1, len(values) + 1):
        v = values[i - 1]
        # parallel over sizes: row k of the new table reads rows k and k - 1 of the old one only
        for k in prange(1, min(i, largest) + 1):
            keep, add = 1.0 - k / i, k / i
            a = min(low[k], low[k - 1] + v) if high[k - 1] >= 0 else low[k]
            b = max(high[k], high[k - 1] + v) if high[k - 1] >= 0 else high[k]
            b = min(b, top)
            for s in range(a, b + 1):
                p = keep * old[k, s] if low[k] <= s <= high[k] else 0.0
                if low[k - 1] <= s - v <= high[k - 1]:
                    p += add * old[k - 1, s - v]
                new[k, s] = p
            # trimmed on both sides, or the loops above would run over cells that do not matter
            while a < b and new[k, a] < _NEGLIGIBLE:
                a += 1
            while a < b and new[k, b] < _NEGLIGIBLE:
                b -= 1
            new_low[k], new_high[k] = a, b
        old, new = new, old
        low, new_low = new_low, low
        high, new_high = new_high, high
    return old, low, high


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
    # sums beyond the last tilt share its tail: the ends take the remaining mass
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
