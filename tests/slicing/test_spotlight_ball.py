"""Windows over an embedding: distances, gradient and radius."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad

from groundfault_lab.stats import spotlight

RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(80, 3))
LOSSES = RNG.random(80) * 2


def test_weights_fall_with_the_distance() -> None:
    window = spotlight.Window(VALUES[0], 0.5)
    squares = ((VALUES - VALUES[0]) ** 2).sum(axis=1)
    assert window.distances(VALUES) == pytest.approx(squares, abs=1e-9)
    assert window.weights(VALUES) == pytest.approx(np.exp(-np.exp(0.5) * squares / 2), abs=1e-9)


@pytest.mark.parametrize("scale", [None, 7.0])
def test_the_gradient_is_the_slope(scale: float | None) -> None:
    def evaluate(x: np.ndarray, part: int) -> np.ndarray:
        window = spotlight.Window(x[:3], float(x[3]))
        return np.asarray(spotlight.objective(window, VALUES, LOSSES, 60.0, scale)[part])

    point = np.array([0.2, -0.1, 0.3, 0.4])
    error = check_grad(lambda x: float(evaluate(x, 0)), lambda x: evaluate(x, 1), point)
    assert error < 1e-5


def test_the_radius_holds_so_many_examples() -> None:
    window = spotlight.Window(np.zeros(3), 0.0)
    square = spotlight.find_radius(window, VALUES, 20)
    arrays = {"middle": window.centre, "square": np.array([square])}
    assert spotlight.is_inside(arrays, VALUES).sum() == 20
