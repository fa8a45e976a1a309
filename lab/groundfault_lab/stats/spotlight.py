"""The spotlight: a round window over an embedding, moved and narrowed to where losses are high.

An example at distance ``r`` from the centre has weight ``exp(-precision r^2 / 2)``. The weighted
mean loss is climbed by Adam while a penalty keeps the total weight from falling below a floor that
shrinks geometrically, from all examples to the size wanted: so the window starts wide and ends
narrow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_START = float(np.log(1e-4))  # a window much wider than the data
_LAST = 0.05  # of the size wanted: what the barrier stands above it in the end
# the rate is halved after so many steps without a gain of so much
_PATIENCE, _DECAY, _MIN_GAIN = 20, 0.5, 1e-4


@dataclass(frozen=True)
class Window:
    """A centre, shape (d,), and the logarithm of a precision."""

    centre: Floats
    log_precision: float

    def distances(self, values: Floats) -> Floats:
        """Return squared distances from the centre, shape (n,)."""
        # by the binomial formula, as one product; rounding may leave it below 0
        squares = (
            np.einsum("ij,ij->i", values, values)
            - 2 * (values @ self.centre)
            + self.centre @ self.centre
        )
        return np.asarray(np.maximum(squares, 0.0))

    def weights(self, values: Floats) -> Floats:
        """Return weights in [0, 1], shape (n,)."""
        return np.asarray(np.exp(-0.5 * np.exp(self.log_precision) * self.distances(values)))


def climb(
    values: Floats, losses: Floats, size: float, steps: int, rate: float, *, quadratic: bool = False
) -> Window:
    """Move a window from the origin to where the weighted mean loss is high.

    Parameters
    ----------
    values : float64 array, shape (n, d)
    losses : float64 array, shape (n,)
        Of mean about 1, which is what the penalty is measured against.
    size : float
        Total weight wanted, in examples.
    steps : int
    rate : float
        Step of Adam, halved whenever the objective has not improved for twenty steps.
    quadratic : bool
        Punish total weight T below the floor F by ``((T - F) / a)^2``, with ``a`` the part of F
        above ``size``, as the reference does, rather than by ``log(T / F)^2``. The quadratic is
        flat where no weight is left, and a window that has run off the data stays there.

    References
    ----------
    d'Eon et al., "The Spotlight: A General Method for Discovering Systematic Errors in Deep
    Learning Models", FAccT
    2022. https://doi.org/10.1145/3531146.3533240
    """
    window = Window(np.zeros(values.shape[1]), _START)
    first, second = np.zeros(values.shape[1] + 1), np.zeros(values.shape[1] + 1)
    best, idle = np.inf, 0
    for step, above in enumerate(np.geomspace(len(values) - size, _LAST * size, steps), start=1):
        scale = above if quadratic else None
        value, gradient = objective(window, values, losses, size + above, scale)
        # Adam (Kingma and Ba 2015, arXiv:1412.6980), uphill, with its usual constants
        first = 0.9 * first - 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        move = rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        window = Window(window.centre - move[:-1], window.log_precision - float(move[-1]))
        better = -value < best * (1 - _MIN_GAIN)
        best, idle = (-value, 0) if better else (best, idle + 1)
        if idle > _PATIENCE:
            rate, best, idle = rate * _DECAY, np.inf, 0
    return window


def objective(
    window: Window, values: Floats, losses: Floats, floor: float, scale: float | None
) -> tuple[float, Floats]:
    """Return weighted mean loss less the penalty, and its gradient in centre and log precision.

    The penalty is quadratic with a scale, and logarithmic without.
    """
    squares, precision = window.distances(values), np.exp(window.log_precision)
    nearest = float(
        squares.min()
    )  # weights are relative to the nearest example's, so that they do not all vanish
    weights = np.exp(-0.5 * precision * (squares - nearest))
    share = weights / weights.sum()
    log_total = float(np.log(weights.sum()) - 0.5 * precision * nearest)
    mean = float(share @ losses)
    if scale is None:
        shortfall = min(log_total - np.log(floor), 0.0)
        push = -2 * shortfall
    else:
        shortfall = min(np.exp(log_total) - floor, 0.0) / scale
        push = -2 * shortfall / scale * np.exp(log_total)
    pull = share * (losses - mean + push)
    centre = precision * (pull @ values - pull.sum() * window.centre)
    return mean - shortfall**2, np.append(centre, -0.5 * precision * (pull @ squares))


def find_radius(window: Window, values: Floats, count: int) -> float:
    """Return a squared distance that the nearest ``count`` examples, and those as near, do not
    exceed.

    Half way to the next one, so that rounding does not decide about the last.
    """
    near, beyond = np.partition(window.distances(values), [count - 1, count])[count - 1 : count + 1]
    return float(near + (beyond - near) / 2)


def is_inside(arrays: Mapping[str, Floats], values: Floats) -> NDArray[np.int64]:
    """Return whether each example is in a ball: 1 or 0.

    Parameters
    ----------
    arrays : mapping
        ``middle``, shape (q,), and ``square``, shape (1,), the squared radius; ``centre``, shape
        (d,), and ``axes``, shape (q, d), where values are projected first.
    values : float64 array, shape (n, d)
    """
    if "axes" in arrays:
        values = (values - arrays["centre"]) @ arrays["axes"].T
    distances = Window(arrays["middle"], 0.0).distances(values)
    return np.asarray(distances <= arrays["square"][0], dtype=np.int64)
