"""Silhouettes, and their distribution when columns are shuffled under labels that stay."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float32, njit, prange, types
from numba.extending import intrinsic
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Labels = NDArray[np.integer[Any]]

SINGLE = 1e-6
"""How exact shuffled silhouettes are; nearer to one observed than this is a tie."""

# columns that fit a word
_BITS = 32
# columns handled in one pass, and floats in a vector register of 256 bits
_COLUMNS, _WIDE = 3, 8
# rows of distances held at a time
_ROWS = 256
# the golden ratio times 2^64: splitmix64's increment (Steele, Lea and Flood 2014,
# doi:10.1145/2660193.2660195)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_SAME = 1e-13  # of the squared norms: what rounding leaves between equal points
# lets the compiler reorder sums, and vectorise them; infinities and NaN do not occur here
_FAST = {"reassoc", "contract", "nsz", "nnan", "ninf"}


def silhouette(points: Floats, labels: Labels) -> float:
    """Mean silhouette without noise; -1 for fewer than two clusters.

    Parameters
    ----------
    points : float array, shape (n, d)
    labels : int array, shape (n,)
        Cluster of each point; negative is noise.

    Notes
    -----
    Euclidean. A point alone in its cluster counts 0. Rousseeuw 1987,
    doi:10.1016/0377-0427(87)90125-7."""
    order, starts = _sort_by_cluster(labels)
    if len(starts) < 3:
        return -1.0
    return _silhouette(np.ascontiguousarray(points[order], dtype=np.float64), starts)


def shuffle_silhouettes(
    values: Floats,
    labels: Labels,
    permutations: int,
    rng: np.random.Generator,
    *,
    side_values: Floats | None = None,
    weight: float = 0.0,
) -> Floats:
    """Silhouettes under the same labels when each column is shuffled alone.

    Parameters
    ----------
    values : float array, shape (n, m)
        One column a model, without holes.
    labels : int array, shape (n,)
        Held; negative is noise, whose values take part in the shuffle.
    permutations : int
    rng : numpy.random.Generator
    side_values : float array, shape (n, q), optional
        Other coordinates of unit length, which stay where they are.
    weight : float
        Of these, in [0, 1]; the shuffled ones, scaled to unit length, have the rest.

    Notes
    -----
    The silhouette of each shuffle is that of `combine`, to `SINGLE`. Column means stay; only who
    fails with whom is lost. As the labels were formed on the unshuffled data, a low p-value says
    that clusters are clusters, not that there is more than one cause of failing.

    All shuffles go through one compiled loop in single precision; rows of up to 32 zeros and ones,
    with nothing beside them, are kept as the bits of a word."""
    order, starts = _sort_by_cluster(labels)
    if len(starts) < 3:
        return np.full(permutations, -1.0)
    still = None if side_values is None or weight == 0 else side_values
    seeds = rng.integers(0, 1 << 63, size=permutations, dtype=np.uint64)
    if still is None and values.shape[1] <= _BITS and bool(((values == 0) | (values == 1)).all()):
        place = np.full(len(labels), -1, dtype=np.int64)
        place[order] = np.arange(len(order))
        return np.asarray(_shuffle_bits(np.ascontiguousarray(values.T == 1), place, starts, seeds))
    still_squares = (
        np.zeros((1, len(order))) if still is None else weight**2 * _squares(still[order])
    )
    still_squares = np.pad(still_squares, ((0, 0), (0, _width(len(order)) - len(order))))
    columns, share = (
        np.ascontiguousarray(values.T, dtype=np.float32),
        1.0 if still is None else 1 - weight,
    )
    return np.asarray(
        _shuffle_floats(columns, share, still_squares.astype(np.float32), order, starts, seeds)
    )


def combine(values: Floats, side_values: Floats | None = None, weight: float = 0.0) -> Floats:
    """Rows scaled to unit length, beside other unit rows, weighted: shape (n, m + q).

    A row of zeros stays as it is.
    """
    length = np.sqrt(np.einsum("ij,ij->i", values, values))
    unit_rows = values / np.where(length == 0, 1.0, length)[:, None]
    if side_values is None or weight == 0:
        return np.asarray(unit_rows)
    return np.hstack([(1 - weight) * unit_rows, weight * side_values])


def _sort_by_cluster(labels: Labels) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Points that are no noise, cluster by cluster, and where each cluster starts."""
    order = np.argsort(labels, kind="stable")
    order = order[labels[order] >= 0]
    starts = (
        np.flatnonzero(np.r_[True, np.diff(labels[order]) > 0])
        if len(order)
        else np.zeros(0, dtype=np.intp)
    )
    return order, np.r_[starts, len(order)].astype(np.int64)


