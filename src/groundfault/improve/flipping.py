"""Flipping: give the examples of error slices another label than the model's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from groundfault.errors import InputError, PlanError
from groundfault.improve.selective import Slicer, fitted, ready
from groundfault.slicing.predictions import checked_embedding, checked_labels, checked_probability
from groundfault.stats.improvement import Improvement, best_threshold, relabelling

Ints = NDArray[np.int64]


@dataclass(eq=False)
class Flipping:
    """Relabel the examples that a slicer calls error-prone.

    Of two classes they get the other one. Of more, they get the commonest true class of their
    slice, if the model's confidence in its own is below a threshold: the one that gained most on
    examples held out from the slicer.

    Parameters
    ----------
    slicer : Slicer
        Such as `groundfault.finders.Edisa`; a copy of it is fitted.
    held : float
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
    held: float = 0.1
    random_state: int = 0
    slicer_: Slicer = field(init=False, repr=False)
    threshold_: float = field(init=False, repr=False)
    majority_: dict[int, int] = field(init=False, repr=False)

    def fit(self, Z: ArrayLike, y_true: ArrayLike, y_proba: ArrayLike) -> Self:
        """Fit the slicer, and choose the threshold, on labelled examples that the model was not
        trained on.

        Raises
        ------
        InputError
            If the data cannot be used, or are too few to hold any out.
        PlanError
            If ``held`` is not between 0 and 1, or a parameter of the slicer is out of range.
        """
        if not 0 < self.held < 1:
            raise PlanError(f"held={self.held!r} must lie between 0 and 1: a share of the examples")
        embedding = checked_embedding(Z)
        probability = checked_probability(y_proba, len(embedding))
        label = checked_labels(y_true, len(embedding), probability.shape[1])
        self.threshold_, self.majority_ = float("inf"), {}
        if probability.shape[1] == 2:
            self.slicer_ = fitted(self.slicer, embedding, label, probability)
            return self
        count = round(self.held * len(label))
        if count == 0:
            raise InputError(
                f"{len(label)} examples leave none to choose a threshold on; raise held or give more"
            )
        order = np.random.default_rng([self.random_state, len(label)]).permutation(len(label))
        held, used = np.sort(order[:count]), np.sort(order[count:])
        self.slicer_ = fitted(self.slicer, embedding[used], label[used], probability[used])
        slices, known = self.slicer_.labels_, label[used]
        self.majority_ = {
            int(s): int(np.bincount(known[slices == s]).argmax()) for s in np.unique(slices)
        }
        self.threshold_ = self._chosen(embedding[held], label[held], probability[held])
        return self

    def predict(self, Z: ArrayLike, y_proba: ArrayLike) -> Ints:
        """The model's labels, those of error-prone examples flipped: int64, shape (n,)."""
        return self._flipped(Z, y_proba)[1]

    def measure(self, Z: ArrayLike, y_true: ArrayLike, y_proba: ArrayLike) -> Improvement:
        """Accuracy while the error-prone of other labelled examples are relabelled, against the
        same by confidence.

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
        prone, new = self._flipped(Z, y_proba)
        probability = checked_probability(y_proba, len(prone))
        label = checked_labels(y_true, len(prone), probability.shape[1])
        return relabelling(
            ready(self).error_probability(Z, y_proba), prone, probability, label, new
        )

    def _flipped(self, Z: ArrayLike, y_proba: ArrayLike) -> tuple[NDArray[np.bool_], Ints]:
        slicer = ready(self)
        prone = slicer.error_prone(Z, y_proba)
        probability = np.asarray(y_proba, dtype=np.float64)
        label = probability.argmax(axis=1)
        flipped = prone & (probability.max(axis=1) < self.threshold_)
        if probability.shape[1] == 2:
            return prone, np.where(flipped, 1 - label, label)
        other = [
            self.majority_.get(s, own)
            for s, own in zip(slicer.predict(Z, y_proba), label, strict=True)
        ]
        return prone, np.where(flipped, other, label)

    def _chosen(
        self, embedding: NDArray[np.float64], label: Ints, probability: NDArray[np.float64]
    ) -> float:
        """The threshold of most gain among the error-prone; the threshold in force relabels all."""
        prone, new = self._flipped(embedding, probability)
        gain = np.subtract(new == label, probability.argmax(axis=1) == label, dtype=np.float64)
        return best_threshold(probability.max(axis=1)[prone], gain[prone])
