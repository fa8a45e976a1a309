"""One list of rules for several models, with each model's failures and confirmations.

The rules come from the models' own lists. A row is a rule that adds to the rows before it for at
least one model. So a rule shared by several models has one row, and a rule of a single model gets a
row when it is the best one left for this model. Rows are chosen among rules of the language, and
then end where ranges of the models' own lists end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from groundfault.base.arrays import Bools, Floats
from groundfault.modes.bars import Bars
from groundfault.modes.condition import MIN_SUPPORT
from groundfault.modes.mode import MatrixCell, MatrixRow
from groundfault.modes.rule_space import ModeRule, RuleLanguage
from groundfault.modes.search import gain_over_expected, score_counts
from groundfault.modes.selection import Listed
from groundfault.modes.strata import Strata, compute_overlaps
from groundfault.stats import bits as bitset, flips
from groundfault.stats.bits import Bits

_MOST_ROWS = 35
"""Most rows of a list: 17 networks need some 25."""
_SAME_PLACE = 0.3
"""Overlap from which two rules are wordings of one row; the likelihood chooses between them."""


@dataclass(frozen=True)
class ModelModes:
    """The list of one model, and the data it was made from.

    Attributes
    ----------
    name : str
    scored : bool array, shape (units,)
    bars : Bars
        Bars over the scored units, at the model's share of the level.
    listed : sequence of Listed
    """

    name: str
    scored: Bools
    bars: Bars
    listed: Sequence[Listed]


def make_matrix(models: Sequence[ModelModes], holds: Mapping[str, Bools]) -> tuple[MatrixRow, ...]:
    """Return one list of rules for several models.

    Parameters
    ----------
    models : sequence of ModelModes
    holds : mapping of str to bool array, shape (units,)
        The units that each condition, in SQL, matches.

    Notes
    -----
    Guarantee, for independent units: the probability of confirming any cell whose model fails no
    more inside the rule than outside is at most the sum of the models' levels. A rule of the
    model's own list is confirmed by the bars of that list. Every other cell pays for every rule and
    every model (Bonferroni), which is exact under any dependence of models and rules. "Only this
    model fails more" is tested against each other model by the signs of the examples' differences;
    the largest p-value counts (intersection-union; Berger 1982,
    doi:10.1080/00401706.1982.10487790).
    """
    matrix = _Matrix(models, holds)
    return tuple(matrix.describe(row, named) for row, named in matrix.select())


class _Matrix:
    """Cells of rules by models."""

    def __init__(self, models: Sequence[ModelModes], holds: Mapping[str, Bools]) -> None:
        self.models = models
        pool: dict[str, tuple[RuleLanguage, ModeRule]] = {}
        for model in models:
            for one in model.listed:
                # an excess inside a context is not an excess among all units
                if one.rule.kind != "inside":
                    language = model.bars.language
                    for rule in (language.uncut(one.rule)[0], one.rule):
                        pool.setdefault(language.sql(rule), (language, rule))
        self.rules, place = list(pool.values()), {name: r for r, name in enumerate(pool)}
        wholes = (language.sql(language.uncut(rule)[0]) for language, rule in self.rules)
        self.whole = np.array([place[name] for name in wholes], dtype=np.intp)
        units = models[0].scored.size
        self.on = np.zeros((len(pool), units), dtype=np.bool_)
        for r, (language, rule) in enumerate(self.rules):
            parts = ([holds[language.literals[i].rule] for i in part] for part in rule.parts)
            self.on[r] = np.all([np.any(part, axis=0) for part in parts], axis=0)
        self.losses = np.zeros((len(models), units))
        for m, model in enumerate(models):
            self.losses[m, model.scored] = model.bars.losses.values
        self.scored = np.stack([model.scored for model in models])
        self.strata = [Strata(m.bars.language.layout, m.bars.losses) for m in models]
        shape = (len(pool), len(models))
        self.costs, self.log_p = np.full(shape, np.inf), np.zeros(shape)
        for r, m in np.ndindex(*shape):
            self._test(r, m)
        levels = np.array([model.bars.log_level for model in models])
        self.confirmed = self.log_p + self.costs <= levels
        self.lengths = np.array([language.size(rule) for language, rule in self.rules])

    def _test(self, r: int, m: int) -> None:
        """Test a rule for a model, if its language has it."""
        bars = self.models[m].bars
        language, exact = self.rules[r]
        whole, log_ends = language.uncut(exact)
        rule = _translate(language, whole, bars.language)
        if rule is None or (log_ends and "cut" not in bars.weights):
            return
        own = any(bars.language.uncut(one.rule)[0] == rule for one in self.models[m].listed)
        if log_ends:
            # any model pays for all ends, as the list does
            self.costs[r, m] = bars.sum_cost_of(rule) + log_ends - math.log(bars.weights["cut"])
        else:
            self.costs[r, m] = bars.cost_of(rule) if own else bars.sum_cost_of(rule)
        self.log_p[r, m] = self.strata[m].log_p(self._pack(r, m), bars.language.tested(rule))

    def _pack(self, r: int, m: int) -> Bits:
        layout = self.models[m].bars.language.layout
        (packed,) = layout.pack(self.on[r, self.scored[m]][None])
        return np.asarray(packed)

    def select(self) -> Iterator[tuple[int, list[int]]]:
        """Yield rows in order, each with the models whose list it adds to."""
        new = self.scored.copy()
        alive = self.confirmed.any(axis=1) & (self.whole == np.arange(len(self.rules)))
        listed: list[list[Bits]] = [[] for _ in self.models]
        rows = bitset.pack(self.on)
        for _ in range(_MOST_ROWS):
            score, worth = self._rate(new)
            total = np.where(alive, score.sum(axis=1), 0)
            while total.max(initial=0) > 0:
                overlaps = compute_overlaps(rows[total.argmax()], rows)
                near = np.flatnonzero((overlaps >= _SAME_PLACE) & (total > 0))
                row = int(near[np.lexsort((self.lengths[near], -worth[near].sum(axis=1)))[0]])
                total[row], alive[row] = 0, False
                gains = np.flatnonzero(score[row] > 0).tolist()
                named = [m for m in gains if self._adds(row, m, listed[m])]
                if named:
                    break
            else:
                return
            row = self._choose_ends(row, named, listed, worth)
            for m in named:
                listed[m].append(self._pack(row, m))
                new[m] &= ~self.on[row]
            yield row, named

    def _choose_ends(
        self, row: int, named: list[int], listed: Sequence[Sequence[Bits]], worth: Floats
    ) -> int:
        """Return the row with the ends of a model's list, if it still adds to each named model's
        list."""
        exact = [
            r
            for r in np.flatnonzero(self.whole == row).tolist()
            if r != row
            and self.confirmed[r, named].all()
            and all(self._adds(r, m, listed[m]) for m in named)
        ]
        return max(exact, key=lambda r: float(worth[r].sum()), default=row)

    def _rate(self, new: Bools) -> tuple[Floats, Floats]:
        """Return guaranteed excess among new units, and the likelihood beyond the bar; both 0 for
        an unconfirmed cell."""
        units = self.on.astype(float) @ new.T.astype(float)
        failures = self.on.astype(float) @ (new * self.losses).T
        base = (new * self.losses).sum(axis=1) / np.maximum(new.sum(axis=1), 1)
        usable = self.confirmed & (units >= MIN_SUPPORT)
        costs = np.where(usable, self.costs, 1.0)
        score = score_counts(units, failures, units * base, np.sqrt(2 * np.maximum(costs, 0.5)))
        score = np.where(usable, np.maximum(score, 0), 0)
        gain = gain_over_expected(units, failures, units * base) - costs
        return score, np.where(score > 0, np.maximum(gain, 0), 0)

    def _adds(self, r: int, m: int, listed: Sequence[Bits]) -> bool:
        """Return whether a rule passes for a model, given the rows named for this model."""
        bars = self.models[m].bars
        strata = Strata(bars.language.layout, bars.losses, listed)
        log_p = strata.log_p(self._pack(r, m)) if listed else self.log_p[r, m]
        return bool(log_p + self.costs[r, m] <= bars.log_level)

    def describe(self, row: int, named: Sequence[int]) -> MatrixRow:
        """Return a row with its cells."""
        language, rule = self.rules[row]
        cells = []
        for m, model in enumerate(self.models):
            inside = self.on[row] & self.scored[m]
            cells.append(
                MatrixCell(
                    model=model.name,
                    n=int(inside.sum()),
                    errors=float(self.losses[m, inside].sum()),
                    mark="named" if m in named else "confirmed" if self.confirmed[row, m] else "",
                )
            )
        alone = len(named) == 1 and self._is_alone(row, named[0])
        return MatrixRow(
            rule=language.sql(rule),
            meaning=" and ".join(language.conditions(rule)),
            n=int(self.on[row].sum()),
            cells=tuple(cells),
            only=self.models[named[0]].name if alone else "",
        )

    def _is_alone(self, row: int, m: int) -> bool:
        """Return whether a model fails on more examples of a rule than each of the others."""
        if not all(model.bars.losses.binary for model in self.models):
            return False
        rows, more = bitset.pack(self.on[[row]]), np.array([1])
        both = self.scored & self.scored[m]
        changes = np.where(both, self.losses[m] - self.losses, 0.0)
        others = [other for other in range(len(self.models)) if other != m]
        worst = max(float(flips.p_values(rows, changes[other], more)[0]) for other in others)
        # the test is one of each rule and model
        cost = self.costs[row, m] - self.models[m].bars.log_level
        return bool(math.log(max(worst, 1e-300)) + cost <= 0)


def _translate(language: RuleLanguage, rule: ModeRule, into: RuleLanguage) -> ModeRule | None:
    """Return a rule in the language of another model's units; None if that language lacks it."""
    if language is into:
        return rule
    index = {one.rule: i for i, one in enumerate(into.literals)}
    parts = [
        tuple(sorted(index.get(language.literals[i].rule, -1) for i in part)) for part in rule.parts
    ]
    if any(part[0] < 0 for part in parts):
        return None
    return next(into.join(parts, free=True), None)
