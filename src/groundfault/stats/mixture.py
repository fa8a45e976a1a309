"""Weighted mixtures over several views of an example, fitted by expectation-maximisation in row blocks.

The log joint of example ``i`` and component ``j`` is a sum of views, each with an exponent of its own::

    log weight_j + sum_f exponent_f log N(x_if; mean_jf, variance_jf) + sum_t exponent_t log(p_it . table_tj + eps)

Gaussian views are diagonal, so one matrix product of ``[x, x^2]`` gives them all; a second one gives the sums of the
M-step. Responsibilities exist one block of rows at a time: memory is O(rows x features), never rows x components.

Exponents enter the E-step alone. Each view has parameters of its own, so the plain weighted M-step still maximises the
exponent-weighted bound, and the log-likelihood cannot fall. Two things are exceptions: the variance floor, which is
added, not fitted; and tables of probabilities that are not 0 or 1, whose M-step is their mean, as in Domino.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[Any]
"""float64, or float32 by choice of the caller."""

ROWS = 2048
"""Rows of a block: its expanded features stay in cache."""

EPS = float(np.finfo(np.float64).eps)

_MASS = 10 * EPS  # of a pseudo-example at the origin, which keeps empty components defined
_CUT = -80.0  # exp(-80) of the largest term is lost in the rounding of any sum, that of the pseudo-example included
_SHARES = 16  # of the rows, each summed by one thread
_SPARSE = 0.3  # below this share of responsibilities that are not 0, adding them one by one beats a matrix product


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
        """The Gaussian features of some columns alone, without weights and tables."""
        weight = np.zeros_like(self.log_weight)
        return Mixture(weight, self.mean[:, columns], self.variance[:, columns], self.exponent[columns])

    @cached_property
    def linear(self) -> tuple[Floats, Floats]:
        """Coefficients of ``[x, x^2]``, shape (2 D, k), and constants, shape (k,), of the Gaussian log joint."""
        precision = self.exponent / self.variance
        slope = np.concatenate([precision * self.mean, -0.5 * precision], axis=1).T
        spread = self.mean**2 / self.variance + np.log(2 * np.pi * self.variance)
        return np.ascontiguousarray(slope), self.log_weight - 0.5 * (spread @ self.exponent)


@dataclass(frozen=True)
class Fitted:
    """A fitted mixture and how it came about.

    Attributes
    ----------
    mixture : Mixture
    history : float array, shape (iterations + 1,)
        Mean log-likelihood of the examples in each E-step, the last one under the final parameters.
    converged : bool
        The last two iterations differ by less than the tolerance.
    """

    mixture: Mixture
    history: NDArray[np.float64]
    converged: bool

    @property
    def iterations(self) -> int:
        """How many times parameters were updated after the start."""
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
    return _joint(mixture, _expanded(features), tables)


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
    likelihood = np.empty(len(joint))
    _normalise(joint, likelihood, -np.inf)
    return likelihood


def em(
    features: Floats,
    exponent: Sequence[float] | Floats,
    start: Iterable[Floats],
    *,
    tables: Sequence[Floats] = (),
    table_exponents: Sequence[float] = (),
    tolerance: float = 1e-3,
    most_iterations: int = 1000,
    floor: float = 1e-6,
    jobs: int = 1,
) -> Fitted:
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
    most_iterations : int
    floor : float
        Added to every variance, not a lower clip.
    jobs : int
        Threads; the answer does not depend on them. They pay where matrix products use one thread each.

    Returns
    -------
    Fitted
    """
    kind = features.dtype
    settled = np.asarray(exponent, dtype=kind), tuple(table_exponents), floor
    tables = [np.ascontiguousarray(t, dtype=kind) for t in tables]
    sums = _Sums()
    for rows, given in zip(blocks(len(features)), start, strict=True):
        part = np.ascontiguousarray(given, dtype=kind)
        sums.add(part, int(np.count_nonzero(part)), _expanded(features[rows]), [t[rows] for t in tables])
    mixture, last, converged = sums.mixture(*settled, kind), -np.inf, False
    history: list[float] = []
    with ThreadPoolExecutor(jobs) as pool:
        while not converged and len(history) < most_iterations:
            sums, total = _step(mixture, features, tables, pool)
            mixture = sums.mixture(*settled, kind)
            history.append(total / len(features))
            converged, last = abs(history[-1] - last) < tolerance, history[-1]
    history.append(_total(mixture, features, tables) / len(features))
    return Fitted(mixture, np.array(history), converged)


