"""Compiled passes over rows of bits, and over all pairs and triples of rows: see `kernels`."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from groundfault.modes.condition import FEW, MAX_SET, MIN_SUPPORT, REACH, TOP_VALUES
from groundfault.stats.bit_kernels import count_pairs, popcount
from groundfault.stats.bits import Bits, Counts

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Table = NDArray[np.float32]
Words = tuple[Bits, Bits, Floats, Ints, Floats]  # `kernels.Words`


@njit(cache=True, nogil=True)
def _count_run(a: Bits, b: Bits, start: int, stop: int) -> np.int64:  # pragma: no cover - compiled
    """Count the bits that two rows share in a run of words."""
    total, a, b = np.int64(0), a[start:stop], b[start:stop]
    for w in range(len(a)):
        total += np.int64(popcount(a[w] & b[w]))
    return total


@njit(cache=True, nogil=True)
def _sum(
    a: Bits, b: Bits, lost: Bits, other: Bits, words: Words
) -> tuple[float, float, float]:  # pragma: no cover - compiled
    """Compute units that two rows share, their losses and expected losses; ``lost`` has the bit
    planes of the first row's losses, ``other`` the second row in the same order."""
    _, _, scale, runs, rates = words
    units, losses, expected = 0.0, 0.0, 0.0
    for r in range(len(rates)):
        count = float(_count_run(a, b, runs[r], runs[r + 1]))
        units += count
        expected += rates[r] * count
    for p in range(len(scale)):
        losses += scale[p] * float(_count_run(lost[p], other, 0, len(other)))
    return units, losses, expected


@njit(cache=True, nogil=True)
def _move(
    counts: Counts, out: Floats, worth: float, first: int, step: int, clear: bool
) -> None:  # pragma: no cover - compiled
    """Add counts times their worth to every ``step``-th row, and set them to 0 where asked."""
    for i in range(len(counts)):
        row, sums = counts[i], out[first + i * step]
        for j in range(np.uint64(len(row))):
            sums[j] += worth * row[j]
            row[j] = np.int32(0) if clear else row[j]


@njit(cache=True, nogil=True)
def sum_pairs(
    a: Bits, b: Bits, words: Words, upper: bool, out: Floats, first: int, step: int
) -> None:  # pragma: no cover - compiled
    """`kernels.sum_pairs`, for every ``step``-th row from ``first`` on."""
    inside, planes, scale, runs, rates = words
    counts = np.zeros((len(range(first, len(a), step)), len(b)), dtype=np.int32)
    for r in range(len(rates)):
        count_pairs(a, b, inside, runs[r], runs[r + 1], upper, first, step, counts)
        _move(counts, out[0], 1.0, first, step, False)
        _move(counts, out[2], rates[r], first, step, True)
    for p in range(len(scale)):
        lost = inside & planes[p]
        count_pairs(a, b, lost, runs[0], runs[-1], upper, first, step, counts)
        _move(counts, out[1], scale[p], first, step, True)


@njit(cache=True, nogil=True)
def find_hopeful(
    sums: Floats, allowed: Bools, square: float, out: Bools
) -> None:  # pragma: no cover - compiled
    """Do what `kernels.find_hopeful` does."""
    for i in range(len(out)):
        units, losses, expected = sums[0, i], sums[1, i], sums[2, i]
        for j in range(np.uint64(out.shape[1])):
            excess = losses[j] - expected[j]
            spread = square * expected[j] * (units[j] - expected[j])
            out[i, j] = allowed[i, j] & (excess * abs(excess) * units[j] > spread)


@njit(cache=True, nogil=True)
def guarantee(
    units: float, losses: float, expected: float, z: float, gamma: float
) -> float:  # pragma: no cover - compiled
    """Return the lower bound of the loss rate minus its expectation, times a power of the size."""
    if units < 1:
        return -9.0
    rate = min(losses / units, 1.0)
    z2 = z * z
    spread = z * math.sqrt(rate * (1 - rate) / units + z2 / (4 * units * units))
    low = (rate + z2 / (2 * units) - spread) / (1 + z2 / units)
    return float((low - expected / units) * units**gamma)


@njit(cache=True, nogil=True)
def count_triples(
    rows: Bits, pairs: Bools, support: Counts, least: int, counts: Ints, first: int, step: int
) -> None:  # pragma: no cover - compiled
    """`kernels.count_triples`, for every ``step``-th row from ``first`` on."""
    for i in range(first, len(rows), step):
        for j in range(i + 1, len(rows)):
            if not pairs[i, j]:
                continue
            both = rows[i] & rows[j]
            for k in range(j + 1, len(rows)):
                if pairs[i, k] and pairs[j, k]:
                    n = _count_run(both, rows[k], 0, len(both))
                    smallest = min(support[i, j], support[i, k], support[j, k])
                    counts[i] += n >= least and n < smallest


