"""Many hypotheses at once: adjusted p-values, max-T by permutation, bars, e-value selection.

Random orders of units are dealt here; the runs test says whether an order is random.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundfault.stats import bits
from groundfault.stats.bits import Bits
from groundfault.stats.contingency import RobustLifts, centre_losses

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_TIE = 1e-9
"""Log p-values of equal tests may differ in the last digits; a tie counts against."""
_ROUNDING = 1 - 1e-12
"""A statistic times this factor is reached by an equal one that was summed in another order."""
# cells that are held at a time
_BATCH = 1 << 20
# below so many rows to deal NumPy does it: that takes a quarter of a second at most, as loading
# numba does
_WORTH_COMPILING = 1 << 24
# types of cells that a kernel is compiled for: losses of 0 and 1, and any others
_COMPILED = (np.dtype(np.uint8), np.dtype(np.float64))


def holm(p: Floats) -> Floats:
    """Return Holm-adjusted p-values: family-wise error under any dependence
    (doi:10.2307/4615733)."""
    order, rank = _order(p)
    # step down: an adjusted p is at least that of every smaller p
    stepped = np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p))))
    return np.minimum(stepped, 1.0)[rank]


def step_down(statistics: Floats, null: Iterable[Floats], draws: int) -> Floats:
    """Return step-down max-T adjusted p-values, larger statistics being rarer.

    Parameters
    ----------
    statistics : float64 array, shape (H,)
        Statistics of the data.
    null : iterable of float64 array, shape (b, H)
        Statistics of draws from the null, in batches.
    draws : int
        Number of draws; p-values are (1 + exceedances) / (draws + 1).

    Notes
    -----
    From the largest statistic on, each is compared with the maximum over itself and those below it:
    Ge, Dudoit and Speed 2003, doi:10.1007/BF02595811, algorithm 4.1.
    """
    order = np.argsort(-statistics, kind="stable")
    bar = statistics[order] * _ROUNDING
    exceed = np.zeros(len(statistics), dtype=np.int64)
    for batch in null:
        drawn = batch[:, order]
        exceed += (np.maximum.accumulate(drawn[:, ::-1], axis=1)[:, ::-1] >= bar).sum(axis=0)
    p = np.empty(len(statistics))
    # 1 + because the data are one of their own draws; without it p could be 0
    p[order] = np.maximum.accumulate((1 + exceed) / (draws + 1))
    return p


def benjamini_hochberg(p: Floats) -> Floats:
    """Return Benjamini-Hochberg adjusted p-values: false discovery rate under positive dependence.

    doi:10.1111/j.2517-6161.1995.tb02031.x
    """
    order, rank = _order(p)
    # step up: an adjusted p is at most that of every larger p
    stepped = p[order] * len(p) / np.arange(1, len(p) + 1)
    return np.minimum(np.minimum.accumulate(stepped[::-1])[::-1], 1.0)[rank]


def benjamini_yekutieli(p: Floats) -> Floats:
    """Return Benjamini-Yekutieli adjusted p-values: the false discovery rate under any dependence.

    doi:10.1214/aos/1013699998
    """
    # the cost of arbitrary dependence: the sum of 1/i, about log of the number of tests
    harmonic = float(np.sum(1.0 / np.arange(1, len(p) + 1)))
    return np.minimum(benjamini_hochberg(p) * harmonic, 1.0) if len(p) else p


def e_benjamini_hochberg(e: Floats, q: float) -> NDArray[np.bool_]:
    """Return which e-values e-BH selects at level ``q``: the false discovery rate under any
    dependence.

    Wang and Ramdas 2022, doi:10.1111/rssb.12489. Valid for compound e-values too, whose null
    expectations sum to at most their number."""
    order = np.argsort(-e, kind="stable")
    k = np.arange(1, len(e) + 1)
    enough = np.flatnonzero(e[order] * k * q >= len(e))
    selection = np.zeros(len(e), dtype=np.bool_)
    if len(enough):
        selection[order[: enough[-1] + 1]] = True
        selection |= e >= e[selection].min()  # ties stand or fall together
    return selection


def e_adjusted(e: Floats) -> Floats:
    """Return the smallest level at which e-BH would select each: an analogue of an adjusted
    p-value."""
    order, rank = _order(-e)
    with np.errstate(divide="ignore", over="ignore"):
        level = len(e) / (np.arange(1, len(e) + 1) * e[order])
    return np.minimum(np.minimum.accumulate(level[::-1])[::-1], 1.0)[rank]


def e_holm(e: Floats) -> Floats:
    """Return adjusted e-values: rejecting values of at least 1/alpha keeps the family-wise error.

    The closed test of averages (Vovk and Wang 2021, doi:10.1214/20-AOS2020, Algorithm 1) replaces
    each e-value by the smallest mean of any set that contains it. Adjusted at every step,
    e-processes keep the error at all times."""
    order, rank = _order(e)
    sums = np.concatenate([[0.0], np.cumsum(e[order])])
    smallest = np.empty_like(e)
    for i in range(len(e)):
        # with itself, the j smallest others: earlier ones first
        with_smaller = (sums[: i + 1] + e[order[i]]) / np.arange(1, i + 2)
        with_larger = sums[i + 1 :] / np.arange(i + 1, len(e) + 1)
        smallest[i] = min(with_smaller.min(), with_larger.min())
    return smallest[rank]


def count_effective_tests(rows: NDArray[np.bool_]) -> float:
    """Return the effective number of independent tests of correlated descriptors: from one to their
    number.

    The squared sum of the roots of the correlation matrix' eigenvalues over their sum (Galwey 2009,
    doi:10.1002/gepi.20408). Descriptive: no verdict rests on it.

    Parameters
    ----------
    rows : bool array, shape (L, n)
        Constant rows are skipped.
    """
    varied = rows[rows.any(axis=1) & ~rows.all(axis=1)].astype(np.float64)
    if len(varied) < 2:
        return float(len(varied))
    # rounding leaves eigenvalues that should be 0 slightly below it, where they have no root
    values = np.maximum(np.linalg.eigvalsh(np.corrcoef(varied)), 0.0)
    return float(np.sqrt(values).sum() ** 2 / values.sum())


def _order(p: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    order = np.argsort(p, kind="stable")
    # the inverse permutation, which puts sorted results back in place
    return order, np.argsort(order, kind="stable")


class Joint:
    """Single-step adjustment by the smallest p-value of each class in draws of the null.

    Parameters
    ----------
    least : float64 array, shape (draws + 1, classes)
        Least log p of each class; the first row holds the data. All rows must be computed in the
        same way: under the null they are then exchangeable, which makes the level exact.
    shares : float64 array, shape (classes,)
        Shares of the level; their sum is 1.

    Notes
    -----
    Ranks are taken among all rows, including the data (Westfall and Young 1993).
    """

    def __init__(self, least: Floats, shares: Floats) -> None:
        self._sorted, self._shares, self._rows = np.sort(least, axis=0), shares, len(least)
        ranks = [self._rank(least[:, c], c) for c in range(len(shares))]
        self._best = np.sort(np.min(ranks, axis=0))

    def _rank(self, log_p: Floats, c: int) -> Floats:
        """Return the share of rows whose class is as surprising, over the class's share."""
        places = np.searchsorted(self._sorted[:, c], log_p + _TIE, side="right")
        return np.asarray(np.maximum(places, 1) / self._rows / self._shares[c])

    def adjust(self, log_p: Floats, kind: Ints) -> Floats:
        """Return adjusted p-values of tests of some classes."""
        rank = np.empty(len(log_p))
        for c in range(len(self._shares)):
            rank[kind == c] = self._rank(log_p[kind == c], c)
        places = np.searchsorted(self._best, rank * (1 + _TIE), side="right")
        return np.asarray(np.maximum(places, 1) / self._rows)

    def bar(self, c: int, level: float) -> float:
        """Return the log p of a class below which adjusted p-values are at most a level."""
        values = self._sorted[:, c]
        above = values[self.adjust(values, np.full(len(values), c)) > level]
        return float(above.min(initial=0.0)) if len(above) < len(values) else -math.inf


