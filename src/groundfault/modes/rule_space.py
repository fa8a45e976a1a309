"""The language of rules: the conditions that join, and the number of rules of each class.

It depends only on the examples, not on outcomes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from groundfault.base.arrays import Bools, Places
from groundfault.core.rules import literal as constant, quote
from groundfault.modes.condition import MAX_SET, MAX_WORDS, MIN_SUPPORT, MOST, Condition, Tier
from groundfault.modes.kernels import count_triples, split
from groundfault.stats import bits as bitset
from groundfault.stats.bits import Bits, Counts, JoinedRows, Layout

_TRIPLE_WORK = 1e9  # words of bits that all triples read: a second
_REDUNDANT = 0.95
"""Most of a condition's units that a pair keeps: each condition must cut away a twentieth."""
_JOINED = 800
"""Conditions above which fine cuts join with no other: permuting 320,000 pairs takes 2 s."""
_AT_ONCE = 1 << 18  # pairs that are compared at a time: they stay in the processor's cache
_PLAINER = 16.0
"""Ratio of the levels of two conditions whose reading costs differ by 1."""


@dataclass(frozen=True, order=True)
class ModeRule:
    """A conjunction of parts; a part is one literal, or several of one family joined by OR.

    Attributes
    ----------
    parts : tuple of tuple of int
        Places of literals in the language.
    kind : str
        The class of rules it belongs to.
    """

    parts: tuple[tuple[int, ...], ...]
    kind: str


