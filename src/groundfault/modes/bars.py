"""The bar of each class of rules: the surprise that a rule must reach among all possible rules.

Rules overlap (cuts of one column, dependent columns, pairs that share a condition). By chance, the
most surprising rule is therefore less surprising than among as many independent rules. Outcomes
permuted within strata show how surprising the best rule of each class is by chance. Classes that
are not permuted pay for every rule (a weighted Bonferroni bar).

See `groundfault.modes.kernels`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from types import ModuleType

import numpy as np

from groundfault.base.arrays import Bools, Floats, Ints, Places, Singles
from groundfault.base.long_work import stream
from groundfault.core.plan import BarKind
from groundfault.modes.condition import FEW, MAX_SET, MAX_WORDS, TOP_VALUES
from groundfault.modes.kernels import (
    Kernel,
    choose_code,
    count_bits,
    find_least_alone,
    find_needed,
    limit_pairs,
    split,
    tabulate_reach,
    tabulate_tails,
)
from groundfault.modes.rule_space import ModeRule, RuleLanguage
from groundfault.modes.strata import RARE, WORTH_TAKING, Losses, Scores
from groundfault.stats import bits as bitset
from groundfault.stats.bits import Bits
from groundfault.stats.multiple import Joint

SHARES = {
    "single": 0.46,
    "value pair": 0.14,
    "pair": 0.16,
    "word": 0.06,
    "mixed": 0.06,
    "set": 0.06,
    "triple": 0.02,
    "set of a pair": 0.01,
    "words": 0.01,
    "inside": 0.01,
    "values": 0.005,
    "cut": 0.005,
    "partial": 0.45,
    "own": 0.05,
}
"""Shares of the error level; shares of empty classes go to the others. Short rules get the most.
Pairs of two values are a class apart from the many more pairs with a cut: their bar is log p -9.2
instead of -11.4, and 50 of 96 planted ones are named instead of 28. Singles had .60 before: 59 of
96 planted ones are named with either share."""

PERMUTED = ("single", "value pair", "pair", "word", "mixed", "set")
"""Classes whose bars come from permutations; triples are too many (millions)."""

PERMUTATIONS = 999
"""With 999, a class with 6 % of a level of 10 % has its sixth smallest value as the bar; with 299
it would be the second, and power would vary from draw to draw."""

WORK = 1e10
"""Words of bits that permutations may read, some five seconds: larger classes do not lack power."""

_HELD = 1e8
"""Most outcomes held for all permutations: 400 MB, for 100,000 units."""
PRODUCTS = 15
"""Products in matrices that take the time of one word of bits."""
Evaluate = Callable[[Bools, Singles], Singles]
_JOINED = ("value pair", "pair", "mixed", "set")
"""Classes that may have very many rules."""


class Bars:
    """The correction of each class of rules for the number of possible rules.

    Parameters
    ----------
    language : RuleLanguage
    losses : Losses
    level : float
        Family-wise error level of all marginal claims, in (0, 1).
    kind : {"permutation", "bonferroni"}
        Outcomes are permuted within strata, or every rule pays. Sets pay where losses are graded or
        strata are several.

    Attributes
    ----------
    weights : dict of str to float
        Each class's share of the level.
    lowest : dict of str to float
        For permuted classes: the bar for the log p, including the handicap.

    Notes
    -----
    Shares of permuted classes are raised together until permutations pass *any* of their bars as
    often as the level allows. Westfall and Young 1993, single step, over the minima of exact
    p-values: exact under the complete null, strong under subset pivotality (the dependence of
    conditions without an effect is the same whether or not others have effects).
    """

    def __init__(
        self, language: RuleLanguage, losses: Losses, level: float, kind: BarKind = "permutation"
    ) -> None:
        self.language, self.losses, self.log_level = language, losses, math.log(level)
        self._single = math.inf
        used = {name: SHARES[name] for name, count in language.counts.items() if count}
        self.weights = {name: share / sum(used.values()) for name, share in used.items()}
        # a class with less than one permutation in its share of the level has no bar
        least = 1 / (level * (PERMUTATIONS + 1))
        names = [n for n in PERMUTED if self.weights.get(n, 0.0) >= least and kind == "permutation"]
        permuter = Permuter(language, losses, names)
        self.exact, self.lowest = permuter.exact, self._permute(permuter, level)

    def _permute(self, permuter: Permuter, level: float) -> dict[str, float]:
        if not permuter.names:
            return {}
        shares = np.array([self.weights[name] for name in permuter.names])
        minima = permuter.find_minima(stream(0, "modes: bars"), PERMUTATIONS)
        joint = Joint(minima, shares / shares.sum())
        if "single" in permuter.names:
            single = minima[:, [permuter.names.index("single")]]
            self._single = self.log_level - Joint(single, np.ones(1)).bar(0, level)
        bars = [joint.bar(c, level * shares.sum()) for c in range(len(shares))]
        # single precision: a rule equal to a permutation must not pass
        return {n: x - 1e-5 for n, x in zip(permuter.names, bars, strict=True) if -math.inf < x < 0}

    @cached_property
    def failing(self) -> Bits | None:
        """Return the plain conditions among the units that fail alone, where these are few and
        all pairs take long to count."""
        rows, losses = self.language.plain_bits, self.losses
        pays = losses.binary and len(rows) * rows.size >= WORTH_TAKING
        return losses.take_failing(rows) if pays and losses.values.mean() <= RARE else None

    def scores(self, rule: ModeRule) -> bool:
        """Return whether a rule is tested by its score, as in permutations, and not exactly."""
        return not self.exact and rule.kind in self.lowest

    def log_cost(self, kind: str, size: int = 1) -> float:
        """Return the log of the divisor of the error level for a rule of a class.

        For single conditions this is the plainest one's; `cost_of` gives each. ``size`` is the size
        of a set.
        """
        if kind in self.lowest:
            permuted = self.log_level - self.lowest[kind]
            return min(permuted, self.sum_cost(kind, size)) if self.exact else permuted
        return self.sum_cost(kind, size)

    def sum_cost(self, kind: str, size: int = 1) -> float:
        """Return the same for summed chances, from the number of rules in the class.

        Sets share their class's level equally among the sizes, then among the sets of that size.
        """
        language, weight = self.language, self.weights[kind]
        if kind == "single":
            return math.log(np.exp(-language.handicaps).sum() / weight)
        if kind not in language.contexts_of:
            return math.log(language.counts[kind] / weight)
        words = kind == "words"
        families = language.word_families if words else language.values
        sets = sum(math.comb(len(v), size) for v in families.values())
        sizes = (MAX_WORDS if words else MAX_SET) - 1
        return math.log(max(1, sets) * language.contexts_of[kind] * sizes / weight)

    def sum_cost_of(self, rule: ModeRule) -> float:
        """Return `sum_cost` of a rule. Other ends pay for the rule, and for all ends of it."""
        whole, log_ends = self.language.uncut(rule)
        size = max(len(part) for part in rule.parts)
        paid = self.sum_cost(whole.kind, size) + self.language.handicap_of(whole)
        return paid if whole is rule else paid + log_ends - math.log(self.weights["cut"])

    def cost_of(self, rule: ModeRule) -> float:
        """Return the log of the divisor of the error level for a rule."""
        size = max(len(part) for part in rule.parts)
        if rule.kind == "cut":
            return self.sum_cost_of(rule)
        if rule.kind == "set" and not self._is_candidate(rule):
            return self.sum_cost(rule.kind, size)
        return self.log_cost(rule.kind, size) + self.language.handicap_of(rule)

    def cost_beside(self, kind: str) -> float:
        """Return the log of the divisor of the error level for a condition beside the others of a
        rule: all that join pay; two values as if single conditions alone were searched."""
        most = math.log(max(1, len(self.language.plain)))
        return min(most, self._single) if kind == "value pair" else most

    def words_of(self, rule: ModeRule) -> float:
        """Return the log of the number of possible rules: the price of a rule's wording.

        A set is one of very many, even if its test is cheap; else sets would join unlike values.
        """
        size = max(len(part) for part in rule.parts)
        return self.sum_cost(rule.kind, size) if size > 1 else self.cost_of(rule)

    def adjust(self, rule: ModeRule, log_p: float) -> float:
        """Return the log p of a rule, adjusted for all possible rules."""
        # permutations cannot show a probability below one over their number
        permuted = max(log_p + self.cost_of(rule), -math.log(PERMUTATIONS + 1))
        if self.scores(rule):
            return permuted
        return min(log_p + self.sum_cost_of(rule), permuted)

    def _is_candidate(self, rule: ModeRule) -> bool:
        """Return whether permutations try the values of a set in its context: the worst five."""
        (context,), values = rule.parts
        index = self.language.values_beside(values)
        rows = self.language.bits[index] & self.language.bits[[context]]
        return set(values) <= set(index[find_worst(rows, self.losses)].tolist())


def find_worst(rows: Bits, losses: Losses) -> Places:
    """Return the rows with the most surprising excess of failures, from which sets are made."""
    units, errors = bitset.count(rows), bitset.count(rows & losses.planes[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (errors - units * losses.values.mean()) / np.sqrt(units)
    z[(units < FEW) | (z <= 0)] = -1.0
    order = np.argsort(-z, kind="stable")[:TOP_VALUES]
    return np.asarray(order[z[order] > 0])


def find_least(
    on: Bools,
    left: Places | Ints,
    right: Places | Ints,
    handicaps: Floats,
    shape: tuple[int, ...],
    evaluate: Evaluate,
    finish: Callable[[Floats], Floats] = np.asarray,
) -> Floats:
    """Return the smallest log p of rules, with their handicap, in each of many draws.

    Parameters
    ----------
    on : bool array, shape (conditions, units)
    left, right : int arrays, shape (rules,)
        Conditions that each rule joins; twice the same for one alone.
    handicaps : float64 array, shape (rules,)
    shape : tuple of int
        Units, and draws.
    evaluate : callable
        Takes rows (bool, rules x units), and the smallest values so far, at most 0.
    finish : callable
        Turns values into their log p.
    """
    least = np.zeros(shape[1])
    for handicap in np.unique(handicaps):
        some = np.flatnonzero(handicaps == handicap)
        values = np.zeros(shape[1], dtype=np.float32)
        for block in split(len(some), max(shape)):
            values = evaluate(on[left[some[block]]] & on[right[some[block]]], values)
        np.minimum(least, finish(values.astype(np.float64)) + handicap, out=least)
    return least


class Permuter:
    """The smallest log p of each class of rules, with its handicap, among permuted outcomes.

    Parameters
    ----------
    language : RuleLanguage
    losses : Losses
    names : sequence of str
        Classes from `groundfault.modes.bars.PERMUTED`.

    Attributes
    ----------
    names : list of str
        Classes that are not too large to permute.
    """

    def __init__(self, language: RuleLanguage, losses: Losses, names: Sequence[str]) -> None:
        self.language, self.losses = language, losses
        self.units, self.errors = len(losses.values), int(losses.values.sum())
        self.exact = losses.binary and len(language.layout.runs) == 2
        names = [name for name in names if self.exact or name != "set"]
        # a row is as many words as the failing units fill; the passing ones, if they are fewer
        self.drawn = min(self.errors, self.units - self.errors)
        sets = len(language.plain) * sum(len(v) for v in language.values.values())
        self.rules = {name: sets if name == "set" else language.counts[name] for name in names}
        # the largest classes pay for their number where they are too large to permute
        held = self.units * PERMUTATIONS <= _HELD
        kept = sorted(names, key=self.rules.__getitem__) if held else []
        while kept and sum(map(self._count_work, kept)) > WORK:
            kept.pop()
        self.names = [name for name in names if name in kept]

    def _count_work(self, name: str) -> float:
        """Return the work of permuting a class, in words of bits."""
        if self.exact and name in _JOINED:
            return float(self.rules[name] * bitset.words(self.drawn) * PERMUTATIONS)
        products = self.rules[name] * self.units * PERMUTATIONS / PRODUCTS
        return products if self.losses.binary else 2 * products

    def find_minima(self, rng: np.random.Generator, permutations: int) -> Floats:
        """Return the smallest values, of the data first: shape (1 + permutations, classes)."""
        if not self.exact:
            self.on = self.language.unpack()
            graded = not self.losses.binary
            home = self.language.layout.strata
            scores = Scores(home, self.losses.values, graded=graded)
            self.outcomes = scores.permute(rng, permutations)
            self.evaluate: Evaluate = lambda rows, least: (
                -scores.find_largest(rows, self.outcomes, -least)
            )
            return np.stack([self._find_least(name) for name in self.names], axis=1)
        rare = np.flatnonzero(self.losses.values == (self.drawn == self.errors))
        drawn = np.stack(
            [rare, *(rng.permutation(self.units)[: self.drawn] for _ in range(permutations))]
        )
        self.table = tabulate_tails(self.units, self.errors)
        joined = [name for name in self.names if name in _JOINED]
        code = choose_code(sum(map(self._count_work, joined)))
        both = np.concatenate([self.language.plain_bits, self.language.other_bits])
        rows, kernels = self.language.layout.unpack(both), [self._prepare(code, n) for n in joined]
        least = dict(zip(joined, count_bits(rows, list(drawn), kernels).T, strict=True))
        on = np.zeros((len(drawn), self.units), dtype=np.bool_)
        np.put_along_axis(on, drawn, values=True, axis=1)
        known = (self.rate, self.drawn < self.errors, self.table)
        for name in self.names:
            if name in joined:
                continue
            places, handicaps = self._list_alone(name)
            alone = self.language.bits[places], bitset.pack(on), self.language.support[places]
            least[name] = find_least_alone(*alone, handicaps, *known)
        return np.stack([least[name] for name in self.names], axis=1)

    def _find_least(self, name: str) -> Floats:
        """Return the smallest value of a class under each permutation, by scores."""
        from scipy.special import log_ndtr

        if name in _JOINED:
            *sides, allowed, _ = self._list_pairs(name)
            joined = np.concatenate([self.language.plain, self.language.others])
            left, right = (
                joined[side[i]] for side, i in zip(sides, np.nonzero(allowed), strict=True)
            )
            handicaps = np.zeros(len(left))
        else:
            left, handicaps = self._list_alone(name)
            right = left
        shape = self.outcomes.shape
        return find_least(self.on, left, right, handicaps, shape, self.evaluate, log_ndtr)

    def _list_alone(self, name: str) -> tuple[Places, Floats]:
        """Return the single conditions or words, and their handicaps."""
        language = self.language
        if name == "single":
            return language.single, language.handicaps
        words = language.others[language.support[language.others] <= self.units // 2]
        return words, np.zeros(len(words))

    def _prepare(self, code: ModuleType, name: str) -> Callable[[float, int], Kernel]:
        """Return how the kernel of a class is made: see `groundfault.modes.kernels.count_bits`."""
        rate, passing = self.rate, self.drawn < self.errors
        if name == "set":
            return self._prepare_sets(code)
        left, right, allowed, support = self._list_pairs(name)
        size = np.where(allowed, support, 0)

        def prepare(bar: float, every: int) -> Kernel:
            # copies: numba would compile everything again for rows with gaps
            some = np.ascontiguousarray(size[::every])
            pairs = limit_pairs(some, self.table, rate, passing, bar)
            return code.find_least_pair, (left[::every].copy(), right, *pairs)

        return prepare

    def _prepare_sets(self, code: ModuleType) -> Callable[[float, int], Kernel]:
        language, support = self.language, self.language.pair_support
        # the first values of all families, the largest family first, then the second values, so
        # that each turn is a run of neighbours
        ranked = sorted(language.values.values(), key=len, reverse=True)
        turns = [[v[s] for v in ranked if len(v) > s] for s in range(len(ranked[0]))]
        places, ends = np.concatenate(turns), np.cumsum([0, *map(len, turns)])
        of_family = (np.sort(support[:, v], axis=1)[:, -MAX_SET:] for v in ranked)
        largest = np.stack([v.sum(axis=1) for v in of_family], axis=1)
        room = 1 - np.minimum(largest / self.units, 0.5).astype(np.float32)
        units = support[:, places].astype(np.float32)
        # a value of few units is in no set
        inverse = np.where(units < FEW, np.float32(0), 0.25 / np.maximum(units, 1))
        known = (self.rate, self.drawn < self.errors, find_needed(self.table, self.rate, 0.0))
        reach = tabulate_reach(self.table, self.rate, self.units)
        families = language.family[language.plain]

        def prepare(_: float, every: int) -> Kernel:
            some = (np.ascontiguousarray(each[::every]) for each in (units, inverse, room))
            own = (np.arange(0, len(units), every), families, ends, places)
            return code.find_least_set, (*own, *some, *known, self.table, reach, self.units // 2)

        return prepare

    def _list_pairs(self, name: str) -> tuple[Places, Places, Bools, bitset.Counts]:
        """Return two lists of conditions, as places among the plain and the other ones, whether
        each two join, and their units."""
        language, left = self.language, np.arange(len(self.language.plain))
        right, allowed, support = left, language.pairs, language.pair_support
        if name == "mixed":
            right = len(left) + np.arange(len(language.others))
            allowed, support = language.mixed, language.mixed_support
        elif name == "value pair":
            left = right = np.flatnonzero(language.is_value)
            allowed, support = allowed[np.ix_(left, left)], support[np.ix_(left, left)]
        else:
            allowed = allowed & ~(language.is_value[:, None] & language.is_value)
        return left, right, allowed & (support <= self.units // 2), support

    @property
    def rate(self) -> float:
        """Return the share of failures."""
        return self.errors / self.units
