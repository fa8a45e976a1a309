"""Basis: what other models' answers say of examples, before a new model answers any."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from groundfault.stats import irt
from groundfault.taxonomy.fitting.matrix import Matrix

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Basis:
    """Clusters, difficulties and item curves of examples, and how models deviate from one ability.

    Attributes
    ----------
    labels : int64 array, shape (n,)
        Cluster of each example from 0; -1 is none.
    difficulty : float64 array, shape (n,)
        Share of the other models that failed it.
    items : ItemResponse
        Two parameters an item, fitted to the other models.
    covariance : float64 array, shape (clusters, clusters)
        Of the failures of a model beyond what its ability explains, over the other models.
    weights : float64 array, shape (len(SCALES),)
        Shares of models whose excesses are so many times as large as that.
    benchmark : int64 array, shape (n,), optional
        Where each example comes from.
    """

    labels: Labels
    difficulty: Floats
    items: irt.ItemResponse
    covariance: Floats
    weights: Floats
    benchmark: Labels | None = None

    @classmethod
    def of(cls, matrix: Matrix, labels: Labels, benchmark: str | None = None) -> Basis:
        """Read a basis off the answers of other models.

        Parameters
        ----------
        matrix : Matrix
            Only informative examples, without the model to be diagnosed.
        labels : int64 array, shape (n,)
        benchmark : str, optional
            Column of the matrix's attributes.
        """
        passes, trials = matrix.binary
        # two parameters an item, whatever the taxonomy's settings: diagnosis needs slopes
        items = irt.fit(passes, trials)
        difficulty = 1 - passes.sum(axis=1) / np.maximum(trials.sum(axis=1), 1)
        source = None
        if benchmark is not None:
            source = (
                matrix.attributes[benchmark].fill_null("unknown").rank("dense").to_numpy() - 1
            ).astype(np.int64)
        excess, chance = _measure_excess(trials - passes, trials, items, _members(labels))
        covariance = _estimate_covariance(excess, chance)
        return cls(
            labels,
            difficulty,
            items,
            covariance,
            _estimate_weights(excess, chance, covariance),
            source,
        )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def clusters(self) -> int:
        """How many there are."""
        return len(self.covariance)

    @cached_property
    def inside(self) -> Floats:
        """1 where an example is in a cluster: shape (n, clusters)."""
        return _members(self.labels)

    @cached_property
    def curve(self) -> Floats:
        """Chance of a pass of each example at each ability of `irt.GRID`: shape (n, len(GRID))."""
        return irt.compute_curves(self.items)

    @cached_property
    def log_chances(self) -> tuple[Floats, Floats]:
        """Logs of the chances of a pass and of a failure, as `curve`."""
        # logs of 0 would make one answer decide everything
        p = np.clip(self.curve, 1e-12, 1 - 1e-12)
        return np.log(p), np.log1p(-p)


def _members(labels: Labels) -> Floats:
    return np.asarray(labels[:, None] == np.arange(labels.max(initial=-1) + 1), dtype=np.float64)


def _measure_excess(
    failures: Labels, trials: Labels, items: irt.ItemResponse, inside: Floats
) -> tuple[Floats, Floats]:
    """Excess failures by model and cluster, and their variance by chance, shape (m, clusters)."""
    p = items.probability()
    # a model without answers in a cluster has excess 0 and variance 0
    count = np.maximum(inside.T @ trials, 1)
    excess = inside.T @ (failures - trials * (1 - p)) / count
    return excess.T, (inside.T @ (trials * p * (1 - p)) / count**2).T


def _estimate_covariance(excess: Floats, chance: Floats) -> Floats:
    """Covariance over models of excess failures by cluster, less chance; positive definite."""
    # observed covariance minus mean sampling variance: a method-of-moments estimate
    value, vector = np.linalg.eigh(excess.T @ excess / len(excess) - np.diag(chance.mean(axis=0)))
    # chance may exceed what was seen, so eigenvalues are cut at a small positive one
    return np.asarray((vector * np.maximum(value, _LEAST)) @ vector.T)


def _estimate_weights(excess: Floats, chance: Floats, covariance: Floats) -> Floats:
    """Shares of models with each of `SCALES`, by expectation-maximisation: shape (len(SCALES),)."""
    likely = estimate_excesses(covariance, excess, chance)[2]
    weight = np.full(len(SCALES), 1 / len(SCALES))
    for _ in range(_ROUNDS if likely.shape[1] else 0):
        # the maximum is subtracted first, for exp would underflow to 0 / 0
        share = weight[:, None] * np.exp(likely - likely.max(axis=0))
        weight = ((share / share.sum(axis=0)).sum(axis=1) + 1) / (
            likely.shape[1] + len(SCALES)
        )  # one model more of each
    return weight


def estimate_excesses(
    covariance: Floats, share: Floats, noise: Floats
) -> tuple[Floats, Floats, Floats]:
    """Best linear estimates of excesses of each of `SCALES`.

    Parameters
    ----------
    covariance : float64 array, shape (clusters, clusters)
    share, noise : float64 arrays, shape (q, clusters)
        Excesses seen and their variances by chance.

    Returns
    -------
    float64 arrays, shapes (scales, q, clusters) twice and (scales, q)
        Estimates, their variances, and log likelihoods of what was seen, up to a constant.
    """
    # best linear prediction (kriging) with covariance prior + noise, for all scales at once
    k = len(covariance)
    prior = SCALES[:, None, None, None] ** 2 * covariance
    total_variance = prior + noise[:, :, None] * np.eye(k)
    gain = np.linalg.solve(total_variance, np.broadcast_to(prior, total_variance.shape)).swapaxes(
        -1, -2
    )
    estimate = np.einsum("sqcd,qd->sqc", gain, share)
    variance = np.einsum("sqcc->sqc", prior - gain @ prior)
    whitened = np.linalg.solve(
        total_variance, np.broadcast_to(share, total_variance.shape[:-1])[..., None]
    )[..., 0]
    likely = -(np.linalg.slogdet(total_variance)[1] + np.einsum("sqc,qc->sq", whitened, share)) / 2
    return estimate, np.maximum(variance, 0.0), likely


SCALES: Floats = np.array([0.3, 0.6, 1.0, 2.0])
"""Of a model's excesses: most models differ little from their ability, and a few much."""

_LEAST = (
    1e-5  # a spread of a third of a point in failure rates: less cannot be distinguished from none
)
_ROUNDS = 50
