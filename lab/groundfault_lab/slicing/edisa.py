"""Edisa: slices alike in embedding, confidence and distance of label from prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from groundfault.base.arrays import Floats, Ints
from groundfault_lab.slicing.mixture import MixtureSlicer, Views
from groundfault_lab.stats.mixture_predict import error_distance_joint


@dataclass(kw_only=True, eq=False)
class Edisa(MixtureSlicer):
    """Mixture of embedding Z, error distance E = label - probability, and probability.

    The joint likelihood of an example and a slice is ``weight N(Z)^embedding_weight
    N(E)^error_weight N(probability)^confidence_weight``, each Gaussian diagonal. Where the label is
    not known, ``N(E)^error_weight`` is summed over the labels it might have been taken from.

    Parameters
    ----------
    embedding_weight, error_weight, confidence_weight : float
        Exponents, at least 0. The defaults are the paper's for finding errors on unlabelled data;
        to explain errors on labelled data it takes 0.15, 1 and 0.1.
    n_slices, pca, init, delta, min_size, ...
        As for every `groundfault_lab.slicing.mixture.MixtureSlicer`.

    Attributes
    ----------
    labels_ : int64 array, shape (n,)
        Slice of each example fitted, its label known.
    slice_sizes_, slice_accuracies_ : arrays, shape (n_slices,)
        On the examples fitted; the accuracy of an empty slice is NaN.
    error_slices_ : int64 array
        Slices of accuracy below ``delta`` and at least ``min_size`` examples.
    log_likelihood_ : float64 array, one entry an iteration and one for the start
        Mean log-likelihood of each E-step.
    suspicion_ : groundfault_lab.slicing.suspicion.Suspicion or None
        What `suspect` goes by; None where that is the error slices.
    ``n_iter_``, ``converged_``, ``n_classes_``, ``mixture_``, ``projection_``

    Notes
    -----
    ``suspicion="slices"`` is the paper's rule: of examples without labels, those whose likeliest
    slice is an error slice are suspected. The default suspects as many, those of highest chance of
    an error; see the page on the papers for what that gains.

    With the paper's rule, ``min_size=1`` and the same start this is the reference implementation,
    which has no floor of size, does not seed its randomised PCA (here: exact), and takes the number
    of classes from the labels at hand (here: from the columns of ``y_proba``). As published, label
    - probability and probability are linearly dependent: with diagonal covariances, two classes
    count each twice.
    A small ``embedding_weight`` discards cluster structure that the embedding has: compare weights.

    References
    ----------
    Hua et al., "Discover, Explain, Improve: An Automatic Slice Detection Benchmark for Natural
    Language Processing", TACL 11, 2023. https://doi.org/10.1162/tacl_a_00617

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> Z, y = rng.normal(size=(400, 5)), rng.integers(0, 2, 400)
    >>> p = np.where((y == 1) ^ (Z[:, 0] > 1), 0.9, 0.1)  # wrong wherever Z_0 > 1
    >>> edisa = Edisa(n_slices=8, embedding_weight=1.0).fit(Z, y, np.column_stack([1 - p, p]))
    >>> bool(edisa.slice_accuracies_[edisa.error_slices_].max() < 0.5)
    True
    """

    embedding_weight: float = 0.15
    error_weight: float = 0.1
    confidence_weight: float = 1.0
    suspicion: Literal["calibrated", "slices"] = "calibrated"
    name: str = "edisa"

    def _views(self, embedding: Floats, label: Ints, probability: Floats) -> Views:
        classes = probability.shape[1]
        # weights are exponents of densities, so that a wide embedding does not drown the labels
        features = np.hstack([embedding, np.eye(classes)[label] - probability, probability])
        exponent = (
            (self.embedding_weight,) * embedding.shape[1]
            + (self.error_weight,) * classes
            + (self.confidence_weight,) * classes
        )
        return Views(features, exponent)

    def _joint_without_label(self, embedding: Floats, probability: Floats) -> Floats:
        return error_distance_joint(self.mixture_, embedding, probability)
