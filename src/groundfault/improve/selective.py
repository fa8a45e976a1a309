"""Selective prediction: do not answer where a slicer expects the model to be wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from groundfault.errors import InputError
from groundfault.slicing.predictions import check_labels, check_probability
from groundfault.stats.improvement import Improvement, reject


class Slicer(Protocol):
    """Finds error slices in labelled examples, and applies them to others."""

    @property
    def name(self) -> str:
        """Return its name."""

    @property
    def labels_(self) -> NDArray[np.int64]:
        """Return slice of each example that was fitted, shape (n,)."""

    def fit(self, Z: ArrayLike, y_true: ArrayLike, y_proba: ArrayLike) -> Any:
        """Find slices in labelled examples."""

    def predict(self, Z: ArrayLike, y_proba: ArrayLike) -> NDArray[np.int64]:
        """Return slice of each example, its label unknown."""

    def error_prone(self, Z: ArrayLike, y_proba: ArrayLike) -> NDArray[np.bool_]:
        """Return whether that is an error slice."""

    def error_probability(self, Z: ArrayLike, y_proba: ArrayLike) -> NDArray[np.float64]:
        """Return how much each example is suspected, for their order."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return parameters, as scikit-learn asks for them."""


@dataclass(eq=False)
class SelectivePrediction:
    """Reject the examples that a slicer calls error-prone, the most suspected first.

    Parameters
    ----------
    slicer : Slicer
        Such as `groundfault.finders.Edisa`; a copy of it is fitted.

    Attributes
    ----------
    slicer_ : Slicer
        The fitted copy.

    References
    ----------
    Hua et al., "Discover, Explain, Improve: An Automatic Slice Detection Benchmark for Natural
    Language Processing", TACL 11, 2023, section 4.3.1. https://doi.org/10.1162/tacl_a_00617

    Examples
    --------
    >>> from groundfault.finders import Edisa
    >>> rng = np.random.default_rng(0)
    >>> Z, y = rng.normal(size=(600, 4)), rng.integers(0, 2, 600)
    >>> p = np.where((y == 1) ^ (Z[:, 0] > 1), 0.9, 0.1)  # wrong wherever Z_0 > 1
    >>> p = np.column_stack([1 - p, p])
    >>> slicer = Edisa(n_slices=8, embedding_weight=1.0)
    >>> selective = SelectivePrediction(slicer).fit(Z[:400], y[:400], p[:400])
    >>> improvement = selective.measure(Z[400:], y[400:], p[400:])
    >>> improvement.improvement > 0.1 and improvement.p < 0.001
    True
    """

    slicer: Slicer
    slicer_: Slicer = field(init=False, repr=False)

    def fit(self, Z: ArrayLike, y_true: ArrayLike, y_proba: ArrayLike) -> Self:
        """Fit the slicer to labelled examples that the model was not trained on.

        Raises
        ------
        InputError, PlanError
            Those of the slicer.
        """
        self.slicer_ = fit_copy(self.slicer, Z, y_true, y_proba)
        return self

    def order(self, Z: ArrayLike, y_proba: ArrayLike) -> NDArray[np.intp]:
        """Return rows of the error-prone examples, the most suspected first.

        Of equals, the first.
        """
        slicer = require_slicer(self)
        error_prone, suspicion = suspect(slicer, Z, y_proba)
        rows = np.flatnonzero(error_prone)
        return rows[np.argsort(-suspicion[rows], kind="stable")]

    def measure(self, Z: ArrayLike, y_true: ArrayLike, y_proba: ArrayLike) -> Improvement:
        """Measure accuracy when error-prone examples are rejected, against doing so by confidence.

        Parameters
        ----------
        Z : array, shape (n, d)
        y_true : int array, shape (n,)
        y_proba : array, shape (n, c)

        Raises
        ------
        InputError
            If the data cannot be used.
        """
        slicer = require_slicer(self)
        error_prone, suspicion = suspect(slicer, Z, y_proba)
        probability = check_probability(y_proba, len(error_prone))
        label = check_labels(y_true, len(error_prone), probability.shape[1])
        return reject(suspicion, error_prone, probability, probability.argmax(axis=1) != label)


def suspect(
    slicer: Slicer, Z: ArrayLike, y_proba: ArrayLike
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return whether each example is error-prone, and how much it is suspected.

    A slicer that has a method ``suspect``, as those of `groundfault.finders` do, computes both from
    the same responsibilities.
    """
    # the two methods would each compute the responsibilities
    both = getattr(slicer, "suspect", None)
    if both is None:
        return slicer.error_prone(Z, y_proba), slicer.error_probability(Z, y_proba)
    error_prone, suspicion = both(Z, y_proba)
    return error_prone, suspicion


def fit_copy(slicer: Slicer, Z: ArrayLike, y_true: ArrayLike, y_proba: ArrayLike) -> Slicer:
    """Return a copy of the slicer, fitted; the slicer itself stays unfitted."""
    # not sklearn.clone, so that a slicer needs only get_params
    copy: Slicer = type(slicer)(**slicer.get_params())
    copy.fit(Z, y_true, y_proba)
    return copy


def require_slicer(estimator: Any) -> Slicer:
    """Return the fitted slicer.

    Raises
    ------
    InputError
        If there is none yet.
    """
    if not hasattr(estimator, "slicer_"):
        raise InputError(
            f"this {type(estimator).__name__} is not fitted; call fit(Z, y_true, y_proba) first"
        )
    slicer: Slicer = estimator.slicer_
    return slicer
