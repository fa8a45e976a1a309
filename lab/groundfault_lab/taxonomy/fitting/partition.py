"""Partition: examples grouped by the models that fail on them, and the rule for another example."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from groundfault.base.arrays import Floats, Ints, Places
from groundfault.errors import require_extra
from groundfault_lab.stats import irt
from groundfault_lab.stats.mixture_predict import principal_axes
from groundfault_lab.stats.silhouette import combine, silhouette
from groundfault_lab.taxonomy.centroids import find_nearest
from groundfault_lab.taxonomy.fitting.matrix import Matrix
from groundfault_lab.taxonomy.fitting.settings import Settings

MAX_COMPARED = 3000
"""Silhouettes of more examples are those of so many of them, evenly spread over their order."""

# of k-means, of which the best is taken; with one, labels depend on the seed
_STARTS = 10


@dataclass(frozen=True, eq=False)
class Partition:
    """Examples in clusters.

    Attributes
    ----------
    labels : int64 array, shape (n,)
        Cluster of each example, by falling size from 0; -1 is noise.
    whole : float64 array, shape (n, d)
        Signatures, before any reduction.
    points : float64 array, shape (n, k)
        What was clustered.
    centroid : float64 array, shape (clusters, k)
        Mean points.
    spread : float
        Variance about the centroid in each direction, of k-means; else 0.
    rule : dict of str to float64 array
        What `groundfault_lab.taxonomy.centroids.label_answers` needs to place an example by the
        answers of these models; empty where the reduction cannot be applied again.
    """

    labels: Ints
    whole: Floats = field(repr=False)
    points: Floats = field(repr=False)
    centroid: Floats = field(repr=False)
    spread: float = 0.0
    rule: dict[str, Floats] = field(default_factory=dict, repr=False)

    @property
    def clusters(self) -> int:
        """Return the number of clusters."""
        return len(self.centroid)

    @property
    def coverage(self) -> float:
        """Return share of the examples that are in a cluster."""
        return float((self.labels >= 0).mean()) if len(self.labels) else 0.0

    def list_nearest(self, cluster: int) -> Places:
        """List the examples of a cluster, from 0, by their distance from its centroid."""
        inside = np.flatnonzero(self.labels == cluster)
        # in the reduced space, where the clusters were formed
        away = ((self.points[inside] - self.centroid[cluster]) ** 2).sum(axis=1)
        return inside[np.argsort(away, kind="stable")]

    def silhouettes(self) -> tuple[float, float]:
        """Return silhouettes of signatures and of reduced points, without noise; -1 for none."""
        at = slice(None, None, -(-len(self.labels) // MAX_COMPARED) or 1)
        labels = self.labels[at]
        return silhouette(self.whole[at], labels), silhouette(self.points[at], labels)


def make_partition(
    matrix: Matrix, settings: Settings, dimensions: int | None = None, seed: int | None = None
) -> Partition:
    """Cluster the examples of a matrix.

    Parameters
    ----------
    matrix : Matrix
        Only informative examples; see `groundfault_lab.taxonomy.fitting.matrix.Matrix.informative`.
    settings : Settings
    dimensions : int, optional
        How many directions the reduction keeps; left out, as in the settings. For ``signal`` ask
        `groundfault_lab.taxonomy.fitting.nulls.signal`; 0 is no cluster.
    seed : int, optional
        Of UMAP and of the starts of k-means; left out, that of the settings.
    """
    # ability takes one of the m directions that m models span
    dimension = min(
        settings.dimensions if dimensions is None else dimensions, len(matrix.models) - 1
    )
    seed = settings.seed if seed is None else seed
    signature, rule = _compute_signature(matrix, settings)
    weight, semantic = settings.alpha, matrix.semantic
    whole = signature
    if settings.signature == "passes":
        # both parts have unit length there, as in the paper
        whole = combine(signature, semantic, weight)
    elif weight > 0 and semantic is not None:
        # residuals keep their length: how much a model departs is the signal itself
        answers = (1 - weight) * signature / np.sqrt(len(matrix.models))
        whole = np.hstack([answers, weight * semantic])
    # no direction beyond ability: one empty partition rather than clusters of noise
    if settings.reducer == "signal" and dimension == 0:
        n = len(matrix)
        return Partition(np.full(n, -1), whole, np.zeros((n, 0)), np.zeros((0, 0)))
    points, origin, axes = _reduce(whole, settings, dimension, seed)
    labels, variance = cluster_points(points, settings, dimension, seed)
    labels = _number_by_size(_split_large(labels, signature, semantic, settings))
    means = [points[labels == c].mean(axis=0) for c in range(labels.max() + 1)]
    centroid = np.array(means).reshape(-1, points.shape[1])
    # UMAP has no map for a new example, and texts are no answers: no rule in both cases
    if axes is None or weight > 0:
        rule = {}
    else:
        rule |= {"axes": axes} | ({"origin": origin} if settings.signature == "passes" else {})
    return Partition(labels, whole, points, centroid, variance, rule)


def _compute_signature(matrix: Matrix, settings: Settings) -> tuple[Floats, dict[str, Floats]]:
    """Compute signatures, models in columns, and the numbers to do so for another example."""
    if settings.signature == "passes":
        values = matrix.impute(settings.imputation)
        holes = matrix.trials == 0
        fill = np.array([values[h, j].mean() if h.any() else 0.5 for j, h in enumerate(holes.T)])
        return values, {"fill": fill}
    item_fit = irt.fit(matrix.passed, matrix.trials, parameters=settings.parameters)
    rule = {
        "ability": item_fit.ability,
        "centre": np.array(item_fit.centre),
        "penalty": np.array(
            [item_fit.penalty[0] if settings.parameters == 2 else 1e-6, item_fit.penalty[1]]
        ),
    }
    return irt.compute_residuals(matrix.passed, matrix.trials, item_fit), rule


def measure_directions(matrix: Matrix, settings: Settings) -> Floats:
    """Measure the principal directions of the residuals, falling: shape (m,)."""
    # eigenvalues of the m by m product, because n is much larger than m
    residual, _ = _compute_signature(matrix, settings)
    return np.asarray(np.linalg.eigvalsh(residual.T @ residual / len(residual))[::-1])


def _reduce(
    whole: Floats, settings: Settings, dimension: int, seed: int
) -> tuple[Floats, Floats, Floats | None]:
    """Reduce points; also return the origin and axes of the reduction where it is linear."""
    width = whole.shape[1]
    if settings.reducer == "none":
        return whole, np.zeros(width), np.eye(width)
    if settings.reducer == "umap":
        return _umap(whole, min(settings.dimensions, len(whole) - 2), seed), np.zeros(width), None
    if settings.reducer == "pca":
        origin, axes = principal_axes(whole, min(settings.dimensions, width))
    else:
        _, vectors = np.linalg.eigh(whole.T @ whole)
        axes = vectors.T[::-1][:dimension]
        # eigenvectors have either sign: the largest entry is made positive, for the same result
        # anywhere
        axes = axes * np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])[:, None]
        origin = np.zeros(width)
    return (whole - origin) @ axes.T, origin, axes.T


def _umap(whole: Floats, dimensions: int, seed: int) -> Floats:
    with require_extra(
        "UMAP is not installed: pip install 'groundfault-lab[umap]', or reduce by principal "
        "components (reducer='pca', or --reducer pca)"
    ):
        from umap import UMAP
    # one job: with a seed UMAP takes no more, and warns
    settings = {"n_neighbors": 15, "min_dist": 0.1, "metric": "euclidean"}
    reducer = UMAP(n_components=dimensions, random_state=seed, n_jobs=1, **settings)
    return np.asarray(reducer.fit_transform(whole), dtype=np.float64)


def cluster_points(
    points: Floats, settings: Settings, dimension: int, seed: int
) -> tuple[Ints, float]:
    """Label points; also return the variance about a centroid where the clusterer has one."""
    if settings.clusterer == "hdbscan":
        return _hdbscan(points, settings), 0.0
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    # k groups span k - 1 directions, and so k directions hold k + 1 groups
    centres = min(dimension + 1, len(points))
    # sums of several threads differ in the last digit, and labels with them
    with threadpool_limits(1):
        means = KMeans(centres, n_init=_STARTS, random_state=seed).fit(points)
    variance = float(means.inertia_) / max(points.size, 1)
    labels = find_nearest(points, means.cluster_centers_, variance, settings.core)
    size = np.bincount(labels[labels >= 0], minlength=centres)
    is_large = (labels >= 0) & (size[labels] >= settings.min_cluster_size)
    return np.where(is_large, labels, -1), variance


def _hdbscan(points: Floats, settings: Settings) -> Ints:
    from sklearn.cluster import HDBSCAN

    # HDBSCAN raises on so few points
    if len(points) < max(settings.min_cluster_size, settings.min_samples):
        return np.full(len(points), -1, dtype=np.int64)
    model = HDBSCAN(
        min_cluster_size=settings.min_cluster_size, min_samples=settings.min_samples, copy=True
    )
    return np.asarray(model.fit_predict(points), dtype=np.int64)


def _split_large(
    labels: Ints, signature: Floats, semantic: Floats | None, settings: Settings
) -> Ints:
    """Split each cluster above the limit: by answers, failing that by what the examples say."""
    if settings.split is None or settings.clusterer != "hdbscan":
        return labels
    labels = labels.copy()
    for cluster in range(labels.max() + 1):
        inside = np.flatnonzero(labels == cluster)
        if len(inside) <= settings.split:
            continue
        by_text = [] if semantic is None else [semantic[inside]]
        for view in [combine(signature[inside]), *by_text]:
            parts = _hdbscan(view, settings)
            # a split has at least two parts; one part and noise would only shrink the cluster
            if parts.max() >= 1:
                labels[inside] = np.where(parts >= 0, parts + labels.max() + 1, -1)
                break
    return labels


def _number_by_size(labels: Ints) -> Ints:
    """Number clusters from 0 by falling size; of equals, the one met first goes first."""
    numbers, first, size = np.unique(labels[labels >= 0], return_index=True, return_counts=True)
    rank = np.full(labels.max() + 2, -1, dtype=np.int64)
    # the last entry of rank is -1, which label -1 (noise) reads
    rank[numbers[np.lexsort((first, -size))]] = np.arange(len(numbers))
    return rank[labels]
