"""Counting passes over rows of bits, over all pairs of rows, and over rules in many draws.

Losses are bit planes, and expectations one rate for each run of words. Sums are then counts of
bits, which the processor does many at a time. NumPy counts small inputs, compiled code (`compiled`)
large ones. Of rules in many draws of the outcomes one table has the tail of every count, since a
tail depends only on a rule's units and failures. A draw is the units that fail, or those that pass
if they are fewer, so that a row has few words of bits.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundfault.base.arrays import Bools, Floats, Ints, Places, Singles
from groundfault.modes.condition import FEW, MAX_SET, MIN_SUPPORT, MOST, REACH, TOP_VALUES
from groundfault.stats import bits as bitset
from groundfault.stats.bits import Bits

Kernel = tuple[Callable[..., None], tuple[object, ...]]
_Run = Callable[[Places, Bits], None]
Words = tuple[Bits, Bits, Floats, Ints, Floats]
"""Units and their losses, as words of bits: the units inside, shape (W,); bit planes of the losses,
shape (P, W), and the value of each, shape (P,); begins and ends of R runs of words, shape (R + 1,),
and the expected loss of each unit of a run, shape (R,)."""

_WORTH_COMPILING_DRAWS = 5e8
"""Words of bits below which NumPy takes at most a second more than compiled code, and compiling
takes three."""
_WORTH_CALLING_DRAWS = 2e7
"""The same, once the code is loaded: it then takes a fifth of the time, with the same values."""
_DEVIATIONS = 9.0
"""Standard deviations above the mean up to which tails are tabulated: no minimum exceeds this by
chance, and larger counts take the last value."""
_FEW_RULES = 32
"""One of this many rules is counted first, to find a bar that rules out most others."""
_LOOKED_AT, _MARGIN = 64, 1.0
"""Draws whose largest value is the bar of all, and what is added to it, in log p: fewer than one of
a thousand draws has a larger value."""
_TOGETHER = 32
"""Words of a condition, over the draws that are counted together: the data of a row's pairs are
read once for all, and the words stay in the processor's second cache."""
_HELD_WORDS = 1 << 21  # words of bits of all conditions that NumPy gathers at once: 16 MB
_IN_CACHE = 1 << 17  # words or numbers at once: 1 MB stays in the processor's second cache
_NEVER = 1 << 30  # failures that no rule has: above every table, and within 32 bits
_Known = tuple[float, bool, Ints, Singles]
"""Rate of failures, whether passes are drawn, failures that each size needs, and all tails."""
_CELLS = 1 << 22
"""Rules times permutations, or times units, that are held at once: 16 MB."""

# below so many words to be read NumPy takes some 20 ms, and loading numba and compiling seconds
_WORTH_COMPILING = 1 << 22  # words of bits above which compiled code is faster than NumPy
_FEW_ROWS = 1_000  # rows whose triples are counted by a product of matrices: .1 s
_WORTH_CALLING = 1 << 18  # the same, once the code is loaded


