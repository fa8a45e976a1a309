"""Exact and approximate tails over strata, compiled: see `groundfault.stats.contingency`."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]

Floats = NDArray[np.float64]

# smaller probabilities are given as this one
LOG_FLOOR = math.log(1e-30)
# atoms further out weigh less than `LOG_FLOOR` together, also for skewed distributions
DEVIATIONS = 12.0
ATOMS = 48  # and this many beyond: a skewed tail decays by a factor a step


@njit(cache=True, nogil=True)
def log_tail(errors_on: int, on: Ints, errors: Ints, size: Ints) -> float:
    """See `groundfault.stats.contingency.log_tail`."""
    start = 0
    mass, last = np.ones(1), np.ones(1)
    for h in range(len(on)):
        low = max(0, on[h] + errors[h] - size[h])
        high = min(on[h], errors[h])
        if low == high:
            start += low
            continue
        mass = _convolve(last, mass) if len(mass) > 1 else last
        first, last = _hypergeometric(on[h], errors[h], size[h], low, high)
        start += first
    at = errors_on - start
    if at <= 0:
        return 0.0
    # tails of the last stratum do for its atoms; from the far end, smallest first
    above, tail = np.cumsum(last[::-1])[::-1], 0.0
    for i in range(len(mass) - 1, max(at - len(last), -1), -1):
        tail += mass[i] * above[max(at - i, 0)]
    return max(math.log(min(tail, 1.0)), LOG_FLOOR) if tail > 0 else LOG_FLOOR


@njit(cache=True, nogil=True)
def _hypergeometric(
    on: int, errors: int, size: int, low: int, high: int
) -> tuple[int, Floats]:  # pragma: no cover - compiled
    """Return the first atom kept, and probabilities from it on, by ratios outward from the mode."""
    mean = on * (errors / size)
    deviation = math.sqrt(mean * (1 - errors / size) * (size - on) / max(size - 1, 1))
    reach = int(DEVIATIONS * deviation) + ATOMS
    mode = min(max(int((on + 1.0) * (errors + 1.0) / (size + 2.0)), low), high)
    first, last = max(low, mode - reach), min(high, mode + reach)
    p = np.empty(last - first + 1)
    p[mode - first] = 1.0
    total = 1.0
    for x in range(mode + 1, last + 1):
        up = (errors - x + 1.0) * (on - x + 1.0) / (x * (size - errors - on + float(x)))
        p[x - first] = p[x - first - 1] * up
        total += p[x - first]
    for x in range(mode - 1, first - 1, -1):
        down = (x + 1.0) * (size - errors - on + x + 1.0) / ((errors - float(x)) * (on - float(x)))
        p[x - first] = p[x - first + 1] * down
        total += p[x - first]
    return first, p / total


@njit(cache=True, nogil=True)
def _convolve(a: Floats, b: Floats) -> Floats:  # pragma: no cover - compiled
    out = np.zeros(len(a) + len(b) - 1)
    for i in range(len(a)):
        if a[i] > 0.0:
            for j in range(len(b)):
                out[i + j] += a[i] * b[j]
    return out


@njit(cache=True, nogil=True)
def log_tail_of_losses(
    total: float, step: float, on: Ints, home: Ints, values: Floats, counts: Ints
) -> float:  # pragma: no cover - compiled
    """See `groundfault.stats.contingency.log_tail_of_losses`."""
    bar = total - step / 2
    strata = len(on)
    size, mean = np.zeros(strata), 0.0
    for v in range(len(values)):
        size[home[v]] += counts[v]
    for v in range(len(values)):
        mean += on[home[v]] * counts[v] * values[v] / size[home[v]]
    if bar <= mean:
        return 0.0
    odds = np.zeros(strata)
    for h in range(strata):
        odds[h] = math.log(max(on[h], 1e-9) / max(size[h] - on[h], 1e-9))
    start = odds.copy()
    tilt = 0.0
    low, high = 0.0, 1e3
    for _ in range(200):
        sums, slope, _, _ = _tilt(tilt, odds, on, size, home, values, counts)
        gap = sums - bar
        if abs(gap) < 1e-9 * max(1.0, abs(bar)):
            break
        if gap < 0:
            low = tilt
        else:
            high = tilt
        proposal = tilt - gap / slope if slope > 1e-12 else high
        tilt = proposal if low < proposal < high else (low + high) / 2
        if tilt > 999:  # only the largest sum reaches the bar
            limit: float = _log_p_of_largest(on, size, home, values, counts)
            return limit
    _, slope, determinant, cumulant = _tilt(tilt, odds, on, size, home, values, counts)
    first = 0.0
    root = tilt * bar
    for h in range(strata):
        if 0 < on[h] < size[h]:
            first += math.log(on[h] * (size[h] - on[h]) / size[h])
            root += (odds[h] - start[h]) * on[h]
            cumulant -= size[h] * math.log(size[h] / (size[h] - on[h]))
    deviance = 2 * (root - cumulant)
    if deviance <= 1e-10 or tilt <= 0 or slope <= 0:
        return math.log(0.5)
    r = math.sqrt(deviance)
    log_u = math.log(tilt) + 0.5 * (math.log(slope) + determinant - first)
    # log of 1 - Phi(r*), r* = r + log(u / r) / r (Barndorff-Nielsen's form: never negative)
    modified = r + (log_u - math.log(r)) / r
    largest: float = _log_p_of_largest(on, size, home, values, counts)
    tail: float = _log_normal_tail(modified)
    return max(tail, largest)


@njit(cache=True, nogil=True)
def _log_p_of_largest(
    on: Ints, size: Floats, home: Ints, values: Floats, counts: Ints
) -> float:  # pragma: no cover - compiled
    """Compute the log probability of the largest possible sum, a lower bound of all tails."""
    left = on.astype(np.float64)
    log_p = 0.0
    for h in range(len(on)):
        log_p -= _log_choose(size[h], left[h])
    for v in np.argsort(-values):
        h = home[v]
        if 0 < left[h] <= counts[v]:
            log_p += _log_choose(counts[v], left[h])
        left[h] -= min(left[h], counts[v])
    return max(log_p, LOG_FLOOR)


@njit(cache=True, nogil=True)
def _log_choose(n: float, k: float) -> float:  # pragma: no cover - compiled
    return math.lgamma(n + 1.0) - math.lgamma(k + 1.0) - math.lgamma(n - k + 1.0)


@njit(cache=True, nogil=True)
def _tilt(
    tilt: float, odds: Floats, on: Ints, size: Floats, home: Ints, values: Floats, counts: Ints
) -> tuple[float, float, float, float]:  # pragma: no cover - compiled
    """Solve ``odds`` at a tilt: expected sum, its slope, log determinant and cumulant."""
    strata = len(on)
    free = np.zeros(strata, dtype=np.bool_)
    for h in range(strata):
        free[h] = 0 < on[h] < size[h]
    for _ in range(60):
        count, spread = np.zeros(strata), np.zeros(strata)
        for v in range(len(values)):
            h = home[v]
            if free[h]:
                q = 1 / (1 + math.exp(-min(max(odds[h] + tilt * values[v], -700.0), 700.0)))
                count[h] += counts[v] * q
                spread[h] += counts[v] * q * (1 - q)
        worst = 0.0
        for h in range(strata):
            if free[h]:
                gap = on[h] - count[h]
                worst = max(worst, abs(gap) / on[h])
                move = gap / max(spread[h], 1e-12)
                odds[h] += min(max(move, -2.0), 2.0)
        if worst < 1e-11:
            break
    sums, square, cumulant = 0.0, 0.0, 0.0
    cross, spread = np.zeros(strata), np.zeros(strata)
    for v in range(len(values)):
        h = home[v]
        if not free[h]:
            sums += counts[v] * values[v] if on[h] > 0 else 0.0
            cumulant += tilt * counts[v] * values[v] if on[h] > 0 else 0.0
            continue
        x = min(max(odds[h] + tilt * values[v], -700.0), 700.0)
        q = 1 / (1 + math.exp(-x))
        weight = counts[v] * q * (1 - q)
        sums += counts[v] * q * values[v]
        square += weight * values[v] ** 2
        cross[h] += weight * values[v]
        spread[h] += weight
        cumulant += counts[v] * (max(x, 0.0) + math.log1p(math.exp(-abs(x))))
    determinant = 0.0
    for h in range(strata):
        if free[h]:
            square -= cross[h] ** 2 / spread[h]
            determinant += math.log(spread[h])
    return sums, square, determinant, cumulant


@njit(cache=True, nogil=True)
def _log_normal_tail(x: float) -> float:  # pragma: no cover - compiled
    """Compute the log of the upper tail of the standard normal."""
    if x < 30:
        return math.log(0.5 * math.erfc(x / math.sqrt(2.0)))
    return -x * x / 2 - math.log(x * math.sqrt(2 * math.pi))
