"""Low-rank logistic factors: a few more skills for each model, beyond one ability.

The chance that a model passes an item is ``1 / (1 + exp(-(slope_i * ability_j + intercept_i +
loading_i @ skill_j)))``. Slopes and intercepts are those of the item-response fit and stay; skills
have standard normal penalties, and loadings narrower ones, because a few dozen models say little
about one item. With rank 0 it is the item-response model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundfault_lab.stats import irt

Floats = NDArray[np.float64]
Integers = NDArray[np.integer[Any]]

# standard deviation of loadings: with wider ones the factors fit luck, and predict hidden answers
# worse than no factor does
_LOADING = 0.1
# longest step in any coordinate: far from the optimum Newton's are too long
_STEP = 1.0
# share of answers that choose the rank
_HIDDEN = 0.1
_MIN_GAIN = 5e-4  # of the mean log likelihood of hidden answers, for one more factor


@dataclass(frozen=True)
class LowRank:
    """Fitted factors.

    Attributes
    ----------
    items : ItemResponse
    loading : float64 array, shape (n, k)
    skill : float64 array, shape (m, k)
        Of the models fitted.
    """

    items: irt.ItemResponse
    loading: Floats
    skill: Floats

    @property
    def rank(self) -> int:
        """Return how many factors there are beyond ability."""
        return int(self.loading.shape[1])

    def probability(self, place: Floats | None = None) -> Floats:
        """Return chance of a pass, shape (n, q), at some places; by default those of the fitted
        models.

        Parameters
        ----------
        place : float64 array, shape (q, 1 + k), optional
            Ability and skills, from `place`.
        """
        from scipy.special import expit

        at = np.column_stack([self.items.ability, self.skill]) if place is None else place
        return np.asarray(expit(self.items.intercept[:, None] + self._design @ at.T))

    def place(self, passes: Integers, trials: Integers, *, max_iterations: int = 30) -> Floats:
        """Return most likely ability and skills of new models: shape (q, 1 + k); of nothing asked,
        zeros.

        Parameters
        ----------
        passes, trials : int arrays, shape (n, q)
        """
        at, penalty = np.zeros((passes.shape[1], 1 + self.rank)), np.ones(1 + self.rank)
        for _ in range(max_iterations):
            at, change = _newton(
                passes.T, trials.T, self._design, self.items.intercept[None, :], at, penalty
            )
            if change < 1e-6:
                break
        return at

    @property
    def _design(self) -> Floats:
        return np.column_stack([self.items.slope, self.loading])


def fit(
    passes: Integers,
    trials: Integers,
    items: irt.ItemResponse,
    rank: int,
    *,
    max_iterations: int = 40,
    tolerance: float = 1e-3,
) -> LowRank:
    """Fit loadings and skills by penalised likelihood, ability and items given.

    Parameters
    ----------
    passes, trials : int arrays, shape (n, m)
    items : ItemResponse
        Fitted to the same answers.
    rank : int
        Factors beyond ability; 0 for none.
    max_iterations : int
    tolerance : float
        Stop when the root mean square step of skills is smaller.

    Notes
    -----
    Alternating Newton steps from the singular vectors of the standardised residuals; deterministic,
    and a local optimum. Collins, Dasgupta and Schapire 2001, *A generalization of principal
    component analysis to the exponential family*."""
    offset = np.multiply.outer(items.slope, items.ability) + items.intercept[:, None]
    _, _, right = np.linalg.svd(irt.compute_residuals(passes, trials, items), full_matrices=False)
    # the leading directions of the residuals are close to the optimum, and the same in every run
    skill = right[:rank].T * np.sqrt(passes.shape[1])
    loading = np.zeros((len(passes), rank))
    narrow = np.full(rank, 1 / _LOADING**2)
    for _ in range(max_iterations if rank else 0):
        loading, _ = _newton(passes, trials, skill, offset, loading, narrow)
        skill, change = _newton(passes.T, trials.T, loading, offset.T, skill, np.ones(rank))
        if change < tolerance:
            break
    return LowRank(items, loading, skill)


def choose_rank(passes: Integers, trials: Integers, max_rank: int = 4, *, seed: int = 0) -> int:
    """Return the rank, from 0, whose fit to nine tenths of the answers predicts the others best.

    A further factor has to raise the mean log likelihood of the hidden answers by half a
    thousandth."""
    rng = np.random.default_rng(seed)
    test_cells = (trials > 0) & (rng.random(trials.shape) < _HIDDEN)
    visible_trials, visible_passes = (
        np.where(test_cells, 0, trials),
        np.where(test_cells, 0, passes),
    )
    items = irt.fit(visible_passes, visible_trials)
    best, best_rank = -np.inf, 0
    for rank in range(min(max_rank, trials.shape[1] - 1) + 1):
        # a chance of 0 or 1 that is wrong once would decide the rank by itself
        p = np.clip(fit(visible_passes, visible_trials, items, rank).probability(), 1e-6, 1 - 1e-6)[
            test_cells
        ]
        right, wrong = passes[test_cells], (trials - passes)[test_cells]
        likely = float(
            (right * np.log(p) + wrong * np.log1p(-p)).sum() / max(trials[test_cells].sum(), 1)
        )
        if likely < best + _MIN_GAIN:
            break
        best, best_rank = likely, rank
    return best_rank


def _newton(
    passes: Integers,
    trials: Integers,
    design: Floats,
    offset: Floats,
    weight: Floats,
    penalty: Floats,
) -> tuple[Floats, float]:
    """Return one Newton step of a penalised logistic regression for each row, and its root mean
    square."""
    from scipy.special import expit

    p = expit(weight @ design.T + offset)
    gradient = (passes - trials * p) @ design - weight * penalty
    # products of all pairs of columns, so that every row's curvature is one matrix product
    square = (design[:, :, None] * design[:, None, :]).reshape(len(design), -1)
    k = design.shape[1]
    curvature = ((trials * p * (1 - p)) @ square).reshape(-1, k, k) + np.diag(penalty)
    step = np.clip(np.linalg.solve(curvature, gradient[:, :, None])[:, :, 0], -_STEP, _STEP)
    return weight + step, float(np.sqrt((step**2).mean())) if step.size else 0.0
