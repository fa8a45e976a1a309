"""Modes of a change: rules inside which a second run fails more, or less, often than the first.

Each example is compared with itself. Without a change, the two runs are exchangeable within an
example, so random flips of the differences' signs show how much the best rule of each class stands
out by chance. The signs do not depend on the rules that match an example, so the bars need no
assumption on the dependence of rules. Graded differences with mean 0 need not be symmetric: they
are tested by bets on the mean, and every rule is paid for. `groundfault.stats.flips.Samples`
compares runs that share no example.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace as restrict
from functools import partial

import numpy as np
import polars as pl
from msgspec.structs import replace
from numpy.typing import NDArray

from groundfault.base.arrays import Bools, Floats, Places, Singles
from groundfault.base.long_work import stream
from groundfault.core.pairs import clip_changes
from groundfault.core.plan import BarKind
from groundfault.errors import list_some
from groundfault.modes.bars import PERMUTATIONS, PRODUCTS, WORK, find_least
from groundfault.modes.condition import MIN_SUPPORT, Condition, UnitSet, list_conditions
from groundfault.modes.find import OwnRule, describe, make_own_conditions, take_units
from groundfault.modes.kernels import (
    Kernel,
    choose_code,
    count_bits,
    find_least_alone,
    limit_pairs,
    look_up,
    split,
)
from groundfault.modes.mode import Coverage, Mode, ModeChange, ModeSearch, RuleClass
from groundfault.modes.rule_space import ModeRule, RuleLanguage
from groundfault.modes.search import GAMMA
from groundfault.modes.selection import MOST_MODES, SAME_PLACE, Listed
from groundfault.stats import bits as bitset, flips, paired
from groundfault.stats.bits import Layout
from groundfault.stats.multiple import Joint, SummedBars

WORSE, BETTER = "worse", "better"
"""The two lists, which are the outcomes of their modes."""

SHARES = {
    "overall": 0.10,
    "own": 0.15,
    "single": 0.25,
    "value pair": 0.40,
    "pair": 0.08,
    "word": 0.03,
    "mixed": 0.02,
}
"""Shares of the error level; shares of empty classes go to the others. Pairs of two values are a
class apart from the many more pairs with a cut: their bar is log p -7.7 instead of -11.2, and a
planted pair of 82 in 1,500 examples is caught in .95 instead of .74."""

_BELOW = 0.5
"""Bars below the mean that decide a rule's place; with 1, rules that just pass would have none."""
NO_BAR = math.log(0.2)
"""Log p above which flips of changes are not told apart: they pass at no level."""
_SHUFFLED = 5e9
"""Products in matrices for the places of changes: half a second for 2,000 rules of 2,000 units."""
_FEW = 50  # rules that a class counts as at least: draws of over 100,000 units are not held
_CELLS = 5e6
"""Rules times units to compare with each other, for the rules that stand out most."""


