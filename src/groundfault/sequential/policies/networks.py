"""An ensemble of small networks of several widths, trained as one batched program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Singles = NDArray[np.float32]

_RATE, _DECAY, _DECAY_SQUARES, _TINY = 0.01, 0.9, 0.999, 1e-8
_LARGEST_BATCH = 32
_WEIGHTS, _ORDERS = 1, 2  # streams of random numbers


@dataclass(frozen=True, eq=False)
class Networks:
    """K networks of one hidden ReLU layer for each width, at one length of training.

    Attributes
    ----------
    widths : tuple of int
        H is their sum.
    hidden : float32 array, shape (K, D + 1, H)
        Weights of the hidden units, their bias last.
    out : float32 array, shape (K, H)
    bias : float32 array, shape (K, W)
        Of the output, one a width.
    """

    widths: tuple[int, ...]
    hidden: Singles
    out: Singles
    bias: Singles

    def predict(self, features: Singles) -> Singles:
        """Probability of a pass, of each case by each network: float32, shape (W, K, n)."""
        units = features @ self.hidden[:, :-1]
        units += self.hidden[:, -1:]
        np.maximum(units, 0, out=units)
        return np.moveaxis(_sigmoid(self._total(units)), 2, 0)

    def _total(self, units: Singles) -> Singles:
        starts = np.cumsum((0, *self.widths[:-1]))
        return np.add.reduceat(units * self.out[:, None], starts, axis=2) + self.bias[:, None]


def train(
    features: Singles,
    scores: Singles,
    *,
    widths: Sequence[int],
    epochs: Sequence[int],
    members: int,
    seed: int = 0,
) -> tuple[Networks, ...]:
    """Train ``members`` networks of each width, kept after each number of epochs.

    Networks of fewer epochs are an earlier stage of those with more: they start from the same
    weights and see the same batches, so nothing is trained twice.

    Parameters
    ----------
    features : float32 array, shape (n, D)
    scores : float32 array, shape (n,)
        In [0, 1].
    widths, epochs : sequence of int
        Epochs in increasing order.
    members : int
    seed : int
        Of the first weights, the same whatever n is, and of the order of cases.

    Returns
    -------
    tuple of Networks, one for each number of epochs

    Notes
    -----
    Mean cross-entropy, Adam at rate .01, batches of min(32, n // 2) + 1 cases in an order of its
    own for each member, weights drawn uniformly within one over the root of the number of inputs:
    as in the reference implementation of https://doi.org/10.48550/arXiv.2605.07002."""
    return tuple(_stages(features, scores, tuple(widths), tuple(epochs), members, seed))


def _stages(
    features: Singles,
    scores: Singles,
    widths: tuple[int, ...],
    epochs: tuple[int, ...],
    members: int,
    seed: int,
) -> Iterator[Networks]:
    count = len(features)
    rows = np.concatenate([features, np.ones((count, 1), dtype=np.float32)], axis=1)
    nets = _begin(rows.shape[1], widths, members, seed)
    parts = (nets.hidden, nets.out, nets.bias)
    moments = [(np.zeros_like(part), np.zeros_like(part), np.empty_like(part)) for part in parts]
    shuffles = np.random.default_rng([seed, _ORDERS, count])
    size, step = min(_LARGEST_BATCH, count // 2) + 1, 0
    for epoch in range(1, epochs[-1] + 1):
        order = shuffles.permuted(np.tile(np.arange(count), (members, 1)), axis=1)
        for start in range(0, count, size):
            batch, step = order[:, start : start + size], step + 1
            for part, gradient, moment in zip(
                parts, _gradients(nets, rows[batch], scores[batch]), moments, strict=True
            ):
                _adam(part, gradient, moment, step)
        if epoch in epochs:
            yield Networks(widths, *(part.copy() for part in parts))


def _begin(inputs: int, widths: tuple[int, ...], members: int, seed: int) -> Networks:
    """Weights before training; ``inputs`` counts the constant."""
    rng, total = np.random.default_rng([seed, _WEIGHTS]), sum(widths)
    hidden = rng.uniform(-1, 1, (members, inputs, total)) / np.sqrt(inputs - 1)
    fan = np.sqrt(np.repeat(widths, widths))
    out = rng.uniform(-1, 1, (members, total)) / fan
    bias = rng.uniform(-1, 1, (members, len(widths))) / np.sqrt(widths)
    return Networks(widths, *(array.astype(np.float32) for array in (hidden, out, bias)))


def _gradients(nets: Networks, rows: Singles, scores: Singles) -> tuple[Singles, Singles, Singles]:
    """Of the mean cross-entropy of a batch (K, b, D + 1), with respect to hidden, out and bias."""
    units = rows @ nets.hidden
    active = units > 0
    units *= active
    wrong = _sigmoid(nets._total(units))
    wrong -= scores[:, :, None]
    wrong /= np.float32(scores.shape[1])
    back = np.repeat(wrong, nets.widths, axis=2)
    out = np.einsum("kbh,kbh->kh", back, units)
    back *= nets.out[:, None]
    back *= active
    return rows.transpose(0, 2, 1) @ back, out, wrong.sum(axis=1)


def _adam(
    part: Singles, gradient: Singles, moments: tuple[Singles, Singles, Singles], step: int
) -> None:
    """One step of Adam, in place."""
    mean, squares, room = moments
    mean *= np.float32(_DECAY)
    np.multiply(gradient, np.float32(1 - _DECAY), out=room)
    mean += room
    squares *= np.float32(_DECAY_SQUARES)
    np.multiply(gradient, gradient, out=room)
    room *= np.float32(1 - _DECAY_SQUARES)
    squares += room
    np.sqrt(squares, out=room)
    # both corrections for the start at zero, in one factor and in the guard against division by
    # zero
    later = np.sqrt(1 - _DECAY_SQUARES**step)
    room += np.float32(_TINY * later)
    np.divide(mean, room, out=room)
    room *= np.float32(_RATE * later / (1 - _DECAY**step))
    part -= room


def _sigmoid(x: Singles) -> Singles:
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -60, 60))), dtype=np.float32)
