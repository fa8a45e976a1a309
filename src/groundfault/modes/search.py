"""The search: the best rules of every class, given the modes listed so far.

It is exhaustive for conjunctions of up to three literals. Any greedy choice is allowed: every rule
of the language is paid for, so the choice of rules cannot break the guarantee.

The rules near a rule, narrower, wider and joined, are compared by the likelihood of all losses. A
rule says two failure rates: one where it holds, one elsewhere. A narrower rule may be purer and
still describe the losses worse: failures that it leaves out raise the rate elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from groundfault.base.arrays import Bools, Floats, Places
from groundfault.modes.bars import Bars
from groundfault.modes.condition import FEW, MAX_SET, MAX_WORDS, MIN_SUPPORT, MOST, TOP_VALUES
from groundfault.modes.kernels import (
    find_hopeful,
    guarantee,
    list_subsets,
    search_triples,
    split,
    sum_pairs,
)
from groundfault.modes.rule_space import ModeRule, RuleLanguage
from groundfault.modes.strata import Strata
from groundfault.stats import bits as bitset
from groundfault.stats.bits import Bits, Counts

_Some = slice | Places

GAMMA = 0.15
"""Weight of a rule's size relative to its guaranteed excess."""
TOP = 40
"""Rules of a class to examine closely, and pairs to try sets inside."""
_BLOCK = 1 << 18
"""Pairs that are scored at a time: 6 MB of sums, which stay in the processor's cache."""
_SHARED = 1 << 20
"""Pairs whose sums are held for all passes over the same units: 24 MB."""
_HOPELESS = 0.5  # share of the best pair's excess below which no triple is tried
EVEN = 0.75
"""Values of a set fail alike where each has this share of their excess: with .4 a hole of 13
networks is lost."""
_JOINS = 0.25
"""Share of a joined rule's excess beyond the sum of its parts': noise of some 60 units is less."""


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
    contexts = language.contexts
    whole = strata.count_new(language.plain_bits[contexts])
    rate = whole[1] / np.maximum(whole[0], 1)
    proposals = []
    plain = partial(_sum_plain, bars, strata), language.plain, language.pairs_in_contexts
    others = partial(_sum_mixed, language, strata), language.others, language.mixed[contexts]
    for sums, places, allowed in (plain, others):
        for i, j, score in _find_pairs(sums, allowed, z, TOP, contexts, rate):
            rule = ModeRule(((int(language.plain[contexts[i]]),), (int(places[j]),)), "inside")
            proposals.append(RuleProposal(rule, language.mask(rule), score))
    return sorted(proposals, key=lambda p: -p.score)


def _find_pairs(
    sum_some: Callable[[_Some, slice], Floats],
    allowed: Bools,
    z: float,
    top: int,
    rows: Places | None = None,
    rate: Floats | None = None,
    *,
    upper: bool = False,
    z_of: Callable[[Places, Places], Floats] | None = None,
) -> list[tuple[int, int, float]]:
    """Return the allowed pairs of rows with the best positive scores, and the scores, best first.

    ``sum_some`` returns `sum_pairs` of some conditions and columns; ``rows`` are the conditions of
    the rows, by default all; ``rate`` is the expected loss of each unit of a row, if it differs
    from its stratum's; ``upper`` leaves out pairs with earlier rows; ``z_of`` returns the deviates
    of pairs, ``z`` or more.
    """
    pairs: list[tuple[int, int, float]] = []
    # all pairs at once take gigabytes
    for some in split(len(allowed), allowed.shape[1], _BLOCK):
        row, column = some.start, some.start if upper else 0
        sums = sum_some(some if rows is None else rows[some], slice(column, None))
        if rate is not None:
            sums[2] = sums[0] * rate[some, None]
        i, j = np.nonzero(find_hopeful(sums, allowed[some, column:], z))
        scores = _score(sums[:, i, j], z_of(i + row, j + column) if z_of else z)
        best = _best(scores, top)
        i, j = i[best] + row, j[best] + column
        pairs += zip(i.tolist(), j.tolist(), scores[best].tolist(), strict=True)
    return sorted(pairs, key=lambda pair: (-pair[2], pair))[:top]