class SummedBars:
    """Adjustment by the number of tests of each class: weighted Bonferroni.

    Parameters
    ----------
    counts : int64 array, shape (classes,)
    shares : float64 array, shape (classes,)
        Shares of the level; their sum is 1.
    """

    def __init__(self, counts: Ints, shares: Floats) -> None:
        self._costs = np.log(np.maximum(counts, 1) / shares)

    def adjust(self, log_p: Floats, kind: Ints) -> Floats:
        """Return adjusted p-values of tests of some classes."""
        return np.asarray(np.exp(np.minimum(0.0, log_p + self._costs[kind])))

    def bar(self, c: int, level: float) -> float:
        """Return the largest log p of a class whose adjusted p-value is at most a level."""
        return math.log(level) - float(self._costs[c])


def max_t(
    packed: Bits,
    losses: NDArray[np.int64] | Floats,
    permutations: int,
    rng: np.random.Generator,
    *,
    valid: Bits | None = None,
    has_loss: NDArray[np.bool_] | None = None,
    blocks: NDArray[np.int64] | None = None,
    hypotheses: NDArray[np.bool_] | None = None,
) -> Floats:
    """Return step-down max-T adjusted p-values of every (descriptor, outcome) pair.

    Parameters
    ----------
    packed : uint64 array, shape (L, W)
        Descriptors over n units, packed.
    losses : array, shape (M, n)
        Outcomes as integers or floats; 0 for unscored units.
    permutations : int
        Number B of random permutations; p-values are (1 + exceedances) / (B + 1).
    rng : numpy.random.Generator
    valid : uint64 array, shape (L, W), optional
        Units where each descriptor is defined.
    has_loss : bool array, shape (M, n), optional
        Units with a loss, for each outcome.
    blocks : int64 array, shape (n,), optional
        Permute only among units of the same block.
    hypotheses : bool array, shape (L, M), optional
        The pairs that are hypotheses; other pairs do not compete, and their answer has no meaning.

    Returns
    -------
    float64 array, shape (L, M)

    Notes
    -----
    Whole units are permuted with all their outcomes, so several models on the same examples keep
    their dependence. The statistic of 0/1 losses is the lift over its permutation standard
    deviation; for graded losses it is studentised, so that equal means with unequal variances count
    as no effect (`groundfault.stats.contingency`). Under the complete null, if units are
    exchangeable, the family-wise error is controlled exactly; strong control assumes subset
    pivotality. Westfall and Young 1993; Ge, Dudoit and Speed 2003, doi:10.1007/BF02595811
    (algorithm 4.1)."""
    statistic = (
        _Statistic(packed, losses, valid, has_loss)
        if has_two_values(losses)
        else _RobustStatistic(packed, losses, valid, has_loss, blocks)
    )
    is_pair = True if hypotheses is None else hypotheses

    def measure(batch: NDArray[Any]) -> Floats:
        return np.where(is_pair, statistic(batch), -1.0).reshape(len(batch), -1)

    bits.expect(packed.size * len(losses) * permutations)
    null = map(measure, deal(statistic.units, permutations, rng, blocks))
    p = step_down(measure(statistic.units[None])[0], null, permutations)
    return p.reshape(len(packed), -1)


