"""The runs test: whether like values follow each other more often than in a random order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class RunsTest:
    """Runs of high and of low values, and how many a random order has.

    Attributes
    ----------
    runs, expected : float
        Over all sequences.
    p : float
        One-sided normal p-value of so few runs.
    """

    runs: float
    expected: float
    p: float


def count_runs(sequences: Iterable[NDArray[np.bool_]]) -> RunsTest:
    """Wald-Wolfowitz test of one or several sequences, each against its own random order.

    Parameters
    ----------
    sequences : iterable of bool arrays
        High or low, in order.

    Notes
    -----
    Wald and Wolfowitz 1940, doi:10.1214/aoms/1177731909. The normal approximation is good from
    about ten values of each kind on.

    Examples
    --------
    >>> ordered = np.repeat([True, False], 20)
    >>> result = count_runs([ordered])
    >>> result.runs, result.expected, result.p < 0.001
    (2.0, 21.0, True)
    """
    from scipy.special import ndtr

    runs = expected = variance = 0.0
    for high in sequences:
        n, ones = len(high), int(high.sum())
        if n < 2:
            continue
        both = 2 * ones * (n - ones)
        runs += 1 + int((high[1:] != high[:-1]).sum())
        expected += 1 + both / n
        variance += both * (both - n) / (n**2 * (n - 1))
    z = (runs - expected) / sqrt(variance) if variance > 0 else 0.0
    return RunsTest(runs, expected, float(ndtr(z)))