def find_changes(
    table: pl.DataFrame,
    losses: Floats,
    *,
    level: float = 0.10,
    own_rules: Sequence[OwnRule] = (),
    bars: BarKind = "permutation",
    named: int = 0,
) -> tuple[tuple[Mode, ...], ModeSearch, float]:
    """Name the rules under which losses rose, and the rules under which they fell.

    Parameters
    ----------
    table : polars.DataFrame
        One row a unit; the columns that rules may name, fixed before outcomes were seen.
    losses : float64 array, shape (2, units)
        Losses of the first and the second run, in [0, 1]; NaN where not scored. If no unit has
        both, units of the first run are compared with similar units of the second.
    level : float
        Family-wise error level of each of the two lists, in (0, 1).
    own_rules : sequence of OwnRule
        Rules beyond the search's own language.
    bars : {"permutation", "bonferroni"}
        Correction for the number of rules; with graded losses every rule is paid for.
    named : int
        Number of rules from which outcomes selected the own rules: each of them is paid for.

    Returns
    -------
    modes : tuple of Mode
        Rules that got worse, then rules that got better.
    search : ModeSearch
    bar : float
        p-value that a single condition alone has to reach.

    Notes
    -----
    Null of a rule: inside it the two runs are exchangeable within each unit. A rule's statistic
    depends only on its own units, so the level holds strongly, and exactly for 0/1 losses of
    independent units, under any dependence of the rules (Westfall and Young 1993). Second claim:
    a rule changed unlike the rest. It is asymptotic in the number of units outside, simulated, and
    adjusted for all rules also among changes of random units, whose signs are as they are.
    """
    both, either = (~f(np.isnan(losses), axis=0) for f in (np.any, np.all))
    scored: Bools = np.asarray(both if both.any() else either)
    conditions = [*list_conditions(table), *make_own_conditions(own_rules)]
    test = _ChangeTest(conditions, losses[:, scored], scored, level, bars, named)
    modes: list[Mode] = []
    coverage = []
    part = table.filter(pl.Series(scored)) if table.width else table
    for sign, name in ((1, WORSE), (-1, BETTER)):
        listed = test.select(sign)
        modes += _describe_all(test, listed, name, part)
        loss = clip_changes(test.losses, less=sign < 0)
        among = ~np.isnan(loss)
        changed = np.nan_to_num(np.ceil(loss) if test.second is None else loss)
        inside = np.any([on for _, on in listed], axis=0) if listed else np.zeros_like(among)
        coverage.append(
            Coverage(
                outcome=name,
                n=int(among.sum()),
                errors=float(changed.sum()),
                covered=int((inside & among).sum()),
                covered_errors=float(changed[inside].sum()),
            )
        )
    search = ModeSearch(
        level=level,
        depth=2,
        columns=tuple(dict.fromkeys(one.column for one in conditions if one.column)),
        within=(),
        classes=tuple(
            RuleClass(name=name, rules=int(count), weight=float(share))
            for name, count, share in zip(test.kinds, test.counts, test.shares, strict=True)
        ),
        outcomes=tuple(coverage),
        detectable={},
        bars=test.bar_kind,
        overall=(float(test.adjusted[1][0]), float(test.adjusted[-1][0])),
        remarks=() if test.second is None else tuple(test.describe_samples()),
        like_for_like=None if test.second is None else _measure(test.changes, level),
    )
    kind = next((k for k in ("single", "own", "overall") if k in test.kinds), "overall")
    # flips of few changed units have no bar; a rise adds changed units
    families = (test.family[1], SummedBars(test.counts, test.shares))
    bar = math.exp(max(family.bar(test.kinds.index(kind), level) for family in families))
    return tuple(modes), search, bar


