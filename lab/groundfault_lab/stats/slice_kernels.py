"""Compiled passes of the slice search: count rows, bound errors, join parents to children."""

from __future__ import annotations

import numpy as np
from numba import njit

from groundfault.stats.bit_kernels import popcount

# words: 4 KiB, so that a parent's words stay in the first-level cache for all its children
_BLOCK = 512


# nogil: batches run in threads; error_model numpy: no check for division by 0, which the formulas
# exclude, so that loops vectorise
@njit(cache=True, nogil=True, error_model="numpy")
def set_bits(row, place, bits):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Set the bit of each row in the predicate that ``place`` gives for its code; -1 gives none."""
    for i in range(len(row)):
        j = place[row[i]]
        if j >= 0:
            bits[j, i >> 6] |= np.uint64(1) << np.uint64(i & 63)


@njit(cache=True, nogil=True, error_model="numpy")
def _bound_score(size, error, top, min_size, gain, cost, rest):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    if size < min_size or error <= 0:
        return -np.inf
    # the bound is largest where error and rows balance, or at an end (Sagadeeva and Boehm 2021,
    # doi:10.1145/3448016.3457323, upper bounds of the score)
    s = min(max(error / top, min_size), size)
    first = (gain * min(s * top, error) - cost) / s
    return max(first, (gain * min(size * top, error) - cost) / size) + rest


@njit(cache=True, nogil=True, error_model="numpy")
def bound_scores(size, error, top, min_size, gain, cost, rest):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """See `groundfault_lab.stats.slices.Objective.bound`."""
    out = np.empty(len(size))
    for i in range(len(size)):
        out[i] = _bound_score(size[i], error[i], top[i], min_size, gain, cost, rest)
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def _intersect(bits, members, start, stop, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Words ``start`` to ``stop`` of the rows that all members share."""
    for w in range(stop - start):
        out[w] = ~np.uint64(0)
    for j in members:
        row = bits[j, start:stop]
        for w in range(stop - start):
            out[w] &= row[w]


