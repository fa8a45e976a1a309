"""Stability: refits on half of the examples or models, with other seeds, and on resamples.

`Replicates` repeats such work in parallel; it can be resumed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from groundfault.base.arrays import Floats, Ints, Places
from groundfault.base.files import write_text
from groundfault.base.long_work import Progress, listener, run_in_order
from groundfault.base.reading import MAX_ROWS, decode_json, read_text
from groundfault.errors import InputError
from groundfault_lab.stats.partitions import adjusted_rand, best_jaccard
from groundfault_lab.taxonomy.fitting.matrix import Matrix, mean_known
from groundfault_lab.taxonomy.fitting.partition import Partition, cluster_points, make_partition
from groundfault_lab.taxonomy.fitting.settings import Settings
from groundfault_lab.taxonomy.fitting.stored import Numbers, restore_unknown

Axis = Literal["examples", "models", "seeds"]

_CHUNKS = 8  # so an interruption loses an eighth of the work at most


@dataclass(frozen=True)
class Stability:
    """Similarity of a partition and those found again.

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
    refits = _Refits(matrix, clustering, settings, dimensions)
    jaccard: dict[str, Numbers] = {}
    agreement: dict[str, float | None] = {}
    for axis in get_args(Axis):
        # what has no chance in it cannot come out otherwise
        by_chance = settings.reducer == "umap" or settings.clusterer == "means"
        count = settings.refits if axis != "seeds" or by_chance else 1
        rows = replicates.run(f"refitting, other {axis}", partial(refits.refit, axis), count)
        table = np.array([[*row["jaccard"], row["rand"]] for row in rows], dtype=np.float64)
        *each, rand = mean_known(table, 0, np.nan).tolist()
        jaccard[axis], agreement[axis] = tuple(each), _plain(rand)
    bootstrap = {}
    for how in ("embedding fixed", "refitted"):
        work, count = partial(refits.resample, how), settings.bootstraps
        rows = replicates.run(f"resampling examples, {how}", work, count)
        bootstrap[how] = restore_unknown(rows)
    return Stability(jaccard, agreement, bootstrap, settings.refits)


@dataclass(frozen=True)
class _Refits:
    """A partition, and all that it takes to make it again."""

    matrix: Matrix
    partition: Partition
    settings: Settings
    dimensions: int | None

    def refit(self, axis: Axis, number: int) -> dict[str, Any]:
        """Return how well each cluster is found again, and the agreement of the labels."""
        labels, settings = self.partition.labels, self.settings
        clusters = self.partition.clusters
        if axis == "seeds":
            seed = settings.seed + number + 1
            again = make_partition(self.matrix, settings, self.dimensions, seed).labels
            return _make_row(best_jaccard(labels, again, clusters), adjusted_rand(labels, again))
        rng = settings.rng(f"refitting, other {axis}", number)
        size = len(self.matrix) if axis == "examples" else len(self.matrix.models)
        # two halves of one permutation share nothing
        parts = np.array_split(rng.permutation(size), 2)
        halves = [self.cluster_part(axis, np.sort(part)) for part in parts]
        best = np.array([_jaccard(labels, half, clusters) for half in halves])
        rand = adjusted_rand(*halves)  # two halves that share no model, with each other
        if axis == "examples":
            rands = np.array([adjusted_rand(labels, half) for half in halves])
            rand = float(mean_known(rands, 0, np.nan))
        return _make_row(mean_known(best, 0, np.nan), rand)

    def resample(self, how: str, number: int) -> float | None:
        """Return the agreement with the labels of a bootstrap sample.

        None where it is unknown. With the embedding fixed, the sample's places in it are clustered.
        """
        labels, points, settings = self.partition.labels, self.partition.points, self.settings
        rng = settings.rng(f"resampling examples, {how}", number)
        # a bootstrap sample without its copies
        rows = np.unique(rng.integers(0, len(labels), len(labels)))
        if how == "embedding fixed":
            again, _ = cluster_points(points[rows], settings, points.shape[1], settings.seed)
            return _plain(adjusted_rand(labels[rows], again))
        return _plain(adjusted_rand(labels, self.cluster_part("examples", rows)))

    def cluster_part(self, axis: Axis, part: Places) -> Ints:
        """Return the labels of examples clustered again by a part of the examples or models."""
        # -2 is apart from noise: an example outside of the half was not clustered at all
        out = np.full(len(self.matrix), -2, dtype=np.int64)
        rows: Places | slice = part if axis == "examples" else slice(None)
        names = [self.matrix.models[j] for j in part] if axis == "models" else []
        some = self.matrix.select(names) if names else self.matrix.take(part)
        try:
            some = some.informative()
            labels = make_partition(some, self.settings, self.dimensions).labels
        except InputError:  # half of it is too little to cluster: nothing is found again
            out[rows] = -1
            return out
        out[[self.matrix.places[name] for name in some.examples]] = labels
        return out