class _ChangeTest:
    """All rules of the language, first the rule that matches all units, with their statistics."""

    def __init__(
        self,
        conditions: Sequence[Condition],
        losses: Floats,
        scored: Bools,
        level: float,
        bars: BarKind,
        named: int,
    ) -> None:
        self.losses, self.level = losses, level
        self.n = n = losses.shape[1]
        second = ~np.isnan(losses[1])
        self.second = None if second.all() else second
        usable = list(_take_usable(conditions, scored))
        if self.second is not None:
            self.names = _find_names(usable, second)
            usable = [one for one in usable if one.column not in self.names]
        self.language = RuleLanguage(usable, Layout(np.zeros(n, dtype=np.int64)), 2)
        everywhere = bitset.pack(np.ones((1, n), dtype=np.bool_))
        self.rows = np.concatenate([self.language.bits[:], everywhere])
        self._list_rules()
        self.counts = np.bincount(self.kind, minlength=len(self.kinds))
        if "own" in self.kinds:
            own = self.kinds.index("own")
            self.counts[own] = max(named, self.counts[own])
        null: _Signs | _Labels
        if self.second is None:
            self.changes = losses[1] - losses[0]
            null, whole = _Signs(self), self.changes
        else:
            whole = np.nansum(losses, axis=0)
            rows = bitset.unpack(self.language.bits[self.language.single], n)
            self.samples = flips.Samples(rows, whole, second, stream(0, "modes: folds"))
            self.changes = self.samples.changes
            null = _Labels(self)
        self.graded = flips.is_graded(whole)
        work = len(self.kind) * null.words * PERMUTATIONS
        summed = self.graded or bars == "bonferroni" or bool(named) or work > WORK
        self.bar_kind: BarKind = "bonferroni" if summed else "permutation"
        is_bet = self.graded or (summed and self.second is not None)
        log_p = self._bet if is_bet else null.log_p
        self.log_p = {sign: log_p(sign) + self.handicap for sign in (1, -1)}
        least = {} if summed else null.find_least()
        self.family = {
            sign: SummedBars(self.counts, self.shares)
            if summed
            else Joint(least[sign], self.shares)
            for sign in (1, -1)
        }
        self.adjusted = {
            sign: self.family[sign].adjust(self.log_p[sign], self.kind) for sign in (1, -1)
        }

    def _list_rules(self) -> None:
        """List rules as two places of conditions, the last of which holds everywhere."""
        language, top = self.language, len(self.language.bits)
        i, j = np.nonzero(language.pairs)
        a, b = language.plain[i], language.plain[j]
        plain = language.is_value[i] & language.is_value[j]
        u, v = np.nonzero(language.mixed)
        alone = {"overall": np.array([top]), "own": language.own, "single": language.single}
        alone["word"] = language.others
        pairs = {"value pair": (a[plain], b[plain]), "pair": (a[~plain], b[~plain])}
        pairs["mixed"] = (language.plain[u], language.others[v])
        both = {name: (one, np.full(len(one), top)) for name, one in alone.items()} | pairs
        self.kinds = [name for name in SHARES if len(both[name][0])]
        shares = np.array([SHARES[name] for name in self.kinds])
        self.shares = shares / shares.sum()
        self.left, self.right = (
            np.concatenate([both[name][side] for name in self.kinds]).astype(np.int64)
            for side in (0, 1)
        )
        sizes = [len(both[name][0]) for name in self.kinds]
        self.kind = np.repeat(np.arange(len(sizes)), sizes)
        self.handicap = np.zeros(len(self.kind))
        if "single" in self.kinds:
            self.handicap[self.kind == self.kinds.index("single")] = language.handicaps

    def describe_samples(self) -> Iterator[str]:
        """Yield notes on the comparison of different examples, and on examples left out."""
        yield "the two runs share no example: each example is compared with like ones of the other"
        if self.names:
            yield f"left out, since they tell the runs apart: {list_some(self.names)}"
        if self.samples.unlike:
            yield f"{self.samples.unlike} examples have no like in the other run, and do not count"

    def masks(self, rules: Places) -> NDArray[np.uint64]:
        """Return the units that rules hold for: uint64, shape (rules, words)."""
        return np.asarray(self.rows[self.left[rules]] & self.rows[self.right[rules]])

    def _bet(self, sign: int, masks: NDArray[np.uint64] | None = None) -> Floats:
        """Return log p of some rules, or of all, by bets on changes of at most 1."""
        masks = self.masks(np.arange(len(self.kind))) if masks is None else masks
        changes = self.changes / max(1.0, np.abs(self.changes).max(initial=0.0))
        p = flips.p_values(masks, changes, np.full(len(masks), sign))
        return np.asarray(np.log(np.maximum(p, 1e-300)))

    def select(self, sign: int) -> list[tuple[Listed, Bools]]:
        """Return the modes of one direction, in the order of their worth."""
        d, family = sign * self.changes, self.family[sign]
        bars = np.array([family.bar(c, self.level) for c in range(len(self.kinds))])
        pool = self._gather(sign, bars)
        on = bitset.unpack(self.masks(pool), self.n)
        kind, handicap = self.kind[pool], self.handicap[pool]
        bar = bars[kind]
        z = np.sqrt(2 * np.maximum(-bar, 0.5))
        modes: list[tuple[Listed, Bools]] = []
        places = self._shuffle(d) if len(pool) else family
        while len(modes) < MOST_MODES and len(pool):
            masks = [on for _, on in modes]
            normal, log_p2 = self._contrast(on, sign, masks) + handicap
            beyond = np.maximum(family.adjust(log_p2, kind), places.adjust(normal, kind))
            new = ~np.any(masks, axis=0) if masks else np.ones(self.n, dtype=np.bool_)
            score = np.where(beyond <= self.level, _guarantee(on & new, d, d[new], z), -1.0)
            if score.max() <= 0:
                break
            best = int(score.argmax())
            rise = np.maximum(d, 0) * on[best]
            # the one furthest beyond its bar names them, so that longer words have to pay; with an
            # overlap of the rules instead, the purest part of a region hides it
            near = np.flatnonzero((on @ rise >= SAME_PLACE * rise.sum()) & (score > 0))
            # not by the flips' log p, whose table ends beyond all bars: there, parts look as good
            best = int(near[np.argmax(bar[near] - log_p2[near])])
            listed = Listed(
                self._write_rule(pool[best]),
                self.masks(pool[[best]])[0],
                math.log(self.adjusted[sign][pool[best]]),
                math.log(beyond[best]),
            )
            modes.append((listed, on[best]))
        return modes

    def _gather(self, sign: int, bars: Floats) -> Places:
        """Return the rules beyond their bars that differ most from the rest."""
        pool = np.flatnonzero((self.adjusted[sign] <= self.level) & (self.kind > 0))
        most = max(1, int(_CELLS / max(1, self.n)))
        beyond = np.zeros(len(pool))
        for start in range(0, len(pool), most):
            part = pool[start : start + most]
            on = bitset.unpack(self.masks(part), self.n)
            _, log_p = self._contrast(on, sign, [])
            beyond[start : start + most] = log_p + self.handicap[part] - bars[self.kind[part]]
        return pool[np.argsort(beyond, kind="stable")[:most]]

    def _shuffle(self, d: Floats) -> Joint:
        """Return how a rule unlike the rest is adjusted for all rules.

        Flips leave changes in their units. Which units changed is chance as well: of 20 that got
        worse, one rule for half of all may match 17. Rules of large classes count as independent.
        """
        from scipy.special import log_ndtr

        rng = stream(0, "modes: places")
        work = np.maximum(self.counts, _FEW) * float(self.n * PERMUTATIONS)
        few = np.flatnonzero(work <= _SHUFFLED)
        drawn = flips.shuffle(d, PERMUTATIONS if len(few) else 0, rng)
        chance = rng.random((1 + PERMUTATIONS, len(self.kinds)))
        # the least of as many uniform p-values
        least = np.log(-np.expm1(np.log(chance) / np.maximum(self.counts, 1)))

        def evaluate(rows: Bools, lowest: Singles) -> Singles:
            z = flips.measure_rests(drawn, rows).max(axis=0, initial=0)
            return np.asarray(np.minimum(lowest, -z), dtype=np.float32)

        on = bitset.unpack(self.rows, self.n)
        for c in few:
            rules = np.flatnonzero(self.kind == c)
            sides = self.left[rules], self.right[rules], self.handicap[rules]
            least[:, c] = find_least(on, *sides, drawn.shape, evaluate, log_ndtr)
        return Joint(least, self.shares)

    def _contrast(self, on: Bools, sign: int, listed: Sequence[Bools]) -> Floats:
        """Return log p that rules changed as the rest did, given the listed rules: a normal tail,
        and the largest of all tests; shape (2, rules)."""
        new, d = on & ~np.any(listed, axis=0) if listed else on, sign * self.changes
        if self.second is None or self.graded:
            fresh = self._bet(sign, bitset.pack(new))
        else:
            fresh = self.samples.log_tail(new, d)
        normal, largest = flips.contrast(on, d, listed, counts=not flips.is_graded(d))
        return np.stack([normal, np.maximum(fresh, largest)])

    def _write_rule(self, rule: int) -> ModeRule:
        places = sorted({int(self.left[rule]), int(self.right[rule])} - {len(self.language.bits)})
        return ModeRule(tuple((i,) for i in places), self.kinds[self.kind[rule]])


