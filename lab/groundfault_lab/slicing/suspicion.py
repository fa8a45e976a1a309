"""Suspicion: the chance that a prediction is wrong, by what its slices and its confidence say."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from groundfault.base.arrays import Bools, Floats, Ints

# examples that the failure rate of all adds to each slice: small slices are not taken at their word
_PRIOR = 2.0
# log odds of certain numbers are infinite
_CERTAIN = 1e-3


@dataclass(frozen=True)
class Suspicion:
    """A logistic regression of errors on two log odds: of the error rate of an example's slices,
    and of 1 - confidence.

    Attributes
    ----------
    rates : float64 array, shape (k,)
        Error rate of each slice.
    intercept : float
    slopes : float64 array, shape (2,)
    threshold : float
        Chance from which on an example is suspected: as many of the examples that were fitted
        reach it as lie in error slices.

    Notes
    -----
    An example's own outcome is left out of the rates that the regression is fitted to: otherwise
    slices look better at telling errors than they are, and confidence counts too little.

    Examples
    --------
    >>> responsibility = np.eye(2).repeat(50, axis=0)
    >>> probability = np.tile([0.4, 0.6], (100, 1))
    >>> wrong = np.arange(100) % 10 < np.repeat([1, 6], 50)
    >>> suspicion = Suspicion.fit(lambda: [responsibility], probability, wrong, np.array([1]))
    >>> suspicion.predict(np.eye(2) @ suspicion.rates, probability[:2]).round(2)
    array([0.12, 0.58])
    """

    rates: Floats
    intercept: float
    slopes: Floats
    threshold: float = math.inf

    @classmethod
    def fit(
        cls,
        responsibilities: Callable[[], Iterable[Floats]],
        probability: Floats,
        wrong: Bools,
        error_slices: Ints,
    ) -> Self:
        """Learn from examples whose outcome is known.

        Parameters
        ----------
        responsibilities : callable
            Makes blocks of rows, shape (b, k): responsibilities of the slices for each example, in
            order, computed without labels. It is called twice.
        probability : float64 array, shape (n, c)
            Predicted.
        wrong : bool array, shape (n,)
            Whether the prediction is; both occur.
        error_slices : int64 array
            Numbers of the slices whose accuracy is low.
        """
        from sklearn.linear_model import LogisticRegression

        errors, others = wrong.astype(np.float64), np.empty(len(wrong))
        weight, mass, count = _PRIOR, _PRIOR * errors.mean(), 0
        for rows, block in _locate(responsibilities()):
            weight, mass = weight + block.sum(axis=0), mass + errors[rows] @ block
            count += int(np.isin(block.argmax(axis=1), error_slices).sum())
        for rows, block in _locate(responsibilities()):
            own = errors[rows, None]
            others[rows] = (block * (mass - block * own) / (weight - block)).sum(axis=1)
        fit = LogisticRegression().fit(_describe(others, probability), wrong)
        out = cls(mass / weight, float(fit.intercept_[0]), fit.coef_[0])
        if not count:
            return out
        return replace(out, threshold=float(np.sort(out.predict(others, probability))[-count]))

    def predict(self, rate: Floats, probability: Floats) -> Floats:
        """Return the chance of an error, shape (n,), in (0, 1).

        Parameters
        ----------
        rate : float64 array, shape (n,)
            Mean of `rates`, weighted by the responsibilities of an example.
        probability : float64 array, shape (n, c)
        """
        log_odds = self.intercept + _describe(rate, probability) @ self.slopes
        return np.asarray(1 / (1 + np.exp(-log_odds)))


def _locate(blocks: Iterable[Floats]) -> Iterator[tuple[slice, Floats]]:
    stop = 0
    for block in blocks:
        start, stop = stop, stop + len(block)
        yield slice(start, stop), block


def _describe(rate: Floats, probability: Floats) -> Floats:
    chances = np.column_stack([rate, 1 - probability.max(axis=1)]).clip(_CERTAIN, 1 - _CERTAIN)
    return np.asarray(np.log(chances / (1 - chances)))