@njit(cache=True, nogil=True, error_model="numpy")
def count_rows(bits, parents, parent, last, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Count the rows of slices, each a parent and a predicate, in blocks that fit the cache.

    Parameters
    ----------
    bits : uint64 array, shape (L, W)
    parents : int32 array, shape (P, l)
        Predicates of each parent; with l = 0, all rows.
    parent, last : int32 arrays, shape (C,)
        Runs of slices of one parent share its words.
    out : int64 array, shape (C,)
        Where the counts go.
    """
    shared = np.empty(_BLOCK, dtype=np.uint64)
    out[:] = 0
    for start in range(0, bits.shape[1], _BLOCK):
        stop = min(bits.shape[1], start + _BLOCK)
        now = -1
        for c in range(len(parent)):
            if parent[c] != now:
                now = parent[c]
                _intersect(bits, parents[now], start, stop, shared)
            row = bits[last[c], start:stop]
            total = np.uint64(0)
            for w in range(stop - start):
                total += popcount(shared[w] & row[w])
            out[c] += np.int64(total)


@njit(cache=True, nogil=True, error_model="numpy")
def bound_errors(bits, weights, parents, parent, last, out, top):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Bound error sums and largest errors from above: `count_rows` with a weight for each word."""
    shared = np.empty(_BLOCK, dtype=np.uint64)
    out[:] = 0
    top[:] = 0
    for start in range(0, bits.shape[1], _BLOCK):
        stop = min(bits.shape[1], start + _BLOCK)
        weight = weights[start:stop]
        now = -1
        for c in range(len(parent)):
            if parent[c] != now:
                now = parent[c]
                _intersect(bits, parents[now], start, stop, shared)
            row = bits[last[c], start:stop]
            total = np.int64(0)
            for w in range(stop - start):
                total += np.int64(popcount(shared[w] & row[w])) * weight[w]
            if total > 0 and top[c] == 0:
                w = 0
                while shared[w] & row[w] == 0:
                    w += 1
                top[c] = weight[w]
            out[c] += total


@njit(cache=True, nogil=True, error_model="numpy")
def bound_means(bits, weights, least, parents, parent, last, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Bound from above the mean error of any ``least`` rows or more of a slice, rounded up.

    Words come with the largest errors first, so it is the mean over the first ``least`` rows."""
    shared = np.empty(_BLOCK, dtype=np.uint64)
    room = np.full(len(parent), least)
    out[:] = 0
    for start in range(0, bits.shape[1], _BLOCK):
        stop = min(bits.shape[1], start + _BLOCK)
        now = -1
        for c in range(len(parent)):
            if room[c] == 0:
                continue
            if parent[c] != now:
                now = parent[c]
                _intersect(bits, parents[now], start, stop, shared)
            row = bits[last[c], start:stop]
            w = 0
            while room[c] > 0 and w < stop - start:
                ones = min(np.int64(popcount(shared[w] & row[w])), room[c])
                out[c] += ones * weights[start + w]
                room[c] -= ones
                w += 1
    for c in range(len(parent)):
        out[c] = -(-out[c] // least)


@njit(cache=True, nogil=True, error_model="numpy")
def sum_errors(bits, quanta, parents, parent, last, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Sum errors row by row, exactly, for slices that `bound_errors` cannot rule out."""
    shared = np.empty(_BLOCK, dtype=np.uint64)
    out[:] = 0
    for start in range(0, bits.shape[1], _BLOCK):
        stop = min(bits.shape[1], start + _BLOCK)
        now = -1
        for c in range(len(parent)):
            if parent[c] != now:
                now = parent[c]
                _intersect(bits, parents[now], start, stop, shared)
            row = bits[last[c], start:stop]
            for w in range(stop - start):
                word = shared[w] & row[w]
                # bits are visited lowest first: lowest - 1 has as many ones as lowest has zeros
                # below it
                base = 64 * (start + w)
                while word:
                    lowest = word & (~word + np.uint64(1))
                    out[c] += quanta[base + np.int64(popcount(lowest - np.uint64(1)))]
                    word ^= lowest


@njit(cache=True, nogil=True, error_model="numpy")
def _find_first(members, target, skip):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """First of the sorted ``members`` not before ``target`` without its element ``skip``."""
    low, high = 0, len(members)
    while low < high:
        middle = (low + high) // 2
        less = False
        for k in range(members.shape[1] - 1):
            w = target[k if k < skip else k + 1]
            if members[middle, k] != w:
                less = members[middle, k] < w
                break
        if less:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True, error_model="numpy")
def _begins_with(member, target, skip):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    same = True
    for k in range(len(member) - 1):
        same &= member[k] == target[k if k < skip else k + 1]
    return same


@njit(cache=True, nogil=True, error_model="numpy")
def join_parents(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    column, members, ends, which, stats, pairs, room, floor, min_size, gain, cost, rest
):
    """Children of some parents that have all their parents and a bound of at least ``floor``.

    The child of parents i and j > i, which share all but their last predicate, has for parents
    these two and those that lack one of the shared predicates. The last are found by walking along
    with j, since ``members`` is sorted.

    Parameters
    ----------
    column : int32 array, shape (L,)
        Of each predicate.
    members : int32 array, shape (P, l)
        Predicates of the parents, sorted.
    ends : int64 array, shape (P,)
        Where the run of parents that share all but the last predicate ends.
    which : int64 array
        The parents i.
    stats : int64 array, shape (3, P)
        Sizes, error sums and largest means of the parents.
    pairs : int32 array, shape (L, L) or (0, 0)
        Rows that two predicates share, where known.
    room : int
        Pairs (i, j) to be made.
    floor, min_size, gain, cost, rest : float
        See `groundfault_lab.stats.slices.Objective`.

    Returns
    -------
    parent, last : int32 arrays, shape (C,)
    limits : int64 array, shape (3, C)
        The least size, error sum and largest mean among the parents.
    bound : float64 array, shape (C,)
    pair_count : int
        Children before any was ruled out.
    """
    length = members.shape[1]
    parent = np.empty(room, dtype=np.int32)
    last = np.empty(room, dtype=np.int32)
    limits = np.empty((3, room), dtype=np.int64)
    bound = np.empty(room)
    # positions in the sorted parents, one for each predicate left out: they only move forward as
    # the last predicate grows
    walk = np.empty(length, dtype=np.int64)
    child_count = pair_count = 0
    for i in which:
        for t in range(length - 1):
            walk[t] = _find_first(members, members[i], t)
        for j in range(i + 1, ends[i]):
            a = members[j, length - 1]
            if column[a] == column[members[i, length - 1]]:
                continue
            pair_count += 1
            size = min(stats[0, i], stats[0, j])
            error = min(stats[1, i], stats[1, j])
            top = min(stats[2, i], stats[2, j])
            # of two predicates the number of shared rows is known exactly
            if length == 1 and len(pairs):
                size = min(size, pairs[members[i, 0], a])
            # all subsets of a slice must be parents, or one of them was ruled out and so is the
            # slice (a priori pruning)
            whole = True
            for t in range(length - 1):
                p = walk[t]
                while (
                    p < len(members)
                    and members[p, length - 1] < a
                    and _begins_with(members[p], members[i], t)
                ):
                    p += 1
                walk[t] = p
                if (
                    p < len(members)
                    and members[p, length - 1] == a
                    and _begins_with(members[p], members[i], t)
                ):
                    size = min(size, stats[0, p])
                    error = min(error, stats[1, p])
                    top = min(top, stats[2, p])
                else:
                    whole = False
                    break
            if whole:
                b = _bound_score(size, error, top, min_size, gain, cost, rest)
                if b >= floor:
                    parent[child_count] = i
                    last[child_count] = a
                    limits[0, child_count] = size
                    limits[1, child_count] = error
                    limits[2, child_count] = top
                    bound[child_count] = b
                    child_count += 1
    return (
        parent[:child_count],
        last[:child_count],
        limits[:, :child_count],
        bound[:child_count],
        pair_count,
    )
