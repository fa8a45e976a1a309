"""Learned: claim the group whose test is expected to gain most, by what a learner predicts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from groundfault.base.threads import one_thread
from groundfault.sequential.policies import History, Query, learners
from groundfault.sequential.policies.features import Cache, predict_group_rests
from groundfault.sequential.policies.learners import LabelledData, Learner
from groundfault.sequential.policies.prelearned import claim_lowest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_EDGE = 1e-9


@dataclass(frozen=True)
class Learned:
    """Claim, in every round, the group that is expected to bring most evidence against the model.

    The gain of a group is the relative entropy between what its unlabelled rest is predicted to
    score and what it needs to reach the threshold, and nothing where the prediction is not short of
    the need: the rate at which the best bet would grow. Its mean over the learner's draws rises
    with doubt as well as with failure, so that groups of which little is known are looked into
    without any rule for exploring. Where no draw sees a group short, the one that comes nearest is
    claimed, so that a sound model can pass.

    Where any set of cases may be named, the cases of lowest prediction are claimed.

    Parameters
    ----------
    name : str
    learner : Learner
    thompson : bool
        Believe one draw at a time, in place of their mean.

    References
    ----------
    Thompson (1933), https://doi.org/10.1093/biomet/25.3-4.285. The gain is the growth rate of
    Kelly's bet (1956), https://doi.org/10.1002/j.1538-7305.1956.tb03809.x."""

    name: str
    learner: Learner
    thompson: bool = False
    _features: Cache = field(default_factory=Cache, init=False, repr=False, compare=False)

    def ask(self, history: History, rng: np.random.Generator) -> Query | None:
        """The group of largest gain; None where none is left that could fall short."""
        has_score = ~np.isnan(history.scores)
        labels = LabelledData(
            self._features.of(history),
            history.positions[has_score],
            history.scores[has_score],
            history.threshold,
        )
        # threads change the last bit, and a resumed audit must ask the same
        with one_thread():
            draws = self.learner(labels, rng)
        if self.thompson:
            draws = draws[[rng.integers(len(draws))]]
        if history.anywhere:
            return claim_lowest(history, draws.mean(axis=0))
        useful, means = predict_group_rests(history, draws)
        if not len(useful):
            return None
        targets = history.rest_targets[useful]
        gains = _compute_gain(means, targets).mean(axis=0)
        # no draw is short of the target: claim the nearest, so that a sound model can pass
        value = gains if gains.any() else targets - means.mean(axis=0)
        return Query(history.groups[useful[value.argmax()]], claim=True)


def _compute_gain(means: Floats, targets: Floats) -> Floats:
    """Bernoulli relative entropy where the expected mean is below the needed one, else 0."""
    p, q = np.clip(means, _EDGE, 1 - _EDGE), np.clip(targets, _EDGE, 1 - _EDGE)
    return np.where(p < q, p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q)), 0.0)


def logistic() -> Learned:
    """By Bayesian logistic regression."""
    return Learned("logistic", learners.logistic)


def gp() -> Learned:
    """By a Gaussian process."""
    return Learned("gp", learners.gaussian_process)


def boosted() -> Learned:
    """By gradient-boosted stumps."""
    return Learned("boosted", learners.boosted)


def thompson() -> Learned:
    """Thompson sampling, by Bayesian logistic regression."""
    return Learned("thompson", learners.logistic, thompson=True)
