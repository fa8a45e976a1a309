"""Objects of a slice search: packed predicates, errors as whole numbers, scores, best slices.

A slice is a conjunction of predicates, at most one a column. Its score is (Sagadeeva and Boehm,
2021) ``alpha * (mean error of the slice / mean error - 1) - (1 - alpha) * (n / size - 1)`` with n
the number of rows.

Only rows with an error count towards an error sum. They are kept apart, the largest errors first,
so that the 64 rows of a word have almost the same error: the largest of each word times its
popcount, summed, is a tight upper bound of an error sum, and the sum itself where the rows of every
word have one and the same error (0/1 errors, few grades)."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import frexp, fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundfault.stats.bits import Bits, pack, words
from groundfault_lab.stats.slice_kernels import bound_scores, set_bits

# rounds, of 40 bits and more each, before numbers of very different sizes are left to `math.fsum`
_ROUNDS = 3


def sum_exactly(values: NDArray[np.float64]) -> float:
    """Return the sum that `math.fsum` gives, of thousands of numbers fifteen times as fast.

    Parameters
    ----------
    values : float64 array, shape (n,)
        Finite and not negative.

    Notes
    -----
    The leading bits of all numbers are added as whole numbers, then the next ones, until nothing is
    left; Python divides whole numbers with one rounding."""
    top = float(values.max(initial=0.0))
    bits = 62 - len(values).bit_length()
    place, whole, rest = -frexp(top)[1], 0, values
    for _ in range(_ROUNDS):
        place += bits
        # powers of two, with which doubles are multiplied exactly
        if not -1000 < place < 1000:
            break
        leading = np.floor(rest * 2.0**place)
        whole = (whole << bits) + int(leading.astype(np.int64).sum())
        rest = rest - leading * 2.0**-place
        if not rest.any():
            return whole / (1 << place) if place >= 0 else float(whole << -place)
    return fsum(values.tolist())


Ints = NDArray[np.int64]
Ids = NDArray[np.int32]
Floats = NDArray[np.float64]

# bits of a quantum below the largest error: what double precision holds
_FINEST = 52
# sums of whole errors below this are exact in double precision too
_COUNTED = 1 << 53
# leading bits of an error by which rows are sorted: so many are sorted without a comparison
_SORTED = 16
# levels up to which one comparison for each level is faster than a count
_FEW = 8


@dataclass(frozen=True)
class Objective:
    """The score of a slice, and the best score that any part of it can have.

    Attributes
    ----------
    n : int
        Rows.
    total : float
        Sum of all errors, in quanta.
    whole : int
        The same with every error rounded up to whole quanta: no error sum exceeds it.
    top : int
        The largest error, in quanta.
    alpha : float
        Weight of the error against the size, in (0, 1].
    min_size : int
        Rows that a slice must have.
    slack : float
        No score or bound is computed further than this from its true value.
    """

    n: int
    total: float
    whole: int
    top: int
    alpha: float
    min_size: int
    slack: float

    @property
    def terms(self) -> tuple[float, float, float]:
        """Return the terms of the score as ``(gain * error - cost) / size + rest``."""
        gain = self.alpha * self.n / self.total
        return gain, (1 - self.alpha) * self.n, 1 - 2 * self.alpha

    def score(self, size: Ints, error: Ints) -> Floats:
        """Return scores of slices of at least one row."""
        gain, cost, rest = self.terms
        return (gain * error - cost) / size + rest

    def bound(self, size: Ints, error: Ints, top: Ints) -> Floats:
        """Return the best score of any slice with at most so many rows, errors, and error of a row
        (the largest one, or a mean that none exceeds).

        For s rows it is that of error sum min(s * top, error), which rises with s while s * top is
        the smaller, and is monotone from there on: its maximum is there or at either end. -inf for
        fewer rows, or without an error."""
        size, error, top = (np.ascontiguousarray(a) for a in (size, error, top))
        out: Floats = bound_scores(size, error, top, float(self.min_size), *self.terms)
        return out


@dataclass(frozen=True)
class Errors:
    """Errors of n rows in quanta, and the rows that have one, the largest first by leading bits.

    Attributes
    ----------
    quanta : int64 array, shape (n,)
        The errors, rounded up to whole multiples of the quantum; exact where all errors are whole
        numbers.
    order : int64 array, shape (H,)
        The row in each place of the packed matrix of rows with an error; -1 where a place is left
        empty.
    weights : int64 array, shape (ceil(H / 64),)
        The largest error of each word and those after it.
    exact : bool
        The rows of each word have one error, so that weighted popcounts are error sums.
    total : float
        Sum of all errors in quanta, rounded once.
    fineness : float
        Largest rounding of an error as a share of the largest error; 0 where all errors are whole
        numbers.
    """

    quanta: Ints
    order: Ints
    weights: Ints
    exact: bool
    total: float
    fineness: float

    @classmethod
    def of(cls, errors: Floats) -> Errors:
        """Return errors that are finite, not negative, and not all zero; shape (n,)."""
        top = float(errors.max())
        quanta = errors.astype(np.int64) if top * len(errors) < _COUNTED else None
        if quanta is not None and np.array_equal(quanta, errors):
            total, fineness = float(quanta.sum()), 0.0
        else:
            bits = min(_FINEST, 62 - len(errors).bit_length())
            shares = errors / top
            # rounded up, so that a bound computed from quanta is never too low
            quanta, fineness = np.ceil(shares * 2.0**bits).astype(np.int64), 2.0**-bits
            total = sum_exactly(shares) * 2.0**bits
        rows = np.flatnonzero(errors > 0)
        # large errors first: the 64 rows of a word then have about one error, and a word one weight
        leading = quanta[rows] >> max(0, int(quanta.max()).bit_length() - _SORTED)
        last = (1 << _SORTED) - 1
        rows = rows[np.argsort((last - leading).astype(np.uint16), kind="stable")]
        order = _separate(rows, quanta[rows])
        by_word = np.zeros((words(len(order)), 64), dtype=np.int64)
        by_word.reshape(-1)[: len(order)] = np.where(order < 0, 0, quanta[order])
        weights = np.maximum.accumulate(by_word.max(axis=1)[::-1])[::-1]
        exact = bool(((by_word == weights[:, None]) | (by_word == 0)).all())
        return cls(quanta, order, np.ascontiguousarray(weights), exact, total, fineness)

    def objective(self, alpha: float, min_size: int) -> Objective:
        """Return the score of slices of these rows."""
        n, top = len(self.quanta), int(self.quanta.max())
        # largest size that the terms of a score can have, which its rounding error is relative to
        size = 1 + alpha * top * n / self.total + (1 - alpha) * n / min_size
        return Objective(
            n,
            self.total,
            int(self.quanta.sum()),
            top,
            alpha,
            min_size,
            size * (1e-12 + self.fineness),
        )


def score_exactly(size: int, error: float, n: int, total: float, alpha: Fraction) -> Fraction:
    """Return the score of one slice without rounding, so that ties are ties.

    Parameters
    ----------
    size : int
    error : float
        Its error sum.
    n : int
    total : float
        Sum of all errors.
    alpha : Fraction
    """
    (a, b), (p, q), (u, v) = (number.as_integer_ratio() for number in (alpha, error, total))
    return Fraction(a * n * p * v + ((b - a) * (size - n) - a * size) * q * u, b * size * q * u)


def _separate(rows: Ints, quanta: Ints) -> Ints:
    """Give each distinct error its own words, where less than half of the places stay empty."""
    if quanta[0] == quanta[-1]:
        return rows
    starts = np.flatnonzero(np.diff(quanta, prepend=-1))
    if len(starts) * 64 > max(len(rows), 64):
        return rows
    lengths = np.diff(starts, append=len(rows))
    room = -(-lengths // 64) * 64
    order = np.full(int(room.sum()), -1, dtype=np.int64)
    order[np.arange(len(rows)) + np.repeat(np.cumsum(room) - room - starts, lengths)] = rows
    return order


@dataclass(frozen=True)
class Predicates:
    """Predicates "column f has level v" that a slice worth finding may have, with their rows.

    Attributes
    ----------
    column, level : int32 array, shape (L,)
        Sorted by column, then level.
    size : int64 array, shape (L,)
        Rows where each holds.
    bits : uint64 array, shape (L, W)
        Packed.
    codes : unsigned array, shape (m, n)
        Level of each row in each column.
    place : tuple of int32 arrays, length m
        The predicate of each level of a column, -1 where there is none; one more -1 for rows
        without a level.
    """

    column: Ids
    level: Ids
    size: Ints
    bits: Bits
    codes: NDArray[Any]
    place: tuple[Ids, ...]

    @classmethod
    def of(cls, codes: NDArray[Any], levels: Ints, objective: Objective) -> Predicates:
        """Keep those with support, not true everywhere, that may score above 0.

        Parameters
        ----------
        codes : unsigned array, shape (m, n)
        levels : int64 array, shape (m,)
            Levels of each column; a code equal to it matches no predicate.
        objective : Objective
        """
        packed = [_pack_levels(row, int(top)) for row, top in zip(codes, levels, strict=True)]
        count = np.concatenate([counts for counts, _ in packed])
        starts = np.cumsum(levels) - levels
        column = np.repeat(np.arange(len(levels), dtype=np.int32), levels)
        level = (np.arange(len(count)) - starts[column]).astype(np.int32)
        error = np.minimum(count * objective.top, objective.whole)
        hopeful = (
            objective.bound(count, error, np.full(len(count), objective.top)) > -objective.slack
        )
        keep = hopeful & (count >= objective.min_size) & (count < objective.n)
        number = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
        place = tuple(np.append(part, np.int32(-1)) for part in np.split(number, starts[1:]))
        bits = np.zeros((int(keep.sum()), words(objective.n)), dtype=np.uint64)
        for f, (_, rows) in enumerate(packed):
            if rows is None:
                set_bits(codes[f], place[f], bits)
            else:
                numbers = place[f][:-1]
                bits[numbers[numbers >= 0]] = rows[numbers >= 0]
        return cls(column[keep], level[keep], count[keep], bits, codes, place)

    def at(self, rows: Ints) -> Bits:
        """Return the predicates on some rows, in that order; -1 leaves a place empty."""
        bits = np.zeros((len(self.column), words(len(rows))), dtype=np.uint64)
        there = rows >= 0
        whole = bool(there.all())
        for column, place in zip(self.codes, self.place, strict=True):
            set_bits(
                column[rows] if whole else np.where(there, column[rows], len(place) - 1),
                place,
                bits,
            )
        return bits


def _pack_levels(row: NDArray[Any], levels: int) -> tuple[Ints, Bits | None]:
    """Return rows of each level of a column: how many, and packed where the levels are few."""
    if levels > _FEW:
        return np.bincount(row, minlength=levels)[:levels], None
    packed = pack(row == np.arange(levels, dtype=row.dtype)[:, None])
    return np.bitwise_count(packed).sum(axis=1, dtype=np.int64), packed


@dataclass
class BestSlices:
    """The k best slices so far, with those that rounding cannot tell from the k-th."""

    k: int
    slack: float
    members: Ids
    scores: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def floor(self) -> float:
        """Return no score below this is among the k best; it has to be above 0 to count at all."""
        # twice: the k-th score and the score beside it may both be off by the slack
        return max(self._kth - 2 * self.slack, -self.slack)

    @property
    def _kth(self) -> float:
        if len(self.scores) < self.k:
            return -np.inf
        # partition, as the list is offered to after every batch and need not be sorted
        return float(np.partition(self.scores, -self.k)[-self.k])

    def offer(self, members: Ids, scores: Floats) -> None:
        """Add slices, and drop those that are no longer among the k best."""
        self.members = np.concatenate([self.members, members])
        self.scores = np.concatenate([self.scores, scores])
        stay = self.scores >= self.floor
        self.members, self.scores = self.members[stay], self.scores[stay]


@dataclass(frozen=True)
class Parents:
    """Slices to be extended, sorted by predicates, with sizes, error sums and largest means."""

    members: Ids
    stats: Ints
    bounds: Floats

    @classmethod
    def of(cls, members: Ids, stats: Ints, bounds: Floats) -> Parents:
        """Sort slices by their predicates."""
        # lexsort takes its last key first; the join looks parents up by binary search in this order
        order = np.lexsort(members.T[::-1])
        return cls(
            np.ascontiguousarray(members[order]),
            np.ascontiguousarray(stats[:, order]),
            bounds[order],
        )

    def ends(self) -> Ints:
        """Return where the run of those that share all but the last predicate ends, for each."""
        new = np.any(np.diff(self.members[:, :-1], axis=0) != 0, axis=1)
        stops = np.append(np.flatnonzero(new) + 1, len(self.members))
        return np.repeat(stops, np.diff(stops, prepend=0))


@dataclass
class Extendable:
    """Slices of a level that may be extended; about four times ``max_parents`` are held at most."""

    max_parents: int | None
    parts: list[tuple[Ids, Ints, Floats]] = field(default_factory=list)
    dropped: int = 0
    missed: float = -np.inf

    def add(self, members: Ids, stats: Ints, bounds: Floats) -> None:
        """Add slices with their upper bounds on the score of any part."""
        self.parts.append((members, stats, bounds))
        if (
            self.max_parents is not None
            and sum(len(part[2]) for part in self.parts) > 4 * self.max_parents
        ):
            self._trim(-np.inf)

    def _trim(self, floor: float) -> None:
        members = np.concatenate([part[0] for part in self.parts])
        stats = np.concatenate([part[1] for part in self.parts], axis=1)
        bounds = np.concatenate([part[2] for part in self.parts])
        stay = np.flatnonzero(bounds >= floor)
        if self.max_parents is not None and len(stay) > self.max_parents:
            # ties go to the smaller predicates, so that the choice does not depend on the order of
            # counting
            stay = stay[np.lexsort((*members[stay].T[::-1], -bounds[stay]))]
            self.dropped += len(stay) - self.max_parents
            self.missed = max(self.missed, float(bounds[stay[self.max_parents]]))
            stay = stay[: self.max_parents]
        self.parts = [(members[stay], stats[:, stay], bounds[stay])]

    def parents(self, floor: float) -> Parents | None:
        """Return what is to be extended, with the floor as it is now; None for nothing."""
        if not self.parts:
            return None
        self._trim(floor)
        # the floor rose above all that was dropped: nothing was lost after all
        if self.missed < floor:
            self.dropped, self.missed = 0, -np.inf
        [(members, stats, bounds)] = self.parts
        return Parents.of(members, stats, bounds) if len(bounds) else None
