"""Learners: from the scores so far to each case's expected score, with its uncertainty.

Each gives K *draws*, an array of shape (K, N): that many answers which the scores leave possible,
an expected score a case. Their mean is the prediction, their spread the doubt."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Protocol

import numpy as np

from groundfault.base.deprecation import rename_attributes, rename_members
from groundfault.sequential.policies.features import Features

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_DRAWS, _NEWTON, _MIN_CURVE = 100, 8, 0.02
_INTERCEPT, _SCALES = 1.5, (0.0, 0.5, 1.0, 2.0, 4.0)
_BAGS, _ROUNDS, _RATE, _PENALTY = 40, 40, 0.3, 2.0


@rename_members(asked="positions")
@dataclass(frozen=True, eq=False)
class LabelledData:
    """Scores to learn from.

    Attributes
    ----------
    features : Features
        Of all N cases.
    positions : intp array, shape (n,)
        Position of each scored case; there may be none.
    scores : float64 array, shape (n,)
        In [0, 1].
    threshold : float
        What is expected where nothing is known.
    """

    features: Features
    positions: NDArray[np.intp]
    scores: Floats
    threshold: float

    @property
    def logit(self) -> float:
        """Of the threshold."""
        return float(np.log(self.threshold / (1 - self.threshold)))


class Learner(Protocol):
    """A function from scores to draws; pure but for the generator."""

    def __call__(self, labels: LabelledData, rng: np.random.Generator) -> Floats:
        """Draws, shape (K, N)."""
        ...


def logistic(labels: LabelledData, rng: np.random.Generator) -> Floats:
    """Bayesian logistic regression on components of the embedding, and groups.

    How strongly each of the two may matter is not chosen but averaged over, by marginal likelihood:
    this is what keeps early predictions from being too sure."""
    return _linear(labels, labels.features.components, rng)


def gaussian_process(labels: LabelledData, rng: np.random.Generator) -> Floats:
    """Draws with a Gaussian kernel over the components, in random Fourier features."""
    return _linear(labels, labels.features.waves, rng)


def _linear(labels: LabelledData, embedded: Floats, rng: np.random.Generator) -> Floats:
    """Draws of a logistic model with normal weights, by Laplace's approximation."""
    parts = [np.ones((len(embedded), 1)), embedded, labels.features.groups]
    widths = [part.shape[1] for part in parts]
    kinds = [(_INTERCEPT,), *(_SCALES if width else (0.0,) for width in widths[1:])]
    columns, scales = (
        np.hstack(parts),
        np.array([np.repeat(draws, widths) for draws in product(*kinds)]),
    )
    mode, precision, evidence = _laplace(
        columns[labels.positions] * scales[:, None], labels.scores, labels.logit
    )
    # scales are averaged by marginal likelihood (MacKay, 1992): choosing the best of them would
    # make early predictions too sure
    share = np.exp(evidence - evidence.max())
    draws = rng.choice(len(scales), size=_DRAWS, p=share / share.sum())
    # a normal with precision L L^T is L^-T times white noise
    roots = np.linalg.inv(np.swapaxes(np.linalg.cholesky(precision), 1, 2))
    noise = np.einsum("sij,sj->si", roots[draws], rng.normal(size=(_DRAWS, columns.shape[1])))
    return _sigmoid(labels.logit + ((mode[draws] + noise) * scales[draws]) @ columns.T)


def _laplace(rows: Floats, scores: Floats, offset: float) -> tuple[Floats, Floats, Floats]:
    """Mode (S, d), precision (S, d, d), log evidence (S,) of normal weights; rows (S, n, d)."""
    mode, prior = np.zeros((rows.shape[0], rows.shape[2])), np.eye(rows.shape[2])
    transposed = np.swapaxes(rows, 1, 2)
    for _ in range(_NEWTON):
        chance = _sigmoid(offset + (rows @ mode[..., None])[..., 0])
        # a curvature that is nearly zero would send Newton's step far out
        curve = np.maximum(chance * (1 - chance), _MIN_CURVE)
        precision = transposed @ (rows * curve[..., None]) + prior
        slope = transposed @ (scores - chance)[..., None] - mode[..., None]
        mode = mode + np.linalg.solve(precision, slope)[..., 0]
    logits = offset + (rows @ mode[..., None])[..., 0]
    fit = (scores * logits - np.logaddexp(0.0, logits)).sum(axis=1)
    return mode, precision, fit - (mode**2).sum(axis=1) / 2 - np.linalg.slogdet(precision)[1] / 2


def boosted(labels: LabelledData, rng: np.random.Generator) -> Floats:
    """Gradient-boosted stumps on cuts of the components; each draw weights scores anew.

    References
    ----------
    Friedman (2001), https://doi.org/10.1214/aos/1013203451; Rubin (1981),
    https://doi.org/10.1214/aos/1176345338 (the Bayesian bootstrap)."""
    splits = labels.features.splits
    rows = splits[labels.positions].astype(np.float64)
    # exponential weights are the Bayesian bootstrap: no score is left out, however few there are
    weights = rng.exponential(size=(_BAGS, len(labels.positions)))
    logits = np.full((_BAGS, len(splits)), labels.logit)
    for _ in range(_ROUNDS):
        chance = _sigmoid(logits[:, labels.positions])
        slope, curve = weights * (labels.scores - chance), weights * chance * (1 - chance)
        inside, bend = slope @ rows, curve @ rows + _PENALTY
        outside, other = (
            slope.sum(axis=1)[:, None] - inside,
            curve.sum(axis=1)[:, None] - bend + 2 * _PENALTY,
        )
        best = (inside**2 / bend + outside**2 / other).argmax(axis=1)
        bag = np.arange(_BAGS)
        up, down = (inside / bend)[bag, best], (outside / other)[bag, best]
        logits += _RATE * np.where(splits[:, best].T, up[:, None], down[:, None])
    return _sigmoid(logits)


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -500, 500))))


__getattr__ = rename_attributes(
    __name__, {"Told": "groundfault.sequential.policies.learners:LabelledData"}
)