def redraw_sums(
    packed: Bits,
    values: NDArray[np.int64] | Floats,
    draws: int,
    rng: np.random.Generator,
    strata: NDArray[np.int64] | None = None,
) -> Iterator[Floats]:
    """Yield loss sums over each descriptor's units when losses are permuted, in batches.

    Parameters
    ----------
    packed : uint64 array, shape (L, W)
    values : array, shape (n,)
        Losses of all units.
    draws : int
        Random permutations in all, shared by the descriptors.
    strata : int64 array, shape (n,), optional
        Permute only among units of the same stratum.

    Yields
    ------
    float64 array, shape (b, L)
    """
    on = bits.count(packed)
    for batch in deal(values[:, None], draws, rng, strata):
        permuted = batch[:, :, 0]
        if strata is None:
            yield _sum_first(permuted, on)
        else:
            yield np.asarray(bits.sums(packed, permuted), dtype=np.float64).T


def redraw_robust_lifts(
    packed: Bits,
    residuals: Floats,
    draws: int,
    rng: np.random.Generator,
    strata: NDArray[np.int64] | None = None,
) -> Iterator[Floats]:
    """Yield studentised lifts of each descriptor: first for the data, then for permuted losses.

    Parameters
    ----------
    packed : uint64 array, shape (L, W)
    residuals : float64 array, shape (n,)
        Losses minus the means of their strata.
    draws, rng, strata
        As in `redraw_sums`.

    Yields
    ------
    float64 array, shape (b, L)
        First with b = 1, the statistics of the data; then statistics of ``draws`` permutations.
    """
    lifts = RobustLifts(packed, len(residuals), strata=strata)
    yield lifts(residuals[None])
    on = bits.count(packed)
    share = on / max(1, len(residuals))
    for batch in deal(residuals[:, None], draws, rng, strata):
        permuted = batch[:, :, 0]
        if strata is not None:
            yield lifts(permuted)
            continue
        gap, squares = (_sum_first(values, on) for values in (permuted, permuted**2))
        variance = (1 - 2 * share) * squares + share**2 * (residuals**2).sum()
        yield np.where(variance > 1e-20, gap / np.sqrt(np.maximum(variance, 1e-20)), 0.0)