@njit(cache=True, nogil=True)
def search_triples(
    rows: Bits,
    pairs: Bools,
    support: Counts,
    least: int,
    words: Words,
    every: Bits,
    of: Bits,
    z: float,
    gamma: float,
    best: Floats,
    third: Ints,
    first: int,
    step: int,
) -> None:  # pragma: no cover - compiled
    """`kernels.search_triples`, for every ``step``-th row from ``first`` on; ``every`` are the rows
    and ``of`` the planes to count losses."""
    for i in range(first, len(rows), step):
        for j in range(i + 1, len(rows)):
            if not pairs[i, j]:
                continue
            both = rows[i] & rows[j]
            new = both & words[0]
            lost = every[i] & every[j] & of
            for k in range(j + 1, len(rows)):
                if not (pairs[i, k] and pairs[j, k]):
                    continue
                units, losses, expected = _sum(new, rows[k], lost, every[k], words)
                score = guarantee(units, losses, expected, z, gamma)
                if score <= best[i, j]:
                    continue
                # whether it is a rule at all is asked last: few come so far
                n = _count_run(both, rows[k], 0, len(both))
                smallest = min(support[i, j], support[i, k], support[j, k])
                if least <= n < smallest:
                    best[i, j], third[i, j] = score, k


@njit(cache=True, nogil=True)
def gather_units(units: Bits, drawn: Ints, columns: Bits) -> None:  # pragma: no cover - compiled
    """Write drawn units, as words of bits, of each condition: of units by conditions, 64 by 64
    turned at once.

    Of each block halves are swapped, then quarters of halves, and so on (Warren, Hacker's Delight).
    """
    block = np.zeros(64, dtype=np.uint64)
    for c in range(units.shape[1]):
        for w in range(len(columns)):
            for e in range(64):
                at = 64 * w + e
                block[e] = units[drawn[at], c] if at < len(drawn) else np.uint64(0)
            half, mask = 32, np.uint64(0x00000000FFFFFFFF)
            while half:
                shift = np.uint64(half)
                k = 0
                while k < 64:
                    other = k | half
                    moved = ((block[k] >> shift) ^ block[other]) & mask
                    block[k] ^= moved << shift
                    block[other] ^= moved
                    k = (other + 1) & ~half
                half >>= 1
                mask ^= mask << np.uint64(half)
            for r in range(64):
                columns[w, 64 * c + r] = block[r]


@njit(cache=True, nogil=True)
def look_up(
    table: Table, needed: Ints, support: int, count: int, rate: float, passing: bool
) -> float:  # pragma: no cover - compiled
    """Return the log tail of a rule's failures; of its passes, where those were drawn."""
    k = np.int64(support) - count if passing else count
    if k < needed[support]:
        return 0.0
    return float(table[support, min(k - int(support * rate), table.shape[1] - 1)])


@njit(cache=True, nogil=True)
def _count_columns(
    columns: Bits, place: int, others: Bits, first: int, last: int, counts: NDArray[np.int32]
) -> None:  # pragma: no cover - compiled
    """Count the units that a column shares with each of some others, several columns at once.

    Only so where the places are unsigned: of signed ones each is asked whether it is negative.
    """
    for w in range(len(columns)):
        word = columns[w, place]
        for j in range(first, last):
            shared = np.int32(popcount(word & others[w, j]))
            counts[j] = counts[j] + shared if w else shared


@njit(cache=True, nogil=True)
def find_least_pair(
    columns: Bits,
    least: Floats,
    left: Ints,
    right: Ints,
    starts: Ints,
    limit: NDArray[np.int16],
    support: Counts,
    rate: float,
    passing: bool,
    needed: Ints,
    table: Table,
) -> None:  # pragma: no cover - compiled
    """Lower the least value of each draw to the least value of its pairs: conditions on the left
    with the conditions on the right from its start on. Counts on the wrong side of a pair's limit
    are not looked up. For passes, counts and limits are inverted."""
    flip = np.int32(-1 if passing else 0)
    counts, last = np.zeros(len(right), np.int32), np.uint64(len(right))
    partners = np.empty((columns.shape[0], columns.shape[1], len(right)), np.uint64)
    for b in range(len(columns)):
        for w in range(columns.shape[1]):
            for j in range(len(right)):
                partners[b, w, j] = columns[b, w, right[j]]
    for i in range(len(left)):
        first, row = np.uint64(starts[i]), limit[i]
        for b in range(len(columns)):
            hits, word, others = np.int32(0), columns[b, 0, left[i]], partners[b]
            if len(others) == 1:
                for j in range(first, last):
                    shared = np.int32(popcount(word & others[0, j]))
                    hits += np.int32(shared ^ flip >= row[j])
            if hits or len(others) > 1:
                _count_columns(columns[b], left[i], others, first, last, counts)
                for j in range(first, last):
                    hits += np.int32(counts[j] ^ flip >= row[j])
            for j in range(first, last if hits else first):
                if counts[j] ^ flip >= row[j]:
                    value = look_up(table, needed, support[i, j], counts[j], rate, passing)
                    least[b] = min(least[b], value)


