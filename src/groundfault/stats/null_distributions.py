"""Null distributions: the loss summed over a descriptor's units when its values are permuted.

Given the margins, permuting a descriptor draws its ``on`` units at random without replacement. For
0/1 errors the sum is hypergeometric; for losses on a grid the distribution is counted exactly
(`subset_sums`); for other losses it is a double saddlepoint approximation (`saddlepoint`). All are
computed without random numbers.

A distribution is a run of atoms ``start + step * i`` with probabilities. Many distributions share
one ragged array, so that one compiled pass serves a whole library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from groundfault.stats.contingency import EFFECTS, ContingencyTables

Floats = NDArray[np.float64]

# two tables of float64: a gigabyte
_MAX_CELLS = 6e7
_MAX_UPDATES = 3e9  # additions to these tables: seconds


def countable(values: NDArray[np.int64], sizes: NDArray[np.int64]) -> bool:
    """Return whether `subset_sums` is affordable: a few seconds and a gigabyte at most."""
    largest = min(int(sizes.max(initial=0)), len(values) // 2)
    top = float(np.sort(values)[::-1][:largest].sum())
    # 34 standard deviations hold all probability above 1e-60, which is all that is kept
    window = min(
        top, 34.0 * float(values.std()) * np.sqrt(largest) + 2.0 * float(values.max(initial=1))
    )
    return largest * top <= _MAX_CELLS and len(values) * largest * window / 2 <= _MAX_UPDATES


def subset_sums(
    values: NDArray[np.int64], sizes: NDArray[np.int64]
) -> dict[int, tuple[float, float, Floats]]:
    """Return exact distributions of sums over random subsets, by size: start, step 1,
    probabilities.

    Units are added one at a time: after i units, a random k-subset holds the new one with
    probability k/i. All terms are positive, so no digits cancel. A subset of more than half the
    units is the complement of a smaller one."""
    from groundfault.stats.null_kernels import count_subsets

    n, total = len(values), int(values.sum())
    smaller = {int(k): min(int(k), n - int(k)) for k in sizes}
    largest = max(smaller.values(), default=0)
    top = int(np.sort(values)[::-1][:largest].sum())
    table, low, high = count_subsets(np.sort(values), largest, top)
    out = {}
    for k, small in smaller.items():
        pmf = table[small, low[small] : high[small] + 1].copy()
        start = low[small]
        if small != k:
            pmf, start = pmf[::-1].copy(), total - high[small]
        out[k] = (float(start), 1.0, pmf)
    return out


# atoms further than this many standard deviations from the mean weigh less than 1e-13 together
_POOLED_WIDTH = 7.5
_OWN_WIDTH = 38.0  # beyond this a normal tail is below the smallest float
# the work of the interpreter, in distributions and hypotheses, that compiling is worth; less where
# `pool_tail` loads compiled passes anyway
_WORTH_COMPILING = 5_000
_WORTH_COMPILING_POOLED = 500  # the lesser work


@dataclass(frozen=True)
class NullDistributions:
    """Distributions of on-slice sums, in one ragged array.

    Attributes
    ----------
    n, on, total : float64 arrays, shape (U,)
        Margins of each distribution; whole numbers, held as floats for the compiled passes.
    start, step : float64 arrays, shape (U,)
        Atom ``i`` of distribution ``u`` lies at ``start[u] + step[u] * i``.
    offset : int64 array, shape (U + 1,)
        Distribution ``u`` owns ``pmf[offset[u]:offset[u + 1]]``.
    pmf : float64 array
    unit : float
        Divisor that turns a sum into a loss.
    """

    n: Floats
    on: Floats
    total: Floats
    start: Floats
    step: Floats
    offset: NDArray[np.int64]
    pmf: Floats
    unit: float

    def pool_tail(
        self, weights: Floats, thresholds: Floats, effect: str = "risk_difference"
    ) -> Floats:
        """Return expected number of decoys at or above each threshold.

        Parameters
        ----------
        weights : float64 array, shape (U,)
            Number of descriptors with each distribution.
        thresholds : float64 array, shape (T,)
            Ascending sizes of effect.

        Returns
        -------
        float64 array, shape (T,)
            ``S(t) = sum over u of weights[u] * P(size of effect >= t)``.
        """
        from groundfault.stats import null_kernels
        from groundfault.stats.row_threads import share_rows

        hist = np.zeros((null_kernels.CHUNKS, len(thresholds) + 1))
        if len(thresholds) and len(self.n):
            # a uniform lookup brings the search for an atom's level down to a step or two
            cells = 8 * len(thresholds)
            top = float(thresholds[-1])
            scale = cells / top if top > 1e-200 else 0.0
            # a little high: a size at the edge of a cell may be rounded into the next one
            after = (thresholds * (scale * (1 + 1e-12))).astype(np.int64) + 1
            lookup = np.bincount(after, minlength=cells + 2).cumsum().astype(np.uint32)
            levels = (np.append(thresholds, np.inf), lookup, scale)
            which = EFFECTS.index(effect)
            arrays = (which, *self._arrays(), weights, *levels, hist)
            share_rows(partial(null_kernels.pool, *arrays), null_kernels.CHUNKS)
        hist = hist[:, 1:]
        tail: Floats = hist.sum(axis=0)[::-1].cumsum()[::-1]
        return tail

    def pool_quantile(
        self, weights: Floats, level: float, effect: str = "risk_difference"
    ) -> float:
        """Return the smallest size of effect v with P(decoy <= v) >= ``level`` in the pooled
        mixture."""
        from groundfault.stats.null_kernels import compute_sizes

        sizes = compute_sizes(EFFECTS.index(effect), *self._arrays())
        mass = np.repeat(weights, np.diff(self.offset)) * self.pmf
        order = np.argsort(sizes, kind="stable")
        # the slack: a cumulative sum that equals the level but for rounding reaches it
        reached = np.cumsum(mass[order]) >= level * weights.sum() * (1 - 1e-12)
        return float(sizes[order][np.argmax(reached)])

    def two_sided(self, which: NDArray[np.intp], on_sum: Floats) -> Floats:
        """Return P(|lift*| >= |lift|) for sums under the distributions ``which``: permutation
        p-values."""
        return self._tail(which, on_sum, np.zeros(len(which)))

    def one_sided(
        self, which: NDArray[np.intp], on_sum: Floats, direction: NDArray[np.int64]
    ) -> Floats:
        """Return P(sum >= observed) where ``direction`` is positive, P(sum <= observed)
        elsewhere."""
        return self._tail(which, on_sum, np.where(direction > 0, 1.0, -1.0))

    def _tail(self, which: NDArray[np.intp], on_sum: Floats, side: Floats) -> Floats:
        if len(which) < _WORTH_COMPILING:
            return np.array(
                [self._tail_of(*case) for case in zip(side, which, on_sum, strict=True)],
                dtype=np.float64,
            )
        from groundfault.stats.null_kernels import sum_tails
        from groundfault.stats.row_threads import share_rows

        tails = np.empty(len(which))
        arrays = (side, which, on_sum, *self._arrays()[:-1], tails)
        share_rows(partial(sum_tails, *arrays), len(which))
        return tails

    def _tail_of(self, side: float, u: np.intp, on_sum: float) -> float:
        """Compute tails like `null_kernels.sum_tails` for one hypothesis, without a compiler."""
        n, on, total, step = self.n[u], self.on[u], self.total[u], self.step[u]
        pmf = self.pmf[self.offset[u] : self.offset[u + 1]]
        observed = n * on_sum - on * total
        slack = 0.0 if step == 1.0 else 1e-9 * abs(observed)
        shift = n * (self.start[u] + step * np.arange(len(pmf))) - on * total
        gap, bar = (
            (np.abs(shift), abs(observed)) if side == 0.0 else (side * shift, side * observed)
        )
        return min(_add_up(pmf[gap >= bar - slack]), 1.0)

    def likelihood_ratio(
        self,
        which: NDArray[np.intp],
        on_sum: Floats,
        direction: NDArray[np.int64],
        log_odds: Floats,
    ) -> Floats:
        """Return E-values: each distribution tilted towards ``direction`` against itself.

        Parameters
        ----------
        log_odds : float64 array, shape (T,)
            Positive tilts per unit of loss, which are averaged over; for 0/1 errors they are log
            odds ratios (Fisher's noncentral hypergeometric distribution).

        Returns
        -------
        float64 array
            Each has an expectation of at most one under its distribution, for any direction that
            was fixed before; never NaN, and at most e^230. A sum beyond the stored atoms, with
            probability 1e-60 or less, counts as the outermost atom.
        """
        arrays = (self.start, self.step, self.offset, self.pmf, self.unit)
        from groundfault.stats.null_kernels import sum_tilted
        from groundfault.stats.row_threads import share_rows

        towards = direction.astype(np.float64)
        ratios = np.zeros(len(which))
        of_each = (which, on_sum, towards, log_odds, *arrays, ratios)
        share_rows(partial(sum_tilted, *of_each), len(which))
        return ratios

    def _arrays(
        self,
    ) -> tuple[Floats, Floats, Floats, Floats, Floats, NDArray[np.int64], Floats, float]:
        return self.n, self.on, self.total, self.start, self.step, self.offset, self.pmf, self.unit


def concatenate(parts: Sequence[NullDistributions]) -> NullDistributions:
    """Join many ragged arrays into one."""
    shift = np.concatenate([[0], np.cumsum([len(p.pmf) for p in parts])])
    offset = [p.offset[:-1] + s for p, s in zip(parts, shift, strict=False)]
    n, on, total, start, step = (
        np.concatenate([getattr(p, a) for p in parts])
        for a in ("n", "on", "total", "start", "step")
    )
    pmf = np.concatenate([p.pmf for p in parts])
    ends = np.concatenate([*offset, shift[-1:]]).astype(np.int64)
    return NullDistributions(n, on, total, start, step, ends, pmf, parts[0].unit)


def find_distinct(tables: ContingencyTables) -> tuple[ContingencyTables, NDArray[np.intp], Floats]:
    """Return the distinct (n, on, total), the place of each hypothesis' one, and their counts."""
    # one number instead of three to sort by, where all hypotheses have the same units
    fixed = (
        len(tables) and (tables.n == tables.n[0]).all() and (tables.total == tables.total[0]).all()
    )
    key = tables.on if fixed else np.stack([tables.n, tables.on, tables.total]).astype(np.float64)
    axis = None if fixed else 1
    _, first, which, counts = np.unique(
        key, axis=axis, return_index=True, return_inverse=True, return_counts=True
    )
    return tables[first], which.reshape(-1), counts.astype(np.float64)


def from_errors(tables: ContingencyTables, *, pooled: bool) -> NullDistributions:
    """Return null distributions of on-slice error counts for 0/1 errors: hypergeometric.

    Parameters
    ----------
    tables : ContingencyTables
        One hypothesis a distribution, ``denominator`` 1.
    pooled : bool
        Keep only the atoms that matter to pooled tails (within 7.5 standard deviations); else all
        atoms that matter to a p-value (38 standard deviations).
    """
    n, on, total = (np.asarray(a, dtype=np.int64) for a in (tables.n, tables.on, tables.total))
    deviation = np.sqrt(
        on
        * (n - on)
        * (total / np.maximum(n, 1))
        * ((n - total) / np.maximum(n, 1))
        / np.maximum(n - 1, 1)
    )
    reach = np.ceil((_POOLED_WIDTH if pooled else _OWN_WIDTH) * deviation).astype(np.int64) + 12
    # in whole numbers: on * total stays below 2^63 for all sizes that fit in memory
    mean = on * total // np.maximum(n, 1)
    low = np.maximum(np.maximum(0, on + total - n), mean - reach)
    high = np.minimum(np.minimum(on, total), mean + reach)
    offset = np.concatenate([[0], np.cumsum(high - low + 1)]).astype(np.int64)
    pmf = np.empty(offset[-1])
    if len(n) < (_WORTH_COMPILING_POOLED if pooled else _WORTH_COMPILING):
        for u, (start, stop) in enumerate(pairwise(offset.tolist())):
            _fill_hypergeometric(int(n[u]), int(on[u]), int(total[u]), int(low[u]), pmf[start:stop])
    else:
        from groundfault.stats.null_kernels import fill_hypergeometric
        from groundfault.stats.row_threads import share_rows

        share_rows(partial(fill_hypergeometric, n, on, total, low, offset, pmf), len(n))
    return _assemble(tables, low.astype(np.float64), np.ones(len(n)), offset, pmf)


def _fill_hypergeometric(n: int, on: int, total: int, low: int, p: Floats) -> None:
    """Compute one distribution like `null_kernels.fill_hypergeometric`, equal to the last bit."""
    mode = (on + 1) * (total + 1) // (n + 2) - low
    mode = min(max(mode, 0), len(p) - 1)
    first, draws, errors = float(low), float(on), float(total)
    x = first + np.arange(mode + 1, len(p))
    above = (errors - x + 1.0) * (draws - x + 1.0) / (x * (n - errors - draws + x))
    x = first + np.arange(mode) + 1.0
    below = x * (n - errors - draws + x) / ((errors - x + 1.0) * (draws - x + 1.0))
    p[mode] = 1.0
    p[mode + 1 :] = np.multiply.accumulate(above)
    p[:mode] = np.multiply.accumulate(below[::-1])[::-1]
    p *= 1.0 / (_add_up(p[mode:]) + _add_up(p[:mode][::-1]))


def _add_up(terms: Floats) -> float:
    """Return the sum, adding term by term like compiled passes."""
    return float(np.add.accumulate(terms)[-1]) if len(terms) else 0.0


def from_values(values: NDArray[np.int64] | Floats, tables: ContingencyTables) -> NullDistributions:
    """Return null distributions of sums over random subsets of losses, exact or approximated.

    Parameters
    ----------
    values : array, shape (n,)
        The units' losses: whole multiples of 1/``tables.denominator``, or floats where that is 0.
    tables : ContingencyTables
        Hypotheses over all these units.
    """
    from groundfault.stats.null_kernels import saddlepoint

    sizes = np.unique(tables.on)
    if tables.denominator and countable(np.asarray(values, dtype=np.int64), sizes):
        distributions = subset_sums(np.asarray(values, dtype=np.int64), sizes)
    else:
        distributions = {
            int(k): saddlepoint(np.asarray(values, dtype=np.float64), int(k)) for k in sizes
        }
    return _join_ragged([distributions[int(k)] for k in tables.on], tables)


def _join_ragged(
    parts: Sequence[tuple[float, float, Floats]], tables: ContingencyTables
) -> NullDistributions:
    offset = np.concatenate([[0], np.cumsum([len(p) for _, _, p in parts])]).astype(np.int64)
    start, step = (np.array([part[i] for part in parts], dtype=np.float64) for i in (0, 1))
    pmf = np.concatenate([p for _, _, p in parts]) if parts else np.zeros(0)
    return _assemble(tables, start, step, offset, pmf)


def _assemble(
    tables: ContingencyTables, start: Floats, step: Floats, offset: NDArray[np.int64], pmf: Floats
) -> NullDistributions:
    n, on, total = (np.asarray(a, dtype=np.float64) for a in (tables.n, tables.on, tables.total))
    return NullDistributions(n, on, total, start, step, offset, pmf, float(tables.unit))