def _take_usable(conditions: Sequence[Condition], units: Bools) -> Iterator[Condition]:
    """Yield conditions restricted to some units, if they match enough of these."""
    for one in conditions:
        part = take_units(one, units)
        if part.tested is not None:
            part = restrict(part, units=UnitSet.of(part.on & part.tested))
        if part.units.is_usable:
            yield part


def _find_names(conditions: Sequence[Condition], second: Bools) -> list[str]:
    """Return columns that identify a unit's run, such as its date."""
    columns: dict[str, list[Bools]] = {}
    for one in conditions:
        for column in dict.fromkeys(x.column for x in (one, *one.aliases)):
            columns.setdefault(column, []).append(one.on)
    return [name for name, on in columns.items() if flips.tells_runs(np.array(on), second)]


class _Signs:
    """Counts of changed units inside every rule, and their signs flipped."""

    def __init__(self, test: _ChangeTest) -> None:
        self.test, self.units = test, np.flatnonzero(test.changes)
        self.on = bitset.unpack(test.rows, test.n)[:, self.units]
        rows = bitset.pack(self.on)
        self.words = float(rows.shape[1])
        self.size = bitset.count(rows[test.left] & rows[test.right]).astype(np.float32)
        self.table = flips.tabulate_signs(len(self.units), NO_BAR)

    def log_p(self, sign: int) -> Floats:
        """Return log p of every rule from the flips."""
        test = self.test
        rows = bitset.pack(self.on[:, sign * test.changes[self.units] > 0])
        count = bitset.count(rows[test.left] & rows[test.right]).astype(np.float32)
        tail = look_up(self.table, 0.5, self.size, count)
        return np.asarray(tail.astype(np.float64))

    def find_least(self) -> dict[int, Floats]:
        """Return the least value of each class in either direction: of the data, and of flips."""
        test, m = self.test, len(self.units)
        worse = (test.changes[self.units] > 0)[:, None]
        flipped = stream(0, "modes: flips").random((m, PERMUTATIONS)) < 0.5
        drawn = np.ascontiguousarray(np.concatenate([worse, ~worse, flipped], axis=1).T)
        least = np.zeros((len(drawn), len(test.kinds)))
        places = [np.flatnonzero(held) for held in drawn]
        for c in range(len(test.kinds)):
            rules = np.flatnonzero(test.kind == c)
            left, alone = test.left[rules], (test.right[rules] == len(test.rows) - 1).all()
            if alone:
                rows, size = bitset.pack(self.on[left]), self.size[rules].astype(np.int64)
                of = rows, bitset.pack(drawn), size, test.handicap[rules]
                least[:, c] = find_least_alone(*of, 0.5, passing=False, table=self.table)
            else:
                kernel = self._prepare(rules, drawn.size)
                least[:, c] = count_bits(self.on, places, [kernel])[:, 0]
        return {1: np.delete(least, 1, axis=0), -1: least[1:]}

    def _prepare(self, rules: Places, drawn: int) -> Callable[[float, int], Kernel]:
        """Return how the kernel of a class is made: see `groundfault.modes.kernels.count_bits`."""
        code = choose_code(len(rules) * drawn / 64)
        left, row = np.unique(self.test.left[rules], return_inverse=True)
        right, column = np.unique(self.test.right[rules], return_inverse=True)
        size = np.zeros((len(left), len(right)), dtype=np.int32)
        size[row, column] = self.size[rules]

        def prepare(bar: float, every: int) -> Kernel:
            # copies: numba would compile everything again for rows with gaps
            pairs = limit_pairs(np.ascontiguousarray(size[::every]), self.table, 0.5, False, bar)
            return code.find_least_pair, (left[::every].copy(), right, *pairs)

        return prepare


