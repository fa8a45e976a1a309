"""Fitted mixtures applied to examples without labels: a sum over all labels.

No prior of labels enters, as in the papers: each class counts once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundfault_lab.stats.mixture import EPS, Floats, Mixture, blocks, log_joint


def error_distance_joint(mixture: Mixture, embedding: Floats, probability: Floats) -> Floats:
    """Return log joint of Edisa, summed over the labels that the error distance may come from.

    Parameters
    ----------
    mixture : Mixture
        Fitted to the features ``[embedding, one-hot label - probability, probability]``.
    embedding : float array, shape (n, d)
    probability : float array, shape (n, c)

    Returns
    -------
    float array, shape (n, k)

    References
    ----------
    Hua et al., "Discover, Explain, Improve", TACL 2023, Eq. 8. https://doi.org/10.1162/tacl_a_00617
    """
    d, c = embedding.shape[1], probability.shape[1]
    joint = log_joint(mixture.view(slice(0, d)), embedding)
    joint += log_joint(mixture.view(slice(d + c, d + 2 * c)), probability)
    error = mixture.view(slice(d, d + c))
    labels = [log_joint(error, one_hot - probability) for one_hot in np.eye(c)]
    # the sum over labels in log space: joints of many dimensions underflow as plain numbers
    joint += np.logaddexp.reduce(labels)
    joint += mixture.log_weight
    return joint


def categorical_joint(mixture: Mixture, embedding: Floats, probability: Floats) -> Floats:
    """Return log joint of Domino, with the categorical label summed over every class.

    Parameters
    ----------
    mixture : Mixture
        Fitted to an embedding and two tables: labels, then predictions.
    embedding : float array, shape (n, d)
    probability : float array, shape (n, c)

    Returns
    -------
    float array, shape (n, k)
    """
    label, *rest = mixture.tables
    exponent, *exponents = mixture.table_exponents
    without_label = Mixture(
        mixture.log_weight,
        mixture.mean,
        mixture.variance,
        mixture.exponent,
        tuple(rest),
        tuple(exponents),
    )
    joint = log_joint(without_label, embedding, [probability])
    joint += np.logaddexp.reduce(exponent * np.log(label + EPS), axis=1)
    return joint


def to_arrays(
    mixture: Mixture, classes: int, centre: Floats | None, axes: Floats | None
) -> dict[str, NDArray[np.float64]]:
    """Return everything that `assign` needs, as plain arrays of numbers."""
    arrays = {
        "classes": np.array([classes]),
        "log_weight": mixture.log_weight,
        "mean": mixture.mean,
        "variance": mixture.variance,
        "exponent": mixture.exponent,
    }
    if mixture.tables:
        arrays |= {"label": mixture.tables[0], "prediction": mixture.tables[1]}
        arrays["table_exponent"] = np.array(mixture.table_exponents)
    if centre is not None and axes is not None:
        arrays |= {"centre": centre, "axes": axes}
    return {name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()}


def assign(
    arrays: Mapping[str, NDArray[np.float64]], values: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the likeliest slice of each example, its label unknown.

    Parameters
    ----------
    arrays : mapping
        From `to_arrays`.
    values : float64 array, shape (n, d + c)
        Embedding and class probabilities side by side; the embedding alone where ``arrays`` hold
        constant ones.

    Returns
    -------
    int64 array, shape (n,)
        Slice numbers from 0.
    """
    tables = tuple(arrays[name] for name in ("label", "prediction") if name in arrays)
    exponents: Any = arrays.get("table_exponent", np.zeros(0)).tolist()
    weight, mean, variance, exponent = (
        arrays[name] for name in ("log_weight", "mean", "variance", "exponent")
    )
    mixture = Mixture(weight, mean, variance, exponent, tables, tuple(exponents))
    if "constant" in arrays:
        values = np.hstack([values, np.tile(arrays["constant"], (len(values), 1))])
    width = values.shape[1] - int(arrays["classes"][0])
    joint = categorical_joint if tables else error_distance_joint
    out = np.empty(len(values), dtype=np.int64)
    for rows in blocks(len(values)):
        embedding, probability = values[rows, :width], values[rows, width:]
        if "axes" in arrays:
            embedding = (embedding - arrays["centre"]) @ arrays["axes"].T
        out[rows] = joint(mixture, embedding, probability).argmax(axis=1)
    return out


def principal_axes(
    values: Floats, max_axes: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and principal axes, exactly, by the eigenvectors of the covariance.

    Parameters
    ----------
    values : float array, shape (n, d)
    max_axes : int
        How many axes; all of them where there are fewer.

    Returns
    -------
    centre : float64 array, shape (d,)
    axes : float64 array, shape (min(max_axes, d), d)
        By falling variance; the entry of largest size of each is positive, so that signs do not
        depend on the machine.
    """
    centre = values.mean(axis=0, dtype=np.float64)
    covariance = np.zeros((values.shape[1],) * 2)
    for rows in blocks(len(values)):
        centred = values[rows] - centre
        # block by block, so that a memory-mapped embedding is never copied whole
        covariance += centred.T @ centred
    _, vectors = np.linalg.eigh(covariance)
    axes = vectors.T[::-1][:max_axes]
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1, keepdims=True), axis=1)
    return centre, axes * np.where(largest < 0, -1.0, 1.0)
