"""Spotlight: balls of an embedding where losses are high."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from groundfault.base.arrays import Bools, Floats, Ints
from groundfault.base.long_work import one_blas_thread
from groundfault.core.candidate import Candidate, FittedColumn
from groundfault.core.evidence import Evidence
from groundfault.core.rules import quote
from groundfault.errors import InputError, PlanError
from groundfault.slicing.embedding import check_embedding
from groundfault_lab.slicing.estimator import Estimator, Projection
from groundfault_lab.slicing.predictions import (
    EMBEDDING,
    EmbeddedPredictions,
    check_labels,
    check_probability,
)
from groundfault_lab.stats import spotlight as light

_SURE = 1e-12  # probabilities below are taken for this, so that no loss is infinite


@dataclass(kw_only=True, eq=False)
class Spotlight(Estimator):
    """Windows over an embedding, each moved to high losses that earlier ones left.

    A slice is the ball around a window's centre that holds a given share of the examples fitted:
    unlike weights that sum to 1, it has members, also among examples not seen before.

    Parameters
    ----------
    n_slices : int
    size : float
        Share of the examples that a slice holds, in (0, 1).
    pca : int, optional
        Principal components that are kept; None leaves the embedding as it is.
    steps, learning_rate : int, float
        Of the climb.
    reference : bool
        Climb as the reference implementation does, which goes with ``pca=None,
        learning_rate=1e-3``: in the units of embedding and losses, with a quadratic barrier, and
        with losses scaled down by each window's weights. Its first windows end wide, and later ones
        hardly leave the start. Otherwise distances are measured in their spread and losses in their
        mean, the barrier is logarithmic, and losses in a slice are set aside whole.
    embedding, probability, label : str
        Which columns of the evidence `propose` reads; see
        `groundfault_lab.slicing.predictions.EmbeddedPredictions.of`.

    Attributes
    ----------
    windows_ : tuple of groundfault_lab.stats.spotlight.Window
        In units of the embedding, after ``pca``.
    squares_ : float64 array, shape (n_slices,)
        Squared radii of the slices.
    losses_ : float64 array, shape (n_slices,)
        Mean loss of the examples fitted that are in each slice.
    labels_ : int64 array
        What `predict` says of the examples fitted.
    projection_

    Notes
    -----
    The reference takes its loss of probabilities that went through a softmax a second time; here it
    is their cross-entropy. For any other loss, or none but pass and fail, use `fit_losses`.

    References
    ----------
    d'Eon et al., "The Spotlight: A General Method for Discovering Systematic Errors in Deep
    Learning Models", FAccT
    2022. https://doi.org/10.1145/3531146.3533240
    """

    n_slices: int = 5
    size: float = 0.02
    pca: int | None = 128
    steps: int = 1000
    learning_rate: float = 0.03
    reference: bool = False
    embedding: str = EMBEDDING
    probability: str | None = None
    label: str = "label"
    name: str = "spotlight"

    windows_: tuple[light.Window, ...] = field(init=False, repr=False)
    squares_: Floats = field(init=False, repr=False)
    losses_: Floats = field(init=False, repr=False)
    labels_: Ints = field(init=False, repr=False)
    projection_: Projection | None = field(init=False, repr=False)

    uses_outcomes = True

    def fit(self, Z: ArrayLike, y_true: ArrayLike, y_proba: ArrayLike) -> Self:
        """Fit slices to the cross-entropy of labelled examples.

        Parameters
        ----------
        Z : array, shape (n, d)
        y_true : int array, shape (n,)
            True classes, as numbers of columns of ``y_proba``.
        y_proba : array, shape (n, c)

        Raises
        ------
        InputError
            If the data cannot be used.
        PlanError
            If a parameter is out of range.
        """
        embedding = check_embedding(Z)
        probability = check_probability(y_proba, len(embedding))
        label = check_labels(y_true, len(embedding), probability.shape[1])
        # cross-entropy, the paper's loss: -log of the probability of the true class
        true = probability[np.arange(len(label)), label]
        return self.fit_losses(embedding, -np.log(np.maximum(true, _SURE)))

    def fit_losses(self, Z: ArrayLike, losses: ArrayLike) -> Self:
        """Fit slices to losses.

        Parameters
        ----------
        Z : array, shape (n, d)
        losses : array, shape (n,)
            At least 0, and not all equal.

        Raises
        ------
        InputError, PlanError
            As `fit`.
        """
        self._check()
        embedding, losses_left = check_embedding(Z), np.array(losses, dtype=np.float64)
        is_valid = np.isfinite(losses_left).all() and (losses_left >= 0).all()
        if losses_left.shape != (len(embedding),) or not is_valid:
            raise InputError(
                f"losses must be {len(embedding)} numbers of at least 0, one an example"
            )
        if (losses_left == losses_left[0]).all():
            raise InputError("every loss is the same, so no slice is worse than another")
        count = math.ceil(self.size * len(embedding))
        if count >= len(embedding):
            raise InputError(f"{len(embedding)} examples are too few for slices of {count}")
        values = self._project(embedding)
        total, squares, means = losses_left.copy(), [], []
        windows: list[light.Window] = []
        with one_blas_thread():
            while len(windows) < self.n_slices and losses_left.any():
                window = self._climb(values, losses_left)
                # the soft window decides where, a share of the examples how far: slices have equal
                # size
                square = light.find_radius(window, values, count)
                members = window.distances(values) <= square
                weights = window.weights(values) if self.reference else members
                # what a window explains is taken away, so that the next one looks elsewhere
                losses_left = losses_left * (1 - weights / weights.max())
                windows.append(window)
                squares.append(square)
                means.append(total[members].mean())
        self.windows_ = tuple(windows)
        self.squares_, self.losses_ = np.array(squares), np.array(means)
        self.labels_ = _find_first(self._inside(embedding))
        return self

    def predict(self, Z: ArrayLike, y_proba: ArrayLike | None = None) -> Ints:  # noqa: ARG002
        """Return the first slice that each example is in; -1 where it is in none: shape (n,).
        Probabilities are not read.
        """
        return _find_first(self.members(Z))

    def error_prone(self, Z: ArrayLike, y_proba: ArrayLike | None = None) -> Bools:  # noqa: ARG002
        """Return whether each example is in a slice, all of which are of high loss: shape (n,)."""
        return np.asarray(self.members(Z).any(axis=1))

    def error_probability(
        self,
        Z: ArrayLike,
        y_proba: ArrayLike | None = None,  # noqa: ARG002
    ) -> Floats:
        """Return each example's largest weight under a window, to rank suspicion: shape (n,)."""
        return np.asarray(self.weights(Z).max(axis=1))

    def members(self, Z: ArrayLike) -> Bools:
        """Return which slices each example is in: shape (n, slices)."""
        return self._require_fit()._inside(check_embedding(Z))

    def weights(self, Z: ArrayLike) -> Floats:
        """Return weight of each example under each window, 1 at its centre: shape (n, slices)."""
        values = self._require_fit()._reduce(check_embedding(Z))
        return np.stack([window.weights(values) for window in self.windows_], axis=1)

    def propose(self, discovery: Evidence) -> Iterator[Candidate]:
        """Propose one candidate for each slice whose loss on discovery is above the mean.

        The loss is the cross-entropy where the evidence has probabilities, else 0 or 1.

        Raises
        ------
        InputError
            If the columns are not there, or hold something else.
        """
        examples = EmbeddedPredictions.of(discovery, self.embedding, self.probability, self.label)
        width = examples.embedding.shape[1]
        problem = examples.explain_unfit(math.ceil(1 / self.size))
        if problem:
            warnings.warn(f"{self.name} proposes nothing: {problem}", stacklevel=2)
            return
        probability = check_probability(examples.probability, len(examples.label))
        true = probability[np.arange(len(examples.label)), examples.label]
        losses = -np.log(np.maximum(true, _SURE)) if examples.has_probabilities else 1 - true
        spotlight = dataclasses.replace(self).fit_losses(examples.embedding, losses)
        columns = examples.embedding_columns
        for number, loss in enumerate(spotlight.losses_.tolist()):
            # a window always ends somewhere: what is no worse than the rest is no candidate
            if loss > losses.mean():
                column = FittedColumn(self.name, "ball", columns, spotlight._arrays(number))
                meaning = (
                    f"{self.name} {number}: among the {self.size:.0%} of examples nearest to "
                    f"a point of the embedding ({width} numbers), mean loss {loss:.3g} against "
                    f"{losses.mean():.3g} on discovery"
                )
                rule = f"{quote(column.name)} = 1"
                yield Candidate(
                    f"{self.name} {number}", rule, meaning, self.name, "drop", fitted_column=column
                )

    def _inside(self, embedding: Floats) -> Bools:
        columns = [light.is_inside(self._arrays(i), embedding) for i in range(len(self.windows_))]
        return np.stack(columns, axis=1).astype(np.bool_)

    def _climb(self, values: Floats, losses: Floats) -> light.Window:
        size = self.size * len(values)
        if self.reference:
            return light.climb(values, losses, size, self.steps, self.learning_rate, quadratic=True)
        middle = values.mean(axis=0)
        # unit scale: one learning rate and one start then suit every embedding
        scale = float(np.sqrt(((values - middle) ** 2).sum(axis=1).mean())) or 1.0
        unit, relative = (values - middle) / scale, losses / losses.mean()
        window = light.climb(unit, relative, size, self.steps, self.learning_rate)
        precision = window.log_precision - 2 * math.log(scale)
        return light.Window(middle + scale * window.centre, precision)

    def _arrays(self, number: int) -> dict[str, Floats]:
        square = self.squares_[number : number + 1]
        arrays = {"middle": self.windows_[number].centre, "square": square}
        if self.projection_ is not None:
            arrays |= {"centre": self.projection_[0], "axes": self.projection_[1]}
        return arrays

    def _check(self) -> None:
        self._require_whole({"n_slices": 1, "steps": 1, "pca": 1})
        self._require_numbers(["size", "learning_rate"])
        if self.size >= 1:
            raise PlanError(f"{self.name}: size must be a share in (0, 1), not {self.size!r}")


def _find_first(inside: Bools) -> Ints:
    # argmax of booleans is the first that is true
    return np.where(inside.any(axis=1), inside.argmax(axis=1), -1)
