"""Pre-learned: learns once where the failures are, from the warm-up, and never again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from groundfault.errors import PlanError
from groundfault.sequential.policies import History, Query

_MIN_SCORES = 2  # scores to learn from


@dataclass(frozen=True)
class PreLearned:
    """Predict every case's score from the warm-up alone, and claim where the prediction is lowest.

    The claim is the declared group of lowest predicted mean or, where any set of cases may be
    named, the cases of lowest prediction. Groups that are used up, or known to reach the threshold,
    give way to the next.

    Notes
    -----
    The paper's version predicts with the adaptive auditor's ensemble of networks; this one with
    ridge regression on groups and embedding, which 32 scores feed as well."""

    name: ClassVar[str] = "prelearned"
    warm_up: ClassVar[int] = 32
    _last: list[tuple[History, NDArray[np.float64]]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )

    def ask(self, history: History, rng: np.random.Generator) -> Query | None:  # noqa: ARG002
        """The lowest prediction among what is left.

        Raises
        ------
        PlanError
            If there was no warm-up to learn from.
        """
        predictions = self._predict(history)
        if history.anywhere:
            return claim_lowest(history, predictions)
        useful = history.open & (history.rest_targets > 0)
        useful = useful & history.strata if (useful & history.strata).any() else useful
        if not useful.any():
            return None
        means = history.members @ predictions / history.members.sum(axis=1)
        return Query(history.groups[int(np.where(useful, means, np.inf).argmin())], claim=True)

    def _predict(self, history: History) -> NDArray[np.float64]:
        """Predictions from the warm-up, worked out once."""
        rounds = _find_warm_up(history)
        if self._last:
            last, predictions = self._last[0]
            before = _find_warm_up(last)
            # the arrays of a pool cannot be written to: the same array holds the same numbers
            if (
                last.members is history.members
                and last.embedding is history.embedding
                and np.array_equal(last.positions[before], history.positions[rounds])
                and np.array_equal(last.scores[before], history.scores[rounds])
            ):
                return predictions
        predictions = predict_by_ridge(history, rounds)
        self._last[:] = [(history, predictions)]
        return predictions


def _find_warm_up(history: History) -> NDArray[np.intp]:
    """Scored rounds before anything was staked."""
    rounds = np.flatnonzero(np.cumsum(history.staked) == 0)
    return rounds[~np.isnan(history.scores[rounds])]


def claim_lowest(history: History, predictions: NDArray[np.float64]) -> Query | None:
    """Claim the offered cases of lowest prediction; None where there are too few."""
    among = np.flatnonzero(history.available)
    if len(among) < max(1, history.min_eligible):
        return None
    items = np.zeros_like(history.available)
    items[among[np.argsort(predictions[among], kind="stable")[: history.min_eligible]]] = True
    return Query(items=items, claim=True)


def predict_by_ridge(
    history: History, rounds: NDArray[np.intp], penalty: float = 1.0
) -> NDArray[np.float64]:
    """Scores of all cases predicted from those of some rounds: float64, shape (N,).

    Groups, and the embedding where there is one, weigh the same: each is scaled to a mean squared
    length of one.

    Raises
    ------
    PlanError
        If there are fewer than two scores to learn from.
    """
    if len(rounds) < _MIN_SCORES:
        raise PlanError(
            f"a pre-learned policy has {len(rounds)} scores to learn from; set warm_up to "
            f"{_MIN_SCORES} or more"
        )
    kinds = [history.members.T.astype(float)]
    kinds += [] if history.embedding is None else [history.embedding]
    features = np.hstack([_scale(kind) for kind in kinds])
    rows, scores = features[history.positions[rounds]], history.scores[rounds]
    centre = scores.mean()
    weights = np.linalg.solve(rows @ rows.T + penalty * np.eye(len(rounds)), scores - centre)
    return np.asarray(centre + features @ (rows.T @ weights))


def _scale(features: NDArray[np.float64]) -> NDArray[np.float64]:
    features = features - features.mean(axis=0)
    length = np.sqrt((features**2).sum(axis=1).mean())
    return np.asarray(features / length) if length > 0 else features