def _search_all(bars: Bars, strata: Strata) -> Iterator[ModeRule]:
    language, plain = bars.language, bars.language.plain
    yield from _search_singles(bars, strata)
    if language.depth < 2:
        return
    sums = partial(_sum_plain, bars, strata, upper=True)
    z = [_z(bars, kind) for kind in ("pair", "value pair")]
    least = min(filter(None, z), default=0.0)

    def z_of(i: Places, j: Places) -> Floats:
        return np.where(language.is_value[i] & language.is_value[j], z[1], z[0])

    best = _find_pairs(sums, language.pairs, least, 2 * TOP, upper=True, z_of=z_of)
    for i, j, _ in best:
        yield from language.join(((int(plain[i]),), (int(plain[j]),)))
    if language.counts["mixed"]:
        sums = partial(_sum_mixed, language, strata)
        mixed = _find_pairs(sums, language.mixed, _z(bars, "mixed"), 2 * TOP)
        yield from _list_pairs(plain, language.others, mixed, "mixed")
    if language.counts["triple"]:
        yield from _search_triples(bars, strata, best[0][2] if best else 0.0)
    yield from _search_sets(bars, strata, [(i, j) for i, j, _ in best[:TOP]])
    yield from _search_words(bars, strata)


def _sum_plain(
    bars: Bars, strata: Strata, some: _Some, others: _Some, *, upper: bool = False
) -> Floats:
    """Return `_sum` of plain conditions; where these are few, each pair is counted once for all."""
    bits, support = bars.language.plain_bits, bars.language.pair_support
    if support.size > _SHARED:
        return _sum(bits[some], bits[others], strata, support[some][:, others], upper=upper)
    if strata.pair_sums is None:
        failing = _take_failing(bars, strata)
        strata.pair_sums = sums = _sum(bits, bits, strata, support, failing, upper=True)
        for place in range(len(bits)):
            sums[:, place + 1 :, place] = sums[:, place, place + 1 :]
    return np.ascontiguousarray(strata.pair_sums[:, some][:, :, others])


def _sum_mixed(language: RuleLanguage, strata: Strata, some: _Some, others: _Some) -> Floats:
    """Return `_sum` of plain conditions and the others."""
    support = language.mixed_support[some][:, others]
    return _sum(language.plain_bits[some], language.other_bits[others], strata, support)


def _take_failing(bars: Bars, strata: Strata) -> Bits | None:
    """Return `Bars.failing` of the units that no mode covers."""
    rows = bars.failing
    return None if rows is None else rows & bars.losses.take_failing(strata.new_bits[None])


def _sum(
    a: Bits,
    b: Bits,
    strata: Strata,
    support: Counts | None = None,
    failing: Bits | None = None,
    *,
    upper: bool = False,
) -> Floats:
    """Return `sum_pairs`, of rows that share so many units in all: these are not counted
    again. ``failing`` are the rows, where they are the same, of the units that fail alone."""
    inside, planes, scale, runs, rates = strata.words
    known = support is not None and len(rates) == 1 and bool(strata.new.all())
    some = slice(0 if failing is not None else None)
    words = (inside, planes[some], scale[some], runs, rates[:0] if known else rates)
    sums: Floats = sum_pairs(a, b, words, upper=upper)
    if failing is not None:
        sums[1] = bitset.count_and(failing, failing)
    if known:
        sums[0], sums[2] = support, rates[0] * support
    return sums


def _score(sums: Floats, z: Floats | float) -> Floats:
    units, losses, expected = sums
    return score_counts(units, losses, expected, z)


def _z(bars: Bars, kind: str, size: int = 1) -> float:
    return math.sqrt(2 * max(bars.log_cost(kind, size), 0.5)) if bars.language.counts[kind] else 0.0


def _best(scores: Floats, top: int) -> Places:
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
    left: Places, right: Places, best: list[tuple[int, int, float]], kind: str
) -> Iterator[ModeRule]:
    for i, j, _ in best:
        yield ModeRule(((int(left[i]),), (int(right[j]),)), kind)


