"""The exact search for the k slices of best score, and its replay on permuted errors.

A slice of l predicates is looked at only if all its parents (it without one predicate) are, and if
the bound from their sizes, error sums and largest means reaches the k-th best score so far. The
largest mean of a slice is that of as many of its largest errors as a slice must have rows: no part
of it has a larger one. Bounds are rounded outwards by `Objective.slack`, so that no rounding can
hide a slice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from groundfault.stats.bits import Bits, count_and
from groundfault_lab.stats.slice_kernels import (
    bound_errors,
    bound_means,
    count_rows,
    join_parents,
    sum_errors,
)
from groundfault_lab.stats.slices import (
    BestSlices,
    Errors,
    Extendable,
    Floats,
    Ids,
    Ints,
    Objective,
    Parents,
    Predicates,
)

# pairs of parents joined at a time, which bounds memory
_JOINED = 1 << 21
# batches grow: the first ones raise the floor, by which later ones are cut
_FIRST_BATCH = 1 << 12
_LAST_BATCH = 1 << 16  # bounds memory
_FIRST_SUMS = 1 << 6  # the best bounds are summed first, in small steps, for the same reason
# words to be read below which starting threads takes longer than the counting
_WORTH_THREADS = 1 << 22
# predicates up to which the table of pairs, 64 MiB, is held
_MAX_PAIRS = 4096
_NO_PAIRS = np.zeros((0, 0), dtype=np.int32)


@dataclass(frozen=True)
class Level:
    """What was done with the slices of so many predicates.

    Attributes
    ----------
    predicates : int
    joined : int
        Slices made of two parents; the others had a parent that was ruled out.
    counted : int
        Those that their parents could not rule out, and whose rows were counted.
    extended : int
        Those whose own parts may score well enough, and were looked at.
    dropped : int
        Those whose parts might score well enough, but that exceeded ``max_parents``.
    missed : float
        No slice lost with them scores above this; -inf where none was dropped.
    """

    predicates: int
    joined: int
    counted: int
    extended: int
    dropped: int = 0
    missed: float = -np.inf


@dataclass(frozen=True)
class SearchResult:
    """The best slices by computed score, a few more where rounding leaves their order open.

    Attributes
    ----------
    members : int32 array, shape (R, levels)
        Predicates of each slice, ascending, then -1.
    scores : float64 array, shape (R,)
        To within `Objective.slack`.
    levels : tuple of Level
    words : int
        Words of 64 rows that were intersected and counted.
    """

    members: Ids
    scores: Floats
    levels: tuple[Level, ...]
    words: int


@dataclass
class _Search:
    """One search; a replay differs only in which rows have the errors."""

    predicates: Predicates
    errors: Errors
    objective: Objective
    best: BestSlices
    hot: Bits
    quanta: Ints
    pairs: NDArray[np.int32]
    threads: int
    words: int = 0

    def count(
        self, kernel: Callable[..., Any], bits: Bits, ahead: tuple[Any, ...], group: _Group
    ) -> list[Ints]:
        """Run a kernel over slices, in threads where that pays."""
        # bound_errors fills two arrays, the other kernels one
        out = [
            np.zeros(len(group.last), dtype=np.int64)
            for _ in range(2 if kernel is bound_errors else 1)
        ]
        work = len(group.last) * bits.shape[1]
        self.words += work
        if work < _WORTH_THREADS or self.threads == 1:
            kernel(bits, *ahead, group.parents, group.parent, group.last, *out)
            return out
        cuts = np.linspace(0, len(group.last), self.threads + 1).astype(int)

        def run(part: int) -> None:
            span = slice(cuts[part], cuts[part + 1])
            kernel(
                bits,
                *ahead,
                group.parents,
                group.parent[span],
                group.last[span],
                *(a[span] for a in out),
            )

        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(run, range(self.threads)))
        return out

    def sizes(self, group: _Group) -> Ints:
        length = group.parents.shape[1]
        if length == 0:
            return self.predicates.size[group.last]
        if length == 1 and len(self.pairs):
            shared: Ints = self.pairs[group.parents[group.parent, 0], group.last].astype(np.int64)
            return shared
        return self.count(count_rows, self.predicates.bits, (), group)[0]

    def look(self, group: _Group, extend: bool) -> tuple[Ids, Ints, Floats] | None:
        """Count slices and offer the good ones; return those that may be extended."""
        objective, errors = self.objective, self.errors
        uniform = errors.exact and errors.weights[0] == errors.weights[-1]
        if uniform:
            error, top = (
                self.count(count_rows, self.hot, (), group)[0] * errors.weights[0],
                group.limits[2],
            )
        else:
            error, top = self.count(bound_errors, self.hot, (errors.weights,), group)
        error, top = np.minimum(error, group.limits[1]), np.minimum(top, group.limits[2])
        stay = np.flatnonzero(objective.bound(group.limits[0], error, top) >= self.best.floor)
        group, error, top = group[stay], error[stay], top[stay]
        size = self.sizes(group)
        stay = np.flatnonzero(objective.bound(size, error, top) >= self.best.floor)
        group, size, error, top = group[stay], size[stay], error[stay], top[stay]
        self._offer(group, size, error)
        if not extend:
            return None
        if not uniform:
            ahead = (errors.weights, objective.min_size)
            top = np.minimum(top, self.count(bound_means, self.hot, ahead, group)[0])
        bounds = objective.bound(size, error, top)
        stay = np.flatnonzero(bounds >= self.best.floor)
        return group[stay].members(), np.stack([size[stay], error[stay], top[stay]]), bounds[stay]

    def _offer(self, group: _Group, size: Ints, error: Ints) -> None:
        """Offer slices that may score well enough, the likely ones first."""
        scores = self.objective.score(size, error)
        near = np.flatnonzero(scores >= self.best.floor)
        step = len(near)
        if not self.errors.exact:
            near, step = near[np.argsort(-scores[near], kind="stable")], _FIRST_SUMS
        start = 0
        while start < len(near):
            part = near[start : start + step]
            start, step = start + step, 2 * step
            part = part[scores[part] >= self.best.floor]
            if not self.errors.exact:
                error[part] = self.count(sum_errors, self.hot, (self.quanta,), group[part])[0]
                scores[part] = self.objective.score(size[part], error[part])
            members = np.full((len(part), self.best.members.shape[1]), -1, dtype=np.int32)
            members[:, : group.parents.shape[1] + 1] = group[part].members()
            self.best.offer(members, scores[part])


@dataclass(frozen=True)
class _Group:
    """Slices made of parents and one more predicate each, with what their parents say of them."""

    parents: Ids
    parent: Ids
    last: Ids
    limits: Ints

    def __getitem__(self, index: Any) -> _Group:
        return _Group(self.parents, self.parent[index], self.last[index], self.limits[:, index])

    def members(self) -> Ids:
        return np.column_stack([self.parents[self.parent], self.last]).astype(np.int32, copy=False)


def search(
    predicates: Predicates,
    errors: Errors,
    objective: Objective,
    *,
    k: int,
    levels: int,
    max_parents: int | None = None,
    permutation: Ints | None = None,
    pairs: NDArray[np.int32] = _NO_PAIRS,
    threads: int | None = None,
) -> SearchResult:
    """Return the k best slices of at most ``levels`` predicates, those tied with the k-th included.

    Parameters
    ----------
    predicates : Predicates
    errors : Errors
    objective : Objective
    k : int
    levels : int
    max_parents : int, optional
        Extend at most so many slices of a level, those of best bound. What that may have lost is in
        ``levels``.
    permutation : int64 array, shape (n,), optional
        The error of row i goes to row ``permutation[i]``.
    pairs : int32 array, shape (L, L), optional
        Rows that two predicates share, from `count_pairs`.
    threads : int, optional
        Where left out, as many as Numba would use. The answer does not depend on it.

    Returns
    -------
    Found

    Notes
    -----
    S. Sagadeeva and M. Boehm, SliceLine: fast, linear-algebra-based slice finding for ML model
    debugging, SIGMOD 2021, doi:10.1145/3448016.3457323. The number of rows in the bound is n, which
    published codes replace by the number of predicates."""
    rows = (
        errors.order
        if permutation is None
        else np.where(errors.order < 0, -1, permutation[errors.order])
    )
    quanta = np.where(errors.order < 0, 0, errors.quanta[errors.order])
    best = BestSlices(k, objective.slack, np.zeros((0, levels), dtype=np.int32))
    threads = threads or numba.get_num_threads()
    run = _Search(predicates, errors, objective, best, predicates.at(rows), quanta, pairs, threads)
    summaries = []
    parents = None
    for level in range(1, levels + 1):
        groups = (
            _list_singles(predicates, objective)
            if parents is None
            else _list_children(run, parents)
        )
        extendable, pair_count, count = Extendable(max_parents), 0, 0
        for group, pairs_tried in groups:
            pair_count += pairs_tried
            count += len(group.last)
            survivors = run.look(group, extend=level < levels) if len(group.last) else None
            if survivors is not None:
                extendable.add(*survivors)
        parents = extendable.parents(best.floor)
        extended = 0 if parents is None else len(parents.bounds)
        summaries.append(
            Level(level, pair_count, count, extended, extendable.dropped, extendable.missed)
        )
        if parents is None:
            break
    return SearchResult(best.members, best.scores, tuple(summaries), run.words)


def _list_singles(predicates: Predicates, objective: Objective) -> Iterator[tuple[_Group, int]]:
    count = len(predicates.size)
    error = np.minimum(predicates.size * objective.top, objective.whole)
    limits = np.stack([predicates.size, error, np.full(count, objective.top)])
    nothing = np.zeros((1, 0), dtype=np.int32)
    yield (
        _Group(nothing, np.zeros(count, dtype=np.int32), np.arange(count, dtype=np.int32), limits),
        count,
    )


def _list_children(run: _Search, parents: Parents) -> Iterator[tuple[_Group, int]]:
    """Yield children in batches, those of hopeful parents first, so that the floor rises early."""
    objective, column = run.objective, run.predicates.column
    ends = parents.ends()
    order = np.argsort(-parents.bounds, kind="stable")
    tails = np.cumsum((ends - np.arange(len(ends)) - 1)[order])
    start = 0
    while start < len(order):
        before = tails[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(tails, before + _JOINED, side="right")))
        which, room = order[start:stop], int(tails[stop - 1] - before)
        parent, last, limits, bounds, pair_count = join_parents(
            column, parents.members, ends, which, parents.stats, run.pairs, room, run.best.floor,
            float(objective.min_size), *objective.terms,
        )  # fmt: skip
        yield _Group(parents.members, parent[:0], last[:0], limits[:, :0]), pair_count
        for index in _split_batches(parent, bounds):
            index = index[bounds[index] >= run.best.floor]
            yield _Group(parents.members, parent[index], last[index], limits[:, index]), 0
        start = stop


def _split_batches(parent: Ids, bounds: Floats) -> Iterator[Ints]:
    """Yield runs of children, those of the best bound first, in batches that grow."""
    if len(parent) <= _FIRST_BATCH:
        yield np.arange(len(parent))
        return
    starts = np.flatnonzero(np.diff(parent, prepend=-1))
    highest = np.maximum.reduceat(bounds, starts)
    order = np.argsort(np.repeat(-highest, np.diff(starts, append=len(parent))), kind="stable")
    start, size = 0, _FIRST_BATCH
    while start < len(order):
        yield order[start : start + size]
        start, size = start + size, min(2 * size, _LAST_BATCH)


def count_pairs(predicates: Predicates) -> NDArray[np.int32]:
    """Return rows that every two predicates share, shape (L, L); empty where L is too large."""
    if len(predicates.size) > _MAX_PAIRS:
        return _NO_PAIRS
    return count_and(predicates.bits, predicates.bits)


def replay(
    predicates: Predicates,
    errors: Errors,
    objective: Objective,
    rng: np.random.Generator,
    times: int,
    *,
    levels: int,
    max_parents: int | None = None,
    groups: Ints | None = None,
) -> Floats:
    """Return the best scores of searches on errors dealt to rows at random: shape (times,).

    The packed predicates and the sizes stay; only the rows that have the errors change. The score
    is 0 where nothing scores above it. With rows exchangeable under the null, (1 + number of
    replays at least as good) / (1 + times) is a p-value of the best slice that takes the search
    into account, and a conservative one of every other slice.

    Parameters
    ----------
    predicates, errors, objective, levels, max_parents
        As in `search`.
    rng : numpy.random.Generator
    times : int
    groups : int array, shape (n,), optional
        Rows of one group depend on each other: their errors stay together, in their order, and are
        dealt to the rows of another group of as many. Groups, not rows, are then exchangeable under
        the null.
    """
    if times == 0:
        return np.zeros(0)
    pairs = count_pairs(predicates)
    # a stream for each replay: the answer does not depend on the number of threads
    streams = rng.spawn(times)
    decks = _stack_groups(np.arange(objective.n) if groups is None else groups)

    def one(stream: np.random.Generator) -> float:
        permutation = np.empty(objective.n, dtype=np.int64)
        for deck in decks:
            # whole groups of equal size change places, so that rows of a group stay together
            permutation[deck] = deck[stream.permutation(len(deck))]
        result = search(
            predicates,
            errors,
            objective,
            k=1,
            levels=levels,
            max_parents=max_parents,
            permutation=permutation,
            pairs=pairs,
            threads=1,
        )
        return max(0.0, float(result.scores.max(initial=0.0)))

    with ThreadPoolExecutor(numba.get_num_threads()) as pool:
        return np.fromiter(pool.map(one, streams), dtype=np.float64, count=times)


def _stack_groups(groups: Ints) -> list[Ints]:
    """Return rows of the groups of each size, shape (groups, size)."""
    order = np.argsort(groups, kind="stable")
    sizes = np.unique(groups, return_counts=True)[1]
    starts = np.cumsum(sizes) - sizes
    return [order[starts[sizes == size][:, None] + np.arange(size)] for size in np.unique(sizes)]
