"""Selective prediction: do not answer where a slicer expects the model to be wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from groundfault.base.arrays import Bools, Floats, Ints, Places
from groundfault.errors import InputError, PlanError
from groundfault.slicing.embedding import check_embedding
from groundfault_lab.slicing.predictions import check_labels, check_probability
from groundfault_lab.stats.improvement import Improvement, find_best_threshold, reject, relabel


class Slicer(Protocol):
    """Finds error slices in labelled examples, and applies them to others."""

    @property
    def name(self) -> str:
        """Return its name."""

    @property
    def labels_(self) -> Ints:
        """Return slice of each example that was fitted, shape (n,)."""

    def fit(self, Z: ArrayLike, y_true: ArrayLike, y_proba: ArrayLike) -> Any:
        """Find slices in labelled examples."""

    def predict(self, Z: ArrayLike, y_proba: ArrayLike) -> Ints:
        """Return slice of each example, its label unknown."""

    def error_prone(self, Z: ArrayLike, y_proba: ArrayLike) -> Bools:
        """Return whether that is an error slice."""

    def error_probability(self, Z: ArrayLike, y_proba: ArrayLike) -> Floats:
        """Return how much each example is suspected, for their order."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return parameters, as scikit-learn asks for them."""


@dataclass(eq=False)
class SelectivePrediction:
    """Reject the examples that a slicer calls error-prone, the most suspected first.

    Parameters
    ----------
    slicer : Slicer
        Such as `Edisa`; a copy of it is fitted.

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
    >>> from groundfault_lab.slicing import Edisa
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

    def order(self, Z: ArrayLike, y_proba: ArrayLike) -> Places:
        """Return rows of the error-prone examples, the most suspected first.

        Of equals, the first.
        """
        error_prone, suspicion = suspect(require_slicer(self), Z, y_proba)
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
        suspicion, prone, probability, label = _suspect_labelled(self, Z, y_true, y_proba)
        return reject(suspicion, prone, probability, probability.argmax(axis=1) != label)


def suspect(slicer: Slicer, Z: ArrayLike, y_proba: ArrayLike) -> tuple[Bools, Floats]:
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


def _suspect_labelled(
    estimator: Any, Z: ArrayLike, y_true: ArrayLike, y_proba: ArrayLike
) -> tuple[Floats, Bools, Floats, Ints]:
    """Return suspicions, which examples are error-prone, probabilities and labels, checked."""
    error_prone, suspicion = suspect(require_slicer(estimator), Z, y_proba)
    probability = check_probability(y_proba, len(error_prone))
    label = check_labels(y_true, len(error_prone), probability.shape[1])
    return suspicion, error_prone, probability, label


def fit_copy(
    slicer: Slicer, Z: ArrayLike, y_true: ArrayLike, y_proba: ArrayLike, **changes: Any
) -> Slicer:
    """Return a copy of the slicer, fitted; the slicer itself stays unfitted."""
    # not sklearn.clone, so that a slicer needs only get_params
    copy: Slicer = type(slicer)(**slicer.get_params() | changes)
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


@dataclass(eq=False)
class Flipping:
    """Relabel the examples that a slicer calls error-prone.

    Of two classes they get the other one. Of more, they get the commonest true class of their
    slice, if the model's confidence in its own is below a threshold: the one that gained most on
    examples held out from the slicer.

    Parameters
    ----------
    slicer : Slicer
        Such as `Edisa`; a copy of it is fitted.
    holdout_share : float
        Share of the examples that the threshold is chosen on, in (0, 1). Two classes need none.
    random_state : int
        Of the choice of those.

    Attributes
    ----------
    slicer_ : Slicer
        Fitted.
    threshold_ : float
        Relabel below this confidence; 0 never, infinity always, as with two classes.
    majority_ : dict of int to int
        Commonest true class of each slice, with more than two classes; of equals the first.

    Notes
    -----
    The paper finds the threshold "with 10% of the validation dataset used to train the SDM". Slices
    fitted to those labels would know them, so here they are kept from the slicer.

    References
    ----------
    Hua et al., "Discover, Explain, Improve: An Automatic Slice Detection Benchmark for Natural
    Language Processing", TACL 11, 2023, section 4.3.2. https://doi.org/10.1162/tacl_a_00617"""

    slicer: Slicer
    holdout_share: float = 0.1
    random_state: int = 0
    slicer_: Slicer = field(init=False, repr=False)
    threshold_: float = field(init=False, repr=False)
    majority_: dict[int, int] = field(init=False, repr=False)

    def fit(self, Z: ArrayLike, y_true: ArrayLike, y_proba: ArrayLike) -> Self:
        """Fit the slicer, and choose the threshold, on labelled examples not used in training.

        Raises
        ------
        InputError
            If the data cannot be used, or are too few to hold any out.
        PlanError
            If ``holdout_share`` is not in (0, 1), or a parameter of the slicer is out of range.
        """
        if not 0 < self.holdout_share < 1:
            raise PlanError(
                f"holdout_share={self.holdout_share!r} must lie between 0 and 1: a share of the "
                "examples"
            )
        embedding = check_embedding(Z)
        probability = check_probability(y_proba, len(embedding))
        label = check_labels(y_true, len(embedding), probability.shape[1])
        # infinity flips all that is suspected, which is right for two classes
        self.threshold_, self.majority_ = float("inf"), {}
        if probability.shape[1] == 2:
            self.slicer_ = fit_copy(self.slicer, embedding, label, probability)
            return self
        count = round(self.holdout_share * len(label))
        if count == 0:
            raise InputError(
                f"{len(label)} examples leave none to choose a threshold on; raise holdout_share "
                "or give more"
            )
        # of the size too: the same seed on other data gives another part
        order = np.random.default_rng([self.random_state, len(label)]).permutation(len(label))
        holdout, training = np.sort(order[:count]), np.sort(order[count:])
        self.slicer_ = fit_copy(
            self.slicer, embedding[training], label[training], probability[training]
        )
        # majorities of the training part only: the holdout has to be new to them
        slices, training_labels = self.slicer_.labels_, label[training]
        self.majority_ = {
            int(s): int(np.bincount(training_labels[slices == s]).argmax())
            for s in np.unique(slices)
        }
        self.threshold_ = self._choose_threshold(
            embedding[holdout], label[holdout], probability[holdout]
        )
        return self

    def predict(self, Z: ArrayLike, y_proba: ArrayLike) -> Ints:
        """Return the model's labels, those of error-prone examples flipped: int64, shape (n,)."""
        return self._flip(Z, y_proba, require_slicer(self).error_prone(Z, y_proba))

    def measure(self, Z: ArrayLike, y_true: ArrayLike, y_proba: ArrayLike) -> Improvement:
        """Measure accuracy if error-prone examples are relabelled, against doing so by confidence.

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
        parts = _suspect_labelled(self, Z, y_true, y_proba)
        return relabel(*parts, self._flip(Z, y_proba, parts[1]))

    def _flip(self, Z: ArrayLike, y_proba: ArrayLike, error_prone: Bools) -> Ints:
        """Return the model's labels, those of error-prone examples of low confidence flipped."""
        probability = np.asarray(y_proba, dtype=np.float64)
        label = probability.argmax(axis=1)
        # a confident model is more often right than the majority of its slice
        flips = error_prone & (probability.max(axis=1) < self.threshold_)
        if probability.shape[1] == 2:
            return np.asarray(np.where(flips, 1 - label, label), dtype=np.int64)
        slices = require_slicer(self).predict(Z, y_proba)
        other = [self.majority_.get(s, own) for s, own in zip(slices, label, strict=True)]
        return np.asarray(np.where(flips, other, label), dtype=np.int64)

    def _choose_threshold(self, embedding: Floats, label: Ints, probability: Floats) -> float:
        """Return the threshold of most gain among the error-prone.

        The threshold in force relabels all.
        """
        prone = self.slicer_.error_prone(embedding, probability)
        new = self._flip(embedding, probability, prone)
        gain = np.subtract(new == label, probability.argmax(axis=1) == label, dtype=np.float64)
        return find_best_threshold(probability.max(axis=1)[prone], gain[prone])