def _search_triples(bars: Bars, strata: Strata, best_pair: float) -> Iterator[ModeRule]:
    language, z = bars.language, _z(bars, "triple")
    p = language.triple_places
    errors = _sum_plain(bars, strata, p, p, upper=True)[1]
    failing = _take_failing(bars, strata)
    # no third condition does better than to leave the failures of a pair alone
    most = score_counts(errors, errors, errors * strata.rates.min(), z)
    pairs = language.triple_pairs & (most > _HOPELESS * best_pair)
    known = language.triple_bits, pairs, language.triple_support, MIN_SUPPORT, strata.words
    some = None if failing is None else failing[p]
    best, third = search_triples(*known, z, GAMMA, some)
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
        inner = _sum_plain(bars, strata, slice(None), places)[:, contexts]
        for context, some in _search_family(bars, inner, whole, places, "set", spread):
            yield ModeRule(((int(plain[contexts[context]]),), some), "set")
        apart = [p for p in pairs if family not in language.family[plain[list(p)]]]
        if not apart or not language.counts["set of a pair"]:
            continue
        left, right = plain[np.array(apart)].T
        masks = language.bits[left] & language.bits[right]
        inner = _sum(masks, values, strata)
        sets = _search_family(bars, inner, whole, places, "set of a pair", spread)
        for context, some in sets:
            i, j = apart[context]
            yield ModeRule(((int(plain[i]),), (int(plain[j]),), some), "set of a pair")


