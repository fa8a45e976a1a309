"""Westfall-Young: adjusted p-values by permuting outcomes jointly, so that descriptors keep their correlation."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from groundfault.stats import bits
from groundfault.stats.bits import Bits

Floats = NDArray[np.float64]

# equal statistics computed for different hypotheses may differ in the last digits; a tie counts against
_TIE = 1 - 1e-12


def max_t(
    packed: Bits,
    losses: NDArray[np.int64] | Floats,
    permutations: int,
    rng: np.random.Generator,
    *,
    valid: Bits | None = None,
    scored: NDArray[np.bool_] | None = None,
    blocks: NDArray[np.int64] | None = None,
    among: NDArray[np.bool_] | None = None,
    progress: Callable[[int], object] = bool,
) -> Floats:
    """Step-down max-T adjusted p-values of every (descriptor, outcome) pair.

    Parameters
    ----------
    packed : uint64 array, shape (L, W)
        Descriptors over n units, packed.
    losses : array, shape (M, n)
        Outcomes; whole numbers, or floats. Units that were not scored hold 0.
    permutations : int
        Number B of random permutations; p-values are (1 + exceedances) / (B + 1).
    rng : numpy.random.Generator
    valid : uint64 array, shape (L, W), optional
        Units where each descriptor is defined.
    scored : bool array, shape (M, n), optional
        Units with a loss, an outcome each.
    blocks : int64 array, shape (n,), optional
        Permute only among units of the same block.
    among : bool array, shape (L, M), optional
        The pairs that are hypotheses; the others neither compete nor get a meaningful answer.
    progress : callable, optional
        Told how many permutations are done.

    Returns
    -------
    float64 array, shape (L, M)

    Notes
    -----
    Whole units are permuted, with all their outcomes: several models on the same examples keep their dependence.
    The statistic is the lift over its permutation standard deviation. Under the complete null the family-wise error
    is controlled exactly; strong control assumes subset pivotality. Westfall and Young 1993; Ge, Dudoit and Speed
    2003, doi:10.1007/BF02595811 (algorithm 4.1).
    """
    statistic = _Statistic(packed, losses, valid, scored)
    asked = np.ones((len(packed), len(losses)), dtype=np.bool_) if among is None else among
    observed = np.where(asked, statistic(np.arange(losses.shape[1])), -1.0).reshape(-1)
    order = np.argsort(-observed, kind="stable")
    bar = observed[order] * _TIE
    exceed = np.zeros(len(observed), dtype=np.int64)
    for done, index in enumerate(_permutations(losses.shape[1], permutations, rng, blocks)):
        drawn = np.where(asked, statistic(index), -1.0).reshape(-1)[order]
        exceed += np.maximum.accumulate(drawn[::-1])[::-1] >= bar
        progress(done + 1)
    adjusted = np.maximum.accumulate((1 + exceed) / (permutations + 1))
    out = np.empty(len(observed))
    out[order] = adjusted
    return out.reshape(len(packed), -1)


def monte_carlo(
    values: NDArray[np.int64] | Floats,
    on: NDArray[np.int64],
    on_sum: Floats,
    draws: int,
    rng: np.random.Generator,
    direction: NDArray[np.int64] | None = None,
) -> Floats:
    """Permutation p-values by random permutations, with the +1 inside: valid for every number of draws.

    Parameters
    ----------
    values : array, shape (n,)
        Losses of all units.
    on, on_sum : arrays, shape (H,)
        Support of each descriptor and the loss summed over it.
    draws : int
        Random permutations B, shared by all hypotheses; a p-value is (1 + exceedances) / (B + 1).
    direction : int64 array, shape (H,), optional
        One-sided where given: P(sum >= observed) where positive, P(sum <= observed) elsewhere.
    """
    mean = on * (values.sum() / len(values))
    gap = on_sum - mean
    side = np.zeros(len(on)) if direction is None else np.where(direction > 0, 1.0, -1.0)
    slack = 1e-9 * np.maximum(np.abs(gap), 1e-12)
    bar = np.where(side == 0, np.abs(gap), side * gap) - slack
    exceed = np.zeros(len(on), dtype=np.int64)
    for _ in range(draws):
        cumulative = np.concatenate([[0.0], np.cumsum(rng.permutation(values))])
        drawn = cumulative[on] - mean
        exceed += np.where(side == 0, np.abs(drawn), side * drawn) >= bar
    return (1 + exceed) / (draws + 1)


def _permutations(
    n: int, count: int, rng: np.random.Generator, blocks: NDArray[np.int64] | None
) -> Iterator[NDArray[np.intp]]:
    if blocks is None:
        for _ in range(count):
            yield rng.permutation(n)
        return
    home = np.argsort(blocks, kind="stable")
    for _ in range(count):
        shuffled = np.lexsort((rng.random(n), blocks))
        index = np.empty(n, dtype=np.intp)
        index[home] = shuffled
        yield index


class _Statistic:
    """|lift| over its permutation standard deviation, for outcomes in any order of the units."""

    def __init__(
        self,
        packed: Bits,
        losses: NDArray[np.int64] | Floats,
        valid: Bits | None,
        scored: NDArray[np.bool_] | None,
    ) -> None:
        self.packed, self.losses, self.valid = packed, losses, valid
        self.scored = None if scored is None or scored.all() else scored
        n = losses.shape[1]
        everywhere = np.ones((len(losses), n), dtype=np.int64) if scored is None else scored.astype(np.int64)
        self.fixed = valid is None and self.scored is None
        if self.fixed:
            self.n = np.full((1, len(losses)), float(n))
            self.on = bits.count(packed)[:, None].astype(np.float64)
            self.total = losses.sum(axis=1)[None].astype(np.float64)
            self.squares = (losses.astype(np.float64) ** 2).sum(axis=1)[None]
        self.everywhere = everywhere

    def __call__(self, index: NDArray[np.intp]) -> Floats:
        moved = np.ascontiguousarray(self.losses[:, index])
        on_sum = bits.sums(self.packed, moved)
        n, on, total, squares = (
            (self.n, self.on, self.total, self.squares) if self.fixed else self._margins(moved, index)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = on * (n - on) * (n * squares - total**2) / np.maximum(n - 1, 1)
            return np.nan_to_num(np.abs(n * on_sum - on * total) / np.sqrt(variance), nan=0.0, posinf=0.0)

    def _margins(self, moved: NDArray[np.int64] | Floats, index: NDArray[np.intp]) -> tuple[Floats, ...]:
        present = np.ascontiguousarray(self.everywhere[:, index])
        inside = self.packed if self.valid is None else self.valid
        if self.valid is None:
            n = np.broadcast_to(present.sum(axis=1), (len(self.packed), len(present)))
            total = np.broadcast_to(moved.sum(axis=1), n.shape)
            squares = np.broadcast_to((moved.astype(np.float64) ** 2).sum(axis=1), n.shape)
        else:
            n, total, squares = (bits.sums(inside, a) for a in (present, moved, moved**2))
        on = bits.sums(self.packed, present)
        return tuple(np.asarray(a, dtype=np.float64) for a in (n, on, total, squares))
