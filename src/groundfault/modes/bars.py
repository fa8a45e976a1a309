"""The bar of each class of rules: how surprising a rule has to be, of all that could be said.

Rules overlap (cuts of one column, columns that follow each other, pairs that share a condition), so
that the most surprising of them is less so by chance than that of as many independent ones. How
surprising the best rule of each class is by chance, permuted outcomes show. Where outcomes are not
permuted, every rule is paid for (a weighted Bonferroni bar).

One table has the tail of every count: it depends on a rule's units and failures alone. A product of
matrices counts the failures of some thousand rules under all permutations at once; of more rules,
compiled code (`compiled`) counts bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from groundfault.base.arrays import Bools, Floats, Ints, Places
from groundfault.base.streams import stream
from groundfault.core.plan import BarKind
from groundfault.modes.condition import FEW, MAX_SET, MAX_WORDS, MIN_SUPPORT, MOST, TOP_VALUES
from groundfault.modes.rule_space import ModeRule, RuleLanguage, list_subsets
from groundfault.modes.strata import Losses
from groundfault.stats import bits as bitset
from groundfault.stats.bits import Bits

Kernel = tuple[Callable[..., None], tuple[object, ...]]
Counts = NDArray[np.float32]
"""Whole numbers below 2^24, which single precision holds exactly."""

SHARES = {
    "single": 0.60,
    "pair": 0.16,
    "word": 0.06,
    "mixed": 0.06,
    "set": 0.06,
    "triple": 0.02,
    "set of a pair": 0.01,
    "words": 0.01,
    "inside": 0.01,
    "values": 0.01,
    "partial": 0.45,
    "own": 0.05,
}
"""Shares of the error level, those of empty classes shared out among the others: what is short to
say has the most. With .40 for singles and .22 for pairs, five of 18 planted single conditions are
lost for two pairs and two words."""

PERMUTED = ("single", "pair", "word", "mixed", "set")
"""Classes whose bars permutations show; of triples there are millions."""

PERMUTATIONS = 999
"""A class with 6 % of a level of 10 % is read off its sixth smallest value; of 299 that is the
second, and power varies from draw to draw."""

WORK = 1e10
"""Words of bits that permutations may read, some five seconds: larger tables do not lack power."""

_JOINED = ("pair", "mixed", "set")
"""Classes that may have very many rules."""
_DEVIATIONS = 9.0
"""Standard deviations above the mean that tails are tabulated to: no minimum is beyond by chance,
and what is beyond counts as if it were there."""
WORTH_COMPILING = 4e9
"""Products below which matrices take a tenth of a second, and loading a compiler several."""
_FEW_RULES = 32
"""Of so many rules one is looked at first, to find a bar that most need not be counted against."""
_DRAWS = 8
"""Permutations counted together: what is known of a row's pairs is read once for all."""
_NEVER = 1 << 30
_NO_BAR = math.log(0.2)
"""Log p above which compiled code does not look a rule up: it passes at no level."""
_CELLS = 1 << 22
"""Rules times permutations, or times units, that are held at once: 16 MB."""