class _Labels:
    """Changes summed inside every rule, and summed again with the runs permuted."""

    def __init__(self, test: _ChangeTest) -> None:
        self.test, self.samples = test, test.samples
        self.on = bitset.unpack(test.rows, test.n)
        # products of matrices, in words of bits that take as long
        self.words = test.n / PRODUCTS

    def log_p(self, sign: int) -> Floats:
        """Return log p of every rule: a normal tail."""
        test, d, tails = self.test, sign * self.samples.changes, np.zeros(len(self.test.kind))
        for some in split(len(tails), test.n):
            rows = self.on[test.left[some]] & self.on[test.right[some]]
            tails[some] = self.samples.log_tail(rows, d)
        return tails

    def find_least(self) -> dict[int, Floats]:
        """Return the least value of each class in either direction: of the data, and permuted."""
        from scipy.special import log_ndtr

        test, drawn = self.test, self.samples.permute(PERMUTATIONS, stream(0, "modes: samples"))
        evaluate = partial(self.samples.find_lowest, drawn)
        least = np.zeros((2 * drawn.shape[1], len(test.kinds)))
        for c in range(len(test.kinds)):
            rules = np.flatnonzero(test.kind == c)
            sides = test.left[rules], test.right[rules], test.handicap[rules]
            least[:, c] = find_least(self.on, *sides, (test.n, len(least)), evaluate, log_ndtr)
        worse, better = np.split(least, 2)
        return {1: worse, -1: better}


