"""Features: what every learner learns from, the embedding and membership of the groups."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from groundfault.sequential.policies import History

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]

_COMPONENTS, _CUTS, _WAVES = 32, 7, 32
_PAPERS_LENGTH = 19.5


@dataclass(frozen=True, eq=False)
class Features:
    """N cases as learners see them. Nothing here knows a score.

    Attributes
    ----------
    embedding : float64 array, shape (N, D), or None
    members : bool array, shape (G, N)
    """

    embedding: Floats | None
    members: Bools

    @cached_property
    def groups(self) -> Floats:
        """Membership of proper groups, centred, of mean squared length 1: shape (N, G)."""
        part = self._part.astype(np.float64)
        return _scale(part - part.mean(axis=0))

    @property
    def _part(self) -> Bools:
        return self.members[~self.members.all(axis=1)].T

    @cached_property
    def inputs(self) -> NDArray[np.float32]:
        """Embedding and groups side by side, for networks: float32, shape (N, D + G).

        Each is as long as the paper's embeddings, on the whole: how fast networks learn depends on
        it."""
        kinds = [self.groups] if self.embedding is None else [_scale(self.embedding), self.groups]
        return (np.hstack(kinds) * _PAPERS_LENGTH).astype(np.float32)

    @cached_property
    def components(self) -> Floats:
        """First principal components, of mean squared length 1: shape (N, at most 32)."""
        if self.embedding is None:
            return np.empty((self.members.shape[1], 0))
        centred = self.embedding - self.embedding.mean(axis=0)
        tall = centred.shape[0] > centred.shape[1]
        values, vectors = np.linalg.eigh(centred.T @ centred if tall else centred @ centred.T)
        values, vectors = values[::-1][:_COMPONENTS], vectors[:, ::-1][:, :_COMPONENTS]
        return _scale(centred @ vectors if tall else vectors * np.sqrt(np.maximum(values, 0.0)))

    @cached_property
    def waves(self) -> Floats:
        """Random Fourier features of a Gaussian kernel: shape (N, 64), each row of length 1.

        References
        ----------
        Rahimi and Recht (2007), Random features for large-scale kernel machines, NeurIPS 20.
        """
        points = self.components
        if not points.shape[1]:
            return points
        phases = points @ np.random.default_rng(_WAVES).normal(size=(points.shape[1], _WAVES))
        return np.asarray(np.hstack([np.cos(phases), np.sin(phases)]) / np.sqrt(_WAVES))

    @cached_property
    def splits(self) -> Bools:
        """Which cases exceed seven quantiles of each component, and groups: shape (N, S).

        The last column is true throughout, so that there is always one.
        """
        points = self.components
        cuts = np.quantile(points, np.arange(1, _CUTS + 1) / (_CUTS + 1), axis=0)
        above = (points[:, None] > cuts).reshape(len(points), -1)
        return np.hstack([above, self._part, np.ones((len(points), 1), dtype=np.bool_)])


def _scale(columns: Floats) -> Floats:
    """The columns with a mean squared length of 1."""
    length = np.sqrt((columns**2).sum(axis=1).mean())
    return np.asarray(columns / length) if length > 0 else columns


@dataclass(eq=False)
class Cache:
    """The features of the pool that was asked about last: worked out once, not in every round."""

    _last: Features | None = field(default=None)

    def of(self, history: History) -> Features:
        """The features of a history's pool."""
        last = self._last
        # the arrays of a pool cannot be written to: the same array holds the same numbers
        if (
            last is None
            or last.embedding is not history.embedding
            or last.members is not history.members
        ):
            self._last = last = Features(history.embedding, history.members)
        return last


def predict_group_rests(history: History, predictions: Floats) -> tuple[NDArray[np.intp], Floats]:
    """Open groups below the threshold, and the predicted mean of the rest of each.

    Parameters
    ----------
    history : History
    predictions : float64 array, shape (K, N)

    Returns
    -------
    useful : intp array, shape (U,)
    means : float64 array, shape (K, U)
    """
    useful = np.flatnonzero(history.open & (history.rest_targets > 0))
    rest = (history.members & history.available)[useful].astype(np.float64)
    return useful, predictions @ (rest / rest.sum(axis=1, keepdims=True)).T
