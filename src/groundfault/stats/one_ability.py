"""Worlds in which one ability a model is all there is: the null hypothesis of every failure mode.

Items are draws from a population of slopes and intercepts, which is estimated with the abilities;
drawing each item anew from its posterior gives items as varied as the population. Best guesses of
single items are not: they are drawn to their mean, and worlds made of them are too tame, so that
tests against them reject up to six times in ten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundfault.stats import irt

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Integers = NDArray[np.integer[Any]]

# wide enough for the items of real benchmarks; shares go to 0 where there are none
_SLOPES = np.exp(np.linspace(-2.0, 1.5, 8))
_INTERCEPTS = np.linspace(-6.0, 6.0, 25)


@dataclass(frozen=True)
class OneAbility:
    """Abilities, and what each item may be.

    Attributes
    ----------
    ability : float64 array, shape (m,)
    curve : float64 array, shape (G, m)
        Chance of a pass of each kind of item, by model.
    share : float64 array, shape (G,)
        Of each kind in the population.
    posterior : float64 array, shape (n, G)
        Cumulative chances that an item is of each kind, given its answers.
    trials : int64 array, shape (n, m)
    """

    ability: Floats
    curve: Floats
    share: Floats
    posterior: Floats
    trials: Counts

    @classmethod
    def fit(
        cls,
        passes: Integers,
        trials: Integers,
        *,
        tolerance: float = 1e-6,
        max_iterations: int = 300,
    ) -> OneAbility:
        """Fit by marginal likelihood: EM over a grid of items with free shares.

        Parameters
        ----------
        passes, trials : int arrays, shape (n, m)
            All items, also those that every model passed or failed.
        tolerance : float
            Stop when the mean log-likelihood of an item gains less.
        max_iterations : int

        Notes
        -----
        As items grow in number, abilities and shares are consistent however few the models are, if
        a pass is logistic in one ability. Bock and Aitkin 1981, doi:10.1007/BF02293801, with items
        and persons exchanged."""
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        slope, intercept = (a.ravel() for a in np.meshgrid(_SLOPES, _INTERCEPTS, indexing="ij"))
        right, tries = np.asarray(passes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
        first = irt.fit(passes, trials)
        ability, share, before = first.ability, _share(first, slope, intercept), -np.inf
        with threadpool_limits(1):  # many small products: a second thread waits more than it works
            for _ in range(max_iterations):
                items = irt.ItemResponse(slope, intercept, ability)
                weight, fit = _posterior(right, tries, items.probability(), share)
                share = weight.mean(axis=0)
                ability = _step_abilities(items, weight.T @ right, weight.T @ tries)
                if fit - before < tolerance:
                    break
                before = fit
        curve = irt.ItemResponse(slope, intercept, ability).probability()
        posterior = np.cumsum(_posterior(right, tries, curve, share)[0], axis=1)
        return cls(ability, curve, share, posterior, np.asarray(trials, dtype=np.int64))

    def draw(self, rng: np.random.Generator) -> Counts:
        """Passes of another world of the same models and trials: int64, shape (n, m)."""
        # inverse of the cumulative posterior: a kind for each item, as likely as its answers make
        # it
        kind = (rng.random((len(self.posterior), 1)) > self.posterior).sum(axis=1)
        # the last cumulative chance may be just below 1 by rounding
        p = self.curve[np.minimum(kind, len(self.curve) - 1)]
        if self.trials.max(initial=0) <= 1:
            return np.asarray((rng.random(p.shape) < p) & (self.trials > 0), dtype=np.int64)
        return np.asarray(rng.binomial(self.trials, p), dtype=np.int64)


def _share(first: irt.ItemResponse, slope: Floats, intercept: Floats) -> Floats:
    """Shares to start from: normal about the centre of a first fit, and wider."""
    deviation = max(1.0, float(first.intercept.std()))
    away = ((np.log(slope) - first.centre[0]) / 0.6) ** 2 + (
        (intercept - first.centre[1]) / deviation
    ) ** 2
    # a share of 0 would stay 0 for ever
    weight = np.exp(-away / 2) + 1e-6
    return np.asarray(weight / weight.sum())


def _posterior(right: Floats, tries: Floats, curve: Floats, share: Floats) -> tuple[Floats, float]:
    """Chances of each kind for each item, shape (n, G), and the mean log-likelihood."""
    p = np.clip(curve, 1e-12, 1 - 1e-12)
    odds, wrong = np.log(p / (1 - p)), np.log1p(-p)
    weight = right @ odds.T
    weight += tries @ wrong.T
    weight += np.log(np.maximum(share, 1e-300))
    # log-sum-exp in place: n x G numbers are held once, not three times
    top = weight.max(axis=1, keepdims=True)
    weight -= top
    np.exp(weight, out=weight)
    total = weight.sum(axis=1, keepdims=True)
    weight /= total
    return weight, float((top + np.log(total)).mean())


def _step_abilities(items: irt.ItemResponse, right: Floats, tries: Floats) -> Floats:
    """Abilities after a Newton step, standardised."""
    p, slope = items.probability(), items.slope[:, None]
    # a standard normal prior of abilities, hence - ability here and + 1 below: nobody runs off to
    # infinity
    gradient = (slope * (right - tries * p)).sum(axis=0) - items.ability
    weight = (slope**2 * tries * p * (1 - p)).sum(axis=0) + 1
    ability = items.ability + np.clip(gradient / weight, -1.0, 1.0)
    # standardised, since only slope * ability is identified
    return np.asarray((ability - ability.mean()) / max(float(ability.std()), 1e-8))
