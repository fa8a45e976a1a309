"""Domino: slices that share an embedding, a label and a prediction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from groundfault.base.arrays import Floats, Ints
from groundfault_lab.slicing.mixture import MixtureSlicer, Views
from groundfault_lab.stats.mixture_predict import categorical_joint


@dataclass(kw_only=True, eq=False)
class Domino(MixtureSlicer):
    """Mixture of a Gaussian embedding with categorical labels and predictions.

    The joint likelihood of an example and a slice is ``weight N(Z)^embedding_weight (label .
    p)^label_weight (probability . q)^confidence_weight`` with slice-wise class probabilities p and
    q. Where the label is not known, ``p^label_weight`` is summed over all classes.

    Parameters
    ----------
    embedding_weight, label_weight, confidence_weight : float
        Exponents, at least 0. The defaults are those of the Domino paper; DEIM tunes them to 1, 10
        and 40.
    n_slices, pca, init, delta, min_size, ...
        As for every `groundfault_lab.slicing.mixture.MixtureSlicer`.

    Attributes
    ----------
    labels_, slice_sizes_, slice_accuracies_, error_slices_, log_likelihood_, n_iter_, converged_
        As for `Edisa`.

    Notes
    -----
    Two public implementations agree with this one where labels are known. Where they are not,
    DEIM's sums over the label and its complement, which is right for two classes alone and beyond
    them depends on the label it pretends not to know; the original does not sum at all. Here all
    classes are summed over.

    References
    ----------
    Eyuboglu et al., "Domino: Discovering Systematic Errors with Cross-Modal Embeddings", ICLR 2022.
    https://arxiv.org/abs/2203.14960
    """

    n_slices: int = 25
    embedding_weight: float = 1.0
    label_weight: float = 10.0
    confidence_weight: float = 10.0
    name: str = "domino"

    @property
    def ranking_(self) -> Ints:
        """Return slices by the excess of a predicted class share over the true, largest first."""
        labels, predictions = self._require_fit().mixture_.tables
        # as the reference implementation ranks slices, by the most overpredicted class
        overshoot = np.abs((predictions - labels).max(axis=1))
        return np.argsort(-overshoot, kind="stable")

    def _views(self, embedding: Floats, label: Ints, probability: Floats) -> Views:
        one_hot = np.eye(probability.shape[1])[label]
        weights = (self.label_weight, self.confidence_weight)
        return Views(
            embedding,
            (self.embedding_weight,) * embedding.shape[1],
            (one_hot, probability),
            weights,
        )

    def _joint_without_label(self, embedding: Floats, probability: Floats) -> Floats:
        return categorical_joint(self.mixture_, embedding, probability)
