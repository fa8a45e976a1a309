"""Testing by betting: e-processes for the mean of scores in [0, 1], one step at a time.

All functions test the null "given the past, the expected score is at least ``threshold``". For the
opposite null, reflect scores, thresholds and forecasts about 1/2.

Axes: ``N`` independent sequences side by side, last; ``A`` forecasts or arms, first.

References
----------
Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting,
https://doi.org/10.1093/jrsssb/qkad009. Ramdas and Wang (2025), Hypothesis testing with e-values,
https://doi.org/10.48550/arXiv.2410.23614. Shin, Ramdas and Rinaldo (2024), E-detectors,
https://doi.org/10.51387/23-NEJSDS51.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

EXCESS_STAKES = np.array([0.0, 0.03, 0.1, 0.3, 0.8])
"""Shares of the wealth that bets on a difference of means stake, averaged. Each is about three
times the last, so that one is near the best (.03 for four deviations among 20,000 scores). The
share 0 lets the side that a mean m favours keep its wealth while the other side wins."""
# with twice as many of both, evidence of 22 nats is 24 and takes 30 ms a rule in place of 4
_LEVELS = 512  # different scores that bets tell apart
_MEANS = 61  # means that are tried, where the least wealth lies
# no unit staked becomes more than this much: a threshold of 1 would allow an infinite bet
LARGEST_BET = 1e6
_TINY = np.finfo(float).tiny
ROUNDING = 1e-9  # relative: the most that rounding may add to sums of scores and thresholds


def factor(score: Floats, forecast: Floats, threshold: Floats) -> Floats:
    """Return the wealth from a stake of 1: the likelihood ratio of ``forecast`` to ``threshold``.

    This is ``1 + bet * (threshold - score)`` with ``bet = (threshold - forecast) / (threshold * (1
    - threshold))``; a 0/1 score gives the Bernoulli likelihood ratio. A forecast at or above the
    threshold, and a threshold at or below 0, place no bet. At a threshold of 1 a bet is free, since
    a score of 1 costs no wealth. The largest bet is then placed: `LARGEST_BET`, which has no effect
    at other thresholds.

    Parameters
    ----------
    score : (N,) array in [0, 1]
    forecast : (A, N) or (A, 1) array in (0, 1)
    threshold : (N,) or (1,) array
        May leave [0, 1] when it is a `conditional_threshold`; above 1 it counts as 1 (see
        `is_refuted`).

    Returns
    -------
    (A, N) array, positive
        Its conditional expectation is at most 1 if forecast and threshold were fixed before the
        score was seen and the score's conditional expectation is at least the threshold.
    """
    # not 0: the quotients below divide by it
    level = np.minimum(np.maximum(threshold, _TINY), 1.0)
    forecast = np.minimum(forecast, level)
    room = 1.0 - level
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # fmin: at a threshold of 1 the quotient is no number, or infinite
        bet = np.fmin((level - forecast) / (level * room), LARGEST_BET)
    on_pass = np.maximum(forecast / level, 1.0 - LARGEST_BET * room)
    result: Floats = score * on_pass + (1.0 - score) * (1.0 + bet * level)
    return np.where(threshold > 0, result, 1.0)


def is_refuted(threshold: Floats) -> NDArray[np.bool_]:
    """Return where the null asks for an expected score above 1, which no score can have."""
    return threshold > 1.0 + ROUNDING


def conditional_threshold(
    threshold: ArrayLike, size: ArrayLike, label_count: ArrayLike, total: ArrayLike
) -> Floats:
    """Return mean of the unlabelled rest of a finite group, if the whole has mean ``threshold``.

    Draws without replacement must be tested against this number. Against the constant they are not
    a fair game, and the error rate has no bound (Waudby-Smith and Ramdas 2020,
    https://doi.org/10.48550/arXiv.2006.04347).

    Parameters
    ----------
    threshold : float in (0, 1)
    size, label_count : int
        Items in the group, and the number of labelled items, chosen in any way.
    total : float
        Sum of the labelled items' scores.

    Returns
    -------
    array
        Above 1: the group is certain to lie below the threshold. At or below 0: it cannot any more.
        If all items are labelled, ``inf`` if the group lies below, ``-inf`` if not.

    Notes
    -----
    The test is about the fixed scores of these items, not about probabilities from which another
    run would draw again.

    Examples
    --------
    >>> float(conditional_threshold(0.85, size=20, label_count=10, total=7))
    1.0
    """
    threshold, size, label_count, total = (
        np.asarray(x, dtype=float) for x in (threshold, size, label_count, total)
    )
    rest_size = size - label_count
    if np.any(
        (rest_size < 0) | (label_count < 0) | (total < 0) | (total > label_count * (1 + ROUNDING))
    ):
        raise ValueError("needs 0 <= labelled <= size and 0 <= total <= labelled")
    # 0.07 * 100 is 7.000000000000001 in floating point: without the slack, a group that can still
    # make it is refuted.
    slack = 4 * np.finfo(float).eps * size
    rest_total = threshold * size - total
    rest_total = np.where(
        np.abs(rest_total) <= slack,
        0.0,
        np.where(np.abs(rest_total - rest_size) <= slack, rest_size, rest_total),
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        rest_mean = rest_total / rest_size
    return np.where(rest_size > 0, rest_mean, np.where(rest_total > 0, np.inf, -np.inf))


def weigh(log_weights: Floats, factors: Floats, eta: float) -> tuple[Floats, Floats]:
    """Return one round of the exponentially weighted averaging forecaster.

    Parameters
    ----------
    log_weights : (A, N) array
        Normalised: their exponentials add up to 1 in each column.
    factors : (A, N) array
        Result of each forecast's bet.
    eta : float >= 0
        Learning rate. At 1 the result is exactly the mixture over the grid.

    Returns
    -------
    (N,) array and (A, N) array
        The factor of the averaged forecast, weighted as *before* the round, and the new weights.
    """
    pooled = (np.exp(log_weights) * factors).sum(axis=0)
    log_weights = log_weights + eta * np.log(factors)
    # weights only matter relative to each other; unshifted logs drift until all exponentials are 0
    log_weights -= log_weights.max(axis=0)
    return pooled, log_weights - np.log(np.exp(log_weights).sum(axis=0))


def agrapa(history: Floats, threshold: Floats, cap: float = 0.75) -> Floats:
    """Forecast whose bet is the growth-rate-adaptive one (aGRAPA; Waudby-Smith and Ramdas 2024).

    Parameters
    ----------
    history : (3, N) array
        Scores so far, as kept by `observe`.
    threshold : (N,) or (1,) array
    cap : float in (0, 1)
        Most of the wealth that one bet may lose.

    Returns
    -------
    (1, N) array
        The forecast at which `factor` places that bet.
    """
    count, total, squares = history
    level = np.clip(threshold, 0.0, 1.0)
    # one pseudo-observation of 1/2, with a quarter of variance, before the first score
    gap = level - (0.5 + total) / (count + 1)
    variance = (0.25 + squares) / (count + 1)
    at_risk = np.clip(gap / (variance + gap**2) * (1.0 - level), 0.0, cap)
    forecast: Floats = np.atleast_2d(level * (1.0 - at_risk))
    return forecast


def observe(history: Floats, score: Floats) -> Floats:
    """Add a score to count, sum, and squares about the running mean (which starts at 1/2)."""
    count, total, squares = history
    count, total = count + 1, total + score
    return np.stack([count, total, squares + (score - (0.5 + total) / (count + 1)) ** 2])


def accumulate(log_arms: Floats, log_steps: Floats, log_start: Floats | float, rule: str) -> Floats:
    """Let new starters join, then multiply: they are added (Shiryaev-Roberts) or compared (CUSUM).

    Parameters
    ----------
    log_arms, log_steps : (A, N) array
        Log wealth before the step, and the log of the step's factor.
    log_start : (N,) array or float
        Log of the `start_weight` of this step; ``-inf`` without a start.
    rule : {"sum", "max"}
    """
    return (np.maximum if rule == "max" else np.logaddexp)(log_arms, log_start) + log_steps


def start_weight(step: Ints | int, rule: str, burn_in: int) -> Floats:
    """Return share of the wealth that starts to bet at ``step``: all at 1, 1/m on 1..m, or
    1/(t(t+1))."""
    step = np.asarray(step)
    if rule == "once":
        return np.where(step == 1, 1.0, 0.0)
    if rule == "uniform":
        return np.where(step <= burn_in, 1.0 / burn_in, 0.0)
    return np.asarray(1.0 / (step * (step + 1)))


def idle_weight(step: int, rule: str, burn_in: int) -> float:
    """Return share of the wealth that bets only after ``step``: one minus each `start_weight` so
    far."""
    if rule == "once":
        return 0.0
    return max(0.0, 1.0 - step / burn_in) if rule == "uniform" else 1.0 / (step + 1)


def log_mean(log_values: Floats, log_weights: Floats) -> Floats:
    """Average e-values in logs: log of a weighted sum of exponentials along the first axis."""
    terms = log_values + log_weights
    largest = terms.max(axis=0)
    finite = np.isfinite(largest)
    shift = np.where(finite, largest, 0.0)
    total = np.exp(np.minimum(terms - shift, 0.0)).sum(axis=0)
    return np.where(finite, np.log(np.where(finite, total, 1.0)) + shift, largest)


def log_excess(scores: Floats, on: NDArray[np.bool_]) -> float:
    """Return the log of the evidence that scores inside are larger on average than outside.

    Under the null, some mean m separates the sides. Bets against "inside at most m" and "outside
    at least m" multiply; the evidence is the least product over all m.

    Parameters
    ----------
    scores : float64 array, shape (units,)
        At least 0; independent. The largest counts as the upper bound of scores.
    on : bool array, shape (units,)
        Whether a unit is inside, fixed before the scores were seen.

    Returns
    -------
    float
        Log of an e-value: if the mean inside is not larger, it exceeds log(1 / a) with probability
        at most a, for any shape of the two distributions. 0 if the observed mean is not larger.
    """
    top = float(scores.max(initial=0.0))
    inside, outside = scores[on] / (top or 1.0), scores[~on] / (top or 1.0)
    low, high = (float(side.mean()) if len(side) else 0.0 for side in (outside, inside))
    if not len(outside) or high <= low:
        return 0.0
    gap = high - low
    near = np.linspace(low - gap / 4, high + gap / 4, _MEANS).clip(0.0, 1.0)
    means = np.unique(np.concatenate([[0.0], near, [1.0]]))
    # between two means, wealth is no less than inside at the upper and outside at the lower
    wealth = _bet_on(inside, means[1:]) + _bet_on(1 - outside, 1 - means[:-1])
    return float(wealth.min())


def _bet_on(scores: Floats, means: Floats) -> Floats:
    """Return the log wealth of bets on more than each mean, averaged over the stakes."""
    levels, counts = np.unique(scores, return_counts=True)
    if len(levels) > _LEVELS:
        # rounded down, a score is worth no more
        kept = np.quantile(levels, np.linspace(0, 1, _LEVELS), method="lower")
        place = np.searchsorted(kept, levels, side="right") - 1
        levels, counts = kept, np.bincount(np.repeat(place, counts), minlength=_LEVELS)
    gains = levels / means[:, None] - 1
    wealth = np.stack([np.log1p(stake * gains) @ counts for stake in EXCESS_STAKES])
    mean: Floats = np.logaddexp.reduce(wealth, axis=0) - np.log(len(EXCESS_STAKES))
    return mean


RISE_STAKES = np.array([0.05, 0.1, 0.2, 0.4, 0.8])
"""Bets on rises by these shares of the way from a limit to 1, averaged: each twice the last."""


def detect_rise(errors: Floats, sizes: Floats, limit: float) -> Floats:
    """Return the log of an e-detector of a failure rate above a limit, after each build.

    Parameters
    ----------
    errors, sizes : float64 array, shape (builds,)
        Failures, or the sum of losses in [0, 1], and examples; NaN where a build has no count.
    limit : float in (0, 1)
        Fixed before the first of these builds.

    Returns
    -------
    float64 array, shape (builds,)
        Of M, with M_0 = 0 and M_t = mean over stakes of (M_{t-1} + 1) times the likelihood ratio.
        If in each build, given those before, examples fail independently with a mean probability
        of at most ``limit``, then E[M_T] <= E[T] for every stopping time T. An alarm at M >= N
        thus comes after N builds or more on average (Shin, Ramdas and Rinaldo 2024, Theorem 2.4).
    """
    forecasts = limit + (1 - limit) * RISE_STAKES
    # for independent examples the mean of products is largest where all are alike, and the chord
    # of a concave logarithm makes a fractional loss worth no more than it is
    fail, passed = np.log(forecasts / limit), np.log((1 - forecasts) / (1 - limit))
    levels, log_m = [], np.full(len(RISE_STAKES), -np.inf)
    for count, size in zip(errors, sizes, strict=True):
        if not np.isnan(count):
            log_m = np.logaddexp(log_m, 0.0) + count * fail + (size - count) * passed
        levels.append(np.logaddexp.reduce(log_m) - np.log(len(RISE_STAKES)))
    return np.array(levels, dtype=np.float64)