def _sum_first(values: NDArray[Any], sizes: NDArray[np.int64]) -> Floats:
    """Return sums of the first units of each order, which are a random choice: (orders, L)."""
    start = np.zeros((len(values), 1))
    return np.concatenate([start, np.cumsum(values, axis=1)], axis=1)[:, sizes]


def has_two_values(losses: NDArray[np.int64] | Floats) -> bool:
    """Return whether losses are 0 and one other value, so that their means tell their variances."""
    others = losses[losses != 0]
    return len(others) == 0 or bool((others == others[0]).all())


def compute_stratum_means(
    values: NDArray[np.int64] | Floats, strata: NDArray[np.int64] | None
) -> Floats:
    """Return each unit's expected loss after a permutation: the mean of its stratum."""
    if strata is None:
        return np.full(len(values), values.mean() if len(values) else 0.0)
    _, home = np.unique(strata, return_inverse=True)
    return np.asarray((np.bincount(home, weights=values) / np.bincount(home))[home])


class _Statistic:
    """|lift| over its permutation standard deviation, for outcomes in other orders of the units.

    Attributes
    ----------
    units : array, shape (n, M) or (n, 2 M)
        The values that permutations move: losses, then whether each loss exists, if some are
        missing.
    """

    def __init__(
        self,
        packed: Bits,
        losses: NDArray[np.int64] | Floats,
        valid: Bits | None,
        has_loss: NDArray[np.bool_] | None,
    ) -> None:
        self.packed, self.losses, self.valid = packed, losses, valid
        self.has_loss = None if has_loss is None or has_loss.all() else has_loss
        size = losses.shape[1]
        self.everywhere = bits.pack(np.ones((1, size), dtype=np.bool_))
        self.on = bits.count(packed)[:, None].astype(np.float64)
        self.defined = (
            np.full((1, 1), float(size))
            if valid is None
            else bits.count(valid)[:, None].astype(np.float64)
        )
        columns = losses if self.has_loss is None else np.concatenate([losses, self.has_loss])
        self.is_whole = np.issubdtype(columns.dtype, np.integer)
        self.highest = losses.max(initial=0)
        self.total = losses.sum(axis=1)[None, None].astype(np.float64)
        self.squares = (losses.astype(np.float64) ** 2).sum(axis=1)[None, None]
        small = np.min_scalar_type(columns.max(initial=0)) if self.is_whole else columns.dtype
        self.units = np.ascontiguousarray(columns.T.astype(small))

    def __call__(self, batch: NDArray[Any]) -> Floats:
        """Return the statistics for units in other orders, shape (orders, n, ...): (orders, L,
        M)."""
        losses = self._select(batch, 0)
        on_sum = self._sums(self.packed, losses)
        on, n = self.on[None], self.defined[None]
        present = None if self.has_loss is None else self._select(batch, 1)
        if self.valid is None and present is None:
            total, squares = self.total, self.squares
        else:
            inside = self.everywhere if self.valid is None else self.valid
            total = self._sums(inside, losses)
            # of whole numbers, 0 and one other, which need no pass of their own
            squares = self.highest * total if self.is_whole else self._sums(inside, losses**2)
            if present is not None:
                on, n = self._sums(self.packed, present), self._sums(inside, present)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = on * (n - on) * (n * squares - total**2) / np.maximum(n - 1, 1)
            size = np.abs(n * on_sum - on * total) / np.sqrt(variance)
        return np.asarray(np.nan_to_num(size, nan=0.0, posinf=0.0))

    def _select(self, batch: NDArray[Any], part: int) -> NDArray[np.int64] | Floats:
        """Return losses (part 0) or whether they are there (1), order by order: shape (orders * M,
        n)."""
        outcomes = len(self.losses)
        columns = batch[:, :, part * outcomes : (part + 1) * outcomes]
        return columns.transpose(0, 2, 1).reshape(-1, batch.shape[1])

    def _sums(self, packed: Bits, values: NDArray[np.int64] | Floats) -> Floats:
        flat = np.asarray(bits.sums(packed, values), dtype=np.float64)
        return flat.reshape(len(packed), -1, len(self.losses)).transpose(1, 0, 2)