def _step(
    mixture: Mixture, features: Floats, tables: Sequence[Floats], pool: ThreadPoolExecutor
) -> tuple[_Sums, float]:
    """One pass over the rows: the sums of the next M-step, and the total log-likelihood under this mixture."""

    def work(share: slice) -> tuple[_Sums, float]:
        sums, total = _Sums(), 0.0
        for rows in blocks(share.stop, share.start):
            expanded, part = _expanded(features[rows]), [t[rows] for t in tables]
            joint = _joint(mixture, expanded, part)
            likelihood = np.empty(len(joint))
            some = _normalise(joint, likelihood, _CUT)
            sums.add(joint, some, expanded, part)
            total += float(likelihood.sum())
        return sums, total

    mixture.linear  # not in every thread at once  # noqa: B018
    edges = np.linspace(0, len(features), min(_SHARES, len(features)) + 1).astype(int)
    shares = [slice(a, b) for a, b in pairwise(edges.tolist())]
    sums, total = _Sums(), 0.0
    for part, likelihood in pool.map(work, shares):  # in order, so that the answer does not depend on the threads
        sums.merge(part)
        total += likelihood
    return sums, total


def _total(mixture: Mixture, features: Floats, tables: Sequence[Floats]) -> float:
    total = 0.0
    for rows in blocks(len(features)):
        total += float(responsibilities(log_joint(mixture, features[rows], [t[rows] for t in tables])).sum())
    return total


def _expanded(features: Floats) -> Floats:
    out = np.empty((len(features), 2 * features.shape[1]), dtype=features.dtype)
    out[:, : features.shape[1]] = features
    np.multiply(features, features, out=out[:, features.shape[1] :])
    return out


def _joint(mixture: Mixture, expanded: Floats, tables: Sequence[Floats]) -> Floats:
    slope, constant = mixture.linear
    joint: Floats = expanded @ slope
    joint += constant
    for given, table, exponent in zip(tables, mixture.tables, mixture.table_exponents, strict=True):
        joint += exponent * np.log(given @ table.T + joint.dtype.type(EPS))
    return joint


class _Sums:
    """What the M-step needs of all rows, added up block by block in double precision."""

    def __init__(self) -> None:
        self.mass: Any = 0.0
        self.moments: Any = 0.0
        self.tables: list[Any] = []

    def add(self, weight: Floats, some: int, expanded: Floats, tables: Sequence[Floats]) -> None:
        """Add a block; ``some`` of its responsibilities ``weight`` are not 0."""
        self.mass = self.mass + weight.sum(axis=0, dtype=np.float64)
        if some < _SPARSE * weight.size:
            if np.ndim(self.moments) == 0:
                self.moments = np.zeros((weight.shape[1], expanded.shape[1]))
            _add_moments(weight, expanded, self.moments)
        else:
            self.moments = self.moments + weight.T @ expanded
        self.tables = self.tables or [0.0] * len(tables)
        self.tables = [total + weight.T @ t for total, t in zip(self.tables, tables, strict=True)]

    def merge(self, other: _Sums) -> None:
        """Add the sums of other rows."""
        self.mass, self.moments = self.mass + other.mass, self.moments + other.moments
        self.tables = [a + b for a, b in zip(self.tables or [0.0] * len(other.tables), other.tables, strict=True)]

    def mixture(self, exponent: Floats, table_exponents: tuple[float, ...], floor: float, kind: Any) -> Mixture:
        """The M-step."""
        mass = self.mass + _MASS
        first, second = np.split(self.moments / mass[:, None], 2, axis=1)
        # rounding may leave a variance of nothing below zero
        variance = np.maximum(second - first**2, 0.0) + floor
        weight, mean, variance = (part.astype(kind) for part in (np.log(mass / mass.sum()), first, variance))
        tables = tuple((total / mass[:, None]).astype(kind) for total in self.tables)
        return Mixture(weight, mean, variance, exponent, tables, table_exponents)


@njit(cache=True, nogil=True)
def _normalise(joint: Floats, likelihood: NDArray[np.float64], cut: float) -> int:  # pragma: no cover - compiled
    """Log joints to responsibilities, in place; those below ``exp(cut)`` of the largest become 0. Counts the rest."""
    some = 0
    for i in range(joint.shape[0]):
        row = joint[i]
        top = row[0]
        for j in range(1, len(row)):
            top = max(top, row[j])
        total = 0.0
        for j in range(len(row)):
            below = row[j] - top
            if below > cut:
                row[j] = np.exp(below)
                total += row[j]
                some += 1
            else:
                row[j] = 0.0
        for j in range(len(row)):
            row[j] /= total
        likelihood[i] = top + np.log(total)
    return some


@njit(cache=True, nogil=True)
def _add_moments(weight: Floats, expanded: Floats, moments: NDArray[np.float64]) -> None:  # pragma: no cover - compiled
    """Add ``weight.T @ expanded`` to the moments, passing over responsibilities of 0."""
    for i in range(weight.shape[0]):
        for j in range(weight.shape[1]):
            share = weight[i, j]
            if share != 0.0:
                for f in range(expanded.shape[1]):
                    moments[j, f] += share * expanded[i, f]