def _silhouette(points: Floats, starts: NDArray[np.int64]) -> float:
    """Compute the silhouette of points sorted by cluster."""
    n = len(points)
    square = np.einsum("ij,ij->i", points, points)
    own = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    sums = np.zeros((len(starts) - 1, n))  # summed distances of each point to each cluster
    for first in range(0, n, _ROWS):
        rows = slice(first, min(first + _ROWS, n))
        _add_distances(points[rows] @ points.T, square[rows], square, own[rows], first, sums)
    return float(_mean(sums, starts))


@njit(fastmath=_FAST, nogil=True, cache=True)
def _add_distances(
    products: Floats, own: Floats, square: Floats, home: NDArray[np.intp], first: int, sums: Floats
) -> None:  # pragma: no cover - compiled
    for i in range(len(products)):
        mine, row, x = sums[home[i]], products[i], own[i]
        itself = mine[first + i]
        for j in range(len(mine)):
            both = x + square[j]
            apart = both - 2 * row[j]
            mine[j] += np.sqrt(apart) if apart > _SAME * both else 0.0
        mine[first + i] = itself


@njit(nogil=True, cache=True)
def _mean(sums: Any, starts: NDArray[np.int64]) -> float:  # pragma: no cover - compiled
    clusters, n = sums.shape
    total = 0.0
    for own in range(clusters):
        size = starts[own + 1] - starts[own]
        # a point alone in its cluster has silhouette 0 (Rousseeuw 1987,
        # doi:10.1016/0377-0427(87)90125-7)
        if size < 2:
            continue
        for i in range(starts[own], starts[own + 1]):
            within, between = float(sums[own, i]) / (size - 1), np.inf
            for other in range(clusters):
                if other != own:
                    between = min(
                        between, float(sums[other, i]) / (starts[other + 1] - starts[other])
                    )
            if within != between:
                total += (between - within) / max(within, between)
    return float(total / n)


def _squares(points: Floats) -> Floats:
    """Squared distances of all pairs: shape (n, n)."""
    square = np.einsum("ij,ij->i", points, points)
    return np.asarray(np.maximum(square[:, None] + square - 2 * points @ points.T, 0.0))


@njit(nogil=True, cache=True)
def _below(limit: int, state: Any) -> Any:  # pragma: no cover - compiled
    """Draw a number below the limit, by splitmix64, from a state that advances by `_STEP`.

    doi:10.1145/2660193.2660195
    """
    z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = (z ^ (z >> np.uint64(31))) >> np.uint64(32)
    return np.int64((z * np.uint64(limit)) >> np.uint64(32))