@njit(cache=True, nogil=True, error_model="numpy")
def find_least_set(
    columns: Bits,
    least: Floats,
    contexts: Ints,
    families: Ints,
    ends: Ints,
    values: Ints,
    support: Table,
    inverse: Table,
    room: Table,
    rate: float,
    passing: bool,
    needed: Ints,
    table: Table,
    reach: Table,
    half: int,
) -> None:  # pragma: no cover - compiled
    """Lower the least value of each draw to the least value of its sets: subsets of the worst
    values of a family, in each context.

    The squared excess of a subset over its size is at most the sum over its values (Cauchy and
    Schwarz). Divided by ``room``, the least share of the units that a set leaves out, it bounds the
    squared deviation. ``reach`` turns this into a bound of the value, so few families are looked
    up.
    """
    sign, mean = np.float32(-1 if passing else 1), np.float32(1.0 - rate if passing else rate)
    z, some_families = np.zeros(TOP_VALUES), np.uint64(ends[1])
    errors, sizes = np.zeros(TOP_VALUES, np.int64), np.zeros(TOP_VALUES, np.int64)
    members, set_errors, set_sizes = np.zeros((3, 1 << TOP_VALUES), np.int64)
    total = np.zeros(ends[1], np.float32)
    for b in range(len(columns)):
        held, counts = columns[b][:, values], np.zeros(len(values), np.int32)
        lowest, enough = least[b], 0
        for c in range(len(contexts)):
            _count_columns(
                columns[b], contexts[c], held, np.uint64(0), np.uint64(len(values)), counts
            )
            total[:] = 0.5 / REACH  # more than rounding takes off a bound
            for s in range(len(ends) - 1):
                start = np.uint64(ends[s])
                for f in range(np.uint64(ends[s + 1]) - start):
                    above = sign * (np.float32(counts[start + f]) - mean * support[c, start + f])
                    above = above + abs(above)  # twice the part above 0: vectorised, unlike max
                    total[f] += above * above * inverse[c, start + f]
            while enough < len(reach) and reach[enough] >= lowest:
                enough += 1
            hits, bound = np.int32(0), np.float32(enough / REACH)
            for f in range(some_families):
                hits += np.int32(total[f] >= bound * room[c, f])
            for f in range(ends[1] if hits else 0):
                if total[f] < bound * room[c, f] or families[values[f]] == families[contexts[c]]:
                    continue
                kept = 0
                for s in range(len(ends) - 1):
                    v = ends[s] + f
                    if v >= ends[s + 1]:
                        break
                    size = np.int64(support[c, v])
                    k = size - counts[v] if passing else counts[v]
                    if size < FEW or k <= size * rate:
                        continue
                    excess = (k - size * rate) / math.sqrt(size)
                    if kept == TOP_VALUES and excess <= z[-1]:
                        continue
                    at = min(kept, TOP_VALUES - 1)
                    kept = min(kept + 1, TOP_VALUES)
                    while at > 0 and z[at - 1] < excess:
                        z[at], errors[at], sizes[at] = z[at - 1], errors[at - 1], sizes[at - 1]
                        at -= 1
                    z[at], errors[at], sizes[at] = excess, k, size
                # for each subset, as bits: its last value, and the known sums of the others
                for some in range(1, 1 << kept):
                    last, others = 0, some & (some - 1)
                    while not some >> last & 1:
                        last += 1
                    members[some] = members[others] + 1
                    k, size = set_errors[others] + errors[last], set_sizes[others] + sizes[last]
                    set_errors[some], set_sizes[some] = k, size
                    if 2 <= members[some] <= MAX_SET and MIN_SUPPORT <= size <= half:
                        lowest = min(lowest, look_up(table, needed, size, k, rate, False))
        least[b] = lowest
