"""Weighted mixtures over several views of an example, fitted by EM in blocks of rows.

The log joint of example ``i`` and component ``j`` is a sum of views, each with an exponent of its
own::

    log weight_j + sum_f exponent_f log N(x_if; mean_jf, variance_jf)
                 + sum_t exponent_t log(p_it . table_tj + eps)

Gaussian views are diagonal, so one matrix product of ``[1, x, x^2]`` gives them all; a second one
gives the sums of the M-step. Responsibilities exist one block of rows at a time: memory is O(rows x
features), never rows x components.

Exponents enter the E-step alone. Each view has parameters of its own, so the plain weighted M-step
still maximises the exponent-weighted bound, and the log-likelihood cannot fall. Two things are
exceptions: the variance floor, which is added, not fitted; and tables of probabilities that are not
0 or 1, whose M-step is their mean, as in Domino."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[Any]
"""float64, or float32 by choice of the caller."""

ROWS = 512
"""Rows of a block: its expanded features and log joints stay in the second-level cache."""

EPS = float(np.finfo(np.float64).eps)

_MASS = 10 * EPS  # of a pseudo-example at the origin, which keeps empty components defined
_SHARES = 16  # of the rows, each summed by one thread
# responsibilities below this are lost in the rounding of any sum, the pseudo-example's included
_NOTHING = 1e-35
# with a smaller share of responsibilities above that, adding them one by one beats a matrix product
_SPARSE = 0.2


@dataclass(frozen=True)
class Mixture:
    """Parameters of k components.

    Attributes
    ----------
    log_weight : float array, shape (k,)
    mean, variance : float array, shape (k, D)
        Of the Gaussian features.
    exponent : float array, shape (D,)
        Of each feature; those of one view are equal.
    tables : tuple of float arrays, shape (k, c) each
        Of each categorical view, the probability of every class.
    table_exponents : tuple of float
    """

    log_weight: Floats
    mean: Floats
    variance: Floats
    exponent: Floats
    tables: tuple[Floats, ...] = ()
    table_exponents: tuple[float, ...] = ()

    @property
    def size(self) -> int:
        """Number k of components."""
        return len(self.log_weight)

    def view(self, columns: slice) -> Mixture:
        """Return the Gaussian features of some columns alone, without weights and tables."""
        weight = np.zeros_like(self.log_weight)
        return Mixture(
            weight, self.mean[:, columns], self.variance[:, columns], self.exponent[columns]
        )

    @cached_property
    def linear(self) -> Floats:
        """Coefficients of ``[1, x, x^2]`` in the Gaussian log joint, shape (1 + 2 D, k)."""
        precision = self.exponent / self.variance
        # expanding the square turns all densities into one matrix product with [1, x, x^2]
        spread = self.mean**2 / self.variance + np.log(2 * np.pi * self.variance)
        constant = self.log_weight - 0.5 * (spread @ self.exponent)
        return np.vstack([constant, (precision * self.mean).T, -0.5 * precision.T])


@dataclass(frozen=True)
class MixtureFit:
    """A fitted mixture and how it came about.

    Attributes
    ----------
    mixture : Mixture
    history : float array, shape (iterations + 1,)
        Mean log-likelihood of the examples in each E-step, the last one under the final parameters.
    converged : bool
        The last two iterations differ by less than the tolerance.
    labels : int64 array, shape (n,)
        The likeliest component of each example.
    """

    mixture: Mixture
    history: NDArray[np.float64]
    converged: bool
    labels: NDArray[np.int64]

    @property
    def iterations(self) -> int:
        """Return how many times parameters were updated after the start."""
        return len(self.history) - 1


def blocks(stop: int, start: int = 0) -> Iterator[slice]:
    """Consecutive blocks of the rows from ``start`` to ``stop``."""
    return (slice(first, min(first + ROWS, stop)) for first in range(start, stop, ROWS))


def log_joint(mixture: Mixture, features: Floats, tables: Sequence[Floats] = ()) -> Floats:
    """Log joint of every example with every component.

    Parameters
    ----------
    mixture : Mixture
    features : float array, shape (n, D)
    tables : sequence of float arrays, shape (n, c) each
        Class probabilities (one-hot where known) of each categorical view.

    Returns
    -------
    float array, shape (n, k)
    """
    return _joint(mixture, _expand(features), tables)


def responsibilities(joint: Floats) -> NDArray[np.float64]:
    """Turn log joints into responsibilities, in place.

    Parameters
    ----------
    joint : float array, shape (n, k)

    Returns
    -------
    float64 array, shape (n,)
        Log-likelihood of each example.
    """
    # log-sum-exp: joints of wide embeddings are far below the smallest exponent
    top = joint.max(axis=1, keepdims=True)
    joint -= top
    np.exp(joint, out=joint)
    total = joint.sum(axis=1, keepdims=True)
    joint /= total
    return np.asarray((top + np.log(total))[:, 0], dtype=np.float64)


def em(
    features: Floats,
    exponent: Sequence[float] | Floats,
    start: Iterable[Floats],
    *,
    tables: Sequence[Floats] = (),
    table_exponents: Sequence[float] = (),
    tolerance: float = 1e-3,
    max_iterations: int = 1000,
    floor: float = 1e-6,
    jobs: int = 1,
) -> MixtureFit:
    """Fit a mixture by expectation-maximisation.

    Parameters
    ----------
    features : float array, shape (n, D)
        Its precision, double or single, is that of the whole computation; sums are kept in double.
    exponent : float array, shape (D,)
    start : iterable of float arrays, shape (b, k)
        Responsibilities to start from, one for each of `blocks`.
    tables : sequence of float arrays, shape (n, c) each
    table_exponents : sequence of float
    tolerance : float
        Stop when the mean log-likelihood of two E-steps differs by less.
    max_iterations : int
    floor : float
        Added to every variance, not a lower clip.
    jobs : int
        Threads; the answer does not depend on them. They pay where matrix products use one thread
        each.

    Returns
    -------
    MixtureFit
    """
    kind = features.dtype
    constants = np.asarray(exponent, dtype=kind), tuple(table_exponents), floor
    tables = [np.ascontiguousarray(t, dtype=kind) for t in tables]
    sums = _Sums()
    for rows, responsibility in zip(blocks(len(features)), start, strict=True):
        # start with an M-step, as the papers' code does: initial responsibilities come in, not
        # parameters
        sums.add(
            responsibility.astype(kind, copy=False),
            _expand(features[rows]),
            [t[rows] for t in tables],
        )
    mixture, last, converged = sums.mixture(*constants), -np.inf, False
    history: list[float] = []
    with ThreadPoolExecutor(jobs) as pool:
        e_step = _EStep(features, tables, pool if jobs > 1 else None)
        while not converged and len(history) < max_iterations:
            sums = e_step(mixture)
            mixture = sums.mixture(*constants)
            history.append(sums.likelihood / len(features))
            converged, last = abs(history[-1] - last) < tolerance, history[-1]
    likelihood, assigned = _assign(mixture, features, tables)
    return MixtureFit(
        mixture, np.array([*history, likelihood / len(features)]), converged, assigned
    )


class _EStep:
    """The E-step of all rows, in shares that threads may work on, each in buffers of its own."""

    def __init__(
        self, features: Floats, tables: Sequence[Floats], pool: ThreadPoolExecutor | None
    ) -> None:
        self.features, self.tables = features, tables
        self.map = pool.map if pool else map
        self.spare: list[tuple[Floats, Floats]] = []
        edges = np.linspace(0, len(features), min(_SHARES, len(features)) + 1).astype(int)
        self.shares = [slice(a, b) for a, b in pairwise(edges.tolist())]

    def __call__(self, mixture: Mixture) -> _Sums:
        """Return the sums of the next M-step, and the likelihood under this mixture."""
        mixture.linear  # once, not in every thread  # noqa: B018
        sums = _Sums()
        for part in self.map(lambda share: self._share(mixture, share), self.shares):
            sums.merge(part)  # in order, so that the answer does not depend on the threads
        return sums

    def _share(self, mixture: Mixture, share: slice) -> _Sums:
        sums = _Sums()
        try:
            buffers = self.spare.pop()
        except IndexError:
            buffers = self._buffers(mixture.size)
        for rows in blocks(share.stop, share.start):
            expanded, shares = (buffer[: rows.stop - rows.start] for buffer in buffers)
            tables = [t[rows] for t in self.tables]
            _joint(mixture, _expand(self.features[rows], expanded), tables, shares)
            sums.likelihood += float(responsibilities(shares).sum())
            sums.add(shares, expanded, tables)
        self.spare.append(buffers)
        return sums

    def _buffers(self, components: int) -> tuple[Floats, Floats]:
        kind, wide = self.features.dtype, 1 + 2 * self.features.shape[1]
        return np.empty((ROWS, wide), dtype=kind), np.empty((ROWS, components), dtype=kind)


def _assign(
    mixture: Mixture, features: Floats, tables: Sequence[Floats]
) -> tuple[float, NDArray[np.int64]]:
    """Total log-likelihood, and the likeliest component of each example."""
    assigned, total = np.empty(len(features), dtype=np.int64), 0.0
    for rows in blocks(len(features)):
        joint = log_joint(mixture, features[rows], [t[rows] for t in tables])
        assigned[rows] = joint.argmax(axis=1)
        total += float(responsibilities(joint).sum())
    return total, assigned


def _expand(features: Floats, out: Floats | None = None) -> Floats:
    """``[1, x, x^2]`` of each example."""
    count, width = features.shape
    out = np.empty((count, 1 + 2 * width), dtype=features.dtype) if out is None else out
    out[:, 0] = 1.0
    out[:, 1 : 1 + width] = features
    np.multiply(features, features, out=out[:, 1 + width :])
    return out


def _joint(
    mixture: Mixture, expanded: Floats, tables: Sequence[Floats], out: Floats | None = None
) -> Floats:
    joint: Floats = np.matmul(expanded, mixture.linear, out=out)
    for probability, table, exponent in zip(
        tables, mixture.tables, mixture.table_exponents, strict=True
    ):
        # EPS: a class that a component never saw would have a log of minus infinity
        joint += exponent * np.log(probability @ table.T + joint.dtype.type(EPS))
    return joint


class _Sums:
    """What the M-step needs of all rows, added up block by block in double precision."""

    def __init__(self) -> None:
        self.likelihood = 0.0
        self.moments: Any = None
        self.tables: list[Any] = []

    def add(self, weight: Floats, expanded: Floats, tables: Sequence[Floats]) -> None:
        """Add a block, with its responsibilities as weights."""
        if np.count_nonzero(weight > _NOTHING) < _SPARSE * weight.size:
            moments = np.zeros((weight.shape[1], expanded.shape[1]))
            _add_moments(weight, expanded, moments)
        else:
            moments = weight.T @ expanded
        self._include(moments, [weight.T @ t for t in tables])

    def merge(self, other: _Sums) -> None:
        """Add the sums of other rows."""
        self.likelihood += other.likelihood
        self._include(other.moments, other.tables)

    def _include(self, moments: Any, tables: list[Any]) -> None:
        if self.moments is None:
            self.moments, self.tables = (
                np.zeros(moments.shape),
                [np.zeros(t.shape) for t in tables],
            )
        self.moments += moments
        for total, part in zip(self.tables, tables, strict=True):
            total += part

    def mixture(
        self, exponent: Floats, table_exponents: tuple[float, ...], floor: float
    ) -> Mixture:
        """Take the M-step, in the precision of the exponents."""
        kind, mass = exponent.dtype, self.moments[:, :1] + _MASS
        first, second = np.split(self.moments[:, 1:] / mass, 2, axis=1)
        # rounding may leave a variance of nothing below zero
        variance = np.maximum(second - first**2, 0.0) + floor
        log_weight = np.log(mass / mass.sum())[:, 0]
        weight, mean, variance = (
            part.astype(kind, copy=False) for part in (log_weight, first, variance)
        )
        tables = tuple((total / mass).astype(kind, copy=False) for total in self.tables)
        return Mixture(weight, mean, variance, exponent, tables, table_exponents)


@njit(cache=True, nogil=True)
def _add_moments(
    weight: Floats, expanded: Floats, moments: NDArray[np.float64]
) -> None:  # pragma: no cover - compiled
    """Add ``weight.T @ expanded`` to the moments, passing over responsibilities of nothing."""
    for i in range(weight.shape[0]):
        for j in range(weight.shape[1]):
            share = weight[i, j]
            if share > _NOTHING:
                for f in range(expanded.shape[1]):
                    moments[j, f] += share * expanded[i, f]


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
