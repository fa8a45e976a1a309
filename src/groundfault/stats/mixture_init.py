"""Where the slices of a mixture start: responsibilities of the first M-step, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundfault.stats.mixture import Floats, blocks

# tells repeats of a cell apart, and is small beside the probabilities
_NOISE = 1e-3


def from_array(start: NDArray[Any], components: int) -> Iterator[Floats]:
    """Component numbers (n,), or responsibilities (n, k), as responsibilities of `blocks`."""
    identity = np.eye(components)
    return (
        identity[start[rows]] if start.ndim == 1 else start[rows] for rows in blocks(len(start))
    )


def from_noise(rows: int, components: int, seed: int) -> Iterator[Floats]:
    """Uniform noise, each row divided by its sum."""
    return (
        noise / noise.sum(axis=1, keepdims=True) for noise in _draw_noise(rows, components, seed)
    )


def from_confusion_cells(
    label: NDArray[np.int64], probability: Floats, components: int, seed: int
) -> Iterator[Floats]:
    """Cells of label x prediction, repeated over the components, with a little noise.

    Parameters
    ----------
    label : int64 array, shape (n,)
    probability : float array, shape (n, c)
        Shared out among the cells of its label.
    components : int
        At least c * c.
    seed : int
    """
    classes = probability.shape[1]
    repeats, identity = ceil(components / classes**2), np.eye(classes)
    for rows, noise in zip(
        blocks(len(label)), _draw_noise(len(label), components, seed), strict=True
    ):
        cells = identity[label[rows]][:, :, None] * probability[rows][:, None, :]
        tiled = np.tile(cells.reshape(len(noise), -1), (1, repeats))[:, :components]
        start = tiled / tiled.sum(axis=1, keepdims=True) + _NOISE * noise
        yield start / start.sum(axis=1, keepdims=True)


def find_clusters(embedding: Floats, components: int, seed: int) -> NDArray[np.int64]:
    """Clusters of the embedding by k-means, shape (n,)."""
    import warnings

    from sklearn.cluster import KMeans

    with (
        warnings.catch_warnings()
    ):  # fewer distinct points than components leave some empty, which is fine
        warnings.simplefilter("ignore")
        kmeans = KMeans(components, n_init=1, random_state=seed).fit(embedding)
    return np.asarray(kmeans.labels_, dtype=np.int64)


def _draw_noise(rows: int, components: int, seed: int) -> Iterator[Floats]:
    # the legacy generator: its stream is frozen, and the starts of the reference implementations
    # can be drawn again
    rng = np.random.RandomState(seed)
    return (rng.rand(block.stop - block.start, components) for block in blocks(rows))
