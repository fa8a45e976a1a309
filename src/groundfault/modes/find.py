"""Find failure modes: from a table of units and their losses to a short list of rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import polars as pl
from msgspec.structs import replace as restate

from groundfault.base.arrays import Bools, Floats, Ints, Places
from groundfault.base.long_work import Progress, enough_threads
from groundfault.core.candidate import Candidate
from groundfault.core.plan import BarKind
from groundfault.modes.bars import Bars
from groundfault.modes.condition import MIN_SUPPORT, Condition, Tier, UnitSet, list_conditions
from groundfault.modes.examples import list_doses
from groundfault.modes.matrix import ModelModes, make_matrix
from groundfault.modes.mode import (
    EVERY_MODEL,
    Alternative,
    Coverage,
    MatrixRow,
    Mode,
    ModeSearch,
    RuleClass,
)
from groundfault.modes.rule_space import RuleLanguage
from groundfault.modes.selection import Listed, Selection
from groundfault.modes.strata import Losses
from groundfault.stats.bits import Layout
from groundfault.stats.contingency import log_tail
from groundfault.stats.intervals import wilson

_MAX_ALTERNATIVES = 5  # as many as a page shows
POWER = 0.8  # the usual power of a study: four times in five
_MARGIN = 0.04
"""Share of causes lost because bars vary from draw to draw: .74 of 300 planted flags and words were
named where .80 was stated."""
_ADDED = 4
"""Units that shrink a mode's rate: modes of 17 networks failed 2.4 points less often on 8,000 other
prompts, by a failure or two each at any size."""
_SHARES = (0.02, 0.05, 0.10, 0.30)  # sizes that a reader asks for
_WIDER = 3  # times as many units as both have that one of two conditions has, about


def compute_detectable(bars: Bars) -> dict[str, dict[str, float | None]]:
    """Return the failure rate inside that a rule of each kind needs to be named, by its share of
    units.
    """
    y = bars.losses.values
    if not bars.weights or len(y) == 0:
        return {}
    rate, n = float(y.mean()), len(y)

    def stands(bar: float, within: float, inside: int, errors: int, total: int) -> bool:
        one = np.array([[inside], [total], [n]], dtype=np.int64)
        # the others of either condition fail as often as all
        among = min(n, _WIDER * inside)
        total = min(total, errors + round(rate * (among - inside)))
        two = np.array([[inside], [total], [among]], dtype=np.int64)
        return log_tail(errors, *one) <= bar and log_tail(errors, *two) <= within

    detectable: dict[str, dict[str, float | None]] = {}
    for name, bar, uncut in _list_log_bars(bars):
        found = detectable.setdefault(name, {})
        for share in _SHARES:
            inside = round(share * n)
            # a pair has to pass two tests, each of which may miss half of the allowed misses
            is_pair = name.endswith("pair")
            both = bars.log_level - bars.cost_beside(name) if is_pair else 0.0
            power = (1 + POWER) / 2 if is_pair else POWER if name == "range" else POWER + _MARGIN
            least = _find_rate(inside, n, rate, partial(stands, bar, both), power)
            # on average an end lies a quarter of the gap between two cuts from the nearer cut: this
            # many units of the named range are others, half of these at either end
            others = uncut / 4 / max(inside, 1)
            if least is not None and others:
                least = (least - others * rate) / (1 - others) if others < 1 else 2.0
            found[f"{share:g}"] = least if least is None or least <= 1 else None
    return detectable


def _list_log_bars(bars: Bars) -> Iterator[tuple[str, float, float]]:
    """Yield kinds of rules that a reader tells apart, the log p that each needs, and the number of
    units between two cuts.

    The first is the plainest condition.
    """
    language = bars.language
    plainest = next(k for k in ("single", "word", "partial", "own") if k in bars.weights)
    yield "condition", bars.log_level - bars.log_cost(plainest), 0.0
    bounds = [language.literals[i].bounds for i in language.single]
    closed = np.array([b is not None and np.isfinite(b).all() for b in bounds], dtype=np.bool_)
    if closed.any():
        bar = bars.log_level - bars.log_cost("single") - float(language.handicaps[closed].max())
        yield "range", bar, _count_uncut(language, language.single[closed])
    for kind in ("word", "value pair", "pair"):
        if kind in bars.weights and kind != plainest:
            yield kind, bars.log_level - bars.log_cost(kind), 0.0


def _count_uncut(language: RuleLanguage, ranges: Places) -> float:
    """Return the number of units between two neighbouring ends of ranges, in the column with the
    coarsest cuts; 0 if every value is an end."""
    steps: dict[int, dict[float, float]] = {}
    for i in ranges:
        low, high = language.literals[i].bounds or (0.0, 0.0)
        of_column = steps.setdefault(int(language.family[i]), {})
        units = float(language.support[i]) if low < high else 0.0
        of_column[low] = min(of_column.get(low, math.inf), units)
    return max(float(np.median(list(one.values()))) for one in steps.values())


def _find_rate(
    inside: int, n: int, rate: float, stands: Callable[[int, int, int], bool], power: float
) -> float | None:
    """Return the least failure rate inside that is named with this power, by bisection."""

    def is_named(p: float) -> bool:
        errors = _find_quantile(1 - power, inside, p)
        total = min(n, errors + round(rate * (n - inside)))
        return stands(inside, errors, total)

    if inside < MIN_SUPPORT or not is_named(1.0):
        return None
    low, high = rate, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if is_named(middle) else (middle, high)
    return high


def _find_quantile(share: float, n: int, p: float) -> int:
    """Return the least count whose binomial distribution function reaches a share in (0, 1)."""
    # scipy.stats has it, and takes half a second to import
    from scipy.special import bdtr, bdtrik

    if p >= 1:
        return n
    count = math.ceil(float(bdtrik(share, n, p)))
    # the inverse of a step function may end just above the step
    reaches_below = count > 0 and float(bdtr(count - 1, n, p)) >= share
    return count - 1 if reaches_below else count


def describe(
    language: RuleLanguage,
    one: Listed,
    inside: Bools,
    earlier: Bools,
    y: Floats,
    outcome: str,
    level: float,
    table: pl.DataFrame,
    among: Bools | None = None,
) -> Mode:
    """Return a listed rule with its numbers and words, counted among some units or all."""
    tested = language.tested(one.rule)
    if among is not None:
        tested = among if tested is None else among & tested
    # a rule inside a context is compared with the context's other units; a rule mined from some
    # units is compared on the held-out ones
    outside = ~inside if tested is None else tested & ~inside
    inside = inside if tested is None else inside & tested
    n, errors = int(inside.sum()), float(y[inside].sum())
    new = inside & ~earlier
    rest, rest_errors = int(outside.sum()), float(y[outside].sum())
    # the correction adds units that fail as often as all
    shrunk = errors + _ADDED * (errors + rest_errors) / (n + rest)
    low, high = wilson(shrunk, n + _ADDED, 1 - level)[0], wilson(errors, n, 1 - level)[1]
    conditions = language.conditions(one.rule)
    own = language.own_condition(one.rule)
    return Mode(
        rule=language.sql(one.rule),
        meaning=" and ".join(conditions),
        conditions=conditions,
        outcome=outcome,
        n=n,
        errors=errors,
        context=conditions[0] if one.rule.kind == "inside" else "",
        n_outside=rest,
        errors_outside=rest_errors,
        n_new=int(new.sum()),
        errors_new=float(y[new].sum()),
        corrected=shrunk / (n + _ADDED),
        interval=(float(low), float(high)),
        p_marginal=math.exp(min(0.0, one.log_marginal)),
        p_conditional=math.exp(min(0.0, one.log_conditional)),
        source="modes" if own is None else own.source,
        alternatives=tuple(_list_alternatives(language, one)),
        doses=list_doses(table, language, one.rule, y),
        stability=one.stability,
    )


def _list_alternatives(language: RuleLanguage, one: Listed) -> Iterator[Alternative]:
    """Yield other words for the same units, then rules for nearly the same."""
    same = [Alternative(rule=r, meaning=m, overlap=1.0) for r, m in language.rename(one.rule)]
    near = [
        Alternative(
            rule=language.sql(rule),
            meaning=" and ".join(language.conditions(rule)),
            overlap=overlap,
        )
        for rule, overlap in one.alternatives
    ]
    yield from [*same[:_MAX_ALTERNATIVES], *near][:_MAX_ALTERNATIVES]


@dataclass(frozen=True)
class OwnRule:
    """A candidate, named or mined from outcomes, as a rule that may become a mode.

    Attributes
    ----------
    candidate : Candidate
    on : bool array, shape (units,)
    tested : bool array, shape (units,), or None
        Units on which it is tested, whose outcomes no finder saw; None for all.
    """

    candidate: Candidate
    on: Bools
    tested: Bools | None = None


def find_modes(
    table: pl.DataFrame,
    losses: Floats,
    *,
    outcomes: Sequence[str] = ("",),
    level: float = 0.10,
    depth: int = 3,
    within: Sequence[str] = (),
    gaps: Sequence[str] = (),
    strata: Ints | None = None,
    own_rules: Sequence[OwnRule] = (),
    shared: bool = True,
    bars: BarKind = "permutation",
    progress: Progress | None = None,
) -> tuple[tuple[Mode, ...], ModeSearch]:
    """Name the rules under which failures are more frequent, few and in order.

    Parameters
    ----------
    table : polars.DataFrame
        One row a unit; the columns that rules may name, fixed before outcomes were seen.
    losses : float64 array, shape (outcomes, units)
        In [0, 1]; NaN where not scored.
    outcomes : sequence of str
        Models; one empty name for a single model.
    level : float
        Family-wise error level over all modes, in (0, 1).
    depth : {1, 2, 3}
        Largest number of conditions in a rule.
    within : sequence of str
        Columns of the table that are held fixed: no rule names them, and units are compared only
        with units that have the same values.
    gaps : sequence of str
        Columns of the table whose gaps go with the outcome. "Is missing" may be joined with other
        conditions; a value stands alone and is tested on the units that have one.
    strata : int64 array, shape (units,), optional
        Units are exchangeable only within these (size classes of groups).
    own_rules : sequence of OwnRule
        Rules beyond the search's own language.
    shared : bool
        With several outcomes, also name the modes of their mean.
    bars : {"permutation", "bonferroni"}
        Correction for the number of rules: see `groundfault.modes.bars.Bars`.
    progress : callable, optional
        Called with each pass of the search and the largest number of passes.

    Returns
    -------
    modes : tuple of Mode
        By outcome, modes of the mean first; within an outcome in the order of their worth.
    search : ModeSearch

    Notes
    -----
    The guarantee is for units that are independent given the strata, and rules that do not depend
    on their outcomes. It has two claims, each with probability at least ``1 - level``. First, no
    listed mode has equal failure rates inside and outside. Second, every listed mode adds to the
    modes before it (for a list fixed in advance; simulated for the list that was searched for).
    That a part of a mode fails more than its rest is a claim of its own, with the same probability
    over all parts (for modes fixed in advance; simulated for those that were searched for).
    With bars by permutation the first claim assumes subset pivotality (the dependence of conditions
    without an effect does not depend on the outcome); with Bonferroni's it is exact under any
    dependence of rules. For graded losses, the first claim is about equal distributions inside and
    outside. A rule whose losses are equal on average but differ in shape is listed with probability
    at most ``level``, each by itself (`groundfault.stats.betting.log_excess`; losses are at most
    the largest observed).
    """
    names = [column for column in table.columns if column not in within]
    literals = list_conditions(table.select(names), gaps=gaps)
    # a table without columns also has no rows: units are counted by their losses
    units = np.zeros(losses.shape[1], dtype=np.int64) if strata is None else strata
    blocks = _combine_strata(table, within, units)
    series = _list_outcomes(losses, outcomes, shared)
    modes: list[Mode] = []
    coverage: list[Coverage] = []
    search = _Search(table, literals, blocks, tuple(own_rules), depth, bars, progress, len(series))
    # thousands of short passes over bits: waking a second thread takes longer than each of them
    with enough_threads(len(blocks) * len(literals)):
        for name, values, share in series:
            found, covered = search.run(name, values, level * share)
            modes += found
            coverage.append(covered)
    first = search.lists[0].bars
    classes = tuple(
        RuleClass(name=name, rules=first.language.counts[name], weight=weight)
        for name, weight in first.weights.items()
    )
    detectable = compute_detectable(first)
    summary = ModeSearch(
        level=level,
        depth=depth,
        columns=tuple(dict.fromkeys(one.column for one in literals)),
        within=tuple(within),
        classes=classes,
        outcomes=tuple(coverage),
        detectable=detectable.pop("condition", {}),
        detectable_by=detectable,
        bars="permutation" if any(one.bars.lowest for one in search.lists) else "bonferroni",
        remarks=search.remarks(),
        matrix=search.make_matrix() if shared and len(outcomes) > 1 else (),
    )
    return tuple(modes), summary


def _combine_strata(table: pl.DataFrame, within: Sequence[str], strata: Ints) -> Ints:
    """Return one code a unit: columns held fixed, and size classes."""
    code = strata.astype(np.int64)
    for name in within:
        values = (
            table[name].cast(pl.String).fill_null("\0").rank("dense").to_numpy().astype(np.int64)
        )
        code = code * (values.max(initial=0) + 1) + values
    dense = np.unique(code, return_inverse=True)[1].reshape(-1) if code.any() else code
    return np.asarray(dense, dtype=np.int64)


def _list_outcomes(
    losses: Floats, outcomes: Sequence[str], shared: bool
) -> list[tuple[str, Floats, float]]:
    """Name, losses and share of the level of each list of modes."""
    if len(outcomes) == 1:
        return [(outcomes[0], losses[0], 1.0)]
    part = 0.5 if shared else 1.0
    each = [(name, row, part / len(outcomes)) for name, row in zip(outcomes, losses, strict=True)]
    # units that only some models answered would compare models, not examples
    mean = np.where(np.isnan(losses).any(axis=0), np.nan, losses.mean(axis=0))
    return [(EVERY_MODEL, mean, 0.5), *each] if shared else each


@dataclass
class _Search:
    """The state that the searches of all outcomes share."""

    table: pl.DataFrame
    literals: list[Condition]
    blocks: Ints
    own_rules: tuple[OwnRule, ...]
    depth: int
    kind: BarKind
    progress: Progress | None
    outcomes: int

    def __post_init__(self) -> None:
        self._languages: dict[bytes, RuleLanguage] = {}
        self.lists: list[ModelModes] = []

    def language(self, scored: Bools) -> RuleLanguage:
        """Return the language over the scored units; the same for outcomes that score the same."""
        key = np.packbits(scored).tobytes()
        if key not in self._languages:
            blocks, cut = self.blocks, [*self.literals, *make_own_conditions(self.own_rules)]
            if not scored.all():
                blocks = np.unique(blocks[scored], return_inverse=True)[1].reshape(-1)
                cut = [take_units(one, scored) for one in cut]
            usable = [one for one in cut if one.units.is_usable]
            self._languages[key] = RuleLanguage(usable, Layout(blocks), self.depth)
        return self._languages[key]

    def run(self, name: str, values: Floats, level: float) -> tuple[list[Mode], Coverage]:
        """Return the modes of one outcome."""
        scored = ~np.isnan(values)
        y = values[scored]
        empty = Coverage(
            outcome=name, n=len(y), errors=float(y.sum()), covered=0, covered_errors=0.0
        )
        language = self.language(scored)
        varied = len(y) >= 2 * MIN_SUPPORT and y.min() < y.max() and bool(language.literals)
        kind: BarKind = self.kind if varied else "bonferroni"
        bars = Bars(language, Losses.of(y, language.layout), level, kind)
        selection = Selection(bars, self.progress, len(self.lists), self.outcomes)
        listed = selection.select() if varied else []
        self.lists.append(ModelModes(name, scored, bars, listed))
        if not listed:
            return [], empty
        rows = language.layout.unpack(np.stack([one.mask for one in listed]))
        any_mode = rows.any(axis=0)
        covered = restate(
            empty, covered=int(any_mode.sum()), covered_errors=float(y[any_mode].sum())
        )
        earlier = np.zeros(len(y), dtype=np.bool_)
        modes = []
        table = self.table.select(pl.all().filter(pl.Series(scored)))
        for one, row in zip(listed, rows, strict=True):
            modes.append(describe(language, one, row, earlier, y, name, level, table))
            earlier |= row
        return modes, covered

    def make_matrix(self) -> tuple[MatrixRow, ...]:
        """Return one list of rules for all models."""
        conditions = [*self.literals, *make_own_conditions(self.own_rules)]
        holds = {one.rule: one.on for one in conditions}
        numbers = {one.column: one.numbers for one in self.literals if one.numbers}
        for language in self._languages.values():
            for one in language.literals:
                # a range with other ends, over the units of all models
                if one.rule not in holds and one.bounds is not None:
                    holds[one.rule] = numbers[one.column].cut(*one.bounds).on
        return make_matrix([one for one in self.lists if one.name != EVERY_MODEL], holds)

    def remarks(self) -> tuple[str, ...]:
        """Return sentences about rules left out of the search."""
        language = self.language(np.ones(len(self.blocks), dtype=np.bool_))
        if self.depth < 3 or len(language.triple_places) == len(language.coarse):
            return ()
        return (
            "The table is large: rules of three conditions join the "
            f"{len(language.triple_places)} plainest of {len(language.coarse)} conditions only.",
        )


def make_own_conditions(rules: Sequence[OwnRule]) -> list[Condition]:
    """Return rules beyond the search's own language as conditions that join with no other."""
    return [
        Condition(
            f"own {i}",
            own.candidate.rule,
            own.candidate.meaning,
            0.0,
            UnitSet.of(own.on),
            Tier.OWN,
            tested=own.tested,
            source=own.candidate.source,
        )
        for i, own in enumerate(rules)
    ]


def take_units(one: Condition, units: Bools) -> Condition:
    """Return a condition on some of the units."""
    tested = None if one.tested is None else one.tested[units]
    numbers = one.numbers and replace(one.numbers, values=one.numbers.values[units])
    return replace(one, units=UnitSet.of(one.on[units]), tested=tested, numbers=numbers)
