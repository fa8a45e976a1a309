"""The search: the best rules of every class, given the modes listed so far.

It is exhaustive for conjunctions of up to three literals. Any greedy choice is allowed: every rule
of the language is paid for, so the choice of rules cannot break the guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groundfault.modes.bars import Bars
from groundfault.modes.condition import FEW, MAX_SET, MAX_WORDS, MIN_SUPPORT, MOST, TOP_VALUES
from groundfault.modes.kernels import find_hopeful, guarantee, search_triples, sum_pairs
from groundfault.modes.refine import EVEN
from groundfault.modes.rule_space import ModeRule, list_subsets
from groundfault.modes.strata import Strata
from groundfault.stats import bits as bitset
from groundfault.stats.bits import Bits, Counts

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

GAMMA = 0.15
"""Weight of a rule's size relative to its guaranteed excess."""
TOP = 40
"""Rules of a class to examine closely, and pairs to try sets inside."""
_BLOCK = 1 << 18
"""Pairs that are scored at a time: 6 MB of sums, which stay in the processor's cache."""
_HOPELESS = 0.5  # share of the best pair's excess below which no triple is tried


@dataclass(frozen=True)
class RuleProposal:
    """A rule that the search proposes.

    Attributes
    ----------
    rule : ModeRule
    mask : uint64 array, shape (words,)
    score : float
        Guaranteed excess on new units; `groundfault.modes.kernels.guarantee`.
    """

    rule: ModeRule
    mask: Bits
    score: float


def score_masks(masks: Bits, strata: Strata, log_costs: Floats) -> Floats:
    """Return guaranteed excess of rules on new units, each at its own multiplicity."""
    units, losses, expected = strata.count_new(masks)
    z = np.sqrt(2 * np.maximum(log_costs, 0.5))
    return score_counts(units, losses, expected, z)


def score_counts(units: Floats, losses: Floats, expected: Floats, z: Floats | float) -> Floats:
    """Return `groundfault.modes.kernels.guarantee`, with the weight of size of this search."""
    return guarantee(units, losses, expected, z, GAMMA)


def search(bars: Bars, strata: Strata) -> list[RuleProposal]:
    """Return the best rules of every class, by decreasing guaranteed excess."""
    language = bars.language
    rules = list(dict.fromkeys(_search_all(bars, strata)))
    masks = language.masks(rules)
    costs = np.array([bars.cost_of(rule) for rule in rules])
    scores = score_masks(masks, strata, costs) if rules else np.zeros(0)
    # a rule of several conditions or words that matches more than half of the units is better
    # described by its opposite
    most = [MOST if rule.kind == "single" else 0.5 for rule in rules]
    small = bitset.count(masks) <= np.array(most) * strata.layout.strata.size
    alone = np.array([len(rule.parts) == 1 for rule in rules], dtype=np.bool_)
    usable = small & (alone | (scores > 0))
    order = [i for i in np.argsort(-scores, kind="stable") if usable[i]]
    return [RuleProposal(rules[i], masks[i], float(scores[i])) for i in order]


def search_inside(bars: Bars, strata: Strata) -> list[RuleProposal]:
    """Return effects that show only inside a context: a condition, against the rest of the
    context."""
    language = bars.language
    if not language.counts["inside"]:
        return []
    z = _z(bars, "inside")
    contexts = language.plain[language.contexts]
    whole = strata.count_new(language.bits[contexts])
    rate = whole[1] / np.maximum(whole[0], 1)
    proposals = []
    # of thousands of contexts, a copy takes as much memory as all else
    every = slice(None) if len(contexts) == len(language.plain) else language.contexts
    for places, allowed, support in (
        (language.plain, language.pairs_in_contexts, language.pair_support[every]),
        (language.others, language.mixed[every], language.mixed_support[every]),
    ):
        rows = (language.bits[contexts], language.bits[places])
        for i, j, score in _find_pairs(*rows, allowed, z, strata, TOP, support, rate):
            rule = ModeRule(((int(contexts[i]),), (int(places[j]),)), "inside")
            proposals.append(RuleProposal(rule, language.mask(rule), score))
    return sorted(proposals, key=lambda p: -p.score)


