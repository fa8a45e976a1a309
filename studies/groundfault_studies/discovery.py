"""How well error-prone examples were discovered, beside least confidence and chance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groundfault_lab.stats.improvement import find_least_confident


@dataclass(frozen=True)
class Discovery:
    """Error-prone examples against the truth.

    Attributes
    ----------
    count : int
        Examples called error-prone.
    efficacy : float
        Share of wrong predictions among them; NaN where there are none.
    confidence : float
        The same share among equally many examples of least confidence.
    chance : float
        The same share among examples at random: the error rate.
    recall : float
        Share of all wrong predictions that are found; NaN where there are none.
    """

    count: int
    efficacy: float
    confidence: float
    chance: float
    recall: float


def score_discovery(
    error_prone: NDArray[np.bool_], wrong: NDArray[np.bool_], probability: NDArray[np.float64]
) -> Discovery:
    """Score error-prone examples.

    Parameters
    ----------
    error_prone : bool array, shape (n,)
        Chosen without looking at labels.
    wrong : bool array, shape (n,)
    probability : float array, shape (n, c)
        Predicted, for the baseline of least confidence.

    References
    ----------
    Hua et al., "Discover, Explain, Improve", TACL 2023, Eq. 11.
    https://doi.org/10.1162/tacl_a_00617"""
    count = int(error_prone.sum())
    return Discovery(
        count,
        share(wrong, error_prone),
        share(wrong, find_least_confident(probability, count)),
        float(wrong.mean()),
        share(error_prone, wrong),
    )


def share(true: NDArray[np.bool_], among: NDArray[np.bool_]) -> float:
    """Share of the examples in ``among`` for which something is true; NaN among none."""
    count = int(among.sum())
    return float(true[among].sum() / count) if count else float("nan")