class _RobustStatistic:
    """|lift| over its robust standard error, in the same form as `_Statistic`."""

    def __init__(
        self,
        packed: Bits,
        losses: NDArray[np.int64] | Floats,
        valid: Bits | None,
        has_loss: NDArray[np.bool_] | None,
        blocks: NDArray[np.int64] | None,
    ) -> None:
        self.outcomes = len(losses)
        gaps = None if has_loss is None or has_loss.all() else has_loss
        self.lifts = RobustLifts(packed, losses.shape[1], valid, blocks)
        residuals = centre_losses(losses, gaps, blocks)
        columns = [residuals] if gaps is None else [residuals, gaps.astype(np.float64)]
        self.units = np.ascontiguousarray(np.concatenate(columns).T)
        self.has_gaps = gaps is not None

    def __call__(self, batch: NDArray[Any]) -> Floats:
        """Return the statistics for units in other orders, shape (orders, n, ...): (orders, L,
        M)."""
        sizes = [
            np.abs(
                self.lifts(
                    batch[:, :, outcome],
                    batch[:, :, self.outcomes + outcome] if self.has_gaps else None,
                )
            )
            for outcome in range(self.outcomes)
        ]
        return np.stack(sizes, axis=2)


def deal(
    units: NDArray[Any],
    draws: int,
    rng: np.random.Generator,
    blocks: NDArray[np.int64] | None = None,
) -> Iterator[NDArray[Any]]:
    """Yield rows of a table in random orders, in batches.

    Parameters
    ----------
    units : array, shape (n, k)
        Rows stay whole.
    draws : int
        Random orders in all.
    rng : numpy.random.Generator
        The same seed gives the same orders on every code path: the orders of ``rng.shuffle`` and,
        within blocks, of sorting ``rng.random``.
    blocks : int64 array, shape (n,), optional
        Deal only among units of the same block.

    Yields
    ------
    array, shape (b, n, k)

    Examples
    --------
    >>> (batch,) = deal(np.array([[1], [2], [3]]), 4, np.random.default_rng(0))
    >>> batch.shape, sorted(batch[0, :, 0].tolist())
    ((4, 3, 1), [1, 2, 3])
    """
    n, width = units.shape
    table = np.ascontiguousarray(units)
    if blocks is not None:
        # few blocks as small numbers, which NumPy sorts by their digits
        _, blocks = np.unique(blocks, return_inverse=True)
        blocks = blocks.astype(np.min_scalar_type(blocks.max(initial=0)))
        home = np.argsort(blocks, kind="stable")
    shuffle = _choose_shuffle(table, draws)
    # rows of bits are read once for eight orders of bytes, however many units there are
    step = max(1, 8 // table.itemsize, _BATCH // max(1, n * width))
    for start in range(0, draws, step):
        out = np.empty((min(step, draws - start), n, width), dtype=table.dtype)
        if blocks is None:
            out[:] = table
            shuffle(rng, out)
        else:
            for order in out:
                order[home] = table[_sort_within(rng.random((n,)), blocks)]
        yield out


def _choose_shuffle(
    table: NDArray[Any], draws: int
) -> Callable[[np.random.Generator, NDArray[Any]], None]:
    is_loaded = "groundfault.stats.order_kernels" in sys.modules
    is_large = is_loaded or draws * len(table) >= _WORTH_COMPILING
    if table.shape[1] != 1 or table.dtype not in _COMPILED or not is_large:
        return _shuffle
    from groundfault.stats.order_kernels import shuffle

    return lambda rng, out: shuffle(rng, out[:, :, 0])


def _shuffle(rng: np.random.Generator, out: NDArray[Any]) -> None:
    """Shuffle the rows of each table, shape (b, n, k), in place."""
    _, n, width = out.shape
    # a row is one record, and records are dealt themselves: a table of bytes stays in the
    # processor's cache where a column of numbers does not
    for records in out.view(f"V{out.itemsize * width}").reshape(len(out), n):
        rng.shuffle(records)


def _sort_within(keys: NDArray[np.float64], blocks: NDArray[Any]) -> NDArray[np.intp]:
    """Return rows by block, and by key within each: a faster ``np.lexsort((keys, blocks))``."""
    order = np.argsort(keys)
    values = keys[order]
    if (values[1:] == values[:-1]).any():  # equal keys: where they go, only a stable sort says
        return np.lexsort((keys, blocks))
    return order[np.argsort(blocks[order], kind="stable")]


@dataclass(frozen=True)
class RunsTest:
    """Runs of high and of low values, and their expected number in a random order.

    Attributes
    ----------
    runs, expected : float
        Sums over all sequences.
    p : float
        One-sided normal p-value for this few runs.
    """

    runs: float
    expected: float
    p: float


def count_runs(sequences: Iterable[NDArray[np.bool_]]) -> RunsTest:
    """Return Wald-Wolfowitz test of one or several sequences, each against its own random order.

    Parameters
    ----------
    sequences : iterable of bool arrays
        Whether each value is high, in order.

    Notes
    -----
    Wald and Wolfowitz 1940, doi:10.1214/aoms/1177731909. The normal approximation is good from
    about ten values of each kind on.

    Examples
    --------
    >>> ordered = np.repeat([True, False], 20)
    >>> result = count_runs([ordered])
    >>> result.runs, result.expected, result.p < 0.001
    (2.0, 21.0, True)
    """
    from scipy.special import ndtr

    runs = expected = variance = 0.0
    for high in sequences:
        n, ones = len(high), int(high.sum())
        if n < 2:
            continue
        both = 2 * ones * (n - ones)
        runs += 1 + int((high[1:] != high[:-1]).sum())
        expected += 1 + both / n
        variance += both * (both - n) / (n**2 * (n - 1))
    z = (runs - expected) / sqrt(variance) if variance > 0 else 0.0
    return RunsTest(runs, expected, float(ndtr(z)))