def _guarantee(on: Bools, d: Floats, rest: Floats, z: Floats) -> Floats:
    """Return a lower bound of the excess of change of rules, times a weak power of size."""
    n, total, squares = on.sum(axis=1), on @ d, on @ d**2
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / n
        deviation = np.sqrt(np.maximum(squares / n - mean**2, 1 / n) / n)
        base = rest.mean() if len(rest) else 0.0
        score = (mean - _BELOW * z * deviation - base) * n**GAMMA
    return np.asarray(np.where(n >= MIN_SUPPORT, score, -1.0))


def _measure(changes: Floats, level: float) -> tuple[float, float, float]:
    """Return the mean of changes, and its interval."""
    total, squares = [changes.sum()], [(changes**2).sum()]
    low, high = paired.change(total, squares, [len(changes)], 1 - level)
    return float(changes.mean()), float(low[0]), float(high[0])


def _describe_all(
    test: _ChangeTest, listed: Sequence[tuple[Listed, Bools]], outcome: str, table: pl.DataFrame
) -> list[Mode]:
    """Return listed rules with their numbers and words."""
    earlier = np.zeros(test.n, dtype=np.bool_)
    modes = []
    first = None if test.second is None else ~test.second
    (before, after), second = np.nan_to_num(test.losses), test.second
    for one, on in listed:
        mode = describe(test.language, one, on, earlier, after, outcome, test.level, table, second)
        outside = ~on
        difference, low, high = _measure(test.changes[on], test.level)
        d = test.losses[1, on] - test.losses[0, on]
        change = ModeChange(
            before=float(before[on].sum()),
            before_outside=float(before[outside].sum()),
            worse=int((d > 0).sum()),
            better=int((d < 0).sum()),
            difference=difference,
            elsewhere=float(test.changes[outside].mean()),
            interval=(low, high),
            n_before=None if first is None else int((on & first).sum()),
            n_before_outside=None if first is None else int((outside & first).sum()),
        )
        modes.append(replace(mode, change=change, corrected=None))
        earlier |= on
    return modes