@njit(nogil=True, cache=True)
def _width(n: int) -> int:
    return (n // _WIDE + 1) * _WIDE


@njit(parallel=True, cache=True)
def _shuffle_floats(
    columns: Any,
    share: float,
    still: Any,
    order: NDArray[np.intp],
    starts: NDArray[np.int64],
    seeds: Any,
) -> Floats:  # pragma: no cover - compiled
    out = np.empty(len(seeds))
    for s in prange(len(seeds)):
        points = _deal_floats(columns, share, order, seeds[s])
        out[s] = _mean(_float_distances(points, still, starts), starts)
    return out


@njit(nogil=True, cache=True)
def _deal_floats(
    columns: Any, share: float, order: NDArray[np.intp], seed: int
) -> Any:  # pragma: no cover - compiled
    """Shuffled columns, rows scaled to the length ``share`` and padded with zeros.

    To a multiple of `_COLUMNS`, and of `_WIDE` with at least one point too many, so that loops come
    out even."""
    m, n = columns.shape
    points = np.zeros((-(-m // _COLUMNS) * _COLUMNS, _width(len(order))), dtype=np.float32)
    scale = np.zeros(len(order), dtype=np.float32)
    state = np.uint64(seed)
    for k in range(m):
        column = columns[k].copy()
        for r in range(n - 1):
            state += _STEP
            # Fisher and Yates; numba's own generators are one a thread: draws would depend on
            # the number of threads
            pick = r + _below(n - r, state)
            column[r], column[pick] = column[pick], column[r]
        for i in range(len(order)):
            points[k, i] = column[order[i]]
            scale[i] += points[k, i] ** 2
    for i in range(len(order)):
        scale[i] = share / np.sqrt(scale[i]) if scale[i] > 0 else 0.0
        for k in range(m):
            points[k, i] *= scale[i]
    return points


@njit(nogil=True, cache=True)
def _float_distances(points: Any, still: Any, starts: Any) -> Any:  # pragma: no cover - compiled
    """Summed distances of each point to those of each cluster: shape (clusters, n)."""
    clusters, width = len(starts) - 1, points.shape[1]
    sums = np.zeros((clusters, width), dtype=np.float32)
    near, far = np.empty(width, dtype=np.float32), np.empty(width, dtype=np.float32)
    for own in range(clusters):
        for i in range(starts[own], starts[own + 1], 2):
            both = i + 1 < starts[own + 1]
            one, two = min(i, len(still) - 1), min(i + 1, len(still) - 1)
            _two_after(points, still[one], still[two], i, both, near, far, sums[own])
            for other in range(own, clusters):
                end = starts[other + 1]
                sums[other, i] += _sum(near, max(i + 1, starts[other]), end)
                if both:
                    sums[other, i + 1] += _sum(far, max(i + 2, starts[other]), end)
    return sums[:, : starts[-1]]


@njit(fastmath=_FAST, nogil=True, cache=True)
def _two_after(
    points: Any, still: Any, still_too: Any, i: Any, both: bool, near: Any, far: Any, mine: Any
) -> None:  # pragma: no cover - compiled
    """Distances of a point, and of both it and the next one, to those after them, also added up.

    Two at once, so that the others are read once for both. Numbers without a sign, and three
    columns at a time, are what the compiler needs to go by eights."""
    i, one, last = np.uint64(i), np.uint64(1), np.uint64(len(near))
    k, first = i + one, (i + one) // np.uint64(_WIDE) * np.uint64(_WIDE)
    for j in range(first, last):
        near[j], far[j] = still[j], still_too[j]
    for block in range(0, len(points), _COLUMNS):
        a = np.uint64(block)
        b, c = a + one, a + one + one
        ia, ib, ic, ka, kb, kc = (
            points[a, i],
            points[b, i],
            points[c, i],
            points[a, k],
            points[b, k],
            points[c, k],
        )
        for j in range(first, last):
            x, y, z = points[a, j], points[b, j], points[c, j]
            near[j] += (x - ia) * (x - ia) + (y - ib) * (y - ib) + (z - ic) * (z - ic)
            far[j] += (x - ka) * (x - ka) + (y - kb) * (y - kb) + (z - kc) * (z - kc)
    near[first:k], far[first : k + one] = 0, 0
    if not both:
        far[first:] = 0
    for j in range(first, last):
        near[j], far[j] = np.sqrt(near[j]), np.sqrt(far[j])
        mine[j] += near[j] + far[j]


@njit(fastmath=_FAST, nogil=True, cache=True)
def _sum(values: Any, first: int, last: int) -> Any:  # pragma: no cover - compiled
    total = float32(0)
    for j in range(np.uint64(first), np.uint64(last)):
        total += values[j]
    return total


@njit(parallel=True, cache=True)
def _shuffle_bits(
    columns: NDArray[np.bool_],
    place: NDArray[np.int64],
    starts: NDArray[np.int64],
    seeds: NDArray[np.uint64],
) -> Floats:  # pragma: no cover - compiled
    out = np.empty(len(seeds))
    for s in prange(len(seeds)):
        words = _deal_bits(columns, place, starts[-1], seeds[s])
        out[s] = _mean(_bit_distances(words, starts), starts)
    return out


@njit(nogil=True, cache=True)
def _deal_bits(
    columns: NDArray[np.bool_], place: NDArray[np.int64], size: int, seed: int
) -> NDArray[np.uint32]:  # pragma: no cover - compiled
    """Deal each column's ones to random rows; rows as words, those without a place left out."""
    n = columns.shape[1]
    at = np.arange(n)
    words = np.zeros(size, dtype=np.uint32)
    state = np.uint64(seed)
    for k in range(len(columns)):
        ones = columns[k].sum()
        few = min(ones, n - ones)  # whichever there are fewer of is dealt out
        bit = np.uint32(1) << np.uint32(k)
        if few < ones:
            words |= bit
        for r in range(few):
            state += _STEP
            pick = r + _below(n - r, state)
            at[r], at[pick] = at[pick], at[r]
            if place[at[r]] >= 0:
                # xor: sets the bit where ones are dealt, clears it where zeros are
                words[place[at[r]]] ^= bit
    return words


# one instruction for the ones of a word, which numba lacks
@intrinsic
def _popcount(_: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return builder.ctpop(args[0])

    return types.uint32(word), codegen


@njit(nogil=True, cache=True)
def _bit_distances(words: Any, starts: Any) -> Any:  # pragma: no cover - compiled
    """Summed distances of each word, scaled to unit length, to those of each cluster."""
    n = len(words)
    sums = np.zeros((len(starts) - 1, n), dtype=np.float32)
    square, scale = np.empty(n, dtype=np.float32), np.empty(n, dtype=np.float32)
    for i in range(n):
        ones = _popcount(words[i])
        square[i] = 1.0 if ones else 0.0
        scale[i] = np.sqrt(2.0 / ones) if ones else 0.0
    for own in range(len(starts) - 1):
        i, end = starts[own], starts[own + 1]
        while i + 4 <= end:
            _add_four(words, square, scale, i, sums[own])
            i += 4
        while i < end:
            _add_one(words, square, scale, i, sums[own])
            i += 1
    return sums


@njit(fastmath=_FAST, nogil=True, inline="always", cache=True)
def _apart(
    word: Any, square: Any, scale: Any, w: Any, q: Any, s: Any
) -> Any:  # pragma: no cover - compiled
    # |x - y|^2 of rows of unit length: 1 + 1 - 2 shared / sqrt(ones * ones)
    apart = square + q - float32(np.int32(_popcount(word & w))) * (scale * s)
    return np.sqrt(apart) if apart > float32(SINGLE) else float32(0)


@njit(fastmath=_FAST, nogil=True, cache=True)
def _add_four(
    words: Any, square: Any, scale: Any, i: int, mine: Any
) -> None:  # pragma: no cover - compiled
    """Add four points at once: the others are loaded once, and a register holds sixteen."""
    a, b, c, d = words[i], words[i + 1], words[i + 2], words[i + 3]
    qa, qb, qc, qd = square[i], square[i + 1], square[i + 2], square[i + 3]
    sa, sb, sc, sd = scale[i], scale[i + 1], scale[i + 2], scale[i + 3]
    for j in range(len(mine)):
        w, q, s = words[j], square[j], scale[j]
        one, two = _apart(a, qa, sa, w, q, s), _apart(b, qb, sb, w, q, s)
        three, four = _apart(c, qc, sc, w, q, s), _apart(d, qd, sd, w, q, s)
        mine[j] += one + two + three + four


@njit(fastmath=_FAST, nogil=True, cache=True)
def _add_one(
    words: Any, square: Any, scale: Any, i: int, mine: Any
) -> None:  # pragma: no cover - compiled
    a, qa, sa = words[i], square[i], scale[i]
    for j in range(len(mine)):
        mine[j] += _apart(a, qa, sa, words[j], square[j], scale[j])