def _jaccard(labels: Ints, again: Ints, clusters: int) -> Floats:
    clustered_again = again > -2
    # compared on examples that both have, else small halves would look unstable
    return best_jaccard(labels[clustered_again], again[clustered_again], clusters)


def _make_row(jaccard: Floats, rand: float) -> dict[str, Any]:
    return {"jaccard": [_plain(x) for x in jaccard], "rand": _plain(rand)}


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


class Replicates:
    """Runs replicates by number.

    Each draws from a generator of its own, so that results depend on neither order nor processes.

    Parameters
    ----------
    jobs : int
        Processes; -1 is all cores. Another backend is chosen with ``joblib.parallel_config``.
    progress : callable, optional
        Called with a message at each step.
    store : path, optional
        Directory in which finished replicates are kept, and looked for before any is run.
    key : str
        What the replicates are of: others are not taken for them.
    """

    def __init__(
        self,
        jobs: int = 1,
        progress: Progress | None = None,
        store: str | Path | None = None,
        key: str = "",
    ) -> None:
        self.jobs, self.progress, self.key = jobs, listener(progress), key
        self.store = None if store is None else Path(store)

    def run(self, purpose: str, work: Callable[[int], Any], count: int) -> list[Any]:
        """Return what ``work`` gives for each number from 0 to ``count - 1``, in that order.

        Parameters
        ----------
        purpose : str
            In a few words, different for different work.
        work : callable
            Takes the number; gives what JSON can hold. Processes get a copy.
        count : int
        """
        from joblib import delayed
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        results = self._load(purpose)
        todo = [i for i in range(count) if i not in results]
        size = -(-len(todo) // _CHUNKS)
        # as in processes: sums in the same order, and none waits for the other core
        with threadpool_limits(1):
            calls = (delayed(work)(i) for i in todo)
            for place, (i, result) in enumerate(
                zip(todo, run_in_order(calls, self.jobs), strict=True)
            ):
                if place % size == 0:
                    self._save(purpose, results)
                    self.progress(f"{purpose}: {len(results)} of {count}")
                results[i] = result
        if todo:
            self._save(purpose, results)
        return [results[i] for i in range(count)]

    def _path(self, purpose: str) -> Path | None:
        if self.store is None:
            return None
        return self.store / f"{hashlib.sha256(purpose.encode()).hexdigest()[:16]}.json"

    def _load(self, purpose: str) -> dict[int, Any]:
        path = self._path(purpose)
        if path is None or not path.exists():
            return {}
        try:
            content = decode_json(read_text(path, MAX_ROWS), str(path))
            if content["key"] != self.key or content["purpose"] != purpose:
                return {}
            return {int(number): value for number, value in content["done"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}  # a file that is none of ours is no result: run again

    def _save(self, purpose: str, results: dict[int, Any]) -> None:
        path = self._path(purpose)
        if path is not None:
            write_text(path, json.dumps({"key": self.key, "purpose": purpose, "done": results}))
