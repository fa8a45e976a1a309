"""Stability: refits on half of the examples or models, with other seeds, and on resamples."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from groundfault.errors import InputError
from groundfault.stats.agreement import adjusted_rand, best_jaccard
from groundfault.taxonomy.fitting.matrix import Matrix
from groundfault.taxonomy.fitting.partition import Partition, cluster_points, make_partition
from groundfault.taxonomy.fitting.replicates import Replicates
from groundfault.taxonomy.fitting.settings import Settings
from groundfault.taxonomy.fitting.stored import Numbers, restore_unknown

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
Axis = Literal["examples", "models", "seeds"]


@dataclass(frozen=True)
class Stability:
    """How well a partition is found again.

    Attributes
    ----------
    jaccard : dict of str to tuple of float
        Of each cluster with the cluster most like it, mean over refits, by what was changed:
        ``examples``, ``models``, ``seeds``.
    agreement : dict of str to float or None
        Mean adjusted Rand index: of two disjoint halves of the models with each other; of refits on
        half of the examples, and with other seeds, with the whole.
    bootstrap : dict of str to tuple of float
        Adjusted Rand indices with the whole under resampled examples: ``embedding fixed``, as in
        the paper, and ``refitted``.
    refits : int
    """

    jaccard: dict[str, Numbers]
    agreement: dict[str, float | None]
    bootstrap: dict[str, Numbers]
    refits: int

    def __post_init__(self) -> None:
        for rows in (self.jaccard, self.bootstrap):
            rows |= {name: restore_unknown(row) for name, row in rows.items()}

    def lowest(self, clusters: int) -> Floats:
        """Return each cluster's lowest index; 0 where nothing was refitted: shape (clusters,)."""
        if not self.jaccard:
            return np.zeros(clusters)
        # unknown counts as not found again
        table = np.array([np.nan_to_num(row, nan=0.0) for row in self.jaccard.values()])
        return np.asarray(table.min(axis=0), dtype=np.float64)


def measure_stability(
    matrix: Matrix,
    clustering: Partition,
    settings: Settings,
    dimensions: int | None,
    replicates: Replicates,
) -> Stability:
    """Refit on halves and with other seeds, and compare.

    Parameters
    ----------
    matrix : Matrix
        The examples that were clustered.
    clustering : Partition
        Of them.
    dimensions : int, optional
        As it was found with; kept in refits.
    """
    if clustering.clusters == 0 or settings.refits == 0:
        return Stability({}, {}, {}, 0)
    jaccard: dict[str, Numbers] = {}
    agreement: dict[str, float | None] = {}
    axes: tuple[Axis, ...] = ("examples", "models", "seeds")
    for axis in axes:
        # what has no chance in it cannot come out otherwise
        by_chance = settings.reducer == "umap" or settings.clusterer == "means"
        count = settings.refits if axis != "seeds" or by_chance else 1
        work = partial(_refit, axis, matrix, clustering.labels, settings, dimensions)
        rows = replicates.run(f"refitting, other {axis}", work, count)
        table = np.array([[*row["jaccard"], row["rand"]] for row in rows], dtype=np.float64)
        *each, rand = _mean(table).tolist()
        jaccard[axis], agreement[axis] = tuple(each), _plain(rand)
    bootstrap = {
        how: restore_unknown(
            replicates.run(
                f"resampling examples, {how}",
                partial(_resample, how, matrix, clustering, settings, dimensions),
                settings.bootstraps,
            )
        )
        for how in ("embedding fixed", "refitted")
    }
    return Stability(jaccard, agreement, bootstrap, settings.refits)


def _refit(
    axis: Axis,
    matrix: Matrix,
    labels: Labels,
    settings: Settings,
    dimensions: int | None,
    number: int,
) -> dict[str, Any]:
    clusters = int(labels.max()) + 1
    if axis == "seeds":
        again = make_partition(matrix, settings, dimensions, settings.seed + number + 1).labels
        return _make_row(best_jaccard(labels, again, clusters), adjusted_rand(labels, again))
    rng = settings.rng(f"refitting, other {axis}", number)
    size = len(matrix) if axis == "examples" else len(matrix.models)
    # two halves of one permutation share nothing
    order = rng.permutation(size)
    halves = [
        _cluster_part(axis, matrix, np.sort(part), settings, dimensions)
        for part in np.array_split(order, 2)
    ]
    best = _mean(np.array([_jaccard(labels, half, clusters) for half in halves]))
    if axis == "models":  # two halves that share no model, with each other
        return _make_row(best, adjusted_rand(*halves))
    rands = np.array([[adjusted_rand(labels, half)] for half in halves])
    return _make_row(best, float(_mean(rands)[0]))


def _cluster_part(
    axis: Axis, matrix: Matrix, part: NDArray[np.intp], settings: Settings, dimensions: int | None
) -> Labels:
    """Label a part of the examples or models; -2 where not clustered, -1 noise."""
    # -2 is apart from noise: an example outside of the half was not clustered at all
    out = np.full(len(matrix), -2, dtype=np.int64)
    rows = part if axis == "examples" else np.arange(len(matrix))
    models = [matrix.models[j] for j in part] if axis == "models" else []
    some = matrix.select(models) if models else matrix.take(part)
    try:
        some = some.informative()
        labels = make_partition(some, settings, dimensions).labels
    except InputError:  # half of it is too little to cluster: nothing is found again
        out[rows] = -1
        return out
    out[[matrix.places[name] for name in some.examples]] = labels
    return out


def _jaccard(labels: Labels, again: Labels, clusters: int) -> Floats:
    clustered_again = again > -2
    # compared on examples that both have, else small halves would look unstable
    return best_jaccard(labels[clustered_again], again[clustered_again], clusters)


def _resample(
    how: str,
    matrix: Matrix,
    clustering: Partition,
    settings: Settings,
    dimensions: int | None,
    number: int,
) -> float | None:
    """Measure agreement with the whole on the distinct examples of a resample.

    Copies of an example would be clusters of their own.
    """
    rng = settings.rng(f"resampling examples, {how}", number)
    # a bootstrap sample without its copies
    rows = np.unique(rng.integers(0, len(matrix), len(matrix)))
    if how == "embedding fixed":
        dimension = clustering.points.shape[1]
        again, _ = cluster_points(clustering.points[rows], settings, dimension, settings.seed)
        return _plain(adjusted_rand(clustering.labels[rows], again))
    again = _cluster_part("examples", matrix, rows, settings, dimensions)
    return _plain(adjusted_rand(clustering.labels, again))


def _make_row(jaccard: Floats, rand: float) -> dict[str, Any]:
    return {"jaccard": [_plain(x) for x in jaccard], "rand": _plain(rand)}


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _mean(table: Floats) -> Floats:
    """Return column means of what is known; NaN where nothing is."""
    present = ~np.isnan(table)
    count = present.sum(axis=0)
    total = np.where(present, table, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
