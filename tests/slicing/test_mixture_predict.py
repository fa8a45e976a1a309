"""Slices of unlabelled examples: the label is summed out, and saved arrays predict alike."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from groundfault_lab.stats.mixture import EPS, Mixture, log_joint
from groundfault_lab.stats.mixture_predict import (
    assign,
    categorical_joint,
    error_distance_joint,
    principal_axes,
    to_arrays,
)

RNG = np.random.default_rng(0)
EMBEDDING = RNG.normal(size=(30, 2))
PROBABILITY = RNG.dirichlet(np.ones(3), size=30)


def draw_mixture(width: int, tables: tuple[np.ndarray, ...] = ()) -> Mixture:
    weight = np.log(np.full(4, 0.25))
    mean, variance = RNG.normal(size=(4, width)), RNG.uniform(0.5, 2, (4, width))
    exponents = (1.5,) * len(tables)
    return Mixture(weight, mean, variance, RNG.uniform(0.2, 1, width), tables, exponents)


def test_the_error_distance_is_summed_over_labels() -> None:
    mixture = draw_mixture(8)
    joints = [
        log_joint(mixture, np.hstack([EMBEDDING, one_hot - PROBABILITY, PROBABILITY]))
        for one_hot in np.eye(3)
    ]
    ours = error_distance_joint(mixture, EMBEDDING, PROBABILITY)
    assert ours == pytest.approx(logsumexp(joints, axis=0))


def test_the_categorical_label_is_summed_over_classes() -> None:
    tables = (RNG.dirichlet(np.ones(3), size=4), RNG.dirichlet(np.ones(3), size=4))
    mixture = draw_mixture(2, tables)
    joints = [
        log_joint(mixture, EMBEDDING, [np.tile(one_hot, (30, 1)), PROBABILITY])
        for one_hot in np.eye(3)
    ]
    ours = categorical_joint(mixture, EMBEDDING, PROBABILITY)
    assert ours == pytest.approx(logsumexp(joints, axis=0), abs=100 * EPS)


def test_arrays_predict_as_the_mixture_does() -> None:
    mixture = draw_mixture(8)
    values = np.hstack([EMBEDDING, PROBABILITY])
    labels = assign(to_arrays(mixture, 3, None, None), values)
    joint = error_distance_joint(mixture, EMBEDDING, PROBABILITY)
    assert (labels == joint.argmax(axis=1)).all()


def test_principal_axes_have_falling_variance_and_a_fixed_sign() -> None:
    points = RNG.normal(size=(200, 4)) * [1, 5, 2, 3]
    centre, axes = principal_axes(points, 2)
    assert axes.shape == (2, 4)
    assert axes @ axes.T == pytest.approx(np.eye(2), abs=1e-12)
    variance = ((points - centre) @ axes.T).var(axis=0)
    largest = np.sort(np.linalg.eigvalsh(np.cov(points.T, bias=True)))[::-1][:2]
    assert variance == pytest.approx(largest)
    assert (axes[np.arange(2), np.abs(axes).argmax(axis=1)] > 0).all()