def _find_pairs(
    a: Bits,
    b: Bits,
    allowed: Bools,
    z: float,
    strata: Strata,
    top: int,
    support: Counts | None = None,
    rate: Floats | None = None,
    *,
    upper: bool = False,
) -> list[tuple[int, int, float]]:
    """Return the allowed pairs of rows with the best positive scores, and the scores, best first.

    ``support`` is the number of shared units, if known; ``rate`` the expected loss of each unit of
    a row, if it differs from its stratum's; ``upper`` leaves out pairs of a row with earlier rows.
    """
    pairs: list[tuple[int, int, float]] = []
    # all pairs at once take gigabytes
    step = max(1, _BLOCK // max(1, len(b)))
    for row in range(0, len(a), step):
        some, column = slice(row, row + step), row if upper else 0
        known = None if support is None else support[some, column:]
        sums = _sum(a[some], b[column:], strata, known, upper=upper)
        if rate is not None:
            sums[2] = sums[0] * rate[some, None]
        i, j = np.nonzero(find_hopeful(sums, allowed[some, column:], z))
        scores = _score(sums[:, i, j], z)
        best = _best(scores, top)
        i, j = i[best] + row, j[best] + column
        pairs += zip(i.tolist(), j.tolist(), scores[best].tolist(), strict=True)
    return sorted(pairs, key=lambda pair: (-pair[2], pair))[:top]


def _search_all(bars: Bars, strata: Strata) -> Iterator[ModeRule]:
    language, plain = bars.language, bars.language.plain
    yield from _search_singles(bars, strata)
    if language.depth < 2:
        return
    bits, words = language.bits[plain], language.bits[language.others]
    z, support = _z(bars, "pair"), language.pair_support
    best = _find_pairs(bits, bits, language.pairs, z, strata, 2 * TOP, support, upper=True)
    yield from _list_pairs(plain, plain, best, "pair")
    if language.counts["mixed"]:
        z, support = _z(bars, "mixed"), language.mixed_support
        mixed = _find_pairs(bits, words, language.mixed, z, strata, 2 * TOP, support)
        yield from _list_pairs(plain, language.others, mixed, "mixed")
    if language.counts["triple"]:
        yield from _search_triples(bars, strata, best[0][2] if best else 0.0)
    yield from _search_sets(bars, strata, [(i, j) for i, j, _ in best[:TOP]])
    yield from _search_words(bars, strata)


def _sum(
    a: Bits, b: Bits, strata: Strata, support: Counts | None = None, *, upper: bool = False
) -> Floats:
    """Return `sum_pairs`, of rows that share so many units in all: these are not counted
    again."""
    losses, runs, rates = strata.losses, strata.layout.runs, strata.rates
    known = support is not None and len(rates) == 1 and bool(strata.new.all())
    words = (strata.inside, losses.planes, losses.scale, runs, rates[:0] if known else rates)
    sums: Floats = sum_pairs(a, b, *words, upper=upper)
    if known:
        sums[0], sums[2] = support, rates[0] * support
    return sums


def _score(sums: Floats, z: float) -> Floats:
    units, losses, expected = sums
    return score_counts(units, losses, expected, z)


def _z(bars: Bars, kind: str, size: int = 1) -> float:
    return math.sqrt(2 * max(bars.log_cost(kind, size), 0.5)) if bars.language.counts[kind] else 0.0


def _best(scores: Floats, top: int) -> NDArray[np.intp]:
    """Return places of the best positive scores, best first."""
    flat = scores.ravel()
    places = np.argpartition(-flat, top)[:top] if flat.size > top else np.arange(flat.size)
    places = places[flat[places] > 0]
    return np.asarray(places[np.argsort(-flat[places], kind="stable")])


def _search_singles(bars: Bars, strata: Strata) -> Iterator[ModeRule]:
    language = bars.language
    every = np.stack(strata.count_new(language.bits))
    for kind, places in (
        ("single", language.single),
        ("word", language.others),
        ("partial", language.partial),
        ("own", language.own),
    ):
        if len(places):
            counts = every[:, places]
            scores = _score(counts, _z(bars, kind))
            # a test may find rules without a guaranteed excess significant
            more = np.flatnonzero(counts[1] > counts[2])
            best = more[np.argsort(-scores[more], kind="stable")][:TOP]
            yield from (ModeRule(((int(places[i]),),), kind) for i in best)


def _list_pairs(
    left: NDArray[np.intp], right: NDArray[np.intp], best: list[tuple[int, int, float]], kind: str
) -> Iterator[ModeRule]:
    for i, j, _ in best:
        yield ModeRule(((int(left[i]),), (int(right[j]),)), kind)


def _search_triples(bars: Bars, strata: Strata, best_pair: float) -> Iterator[ModeRule]:
    language, losses = bars.language, strata.losses
    z, p = _z(bars, "triple"), language.triple_places
    errors = _sum(language.triple_bits, language.triple_bits, strata, upper=True)[1]
    # no third condition does better than to leave the failures of a pair alone
    most = score_counts(errors, errors, errors * strata.rates.min(), z)
    best, third = search_triples(
        language.triple_bits,
        language.triple_pairs & (most > _HOPELESS * best_pair),
        language.triple_support,
        MIN_SUPPORT,
        strata.inside,
        losses.planes,
        losses.scale,
        strata.layout.runs,
        strata.rates,
        z,
        GAMMA,
    )
    places = language.plain[p]
    for flat in _best(best, 2 * TOP):
        i, j = divmod(int(flat), len(places))
        k = int(third[i, j])
        yield ModeRule(tuple((int(places[x]),) for x in (i, j, k)), "triple")


def _search_sets(bars: Bars, strata: Strata, pairs: list[tuple[int, int]]) -> Iterator[ModeRule]:
    """Yield sets of values of one column, inside one condition or one of the best pairs."""
    language, plain = bars.language, bars.language.plain
    spread = float((strata.rates * (1 - strata.rates)).min())
    for places in language.values.values():
        values, family = language.bits[plain[places]], language.family[plain[places[0]]]
        whole = strata.count_new(values)
        contexts = np.flatnonzero(language.family[plain] != family)
        support = language.pair_support[np.ix_(contexts, places)]
        inner = _sum(language.bits[plain[contexts]], values, strata, support)
        for context, some in _search_family(bars, inner, whole, places, "set", spread):
            yield ModeRule(((int(plain[contexts[context]]),), some), "set")
        apart = [p for p in pairs if family not in language.family[plain[list(p)]]]
        if not apart or not language.counts["set of a pair"]:
            continue
        masks = np.stack([language.bits[plain[i]] & language.bits[plain[j]] for i, j in apart])
        inner = _sum(masks, values, strata)
        sets = _search_family(bars, inner, whole, places, "set of a pair", spread)
        for context, some in sets:
            i, j = apart[context]
            yield ModeRule(((int(plain[i]),), (int(plain[j]),), some), "set of a pair")


def _search_family(
    bars: Bars,
    sums: Floats,
    whole: Sequence[Floats],
    places: NDArray[np.intp],
    kind: str,
    spread: float,
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the best sets of values in each context, in which each value contributes.

    ``sums`` are of shape (3, contexts, values), ``whole`` of shape (3, values): without a context.
    ``spread`` is the least variance of a unit's outcome that the rates of failures leave.
    """
    subsets = list_subsets(min(len(places), TOP_VALUES), MAX_SET)
    sizes = subsets.sum(axis=1)
    z = np.array([_z(bars, kind, int(size)) for size in sizes])
    # by Cauchy and Schwarz no set of a context exceeds its expectation more than all values of the
    # context together: few contexts can have sets that pass
    beyond = np.square(np.maximum(sums[1] - sums[2], 0)) / np.maximum(sums[0], 1)
    hopeful = np.flatnonzero(beyond.sum(axis=1) >= np.square(z.min()) * spread * (1 - 1e-9))
    units, losses, expected = sums[:, hopeful]
    excess = losses - expected
    with np.errstate(divide="ignore", invalid="ignore"):
        # a value belongs to a context only if it fails more inside it than outside
        outside = (whole[1] - losses) / (whole[0] - units)
        needed = (whole[0] - units >= FEW) & (outside < losses / units)
        rank = np.where((units >= FEW) & (excess > 0), excess / np.sqrt(units), -1.0)
    top = np.argsort(-rank, axis=1, kind="stable")[:, :TOP_VALUES]
    usable = np.take_along_axis((rank > 0) & needed, top, axis=1)
    u, x, e = (np.take_along_axis(a, top, axis=1) for a in (units, losses, expected))
    live = (units > 0).sum(axis=1)
    s, k, mu = u @ subsets.T, x @ subsets.T, e @ subsets.T
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (k - mu) / s
        each = (x - e) / u
    least = np.where(subsets[None], each[:, None, :], np.inf).min(axis=2)
    ok = (s >= MIN_SUPPORT) & ~((~usable)[:, None, :] & subsets[None]).any(axis=2)
    # a set of all values equals its context; each value has to contribute
    ok &= (sizes[None, :] < live[:, None]) & (least >= EVEN * mean)
    scores = np.where(ok, score_counts(s, k, mu, z[None, :]), -9.0)
    for flat in _best(scores, TOP):
        context, which = divmod(int(flat), len(subsets))
        chosen = sorted(int(bars.language.plain[places[v]]) for v in top[context][subsets[which]])
        yield int(hopeful[context]), tuple(chosen)


def _search_words(bars: Bars, strata: Strata) -> Iterator[ModeRule]:
    """Yield unions of words, grown greedily from the best word."""
    for places in bars.language.word_families.values():
        bits = bars.language.bits[places]
        units, losses, expected = strata.count_new(bits)
        with np.errstate(divide="ignore", invalid="ignore"):
            rank = np.where(units >= FEW, (losses - expected) / np.sqrt(units), -9.0)
        pool = np.argsort(-rank, kind="stable")[:TOP]
        pool = pool[rank[pool] > 0]
        # the table says these better, and beside other words they would join two meanings
        pool = pool[~bars.language.list_named(places[pool])]
        for start in pool[:MAX_WORDS]:
            yield from _grow_words(bars, strata, places, pool, int(start))


def _grow_words(
    bars: Bars,
    strata: Strata,
    places: NDArray[np.intp],
    pool: NDArray[np.intp],
    start: int,
) -> Iterator[ModeRule]:
    bits = bars.language.bits[places]
    words, mask = [start], bits[start]
    score = float(score_masks(mask[None], strata, np.array([bars.log_cost("word")]))[0])
    while len(words) < MAX_WORDS:
        others = [int(i) for i in pool if i not in words]
        if not others:
            return
        cost = bars.log_cost("words", len(words) + 1)
        unions = mask | bits[others]
        scores = score_masks(unions, strata, np.full(len(others), cost))
        best = int(np.argmax(scores))
        if scores[best] <= score or not _is_even(bits[[*words, others[best]]], strata):
            return
        words.append(others[best])
        mask, score = unions[best], float(scores[best])
        yield ModeRule((tuple(sorted(int(places[i]) for i in words)),), "words")


def _is_even(rows: Bits, strata: Strata) -> bool:
    """Return whether each word contributes on the units that it alone matches."""
    several = np.zeros_like(rows[0])
    seen = np.zeros_like(rows[0])
    for row in rows:
        several |= seen & row
        seen |= row
    units, losses, expected = strata.count_new(rows & ~several)
    if units.min() < FEW:
        return False
    excess = (losses - expected) / units
    return bool(excess.min() >= EVEN * excess.max())
