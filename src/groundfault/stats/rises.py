"""Lifts of slices whose failures come on top of those there are, where these are few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, floor, log10

from groundfault.stats.power import Design


def raise_rate(design: Design, lift: float) -> Design:
    """The design of units of which a slice fails more often by ``lift``, and the rest as before.

    A design is of an error rate, and a slice of it that fails more leaves the rest to fail less:
    where errors are rare, no large lift is possible then. Here the errors of the slice are added.

    Parameters
    ----------
    design : Design
    lift : float
        At least 0.
    """
    share = design.prevalence
    variance = design.variance
    return replace(
        design,
        error_rate=design.error_rate + share * lift,
        variance=None if variance is None else variance + share * (1 - share) * lift**2,
    )


def minimum_detectable_rise(
    designs: Sequence[Design], weights: Sequence[float], power: float = 0.8
) -> float | None:
    """The smallest lift of errors that are added found with this power, to three digits, or None.

    Parameters
    ----------
    designs : sequence of Design
        One of which applies; of equal error rate and sizes.
    weights : sequence of float
        Their probabilities; a sum below 1 is the chance that the candidate is tested at all.
    power : float

    Returns
    -------
    float or None
        None where not even a slice of nothing but errors would be found.
    """
    high = 1 - designs[0].error_rate
    if high <= 0:
        return None

    def is_found(lift: float) -> bool:
        pairs = zip(weights, designs, strict=True)
        chances = (weight * raise_rate(design, lift).power(lift) for weight, design in pairs)
        return sum(chances) >= power

    if not is_found(high):
        return None
    low = 0.0
    while high - low > high / 1000:
        middle = (low + high) / 2
        low, high = (low, middle) if is_found(middle) else (middle, high)
    digits = int(2 - floor(log10(high)))
    return min(
        float(round(ceil(high * 10**digits) / 10**digits, digits)), 1 - designs[0].error_rate
    )
