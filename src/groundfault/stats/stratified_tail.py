"""Exact tail of the errors on a slice when errors are permuted within strata."""

from __future__ import annotations

import math
from itertools import count

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LOG_FLOOR = math.log(1e-30)
"""Floor for probabilities: smaller ones are returned as this value."""

# atoms further out weigh less than `LOG_FLOOR` together, also for skewed distributions
_DEVIATIONS = 12.0
_ATOMS = 48  # and so many more, for strata where the deviation is below one
# this many tails in one process take as long without a compiler as loading and compiling; both
# ways agree to the last bit
_WORTH_COMPILING = 20_000
_tails = count()
# convolutions of more strata take long at any rate
_FEW_STRATA = 32


def log_tail(errors_on: int, on: Ints, errors: Ints, size: Ints) -> float:
    """Return log probability of at least this many errors on a slice.

    Parameters
    ----------
    errors_on : int
        Errors on the slice, over all strata.
    on, errors, size : int64 arrays, shape (H,)
        Units on the slice, errors, and units of each stratum.

    Returns
    -------
    float
        ``log P(K >= errors_on)``, K a sum of independent hypergeometric counts: one stratum gives
        Fisher's exact test, several the exact conditional test of a common odds ratio of one
        (Mehta, Patel and Gray 1985, doi:10.1080/01621459.1985.10478195). At least `LOG_FLOOR`.
    """
    if len(on) > _FEW_STRATA or next(_tails) >= _WORTH_COMPILING:
        from groundfault.stats import tail_kernels

        return float(tail_kernels.log_tail(errors_on, on, errors, size))
    return _compute_log_tail(errors_on, on.tolist(), errors.tolist(), size.tolist())


def _compute_log_tail(errors_on: int, on: list[int], errors: list[int], size: list[int]) -> float:
    """Return `tail_kernels.log_tail` without a compiler."""
    start, mass = 0, np.ones(1)
    for k, failures, units in zip(on, errors, size, strict=True):
        low, high = max(0, k + failures - units), min(k, failures)
        if low == high:
            start += low
            continue
        first, atoms = _list_atoms(k, failures, units, low, high)
        start += first
        mass = _convolve(mass, atoms) if len(mass) > 1 else atoms * mass[0]
    at = errors_on - start
    if at <= 0:
        return 0.0
    # from the far end, smallest first
    outer = mass[at:][::-1]
    tail = float(np.add.accumulate(outer)[-1]) if len(outer) else 0.0
    return max(math.log(min(tail, 1.0)), LOG_FLOOR) if tail > 0 else LOG_FLOOR


def _list_atoms(on: int, errors: int, size: int, low: int, high: int) -> tuple[int, Floats]:
    """Return the first atom kept, and probabilities from there on, by ratios outward from the
    mode."""
    mean = on * (errors / size)
    deviation = math.sqrt(mean * (1 - errors / size) * (size - on) / max(size - 1, 1))
    reach = int(_DEVIATIONS * deviation) + _ATOMS
    mode = min(max(int((on + 1.0) * (errors + 1.0) / (size + 2.0)), low), high)
    first, last = max(low, mode - reach), min(high, mode + reach)
    x = np.arange(mode + 1.0, last + 1.0)
    above = (errors - x + 1.0) * (on - x + 1.0) / (x * (size - errors - on + x))
    x = np.arange(mode - 1.0, first - 1.0, -1.0)
    below = (x + 1.0) * (size - errors - on + x + 1.0) / ((errors - x) * (on - x))
    p = np.ones(last - first + 1)
    # one after the other, as compiled passes multiply and add
    np.multiply.accumulate(above, out=p[mode - first + 1 :])
    p[: mode - first] = np.multiply.accumulate(below)[::-1]
    outward = np.concatenate([p[mode - first :], p[: mode - first][::-1]])
    return first, p / np.add.accumulate(outward)[-1]


def _convolve(a: Floats, b: Floats) -> Floats:
    out = np.zeros(len(a) + len(b) - 1)
    for i, weight in enumerate(a.tolist()):
        out[i : i + len(b)] += weight * b
    return out


def log_tail_of_losses(
    total: float, step: float, on: Ints, home: Ints, values: Floats, counts: Ints
) -> float:
    """Return log probability of a slice's losses reaching a sum, by a double saddlepoint.

    Parameters
    ----------
    total : float
        Losses summed over the slice.
    step : float
        Losses are whole multiples of this number; 0 without a grid.
    on : int64 array, shape (H,)
        Units on the slice, of each stratum.
    home, values, counts : arrays, shape (V,)
        The population as a histogram: stratum, loss, and number of units.

    Returns
    -------
    float
        Log of P(sum of a random slice >= total); at least `LOG_FLOOR`.

    Notes
    -----
    Sums over samples without replacement are treated as sums of independent indicators, conditional
    on the count of each stratum: Robinson 1982, doi:10.1214/aos/1176345807; the tail is by
    Skovgaard 1987, doi:10.2307/3214216, with a continuity correction of half a step. The relative
    error is a few per cent, and larger near the largest possible sum.
    """
    from groundfault.stats import tail_kernels

    return float(tail_kernels.log_tail_of_losses(total, step, on, home, values, counts))