class Bars:
    """The price that a rule of each class pays for all that could have been said instead.

    Parameters
    ----------
    language : RuleLanguage
    losses : Losses
    level : float
        Family-wise error level of all marginal claims, in (0, 1).
    kind : {"permutation", "bonferroni"}
        Outcomes are permuted where losses are 0 or 1 and units exchangeable in one stratum.

    Attributes
    ----------
    weights : dict of str to float
        Each class's share of the level.
    lowest : dict of str to float
        Of classes whose bar permutations show: the log p, with the handicap, to be below.

    Notes
    -----
    Shares of permuted classes are raised together until the permutations pass *any* of their bars
    as often as the level says. Westfall and Young 1993, single step, over the minima of exact
    p-values: exact under the complete null, strong under subset pivotality (how conditions without
    an effect go together is the same whether or not others have effects).
    """

    def __init__(
        self, language: RuleLanguage, losses: Losses, level: float, kind: BarKind = "permutation"
    ) -> None:
        self.language, self.losses, self.log_level = language, losses, math.log(level)
        total = sum(SHARES[name] for name, count in language.counts.items() if count)
        self.weights = {n: SHARES[n] / total for n, count in language.counts.items() if count}
        # a class with less than one permutation in its share of the level has no bar to be read off
        least = 1 / (level * (PERMUTATIONS + 1))
        names = [name for name in PERMUTED if self.weights.get(name, 0.0) >= least]
        usable = kind == "permutation" and losses.binary and len(language.layout.runs) == 2
        self.lowest = self._permute(names, level) if usable and names else {}

    def _permute(self, names: list[str], level: float) -> dict[str, float]:
        permuter = Permuter(self.language, self.losses, names)
        if permuter.work * PERMUTATIONS > WORK:
            return {}
        minima = permuter.find_minima(stream(0, "modes: bars"), PERMUTATIONS)
        weights = np.array([self.weights[name] for name in names])
        count = PERMUTATIONS + 1
        ordered = np.sort(minima, axis=0)
        ranks = np.stack(
            [np.searchsorted(x, m, side="right") for x, m in zip(ordered.T, minima.T, strict=True)]
        ).T
        # the share of the level that each permutation needs to pass a bar
        needed = np.sort((ranks / count / weights).min(axis=1))
        top = needed[max(0, int(level * weights.sum() * count) - 1)]
        places = np.ceil(top * weights * count - 1e-9).astype(int) - 2
        # single precision: what is equal to a permutation does not pass
        return {
            name: float(x[place]) - 1e-5
            for name, x, place in zip(names, ordered.T, places, strict=True)
            if place >= 0 and x[place] < 0
        }

    def log_cost(self, kind: str, size: int = 1) -> float:
        """Return log of what the error level is divided by for a rule of a class.

        Of single conditions this is the plainest; `cost_of` knows each. ``size`` is that of a set.
        """
        paid = self.sum_cost(kind, size)
        return min(paid, self.log_level - self.lowest[kind]) if kind in self.lowest else paid

    def sum_cost(self, kind: str, size: int = 1) -> float:
        """Return the same where chances are summed: by how many rules of the class there are.

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

    def cost_of(self, rule: ModeRule) -> float:
        """Return log of what the error level is divided by for a rule."""
        size = max(len(part) for part in rule.parts)
        if rule.kind == "set" and not self._is_candidate(rule):
            return self.sum_cost(rule.kind, size)
        return self.log_cost(rule.kind, size) + self.language.handicap_of(rule)

    def words_of(self, rule: ModeRule) -> float:
        """Return log of how many rules could be said instead: the price of a rule's words.

        A set is one of very many, however cheap its test: else sets join unlike values.
        """
        size = max(len(part) for part in rule.parts)
        return self.sum_cost(rule.kind, size) if size > 1 else self.cost_of(rule)

    def adjust(self, rule: ModeRule, log_p: float) -> float:
        """Return the log p of a rule that accounts for all that could have been said instead."""
        size = max(len(part) for part in rule.parts)
        summed = log_p + self.sum_cost(rule.kind, size) + self.language.handicap_of(rule)
        # permutations cannot show less than one in their number
        return min(summed, max(log_p + self.cost_of(rule), -math.log(PERMUTATIONS + 1)))

    def _is_candidate(self, rule: ModeRule) -> bool:
        """Return whether permutations try the values of a set in its context: the worst five."""
        (context,), values = rule.parts
        family = self.language.family[values[0]]
        index = next(
            self.language.plain[places]
            for places in self.language.values.values()
            if self.language.family[self.language.plain[places[0]]] == family
        )
        rows = self.language.bits[index] & self.language.bits[context]
        return set(values) <= set(index[find_worst(rows, self.losses)].tolist())


def find_worst(rows: Bits, losses: Losses) -> NDArray[np.intp]:
    """Return the rows of the most surprising excess of failures, those that sets are made of."""
    units, errors = bitset.count(rows), bitset.count(rows & losses.planes[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (errors - units * losses.values.mean()) / np.sqrt(units)
    z[(units < FEW) | (z <= 0)] = -1.0
    order = np.argsort(-z, kind="stable")[:TOP_VALUES]
    return np.asarray(order[z[order] > 0])


class Permuter:
    """The smallest log p of each class of rules, with its handicap, among permuted outcomes.

    Parameters
    ----------
    language : RuleLanguage
        In one stratum.
    losses : Losses
        0 or 1.
    names : sequence of str
        Classes, of `groundfault.modes.bars.PERMUTED`.

    Attributes
    ----------
    work : float
        Words of bits that one permutation reads.
    """

    def __init__(self, language: RuleLanguage, losses: Losses, names: Sequence[str]) -> None:
        self.language, self.names = language, names
        self.units, self.errors = len(losses.values), int(losses.values.sum())
        # a row is as many words as the failing units fill; the passing ones, if they are fewer
        self.drawn = min(self.errors, self.units - self.errors)
        sets = len(language.plain) * sum(len(v) for v in language.values.values())
        self.rules = {name: sets if name == "set" else language.counts[name] for name in names}
        self.work = float(sum(self.rules.values()) * bitset.words(self.drawn))

    def find_minima(self, rng: np.random.Generator, permutations: int) -> Floats:
        """Return the smallest values: shape (permutations, classes)."""
        drawn = np.stack([rng.permutation(self.units)[: self.drawn] for _ in range(permutations)])
        self.table = tabulate_tails(self.units, self.errors)
        self.on = self.language.layout.unpack(self.language.bits)
        self.outcomes = np.zeros((self.units, permutations), dtype=np.float32)
        np.put_along_axis(self.outcomes, drawn.T, 1, axis=0)
        if self.drawn < self.errors:
            self.outcomes = 1 - self.outcomes
        long = WORTH_COMPILING / (permutations * self.units)
        compiled = [n for n in self.names if n in _JOINED and self.rules[n] > long]
        minima = np.empty((permutations, len(self.names)))
        for c, name in enumerate(self.names):
            if name not in compiled:
                minima[:, c] = self._find_least(name)
        if compiled:
            columns = [self.names.index(name) for name in compiled]
            minima[:, columns] = self._count_bits(compiled, drawn)
        return minima

    def _find_least(self, name: str) -> Floats:
        """Return the smallest value of a class under each permutation."""
        least = np.zeros(self.outcomes.shape[1], dtype=np.float32)
        values = self._list_sets() if name == "set" else self._list_rules(name)
        for some in values:
            np.minimum(least, some.min(axis=0, initial=0.0), out=least)
        return least.astype(np.float64)

    def _count_bits(self, names: Sequence[str], drawn: NDArray[np.intp]) -> Floats:
        """Return the smallest values of classes of very many rules, by compiled code."""
        passing = self.drawn < self.errors
        kernels = [partial(self._prepare, name, passing) for name in names]
        return count_bits(self.on, list(drawn), kernels)

    def _prepare(self, name: str, passing: bool, bar: float) -> Kernel:
        """Return the kernel of a class, and what it reads beside a permutation's rows."""
        from groundfault.modes.compiled import find_least_pair, find_least_set

        language = self.language
        if name == "set":
            places = np.concatenate(list(language.values.values()))
            ends = np.cumsum([0, *(len(v) for v in language.values.values())])
            # that no unit has both is one unit here: no set has so few
            units = np.maximum(language.pair_support[:, places], 1).astype(np.float32, order="C")
            own = (
                language.plain,
                language.family,
                ends,
                language.plain[places],
                units,
                0.25 / units,
            )
            needed = find_needed(self.table, self.rate, _NO_BAR)
            common = (self.rate, passing, needed, self.table)
            return find_least_set, (*own, *common, tabulate_reach(self.table, self.rate))
        right, allowed, support = self._list_pairs(name)
        pairs = limit_pairs(allowed, support, self.table, self.rate, passing, bar)
        return find_least_pair, (language.plain, right, *pairs)

    def _list_pairs(self, name: str) -> tuple[Places, Bools, Ints]:
        """Return what joins with plain conditions, whether each two do, and their units."""
        language, pair = self.language, name == "pair"
        right = language.plain if pair else language.others
        allowed = language.pairs if pair else language.mixed
        support = language.pair_support if pair else language.mixed_support
        return right, allowed & (support <= self.units // 2), support

    def _list_rules(self, name: str) -> Iterator[Counts]:
        """Yield the values of blocks of rules: shape (rules, permutations)."""
        language = self.language
        if name in _JOINED:
            right, allowed, _ = self._list_pairs(name)
            i, j = np.nonzero(allowed)
            pairs = np.stack([language.plain[i], right[j]])
        else:
            one = language.single if name == "single" else language.others
            if name == "word":
                one = one[language.support[one] <= self.units // 2]
            pairs = np.stack([one, one])
        handicaps = np.zeros((pairs.shape[1], 1), dtype=np.float32)
        if name == "single":
            handicaps[:, 0] = language.handicaps
        for some in self._split(pairs.shape[1]):
            held, failures = self._count(self.on[pairs[0, some]] & self.on[pairs[1, some]])
            yield look_up(self.table, self.rate, held[:, None], failures) + handicaps[some]

    def _list_sets(self) -> Iterator[Counts]:
        """Yield the values of subsets of the worst values of a family, in blocks of contexts."""
        plain, family = self.language.plain, self.language.family
        for places in self.language.values.values():
            index = plain[places]
            contexts = plain[family[plain] != family[index[0]]]
            subsets = list_subsets(min(len(index), TOP_VALUES), MAX_SET).astype(np.float32)
            for some in self._split(len(contexts), max(len(index), len(subsets))):
                rows = self.on[contexts[some], None] & self.on[index]
                support, failures = self._count(rows.reshape(-1, self.units))
                sizes = support.reshape(*rows.shape[:2], 1)
                errors = failures.reshape(*rows.shape[:2], -1)
                yield self._find_worst_sets(sizes, errors, subsets)

    def _find_worst_sets(self, sizes: Counts, errors: Counts, subsets: Counts) -> Counts:
        """Return the values of the subsets of the worst values: (contexts, permutations)."""
        excess = errors - sizes * np.float32(self.rate)
        z = np.where((sizes >= FEW) & (excess > 0), excess / np.sqrt(np.maximum(sizes, 1)), -1)
        top = np.argsort(-z, axis=1, kind="stable")[:, : subsets.shape[1]]
        # a value that fails no more than expected makes a set too large to count
        sizes = np.where(z > 0, sizes, self.units).astype(np.float32)
        of_top = (np.take_along_axis(a, top, axis=1) for a in (sizes, errors))
        support, failures = (np.matmul(subsets, a) for a in of_top)
        usable = (support >= MIN_SUPPORT) & (support <= self.units // 2)
        values = look_up(self.table, self.rate, np.where(usable, support, 0), failures)
        return np.asarray(np.where(usable, values, 0).min(axis=1))

    @property
    def rate(self) -> float:
        """Return the share of failures."""
        return self.errors / self.units

    def _count(self, rows: Bools) -> tuple[Counts, Counts]:
        """Return the units of rules, and their failures under each permutation."""
        held = rows.astype(np.float32)
        return held.sum(axis=1), held @ self.outcomes

    def _split(self, rules: int, each: int = 1) -> Iterator[slice]:
        """Yield blocks of rules, each of so many rows."""
        step = max(1, _CELLS // (each * max(self.outcomes.shape)))
        yield from (slice(i, i + step) for i in range(0, rules, step))


def count_bits(
    on: Bools, drawn: Sequence[Places], kernels: Sequence[Callable[[float], Kernel]]
) -> Floats:
    """Return the least values that kernels find in each of many draws of units: shape (draws,
    kernels).

    A look at a few rules shows how low the values of all draws are at least; rules that would have
    to be lower than that are then few.

    Parameters
    ----------
    on : bool array, shape (conditions, units)
    drawn : sequence of intp arrays
        The units of each draw.
    kernels : sequence of callable
        Return a function of `groundfault.modes.compiled`, and what it reads beside the rows of
        bits of some draws, given a log p: larger ones need not be found.
    """
    least = np.zeros((len(kernels), len(drawn)))
    for every in (_FEW_RULES, 1):
        bars = np.minimum(least.max(axis=1, initial=-np.inf), _NO_BAR)
        ready = [make(float(bar)) for make, bar in zip(kernels, bars, strict=True)]
        _lower(least, bitset.pack(on.T), drawn, ready, every)
    return least.T


def _lower(
    least: Floats, units: Bits, drawn: Sequence[Places], kernels: Sequence[Kernel], every: int
) -> None:
    """Lower the least values to those of every so many rules."""
    from groundfault.modes.compiled import gather_units
    from groundfault.stats.row_threads import share_rows

    width = bitset.words(max(map(len, drawn)))

    def run(first: int, step: int) -> None:
        for start in range(first * _DRAWS, len(drawn), step * _DRAWS):
            some = drawn[start : start + _DRAWS]
            columns = np.zeros((len(some), width, 64 * units.shape[1]), dtype=np.uint64)
            for place, rows in enumerate(some):
                gather_units(units, rows, columns[place])
            for row, (kernel, arguments) in zip(least, kernels, strict=True):
                kernel(columns, row[start : start + _DRAWS], *arguments, every)

    share_rows(run, len(drawn))


def find_needed(table: Counts, rate: float, bar: float) -> Ints:
    """Return how many failures a rule of each size has to have for a log tail up to a bar."""
    counts = table <= bar
    mean = (np.arange(len(counts)) * rate).astype(np.int64)
    return np.where(counts.any(axis=1), counts.argmax(axis=1), _NEVER) + mean


def limit_pairs(
    allowed: Bools, support: Ints, table: Counts, rate: float, passing: bool, bar: float
) -> tuple[object, ...]:
    """Return what `groundfault.modes.compiled.find_least_pair` reads of pairs: where those of each
    row start, how many failures (or passes, at most) they need, their units, and the tails."""
    needed = find_needed(table, rate, bar)
    limit = needed[np.where(allowed, support, 0)].astype(np.int32)
    if passing:
        limit = np.maximum(support - limit, -1).astype(np.int32)
    limit[~allowed] = -1 if passing else _NEVER
    starts = np.where(allowed.any(axis=1), allowed.argmax(axis=1), allowed.shape[1])
    return starts, limit, support, rate, passing, needed, table


def tabulate_tails(units: int, errors: int) -> Counts:
    """Return log P(K >= k) for K failures among some of the units, drawn by chance.

    A row for each size up to `MOST` of all; a column for each k above the mean, rounded down. What
    is no more than the mean has 0.
    """
    from scipy.special import gammaln

    width = min(int(_DEVIATIONS * math.sqrt(units) / 4) + 4 * int(_DEVIATIONS), errors) + 1
    table = np.zeros((int(MOST * units) + 1, width), dtype=np.float32)
    log_all = gammaln(np.arange(units + 1) + 1.0)
    chosen = log_all[errors] + log_all[units - errors] - log_all[units]
    step = max(1, _CELLS // (2 * width))
    for first in range(1, len(table), step):
        s = np.arange(first, min(first + step, len(table)))[:, None]
        # what is beyond twice the columns adds nothing
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


def tabulate_reach(table: Counts, rate: float) -> Counts:
    """Return the least log tail of rules for at most half of the units, by excess squared over
    size: up to each multiple of 1 / `REACH`."""
    from groundfault.modes.compiled import REACH

    reach = np.zeros(int(REACH * _DEVIATIONS**2), dtype=np.float32)
    half = int((len(table) - 1) / MOST / 2)
    step = max(1, _CELLS // table.shape[1])
    for first in range(1, half + 1, step):
        s = np.arange(first, min(first + step, half + 1))[:, None]
        excess = (s * rate).astype(np.int64) + np.arange(table.shape[1]) - s * rate
        places = np.minimum(REACH * np.maximum(excess, 0) ** 2 / s, len(reach) - 1).astype(np.intp)
        some = table[s[:, 0]]
        np.minimum.at(reach, places, np.where(np.isfinite(some), some, 0))
    return np.minimum.accumulate(reach)


def look_up(table: Counts, rate: float, support: Counts, failures: Counts) -> Counts:
    """Return the log tails of the failures of rules of so many units."""
    width = table.shape[1]
    rows = support.astype(np.int64)
    columns = failures.astype(np.int64) - (rows * rate).astype(np.int64)
    np.clip(columns, 0, width - 1, out=columns)
    columns += rows * width
    return np.asarray(table.ravel().take(columns))