def sum_pairs(a: Bits, b: Bits, words: Words, *, upper: bool = False) -> Floats:
    """Return units, losses and expected losses of each pair of rows, among the units inside.

    Parameters
    ----------
    a, b : uint64 arrays, shape (A, W) and (B, W)
    words : Words
    upper : bool
        Whether pairs of a row with an earlier row may be left out (as 0 or any value).

    Returns
    -------
    float64 array, shape (3, A, B)
    """
    out = np.zeros((3, a.shape[0], b.shape[0]))
    if not _use_compiled(len(a) * b.size * (1 + len(words[1]))):
        for some in split(len(a), b.size, _IN_CACHE // 2):
            out[:, some] = _sum((a[some] & words[0])[:, None] & b, words)
        return out
    from groundfault.modes import compiled
    from groundfault.stats.row_threads import share_rows

    share_rows(partial(compiled.sum_pairs, a, b, words, upper, out), len(a))
    return out


def _use_compiled(words: int) -> bool:
    return words >= (_WORTH_CALLING if _is_loaded() else _WORTH_COMPILING)


def _is_loaded() -> bool:
    return "groundfault.modes.compiled" in sys.modules


def find_hopeful(sums: Floats, allowed: Bools, z: float) -> Bools:
    """Return allowed pairs whose failure rate has a lower bound (Wilson) that may exceed the
    expected rate.

    Parameters
    ----------
    sums : float64 array, shape (3, A, B)
        As `sum_pairs` returns.
    allowed : bool array, shape (A, B)
    z : float
        Standard deviations from the rate to its bound.
    """
    # the margin is for rounding
    square = z * z * (1 - 1e-9)
    if _use_compiled(allowed.size):
        from groundfault.modes import compiled

        out = np.empty(allowed.shape, dtype=np.bool_)
        compiled.find_hopeful(sums, allowed, square, out)
        return out
    units, losses, expected = sums
    excess = losses - expected
    beyond = excess * np.abs(excess) * units > square * expected * (units - expected)
    return np.asarray(allowed & beyond)


def _sum(shared: Bits, words: Words) -> Floats:
    """Return units, losses and expected losses of rows: uint64, shape (..., W) to float64, (3,
    ...)."""
    _, planes, scale, runs, rates = words
    counts = np.add.reduceat(np.bitwise_count(shared), runs[:-1], axis=-1, dtype=np.int64)
    out = np.zeros((3, *shared.shape[:-1]))
    out[0] = counts.sum(axis=-1)
    for plane, worth in zip(planes, scale, strict=True):
        out[1] += worth * np.bitwise_count(shared & plane).sum(axis=-1, dtype=np.int64)
    for r, rate in enumerate(rates):
        out[2] += rate * counts[..., r]
    return out


def sum_rows(rows: Bits, words: Words) -> Floats:
    """Return `sum_pairs` of each row with the units inside alone: shape (3, rows)."""
    everything = np.full((1, rows.shape[1]), ~np.uint64(0))
    return sum_pairs(rows, everything, words)[:, :, 0]


def guarantee(
    units: Floats, losses: Floats, expected: Floats, z: Floats | float, gamma: float
) -> Floats:
    """Return guaranteed excess of rules: the least amount by which they fail more than expected.

    Parameters
    ----------
    units, losses, expected : float64 arrays
        Values of each rule; shapes are broadcast with the shape of ``z``.
    z : float64 array, or float
        Distance of the lower bound (Wilson) from the failure rate, in standard deviations.
    gamma : float
        Power of the size by which the excess is multiplied.

    Returns
    -------
    float64 array
        -9 for a rule that matches no unit.
    """
    n = np.maximum(units, 1e-9)
    rate = np.minimum(losses / n, 1.0)
    z2 = np.square(z)
    spread = z * np.sqrt(rate * (1 - rate) / n + z2 / (4 * n * n))
    low = (rate + z2 / (2 * n) - spread) / (1 + z2 / n)
    return np.asarray(np.where(units >= 1, (low - expected / n) * n**gamma, -9.0))


@dataclass(frozen=True)
class _Triples:
    """Triples of rows whose pairs are allowed: three places each, in ascending order."""

    i: Places
    j: Places
    k: Places

    @classmethod
    def of(cls, pairs: Bools) -> _Triples:
        upper = np.triu(pairs, 1)
        i, j = np.nonzero(upper)
        pair, k = np.nonzero(upper[i] & upper[j])
        return cls(i[pair], j[pair], k)

    def join(self, rows: Bits) -> Bits:
        return rows[self.i] & rows[self.j] & rows[self.k]

    def are_rules(self, rows: Bits, support: bitset.Counts, least: int) -> Bools:
        """Return which have enough units, and fewer than each of their pairs."""
        n = np.bitwise_count(self.join(rows)).sum(axis=1, dtype=np.int64)
        i, j, k = self.i, self.j, self.k
        smallest = np.minimum(np.minimum(support[i, j], support[i, k]), support[j, k])
        return np.asarray((n >= least) & (n < smallest))


def _are_few(rows: Bits, pairs: Bools) -> bool:
    """Return whether NumPy counts the triples before compiled code is loaded."""
    upper = np.triu(pairs, 1).astype(np.float32)
    # of more rows the product alone takes longer
    triples = np.sum(upper @ upper * upper) if len(rows) <= _FEW_ROWS else np.inf
    return bool(triples * rows.shape[1] < _WORTH_COMPILING)


def count_triples(rows: Bits, pairs: Bools, support: bitset.Counts, least: int) -> int:
    """Return how many triples of rows are rules, with enough units, and fewer than each of their
    pairs."""
    if _are_few(rows, pairs):
        return int(_Triples.of(pairs).are_rules(rows, support, least).sum())
    from groundfault.modes import compiled
    from groundfault.stats.row_threads import share_rows

    counts = np.zeros(len(rows), dtype=np.int64)
    share_rows(partial(compiled.count_triples, rows, pairs, support, least, counts), len(rows))
    return int(counts.sum())


def search_triples(
    rows: Bits,
    pairs: Bools,
    support: bitset.Counts,
    least: int,
    words: Words,
    z: float,
    gamma: float,
    failing: Bits | None = None,
) -> tuple[Floats, Ints]:
    """Return the best third row for each pair of rows, and its guarantee: two arrays of shape (A,
    A). ``failing`` are the rows of the units inside that fail alone, of losses of 0 and 1."""
    best = np.full((len(rows), len(rows)), -9.0)
    third = np.full((len(rows), len(rows)), -1)
    if _are_few(rows, pairs):
        triples = _Triples.of(pairs)
        sums = _sum(triples.join(rows) & words[0], words)
        scores = guarantee(sums[0], sums[1], sums[2], z, gamma)
        # whether they are rules at all is asked last: few come so far
        some = np.flatnonzero(scores > -9.0)
        chosen = _Triples(triples.i[some], triples.j[some], triples.k[some])
        some = some[chosen.are_rules(rows, support, least)]
        # the best of each pair is written last, of equal ones the first
        order = some[np.lexsort((-triples.k[some], scores[some]))]
        i, j = triples.i[order], triples.j[order]
        best[i, j], third[i, j] = scores[order], triples.k[order]
        return best, third
    from groundfault.modes import compiled
    from groundfault.stats.row_threads import share_rows

    every, of = rows, words[1] & words[0]
    if failing is not None:
        every, of = failing, ~np.zeros((1, failing.shape[1]), np.uint64)
    known = (rows, pairs, support, least, words, every, of, z, gamma)
    share_rows(partial(compiled.search_triples, *known, best, third), len(rows))
    return best, third


def choose_code(words: float) -> ModuleType:
    """Return the module whose kernels count so many words: this one, or the compiled one."""
    if words < (_WORTH_CALLING_DRAWS if _is_loaded() else _WORTH_COMPILING_DRAWS):
        return sys.modules[__name__]
    from groundfault.modes import compiled

    return compiled


def split(rules: int, each: int, cells: int = _CELLS) -> Iterator[slice]:
    """Yield blocks of rules, each of so many cells, that are held at once."""
    step = max(1, cells // max(each, 1))
    yield from (slice(i, i + step) for i in range(0, rules, step))


def count_bits(
    on: Bools, drawn: Sequence[Places], kernels: Sequence[Callable[[float, int], Kernel]]
) -> Floats:
    """Return the least values that kernels find in each of many draws of units: shape (draws,
    kernels).

    The first draws give a bar that the least values of others seldom exceed, and few rules are
    below the bar. Draws that exceed it are counted again.

    Parameters
    ----------
    on : bool array, shape (conditions, units)
    drawn : sequence of intp arrays
        The units of each draw.
    kernels : sequence of callable
        Given a log p and a number, return `find_least_pair` or `find_least_set`, here or in
        `groundfault.modes.compiled`, and its arguments other than the rows of bits of some draws.
        The function may miss values above log p, and takes one of so many conditions.
    """
    least, no_bars = np.zeros((len(kernels), len(drawn))), np.zeros(len(kernels))
    units, (first, others) = bitset.pack(on.T), np.split(np.arange(len(drawn)), [_LOOKED_AT])

    if not kernels:
        return least.T

    def lower(some: Places, bars: Floats, every: int = 1) -> None:
        ready = [make(float(bar), every) for make, bar in zip(kernels, bars, strict=True)]
        share = _share if ready[0][0].__module__ == __name__ else _share_compiled
        share(partial(_lower, least, bars, ready), units, drawn, some)

    lower(first, no_bars, _FEW_RULES)
    lower(first, least[:, first].max(axis=1))
    bars = np.minimum(least[:, first].max(axis=1) + _MARGIN, 0)
    lower(others, bars)
    late = others[((least[:, others] == 0) & (bars < 0)[:, None]).any(axis=0)]
    if len(late):
        lower(late, no_bars)
    return least.T


def _lower(
    least: Floats, bars: Floats, kernels: Sequence[Kernel], some: Places, columns: Bits
) -> None:
    """Lower the least values of some draws, whose rows of bits are at hand, to the values that
    kernels find below a bar."""
    for row, bar, (kernel, arguments) in zip(least, bars, kernels, strict=True):
        values = np.minimum(row[some], bar)
        kernel(columns, values, *arguments)
        row[some] = np.where(values < bar, values, row[some])


def _share(run: _Run, units: Bits, drawn: Sequence[Places], places: Places) -> None:
    """Run kernels of NumPy on the rows of bits of draws, of many at a time."""
    width = max(1, bitset.words(max(map(len, drawn))))
    together = max(1, _HELD_WORDS // max(64 * units.shape[1] * width, 1))
    for start in range(0, len(places), together):
        some = places[start : start + together]
        run(some, _gather_units(units, [drawn[i] for i in some], width))


def _share_compiled(run: _Run, units: Bits, drawn: Sequence[Places], places: Places) -> None:
    """Do the same with compiled kernels, a few draws at a time in each thread."""
    from groundfault.modes.compiled import gather_units
    from groundfault.stats.row_threads import share_rows

    width = bitset.words(max(map(len, drawn)))
    together = max(1, _TOGETHER // max(width, 1))

    def turn(first: int, step: int) -> None:
        for start in range(first * together, len(places), step * together):
            some = places[start : start + together]
            columns = np.zeros((len(some), width, 64 * units.shape[1]), dtype=np.uint64)
            for rows, place in zip(columns, some, strict=True):
                gather_units(units, drawn[place], rows)
            run(some, columns)

    share_rows(turn, len(places))


def _gather_units(units: Bits, drawn: Sequence[Places], width: int) -> Bits:
    """Return drawn units, as words of bits, of each condition: shape (conditions, words, draws).

    See `groundfault.modes.compiled.gather_units`, which turns one block at a time.
    """
    places = np.full((len(drawn), 64 * width), len(units))
    for row, some in zip(places, drawn, strict=True):
        row[: len(some)] = some
    index = np.ascontiguousarray(places.reshape(len(drawn), width, 64).T)
    columns = np.empty((units.shape[1], *index.shape), dtype=np.uint64)
    for block, words in zip(columns, units.T, strict=True):
        np.take(np.append(words, np.uint64(0)), index, out=block)
        for half in 32, 16, 8, 4, 2, 1:
            mask = np.uint64(sum(1 << k for k in range(64) if not k & half))
            low, high = np.moveaxis(block.reshape(32 // half, 2, half, -1), 1, 0)
            moved = ((low >> np.uint64(half)) ^ high) & mask
            high ^= moved
            low ^= moved << np.uint64(half)
    return columns.reshape(-1, *index.shape[1:])


def _count_shared(columns: Bits, left: Places, right: Places) -> NDArray[np.int32]:
    """Return the units that two conditions share in each draw: shape (rules, draws)."""
    shared = np.empty((len(left), *columns.shape[1:]), dtype=np.uint64)
    for i, j, row in zip(left.tolist(), right.tolist(), shared, strict=True):
        np.bitwise_and(columns[i], columns[j], row)
    return np.asarray(np.bitwise_count(shared).sum(axis=1, dtype=np.int32))


def find_least_alone(
    rows: Bits,
    drawn: Bits,
    support: Ints,
    handicaps: Floats,
    rate: float,
    passing: bool,
    table: Singles,
) -> Floats:
    """Return the least value of single conditions in each draw, with their handicap, at most 0.

    Parameters
    ----------
    rows, drawn : uint64 arrays, shape (conditions, words) and (draws, words)
        The units of each condition, and those of each draw.
    """
    least = np.zeros(len(drawn))
    for some in split(len(rows), len(drawn), _IN_CACHE):
        size, counts = support[some, None], bitset.count_and(rows[some], drawn)
        values = look_up(table, rate, size, size - counts if passing else counts)
        np.minimum(least, (values + handicaps[some, None]).min(axis=0), out=least)
    return least


def find_least_pair(
    columns: Bits,
    least: Floats,
    left: Places,
    right: Places,
    _starts: Ints,
    limit: Ints,
    support: bitset.Counts,
    *known: *_Known,
) -> None:
    """Lower the least value of each draw to the least value of its pairs, as
    `groundfault.modes.compiled.find_least_pair` does."""
    rate, passing, _, table = known
    i, j = np.nonzero(limit < np.iinfo(limit.dtype).max)
    for some in split(len(i), columns[0].size, _IN_CACHE // 2):
        rows, others = i[some], j[some]
        counts = _count_shared(columns, left[rows], right[others])
        bound, size = limit[rows, others, None], support[rows, others]
        enough = (~counts if passing else counts) >= bound
        hits, draws = np.divmod(np.flatnonzero(enough), len(least))
        found, size = counts[hits, draws], size[hits]
        values = look_up(table, rate, size, size - found if passing else found)
        np.minimum.at(least, draws, values)


def find_least_set(
    columns: Bits,
    least: Floats,
    contexts: Places,
    families: Places,
    ends: Ints,
    values: Places,
    support: Singles,
    inverse: Singles,
    room: Singles,
    rate: float,
    passing: bool,
    _needed: Ints,
    table: Singles,
    reach: Singles,
    half: int,
) -> None:
    """Lower the least value of each draw to the least value of its sets, by the bound of
    `groundfault.modes.compiled.find_least_set`."""
    for f in range(ends[1]):
        index = np.array([a + f for a, b in pairwise(ends) if a + f < b])
        places = values[index]
        subsets = list_subsets(min(len(index), TOP_VALUES), MAX_SET).astype(np.float32)
        usable = (inverse[:, index] > 0) & (families[contexts] != families[places[0]])[:, None]
        others = np.flatnonzero(usable.sum(axis=1) > 1)
        for some in split(len(others), len(index) * columns[0].size, _IN_CACHE):
            rows = others[some]
            c, v = at = np.nonzero(usable[rows])
            counts = np.zeros((len(rows), len(index), len(least)), dtype=np.int32)
            counts[at] = _count_shared(columns, contexts[rows[c]], places[v])
            sizes = support[np.ix_(rows, index)][:, :, None]
            errors = (sizes - counts if passing else counts).astype(np.float32)
            excess = 2 * np.maximum(errors - sizes * np.float32(rate), 0)
            total = np.einsum("cvd,cvd,cv->cd", excess, excess, inverse[np.ix_(rows, index)])
            enough = np.searchsorted(-reach, -least.astype(np.float32), side="right") / REACH
            hits, draws = np.nonzero(total + 0.5 / REACH >= enough * room[rows, f, None])
            worst = sizes[hits, :, 0], errors[hits, :, draws]
            found = _find_worst_sets(table, rate, half, *worst, subsets)
            np.minimum.at(least, draws, found)


def list_subsets(values: int, largest: int) -> Bools:
    """Return all subsets of two and more out of a few values: bool, shape (subsets, values)."""
    rows = [
        np.isin(np.arange(values), subset)
        for size in range(2, min(values, largest) + 1)
        for subset in combinations(range(values), size)
    ]
    return np.array(rows, dtype=np.bool_).reshape(len(rows), values)


def _find_worst_sets(
    table: Singles, rate: float, half: int, sizes: Singles, errors: Singles, subsets: Singles
) -> Singles:
    """Return the least value of the subsets of the worst values, of each row of values."""
    excess = errors - sizes * np.float32(rate)
    z = np.where((sizes >= FEW) & (excess > 0), excess / np.sqrt(np.maximum(sizes, 1)), -1)
    top = np.argsort(-z, axis=1, kind="stable")[:, : subsets.shape[1]]
    # a value that fails no more than expected makes a set too large to count
    sizes = np.where(z > 0, sizes, half + 1).astype(np.float32)
    support, failures = (np.take_along_axis(a, top, axis=1) @ subsets.T for a in (sizes, errors))
    usable = (support >= MIN_SUPPORT) & (support <= half)
    values = look_up(table, rate, np.where(usable, support, 0), failures)
    return np.asarray(np.where(usable, values, 0).min(axis=1, initial=0))


def find_needed(table: Singles, rate: float, bar: float) -> Ints:
    """Return the failures that a rule of each size needs for a log tail up to a bar."""
    counts = table <= bar
    mean = (np.arange(len(counts)) * rate).astype(np.int64)
    return np.where(counts.any(axis=1), counts.argmax(axis=1), _NEVER) + mean


def limit_pairs(
    size: bitset.Counts, table: Singles, rate: float, passing: bool, bar: float
) -> tuple[object, ...]:
    """Return the data on pairs for `groundfault.modes.compiled.find_least_pair`: where each row's
    pairs start, the failures they need (inverted by `~` for passes), their units, and the tails.

    ``size`` are their units, 0 for pairs that are no rules.
    """
    needed = find_needed(table, rate, bar)
    limit = ~np.maximum(np.arange(len(needed)) - needed, -1) if passing else needed.copy()
    limit[0] = _NEVER
    # half as many bytes are read where counts are small
    kind = np.int16 if len(table) < 1 << 14 else np.int32
    limit = np.minimum(limit, np.iinfo(kind).max).astype(kind)[size]
    starts = np.where(size.any(axis=1), (size > 0).argmax(axis=1), size.shape[1])
    return starts, limit, size, rate, passing, needed, table


def tabulate_tails(units: int, errors: int) -> Singles:
    """Return log P(K >= k) for K failures among randomly drawn units.

    There is a row for each size up to `MOST` of all units, and a column for each k above the mean,
    rounded down. Counts up to the mean have 0.
    """
    from scipy.special import gammaln

    width = min(int(_DEVIATIONS * math.sqrt(units) / 4) + 4 * int(_DEVIATIONS), errors) + 1
    table = np.zeros((int(MOST * units) + 1, width), dtype=np.float32)
    log_all = gammaln(np.arange(units + 1) + 1.0)
    chosen = log_all[errors] + log_all[units - errors] - log_all[units]
    step = max(1, _IN_CACHE // (2 * width))
    for first in range(1, len(table), step):
        s = np.arange(first, min(first + step, len(table)))[:, None]
        # counts beyond twice the columns add nothing
        k = (s * (errors / units)).astype(np.int64) + np.arange(2 * width)
        rest = units - errors - s + k
        possible = (k <= np.minimum(s, errors)) & (rest >= 0)
        parts = (k, errors - k, s - k, rest)
        terms = chosen + log_all[s] + log_all[units - s]
        terms = terms - sum(log_all[np.where(possible, part, 0)] for part in parts)
        terms[~possible] = -np.inf
        tails = np.logaddexp.accumulate(terms[:, ::-1], axis=1)[:, ::-1]
        table[s[:, 0], 1:] = np.minimum(tails[:, 1:width], 0)
    return table


def tabulate_reach(table: Singles, rate: float, units: int) -> Singles:
    """Return the least log tail of rules for at most half of the units, by excess squared over
    size and share outside: up to each multiple of 1 / `REACH`."""
    reach = np.zeros(int(REACH * _DEVIATIONS**2), dtype=np.float32)
    half = units // 2
    step = max(1, _IN_CACHE // table.shape[1])
    for first in range(1, half + 1, step):
        s = np.arange(first, min(first + step, half + 1))[:, None]
        excess = (s * rate).astype(np.int64) + np.arange(table.shape[1]) - s * rate
        squares = REACH * np.maximum(excess, 0) ** 2 / (s * (1 - s / units))
        places = np.minimum(squares, len(reach) - 1).astype(np.intp)
        some = table[s[:, 0]]
        np.minimum.at(reach, places, np.where(np.isfinite(some), some, 0))
    return np.minimum.accumulate(reach)


def look_up(table: Singles, rate: float, support: NDArray[Any], failures: NDArray[Any]) -> Singles:
    """Return the log tails of the failures of rules with these numbers of units."""
    width = table.shape[1]
    rows = support.astype(np.int64)
    columns = failures.astype(np.int64) - (rows * rate).astype(np.int64)
    np.clip(columns, 0, width - 1, out=columns)
    columns += rows * width
    return np.asarray(table.ravel().take(columns))