class RuleLanguage:
    """Conditions, their allowed conjunctions, and the number of rules of each class.

    Parameters
    ----------
    literals : sequence of Condition
    layout : Layout
    depth : {1, 2, 3}
    """

    def __init__(self, literals: Sequence[Condition], layout: Layout, depth: int = 3) -> None:
        self.literals, self.layout, self.depth = tuple(literals), layout, depth
        self._uncut: dict[ModeRule, tuple[ModeRule, float]] = {}
        held = {id(side): layout.arrange(side) for one in literals for side in one.units.sides}
        sides = [tuple(held[id(side)] for side in one.units.sides) for one in literals]
        self.bits = JoinedRows(sides, len(layout.words))
        tiers = np.array([one.tier for one in literals], dtype=np.int64)
        families = [one.family for one in literals]
        # with few attributes, conditions on texts take their place
        attributes = {f for f, tier in zip(families, tiers, strict=True) if tier == Tier.ATTRIBUTE}
        top = Tier.ATTRIBUTE if len(attributes) >= 3 else Tier.TEXT
        grain = np.array([one.grain for one in literals], dtype=np.int64)
        alone = np.flatnonzero(tiers <= top)
        self.plain = alone[grain[alone] < 2]
        if len(self.plain) > _JOINED:
            self.plain = alone[grain[alone] == 0]
        self._joined = {int(i) for i in self.plain}
        self.others = np.flatnonzero((tiers > top) & (tiers < Tier.PARTIAL))
        self.partial = np.flatnonzero(tiers == Tier.PARTIAL)
        self.own = np.flatnonzero(tiers == Tier.OWN)
        self.is_plain = tiers <= top
        codes = {name: i for i, name in enumerate(dict.fromkeys(families))}
        self.family = np.array([codes[name] for name in families], dtype=np.int64)
        self.support = np.array([one.units.size for one in literals], dtype=np.int64)
        self.single = alone[self.support[alone] <= MOST * len(layout.strata)]
        # a plain condition mostly describes the same units as a negation or a range
        costs = np.array([self.literals[i].cost for i in self.single])
        self.handicaps = math.log(_PLAINER) * (costs - costs.min(initial=math.inf))
        self._join_pairs()
        self._choose_triples()
        self._count_rules()

    def _join_pairs(self) -> None:
        # copies, which every pass of the search reads
        self.plain_bits, self.other_bits = self.bits[self.plain], self.bits[self.others]
        self.pair_support = bitset.count_and(self.plain_bits, self.plain_bits)
        self.mixed_support = bitset.count_and(self.plain_bits, self.other_bits)
        self.joined = self._allow(self.pair_support, self.plain, self.plain)
        self.mixed = self._allow(self.mixed_support, self.plain, self.others)
        if self.depth < 2:
            self.joined[:], self.mixed[:] = False, False
        self.pairs = self.joined.copy()
        for place, row in enumerate(self.pairs):
            row[: place + 1] = False
        literals = (self.literals[i] for i in self.plain)
        values = [one.bounds is None and one.cost == 0 for one in literals]
        self.is_value = np.array(values, dtype=np.bool_)

    def _allow(self, both: Counts, left: Places, right: Places) -> Bools:
        """Return the pairs that are rules: enough units, different families, both parts matter."""
        # whole numbers are compared with whole numbers: thousands of columns squared
        most = (_REDUNDANT * self.support).astype(both.dtype)
        allowed = np.empty(both.shape, dtype=np.bool_)
        for some in split(len(left), len(right), _AT_ONCE):
            part, units = allowed[some], both[some]
            np.greater_equal(units, MIN_SUPPORT, out=part)
            part &= (units <= most[left[some], None]) & (units <= most[right])
            part &= self.family[left[some], None] != self.family[right]
        return allowed

    def _choose_triples(self) -> None:
        """Choose the conditions for triples: all, or the plainest on large tables."""
        words = max(1, self.bits.words)
        limit = int((6 * _TRIPLE_WORK / words) ** (1 / 3)) if self.depth >= 3 else 0
        # by cost first: values and flags, then cuts, then ranges; text literals last
        costs = np.array([self.literals[i].cost + 2 * self.literals[i].tier for i in self.plain])
        self.coarse = np.flatnonzero([self.literals[i].grain == 0 for i in self.plain])
        order = np.argsort(costs[self.coarse], kind="stable")[:limit]
        self.triple_places = np.sort(self.coarse[order])
        p = self.triple_places
        self.triple_pairs = self.joined[np.ix_(p, p)]
        self.triple_bits = self.plain_bits[p]
        self.triple_support = self.pair_support[np.ix_(p, p)]

    @cached_property
    def contexts(self) -> Places:
        """Return values and flags that may be contexts of effects, as places of plain ones."""
        literals = [self.literals[i] for i in self.plain]
        return np.array([p for p, one in enumerate(literals) if one.bounds is None], dtype=np.intp)

    @cached_property
    def pairs_in_contexts(self) -> Bools:
        """Return which plain conditions join with each context: shape (contexts, plain)."""
        every = len(self.contexts) == len(self.plain)
        return self.joined if every else self.joined[self.contexts]

    @cached_property
    def values(self) -> dict[str, Places]:
        """Return families of literals that exclude each other, as places among the plain ones."""
        members: dict[str, list[int]] = {}
        for place, i in enumerate(self.plain):
            one = self.literals[i]
            if one.value is not None or (one.tier == Tier.TEXT and one.bounds is None):
                members.setdefault(one.family, []).append(place)
        families = {}
        for name, places in members.items():
            index = np.array(places, dtype=np.intp)
            overlap = self.pair_support[np.ix_(index, index)]
            if len(index) >= 3 and overlap.sum() == np.trace(overlap):
                families[name] = index
        return families

    def values_beside(self, part: tuple[int, ...]) -> Places:
        """Return all values of a column that join to sets, given some of these values."""
        families = [self.plain[places] for places in self.values.values()]
        beside = (index for index in families if set(part) <= set(index.tolist()))
        return next(beside, np.array(part, dtype=np.intp))

    def log_sets(self, part: tuple[int, ...]) -> float:
        """Return the log of the number of sets with as many values; 0 for a single condition."""
        single = len(part) == 1
        return 0.0 if single else math.log(math.comb(len(self.values_beside(part)), len(part)))

    @cached_property
    def word_families(self) -> dict[str, Places]:
        """Return words of each column of texts, as places of literals."""
        members: dict[str, list[int]] = {}
        for i, one in enumerate(self.literals):
            if one.tier == Tier.WORD:
                members.setdefault(one.column, []).append(i)
        return {name: np.array(places) for name, places in members.items() if len(places) > 2}

    def list_named(self, words: Places) -> Bools:
        """Return words that match the units of one or two attributes, which already name them."""
        of = np.flatnonzero([self.literals[i].tier == Tier.ATTRIBUTE for i in self.plain])
        support = self.support[words]
        shared = bitset.count_and(self.bits[words], self.bits[self.plain[of]])
        both = self.pair_support[np.ix_(of, of)]
        return np.array(
            [
                (_REDUNDANT * both[np.ix_(row, row)] <= units).any()
                for row, units in zip(shared >= _REDUNDANT * support[:, None], support, strict=True)
            ],
            dtype=np.bool_,  # also where there are no words
        )

    def _count_rules(self) -> None:
        triples = count_triples(
            self.triple_bits, self.triple_pairs, self.triple_support, MIN_SUPPORT
        )
        numbers = {self.literals[i].numbers for i in self.single}
        of_values = self.pairs[np.ix_(self.is_value, self.is_value)]
        pairs, value_pairs = int(self.pairs.sum()), int(of_values.sum())
        self.counts = {
            "single": len(self.single),
            "word": len(self.others),
            "value pair": value_pairs,
            "pair": pairs - value_pairs,
            "mixed": int(self.mixed.sum()),
            "triple": int(triples),
            "values": self._count_sets(1),
            "set": self._count_sets(len(self.plain)) if self.depth > 1 else 0,
            "set of a pair": self._count_sets(pairs) if self.depth > 2 else 0,
            "words": sum(_count_subsets(len(v), MAX_WORDS) for v in self.word_families.values()),
            "inside": int(self.pairs_in_contexts.sum() + self.mixed[self.contexts].sum()),
            "partial": len(self.partial),
            "own": len(self.own),
            "cut": sum(math.comb(len(one.levels) + 1, 2) for one in numbers if one is not None),
        }
        self.contexts_of = {
            "values": 1,
            "words": 1,
            "set": len(self.plain),
            "set of a pair": pairs,
        }

    def cut(self, rule: ModeRule, place: int, low: float, high: float) -> ModeRule:
        """Return a rule with other ends of one of its ranges, which no other rule has."""
        (i,), whole = rule.parts[place], self.uncut(rule)
        numbers = self.literals[i].numbers
        assert numbers is not None
        one = numbers.cut(low, high)
        self.bits.parts.append((self.layout.arrange(one.units.bits),))
        self.support = np.append(self.support, one.units.size)
        self.family = np.append(self.family, self.family[i])
        self.is_plain, self.literals = np.append(self.is_plain, True), (*self.literals, one)
        parts = (*rule.parts[:place], (len(self.literals) - 1,), *rule.parts[place + 1 :])
        cut = ModeRule(parts, "cut")
        self._uncut[cut] = whole[0], whole[1] + 2 * math.log(len(numbers.levels))
        return cut

    def uncut(self, rule: ModeRule) -> tuple[ModeRule, float]:
        """Return the rule that a rule with other ends was cut from, and the log of the number of
        ends that it could have."""
        return self._uncut.get(rule, (rule, 0.0))

    def _count_sets(self, contexts: int) -> int:
        return contexts * sum(_count_subsets(len(v), MAX_SET) for v in self.values.values())

    def handicap_of(self, rule: ModeRule) -> float:
        """Return the extra cost of a single condition over the plainest one; 0 for other rules."""
        if rule.kind != "single":
            return 0.0
        return float(self.handicaps[np.searchsorted(self.single, rule.parts[0][0])])

    def join(self, parts: Sequence[tuple[int, ...]], *, free: bool = False) -> Iterator[ModeRule]:
        """Yield the rule of some parts, if it is in the language; ``free`` are sets of values that
        no other condition holds together."""
        kind = self._classify(parts, free)
        if kind is not None:
            # plain conditions in their order, sets and words last, as the search writes them
            order = sorted(parts, key=lambda p: (len(p) > 1, not self.is_plain[p[0]], p))
            yield ModeRule(tuple(order), kind)

    def _classify(self, parts: Sequence[tuple[int, ...]], free: bool) -> str | None:
        """Return the class of rules that a conjunction belongs to; None if the language lacks
        it."""
        tiers = {self.literals[i].tier for part in parts for i in part}
        if max(tiers, default=0) >= Tier.PARTIAL:
            # tested on some units only, each on its own
            alone = "own" if Tier.OWN in tiers else "partial"
            return alone if len(parts) == len(parts[0]) == 1 else None
        single = [part[0] for part in parts if len(part) == 1]
        sets = [part for part in parts if len(part) > 1]
        plain = sorted(i for i in single if self.is_plain[i])
        others = [i for i in single if not self.is_plain[i]]
        if not set(plain) <= self._joined and len(parts) > 1:
            return None
        if not parts or len(parts) > self.depth or len(sets) > 1 or (sets and others):
            return None
        if sets:
            if not self.is_plain[sets[0][0]]:
                return "words" if not plain else None
            if len(plain) == 2 and self._classify_pair(*plain):
                return "set of a pair"
            if not plain:
                return "values" if free else None
            return "set" if len(plain) == 1 else None
        if others:
            return self._classify_others(plain, others)
        if len(plain) == 3:
            return "triple" if self._is_triple(plain) else None
        if len(plain) == 2:
            return self._classify_pair(*plain)
        return "single" if np.isin(plain[0], self.single) else None

    def _classify_others(self, plain: list[int], others: list[int]) -> str | None:
        if len(others) > 1 or len(plain) > 1:
            return None
        if not plain:
            return "word"
        i, j = np.searchsorted(self.plain, plain[0]), np.searchsorted(self.others, others[0])
        return "mixed" if self.mixed[i, j] else None

    def _classify_pair(self, *plain: int) -> str | None:
        places = np.searchsorted(self.plain, plain)
        kind = "value pair" if self.is_value[places].all() else "pair"
        return kind if self.pairs[tuple(places)] else None

    def _is_triple(self, plain: list[int]) -> bool:
        places = np.searchsorted(self.plain, plain)
        if not np.isin(places, self.triple_places).all():
            return False
        t = np.searchsorted(self.triple_places, places)
        couples = [(t[0], t[1]), (t[0], t[2]), (t[1], t[2])]
        if not all(self.triple_pairs[a, b] for a, b in couples):
            return False
        n = int(bitset.count(np.bitwise_and.reduce(self.bits[plain], axis=0)[None])[0])
        return bool(MIN_SUPPORT <= n < min(self.triple_support[a, b] for a, b in couples))

    def unpack(self) -> Bools:
        """Return the units that conditions match: shape (conditions, units)."""
        return self.layout.unpack(self.bits[:])

    def mask(self, rule: ModeRule) -> Bits:
        """Return the units that a rule matches, as one row of bits."""
        return np.asarray(self.rows([rule])[:][0])

    def masks(self, rules: Sequence[ModeRule]) -> Bits:
        """Return the units that rules match: uint64, shape (rules, words)."""
        return self.rows(rules)[:]

    def rows(self, rules: Sequence[ModeRule]) -> JoinedRows:
        """Return the units that rules match, joined where they are read."""
        everything = np.full(self.bits.words, ~np.uint64(0))
        sides = [[one for p in rule.parts for one in self.bits.list_sides(p)] for rule in rules]
        return JoinedRows([tuple(some) or (everything,) for some in sides], self.bits.words)

    def size(self, rule: ModeRule) -> float:
        """Return the reading cost of a rule: about one a condition."""
        return sum(
            1 + 0.5 * (len(part) - 1) + max(self.literals[i].cost for i in part) / 2
            for part in rule.parts
        )

    def own_condition(self, rule: ModeRule) -> Condition | None:
        """Return the user's candidate that a rule is; None for one of the search's own language."""
        return self.literals[rule.parts[0][0]] if rule.kind == "own" else None

    def tested(self, rule: ModeRule) -> Bools | None:
        """Return units that a rule is tested on; None for all."""
        if rule.kind == "inside":
            return np.asarray(self.layout.unpack(self.bits[[rule.parts[0][0]]])[0])
        return self.literals[rule.parts[0][0]].tested if rule.kind in ("partial", "own") else None

    def reads_text(self, rule: ModeRule) -> bool:
        """Return whether a rule reads texts rather than attributes."""
        return any(
            Tier.ATTRIBUTE < self.literals[i].tier < Tier.PARTIAL
            for part in rule.parts
            for i in part
        )

    def sql(self, rule: ModeRule) -> str:
        """Return a rule in SQL."""
        return " AND ".join(self._part_sql(part) for part in rule.parts)

    def _part_sql(self, part: tuple[int, ...]) -> str:
        literals = [self.literals[i] for i in part]
        if len(part) > 1 and all(one.value is not None for one in literals):
            values = ", ".join(constant(one.value) for one in literals)
            return f"{quote(literals[0].column)} IN ({values})"
        joined = " OR ".join(one.rule for one in literals)
        return f"({joined})" if len(part) > 1 else joined

    def conditions(self, rule: ModeRule) -> tuple[str, ...]:
        """Return the parts of a rule in English."""
        return tuple(self._part_meaning(part) for part in rule.parts)

    def rename(self, rule: ModeRule) -> Iterator[tuple[str, str]]:
        """Yield a rule in other words for the same units: SQL and English, one condition
        changed."""
        sql = [self._part_sql(part) for part in rule.parts]
        english = list(self.conditions(rule))
        for place, part in enumerate(rule.parts):
            for alias in self.literals[part[0]].aliases if len(part) == 1 else ():
                yield (
                    " AND ".join([*sql[:place], alias.rule, *sql[place + 1 :]]),
                    " and ".join([*english[:place], alias.meaning, *english[place + 1 :]]),
                )

    def _part_meaning(self, part: tuple[int, ...]) -> str:
        literals = [self.literals[i] for i in part]
        meanings = [one.meaning for one in literals]
        head = meanings[0].partition('"')[0]
        if len(part) > 1 and all(one.value is not None for one in literals):
            head, ends = f"{literals[0].column} is ", [str(one.value) for one in literals]
        elif len(part) > 1 and all(one.startswith(f'{head}"') for one in meanings):
            ends = [one.removeprefix(head) for one in meanings]
        else:
            return " or ".join(meanings)
        return f"{head}{', '.join(ends[:-1])} or {ends[-1]}"


def _count_subsets(values: int, largest: int) -> int:
    return sum(math.comb(values, size) for size in range(2, largest + 1))
