"""Designs whose bar depends on chance: power averaged over what the bar may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from groundfault.stats import null_distributions
from groundfault.stats.contingency import ContingencyTables
from groundfault.stats.power import Design, find_least


@dataclass(frozen=True)
class DesignMixture:
    """Designs of one candidate, one of which applies.

    Attributes
    ----------
    designs : tuple of Design
        Of equal sizes and error rate.
    weights : tuple of float
        Probabilities, of sum 1.
    tested : float
        Probability that the candidate is tested at all.
    """

    designs: tuple[Design, ...]
    weights: tuple[float, ...]
    tested: float = 1.0

    @property
    def units(self) -> int:
        """Return units of all stages."""
        return self.designs[0].units

    @property
    def largest(self) -> float:
        """Return the largest lift that error rate and prevalence allow."""
        return self.designs[0].largest

    def power(self, lift: float) -> float:
        """Return probability that a candidate of this lift is confirmed; NaN for a lift that cannot
        be."""
        pairs = zip(self.weights, self.designs, strict=True)
        return self.tested * sum(weight * design.power(lift) for weight, design in pairs)


def chance_of_support(
    n: int, on: int, part: int, window: Sequence[int], other: Sequence[int]
) -> float:
    """Return probability that a random part of the units has a support in a window, and the rest
    too.

    Parameters
    ----------
    n, on : int
        Units, and units on the slice.
    part : int
        Units of the part, in 0..n.
    window, other : pair of int
        Least and largest support, both allowed, in the part and in the rest.

    Examples
    --------
    >>> chance_of_support(4, 2, 2, (1, 1), (0, 2))
    0.6666...
    """
    if not 0 < on < n or not 0 < part < n:
        # nothing is left to chance
        here = on if part == n else 0 if part == 0 else on * part // n
        return float(window[0] <= here <= window[1] and other[0] <= on - here <= other[1])
    one = np.ones(1, dtype=np.int64)
    law = null_distributions.from_errors(
        ContingencyTables(one * n, one * part, one * on, one * 0), pooled=False
    )
    here = law.start[0] + np.arange(len(law.pmf))
    there = on - here
    inside = (window[0] <= here) & (here <= window[1]) & (other[0] <= there) & (there <= other[1])
    return float(law.pmf[inside].sum() / law.pmf.sum())


def raise_rate(design: Design, lift: float) -> Design:
    """Return the design of units of which a slice fails more often by ``lift``, and the rest as
    before.

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
    """Return the smallest lift of errors that are added found with this power, to three digits, or
    None.

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

    return find_least(is_found, high, 1000) if is_found(high) else None
