"""Basis: what other models' answers say of examples, before a new model answers any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from groundfault.core.evidence import Evidence
from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.stats import irt
from groundfault.taxonomy.fitting.matrix import SLACK, Matrix
from groundfault.taxonomy.fitting.taxonomy import Taxonomy

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

Bools = NDArray[np.bool_]

# a spread of a third of a point in failure rates: less cannot be distinguished from none
_LEAST = 1e-5
# of expectation-maximisation: a fixed number, so that no tolerance decides when it ends
_ROUNDS = 50
SCALES: Floats = np.array([0.3, 0.6, 1.0, 2.0])
"""Of a model's excesses: most models differ little from their ability, and a few much."""


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
            ranks = matrix.attributes[benchmark].fill_null("unknown").rank("dense").to_numpy()
            source = (ranks - 1).astype(np.int64)
        excess, chance = _measure_excess(trials - passes, trials, items, _members(labels))
        covariance = _estimate_covariance(excess, chance)
        weights = _estimate_weights(excess, chance, covariance)
        return cls(labels, difficulty, items, covariance, weights, source)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def clusters(self) -> int:
        """Return the number of clusters."""
        return len(self.covariance)

    @cached_property
    def inside(self) -> Floats:
        """Return 1 where an example is in a cluster: shape (n, clusters)."""
        return _members(self.labels)

    @cached_property
    def curve(self) -> Floats:
        """Return chances of a pass at each ability of `irt.GRID`: shape (n, len(GRID))."""
        return irt.compute_curves(self.items)

    @cached_property
    def log_chances(self) -> tuple[Floats, Floats]:
        """Return logs of the chances of a pass and of a failure, as `curve`."""
        # logs of 0 would make one answer decide everything
        p = np.clip(self.curve, 1e-12, 1 - 1e-12)
        return np.log(p), np.log1p(-p)


def _members(labels: Labels) -> Floats:
    return np.asarray(labels[:, None] == np.arange(labels.max(initial=-1) + 1), dtype=np.float64)


def _measure_excess(
    failures: Labels, trials: Labels, items: irt.ItemResponse, inside: Floats
) -> tuple[Floats, Floats]:
    """Measure excess failures by model and cluster, and their chance variance: (m, clusters)."""
    p = items.probability()
    # a model without answers in a cluster has excess 0 and variance 0
    count = np.maximum(inside.T @ trials, 1)
    excess = inside.T @ (failures - trials * (1 - p)) / count
    return excess.T, (inside.T @ (trials * p * (1 - p)) / count**2).T


def _estimate_covariance(excess: Floats, chance: Floats) -> Floats:
    """Estimate the covariance over models of excess failures, less chance; positive definite."""
    # observed covariance minus mean sampling variance: a method-of-moments estimate
    value, vector = np.linalg.eigh(excess.T @ excess / len(excess) - np.diag(chance.mean(axis=0)))
    # chance may exceed what was seen, so eigenvalues are cut at a small positive one
    return np.asarray((vector * np.maximum(value, _LEAST)) @ vector.T)


def _estimate_weights(excess: Floats, chance: Floats, covariance: Floats) -> Floats:
    """Estimate shares of models with each of `SCALES`, by expectation-maximisation."""
    likely = estimate_excesses(covariance, excess, chance)[2]
    weight = np.full(len(SCALES), 1 / len(SCALES))
    for _ in range(_ROUNDS if likely.shape[1] else 0):
        # the maximum is subtracted first, for exp would underflow to 0 / 0
        share = weight[:, None] * np.exp(likely - likely.max(axis=0))
        # one model more of each
        total = likely.shape[1] + len(SCALES)
        weight = ((share / share.sum(axis=0)).sum(axis=1) + 1) / total
    return weight


def estimate_excesses(
    covariance: Floats, share: Floats, noise: Floats
) -> tuple[Floats, Floats, Floats]:
    """Estimate excesses for each of `SCALES`, by the best linear predictor.

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
    priors = np.broadcast_to(prior, total_variance.shape)
    gain = np.linalg.solve(total_variance, priors).swapaxes(-1, -2)
    estimate = np.einsum("sqcd,qd->sqc", gain, share)
    variance = np.einsum("sqcc->sqc", prior - gain @ prior)
    shares = np.broadcast_to(share, total_variance.shape[:-1])[..., None]
    whitened = np.linalg.solve(total_variance, shares)[..., 0]
    likely = -(np.linalg.slogdet(total_variance)[1] + np.einsum("sqc,qc->sq", whitened, share)) / 2
    return estimate, np.maximum(variance, 0.0), likely


def match_answers(results: Evidence | None, taxonomy: Taxonomy) -> tuple[Bools, Bools, int]:
    """Find which of the taxonomy's examples a model answered and failed; how many others.

    Repeats are reduced by the taxonomy's rule of what a pass is.

    Raises
    ------
    InputError
        As `diagnose` does.
    """
    matrix, n = taxonomy.matrix, len(taxonomy.matrix)
    passes, tries = np.zeros((2, n), dtype=np.int64)
    if results is None:
        return tries > 0, tries > 0, 0
    _check_one_model(results.models, taxonomy.matrix.models)
    if results.roles.id is None:
        raise InputError(
            "the answers have no ids, so it is not known which examples they are of: name the "
            "column (id=)"
        )
    at = matrix.places
    names = results.frame[results.roles.id].cast(str).to_list()
    is_scored_row = (results.status == Status.SCORED).to_list()
    loss = results.loss.fill_null(1.0).to_list()
    for name, is_scored, value in zip(names, is_scored_row, loss, strict=True):
        if is_scored and name in at:
            tries[at[name]] += 1
            passes[at[name]] += 1 - value >= taxonomy.settings.score - SLACK
    # examples that were set apart are the taxonomy's too, and no sign of other ids
    unknown = len({name for name in names if name not in at})
    apart = matrix.apart
    known = {*apart.all_failed, *apart.all_passed, *apart.unanswered, *apart.easy}
    if names and unknown == len(set(names)) and known.isdisjoint(names):
        raise InputError(
            f"none of the {unknown:,} examples answered is one of the taxonomy's: the ids do not "
            f"match; they look like {names[0]!r}, the taxonomy's like {matrix.examples[0]!r}"
        )
    return tries > 0, passes < matrix.rate * tries - SLACK, unknown


def _check_one_model(models: Sequence[str], fit_models: Sequence[str]) -> None:
    if len(models) > 1:
        some = ", ".join(models[:6]) + (", ..." if len(models) > 6 else "")
        raise InputError(
            f"the answers are of {len(models)} models ({some}): choose one (select_model, or "
            "--name)"
        )
    overlap = [name for name in models if name in fit_models]
    if overlap:
        raise InputError(
            f"model {overlap[0]!r} is one that the taxonomy was fitted to, so its diagnosis would "
            "be circular; fit the taxonomy without it"
        )
