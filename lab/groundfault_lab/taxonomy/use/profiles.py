"""Profiles: how often each model fails in each leaf and cluster, and the order of the models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from groundfault.errors import InputError, require_name
from groundfault.stats.intervals import wilson
from groundfault_lab.taxonomy.fitting.stored import Stored
from groundfault_lab.taxonomy.fitting.taxonomy import Taxonomy

LEVEL = 0.95
"""Confidence level of the intervals of failure rates."""


@dataclass(frozen=True)
class ClusterRate:
    """The failures of a model in one leaf or cluster; rates are NaN where it was asked nothing.

    Attributes
    ----------
    cluster : str
        Its name.
    asked, failed : int
    rate, low, high : float
        Share failed, and Wilson's interval.
    expected : float
        Share that ability and difficulty lead one to expect.
    beyond : bool
        Whether the leaf lists the model: it fails there beyond its ability.
    """

    cluster: str
    asked: int
    failed: int
    rate: float
    low: float
    high: float
    expected: float
    beyond: bool


@dataclass(frozen=True)
class ModelProfile:
    """A model, and its failures in each leaf and cluster.

    Attributes
    ----------
    rank : int
        From 1 for the model that fails least by ``mean``; models that are alike share a rank.
    model : str
    failed : float
        Share that it failed of all examples of the taxonomy that it was asked.
    mean : float
        Mean of its failure rates, each leaf and cluster counted once.
    beyond : int
        Leaves in which it fails beyond its ability.
    rates : tuple of ClusterRate
    """

    rank: int
    model: str
    failed: float
    mean: float
    beyond: int
    rates: tuple[ClusterRate, ...]


@dataclass(frozen=True)
class Profiles(Stored):
    """Profiles of models, those first that fail least.

    Attributes
    ----------
    models : tuple of ModelProfile
    all_models : int
        Models among which they are ranked.
    """

    models: tuple[ModelProfile, ...]
    all_models: int


def profile_models(
    taxonomy: Taxonomy, models: Sequence[str] = (), *, unstable: bool = False
) -> Profiles:
    """Count failures by model in each leaf and cluster, and rank the models.

    Parameters
    ----------
    taxonomy : Taxonomy
    models : sequence of str
        Models to profile, ranked among all; all where left out.
    unstable : bool
        Count clusters that are not published too.

    Raises
    ------
    InputError
        If no leaf and no cluster is published.
    PlanError
        If the taxonomy does not have a model.
    """
    matrix = taxonomy.matrix
    for name in models:
        require_name("model", name, matrix.models, where="--model")
    clusters = taxonomy.clusters if unstable else taxonomy.published
    if not clusters:
        raise InputError(
            "the taxonomy publishes no leaf and no cluster; --unstable profiles all clusters"
        )
    inside = taxonomy.inside[:, [cluster.number - 1 for cluster in clusters]].astype(np.int64)
    asked, failed = (inside.T @ one for one in (matrix.trials > 0, matrix.values == 0))
    low, high = wilson(failed, asked, LEVEL)
    rate = np.where(asked > 0, failed / np.maximum(asked, 1), np.nan)
    # a model that was asked in no cluster cannot be placed: it comes last
    mean = np.nan_to_num(np.nansum(rate, axis=0) / (asked > 0).sum(axis=0).clip(1), nan=1.0)
    profiles = []
    for j in np.lexsort((matrix.models, mean)):
        name = matrix.models[j]
        if models and name not in models:
            continue
        rates = tuple(
            ClusterRate(
                cluster.name,
                int(asked[i, j]),
                int(failed[i, j]),
                float(rate[i, j]),
                float(low[i, j]),
                float(high[i, j]),
                cluster.expected[j],
                name in cluster.models,
            )
            for i, cluster in enumerate(clusters)
        )
        rank, beyond = 1 + int((mean < mean[j]).sum()), sum(one.beyond for one in rates)
        failures = float(1 - np.nanmean(matrix.values[:, j]))
        profiles.append(ModelProfile(rank, name, failures, float(mean[j]), beyond, rates))
    return Profiles(tuple(profiles), len(matrix.models))