def _search_family(
    bars: Bars, sums: Floats, whole: Sequence[Floats], places: Places, kind: str, spread: float
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
    bars: Bars, strata: Strata, places: Places, pool: Places, start: int
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


def describe_both(strata: Strata, inside: tuple[Floats, Floats, Floats]) -> Floats:
    """Return the log-likelihood that a rate of their own, inside and outside, gains over the
    expected one among units that no mode covers, less the price of the rate.

    Parameters
    ----------
    strata : Strata
    inside : tuple of float64 arrays, shape (rules,)
        Units of each rule, their losses, and what is expected of them.
    """
    whole = strata.count_new(strata.new_bits[None])
    outside = (np.maximum(all_of - part, 0) for all_of, part in zip(whole, inside, strict=True))
    return gain_over_expected(*inside) + gain_over_expected(*outside) - _price(whole[0])


def _price(units: Floats) -> float:
    """Return what the likelihood has to gain by one failure rate more (Schwarz 1978)."""
    return 0.5 * math.log(max(1.0, units.sum()))


def fails_alike(language: RuleLanguage, strata: Strata, rule: ModeRule) -> bool:
    """Return whether each value of a rule's set carries its part of the excess, and fails more than
    without the other conditions: so much more that a rate of its own pays."""
    *others, values = rule.parts
    if len(values) == 1:
        return True
    context, rows = language.mask(ModeRule(tuple(others), rule.kind)), language.bits[list(values)]
    units, losses, expected = strata.count_new(rows & context)
    mean = (losses - expected).sum() / max(1, units.sum())
    if units.min() < 1 or ((losses - expected) < EVEN * mean * units).any():
        return False
    n, lost, _ = strata.count_new(rows & ~context)
    pays = split_gain(units, losses, n, lost) > _price(strata.count_new(strata.new_bits[None])[0])
    return bool(((pays & (losses * n > lost * units)) | (n == 0)).all())


def _log_likelihood(units: Floats, losses: Floats, rate: Floats | None = None) -> Floats:
    """Return the log-likelihood of so many losses among so many units, by default at their own
    rate."""
    from scipy.special import xlogy

    n = np.maximum(units, 1e-12)
    rate = np.clip(losses / n, 0.0, 1.0) if rate is None else rate
    return np.asarray(xlogy(losses, rate) + xlogy(np.maximum(n - losses, 0), 1 - rate))


def split_gain(u: Floats, k: Floats, v: Floats, j: Floats) -> Floats:
    """Return log-likelihood gained by a rate for each of two parts instead of one for both."""
    return _log_likelihood(u, k) + _log_likelihood(v, j) - _log_likelihood(u + v, k + j)


def gain_over_expected(u: Floats, k: Floats, e: Floats) -> Floats:
    """Return log-likelihood that units gain by a failure rate of their own over the expected one.

    Parameters
    ----------
    u, k, e : float64 arrays, shape (rules,)
        Units, their losses, and what is expected of them.
    """
    expected = np.clip(e / np.maximum(u, 1e-12), 1e-6, 1 - 1e-6)
    return _log_likelihood(u, k) - _log_likelihood(u, k, expected)


def list_narrower(language: RuleLanguage, strata: Strata, rule: ModeRule) -> Iterator[ModeRule]:
    """Yield rules of the language that hold for less: one condition more, also in place of parts
    that it implies, or one narrower."""
    families = {language.family[part[0]] for part in rule.parts}
    # the conditions that hold only where a part does
    inside = [set(language.bits.list_inside(language.bits.unite(part))) for part in rule.parts]
    single = ((int(i),) for i in [*language.plain, *language.others])
    for new in (*_list_sets(language, strata, rule), *single):
        if language.family[new[0]] not in families:
            yield from language.join((*rule.parts, new))
            pairs = zip(rule.parts, inside, strict=True)
            parts = [part for part, some in pairs if not some.issuperset(new)]
            if len(parts) < len(rule.parts):
                yield from language.join((*parts, new))
    yield from _list_replacements(language, rule, narrower=True)


def _list_sets(language: RuleLanguage, strata: Strata, rule: ModeRule) -> Iterator[tuple[int, ...]]:
    """Yield the worst two, three or four values of each column where a rule holds."""
    row = language.mask(rule)
    for places in language.values.values():
        index = language.plain[places]
        units, losses, _ = strata.count_new(language.bits[index] & row)
        rate = np.where(units >= FEW, losses / np.maximum(units, 1), -1.0)
        worst = [int(i) for i in index[np.argsort(-rate, kind="stable")]]
        for size in range(2, min(MAX_SET, int((rate >= 0).sum())) + 1):
            yield tuple(sorted(worst[:size]))


def list_wider(language: RuleLanguage, rule: ModeRule) -> Iterator[ModeRule]:
    """Yield rules of the language that hold for more, and for half of the units at most: a
    condition less, or one wider."""
    fewer = (rule.parts[:place] + rule.parts[place + 1 :] for place in range(len(rule.parts)))
    wider = [one for parts in fewer for one in language.join(parts)]
    wider += _list_replacements(language, rule, narrower=False)
    small = bitset.count(language.masks(wider)) <= language.layout.strata.size / 2
    yield from (one for one, ok in zip(wider, small, strict=True) if ok)


def _list_replacements(
    language: RuleLanguage, rule: ModeRule, *, narrower: bool
) -> Iterator[ModeRule]:
    """Yield rules with another condition of the same family, nested in the first or around it."""
    for place, part in enumerate(rule.parts):
        row = language.bits.unite(part)
        for other in _list_parts(language, part):
            mask = language.bits.unite(other)
            inner, outer = (mask, row) if narrower else (row, mask)
            if not (inner & ~outer).any() and (outer & ~inner).any():
                parts = (*rule.parts[:place], other, *rule.parts[place + 1 :])
                yield from language.join(parts)


def _list_parts(language: RuleLanguage, part: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield other conditions of a part's family: its literals, and sets with a value more or
    less."""
    family = language.family[part[0]]
    members = [int(i) for i in np.flatnonzero(language.family == family)]
    if len(part) == 1:
        yield from ((i,) for i in members if (i,) != part)
    values = {int(language.plain[p]) for v in language.values.values() for p in v}
    if not set(part) <= values:
        return
    if len(part) > 2:
        yield from (tuple(i for i in part if i != one) for one in part)
    elif len(part) == 2:
        yield from ((one,) for one in part)
    if len(part) < MAX_SET:
        yield from (tuple(sorted((*part, i))) for i in members if i in values and i not in part)


def cut_range(
    language: RuleLanguage, strata: Strata, rule: ModeRule, place: int
) -> ModeRule | None:
    """Return a rule with the ends of one of its ranges where the losses of new units put them; None
    where no other end pays for being said."""
    one = language.literals[rule.parts[place][0]]
    # an effect in a context, and a column with gaps, are tested on some units only
    if one.numbers is None or one.bounds is None or language.tested(rule) is not None:
        return None
    parts, values = (*rule.parts[:place], *rule.parts[place + 1 :]), one.numbers.values
    on = language.layout.unpack(language.mask(ModeRule(parts, rule.kind))[None])[0]
    on &= strata.new & np.isfinite(values)
    if not on.any():
        return None
    levels, level = np.unique(values[on], return_inverse=True)
    # units, losses and expected losses below each level
    of_unit = (np.ones(len(on)), strata.losses.values, strata.expected)
    sums = np.stack([np.bincount(level, row[on], len(levels) + 1) for row in of_unit])
    failing, sums = sums[1] > 0, sums.cumsum(axis=1) - sums
    low, high = one.bounds
    first = [int(np.searchsorted(levels, low)), int(np.searchsorted(levels, high, side="right"))]
    ends, tried = list(first), [-1, -1]
    for side in (0, 1, 0, 1):
        # the same other end gives the same best one
        if math.isinf(one.bounds[side]) or tried[side] == ends[1 - side]:
            continue
        tried[side] = ends[1 - side]
        below, to = (sums[:, [ends[0]]], sums) if side else (sums, sums[:, [ends[1]]])
        units, losses, expected = np.maximum(to - below, 0)
        usable = (units >= MIN_SUPPORT) & (losses > expected)
        if len(strata.rates) == 1:
            # where all are expected to fail alike, no end is best at a unit that passed
            usable &= np.roll(failing, side) | (np.arange(len(units)) == first[side])
        worth = np.full(len(units), -np.inf)
        worth[usable] = describe_both(strata, (units[usable], losses[usable], expected[usable]))
        # Schwarz's price is for a rate; an end is one of the levels
        worth[first[side]] += math.log(len(levels))
        ends[side] = int(worth.argmax())
    if ends == first:
        return None
    low = low if math.isinf(low) else float(levels[ends[0]])
    high = high if math.isinf(high) else float(levels[ends[1] - 1])
    return language.cut(rule, place, low, high)


def join(language: RuleLanguage, base: Strata, a: ModeRule, b: ModeRule) -> ModeRule | None:
    """Return the rule of two that say one thing: values of a column that fail alike."""
    rule = _join_values(language, a, b)
    if rule is not None and fails_alike(language, base, rule):
        units, losses, _ = base.count_new(language.masks([a, b]))
        (gain,) = split_gain(units[:1], losses[:1], units[1:], losses[1:])
        if gain <= _price(units):
            return rule
    return None


def _join_values(language: RuleLanguage, a: ModeRule, b: ModeRule) -> ModeRule | None:
    """Return the rule of the values of both, where these are all in which they differ."""
    shared = [part for part in a.parts if part in b.parts]
    differ = {i for rule in (a, b) for part in rule.parts if part not in shared for i in part}
    if len(a.parts) != len(b.parts) or len(shared) != len(a.parts) - 1 or len(differ) > MAX_SET:
        return None
    values = (language.plain[places] for places in language.values.values())
    if not any(differ <= set(index.tolist()) for index in values):
        return None
    return next(language.join((*shared, tuple(sorted(differ))), free=True), None)


def is_sum(strata: Strata, a: Bits, b: Bits) -> bool:
    """Return whether units of two rules at once lose about as much more as the excess of each rule
    alone comes to: then they are two rules, not one."""
    units, losses, _ = strata.count_new(np.stack([a & b, a & ~b, b & ~a, ~(a | b)]))
    both, one, other, neither = losses / np.maximum(units, 1)
    known = units.min() >= MIN_SUPPORT
    return bool(known and both - one - other + neither < _JOINS * (both - neither))
