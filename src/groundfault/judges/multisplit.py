"""Multi-split e-values: many random splits averaged, so that no single split decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.random import Generator

from groundfault.base.arrays import Floats, Ints, Places
from groundfault.core.judge import Confirmation, ConfirmationBar, ErrorRate, Screening
from groundfault.core.plan import Plan
from groundfault.core.units import Units
from groundfault.judges.rule import compute_p_values, draw_null_worlds, is_big_enough
from groundfault.stats import multiple, null_distributions
from groundfault.stats.contingency import ContingencyTables

# discovery p-value above which a candidate gets no weight in that split
_PROMISING = 0.2
# alternatives that the likelihood ratio averages over: small effects to large ones
_ODDS_RATIOS = (1.5, 2.0, 3.0, 5.0, 8.0)

_REPEATS = 5
"""Simulated audits of the same counts, each with all its splits."""

_PREVALENCES = (0.05, 0.1, 0.3, 0.5, 0.7, 0.9)
"""Supports that are simulated, as shares of the units; see `make_find_level`."""


@dataclass(frozen=True)
class SplitEvidence:
    """Splits of one hypothesis on 0/1 errors, among null hypotheses.

    Attributes
    ----------
    n, errors : int
        Units, and errors on these units.
    size : int
        Number of competing hypotheses.
    splits : int
        Number of splits that an audit averages over.
    rivals : float64 array, shape (R,)
        Sums of the weights of null hypotheses, in splits of null worlds.
    weigh : callable
        Weights from discovery p-values.
    log_odds : float64 array
        Alternatives that the likelihood ratio averages over.
    rng : numpy.random.Generator
    """

    n: int
    errors: int
    size: int
    splits: int
    rivals: Floats
    weigh: Callable[[Floats], Floats]
    log_odds: Floats
    rng: Generator

    def find_level(self, on: int, q: float) -> float:
        """Return the two-sided p-value at which half of the audits confirm, at a support.

        Parameters
        ----------
        on : int
            Support, in 1..n-1.
        q : float
            Level for a single hypothesis: e-BH asks for e >= size / q.
        """
        mean = on * self.errors / self.n
        spread = np.sqrt(mean * (1 - on / self.n) * (self.n - self.errors) / max(1, self.n - 1))
        counts = [int(mean), min(on, self.errors)]
        values = [0.0, self._average(on, counts[1])]
        if values[1] < self.size / q:
            return 0.0
        # more errors on the slice, a larger e-value; most bars lie at four to five deviations
        tries = [int(mean + z * spread) for z in (4.5, 4.0, 5.0)]
        while counts[1] - counts[0] > 1:
            count = tries.pop(0) if tries else sum(counts) // 2
            if counts[0] < count < counts[1]:
                value = self._average(on, count)
                side = int(value >= self.size / q)
                counts[side], values[side] = count, value
        table = _table(self.n, on, self.errors, np.array(counts))
        laws, which, _ = _distributions(table)
        p = laws.two_sided(which, table.on_sum.astype(np.float64))
        # between the counts, or the bar would jump by whole errors
        logs = np.log(np.maximum(values, 1e-300))
        return float(np.exp(np.interp(np.log(self.size / q), logs, np.log(p))))

    def _average(self, on: int, on_errors: int) -> float:
        """Return the e-value of a hypothesis with these counts: the median over repeated audits."""
        draws, half = self.splits * _REPEATS, self.n // 2
        rng = self.rng
        seen = rng.hypergeometric(on, self.n - on, half, draws)
        errors_on = rng.hypergeometric(on_errors, on - on_errors, seen)
        off_errors = self.errors - on_errors
        errors_off = rng.hypergeometric(off_errors, self.n - on - off_errors, half - seen)
        discovery = _table(half, seen, errors_on + errors_off, errors_on)
        rest = self.errors - errors_on - errors_off
        holdout = _table(self.n - half, on - seen, rest, on_errors - errors_on)
        laws, which, _ = _distributions(discovery)
        p = laws.two_sided(which, discovery.on_sum.astype(np.float64))
        weight = self.weigh(p) * ((seen > 0) & (seen < half))
        laws, which, _ = _distributions(holdout)
        e = laws.likelihood_ratio(
            which, holdout.on_sum.astype(np.float64), discovery.sign, self.log_odds
        )
        total = weight + rng.choice(self.rivals, draws)
        share = np.divide(weight, total, out=np.zeros(draws), where=total > 0)
        audits = (e * share * self.size).reshape(_REPEATS, self.splits).mean(axis=1)
        return float(np.median(audits))


def make_find_level(evidence: SplitEvidence, q: float) -> Callable[[int, int], float]:
    """Return a version of `SplitEvidence.find_level` computed only at a few prevalences.

    Each support uses the nearest prevalence: in z-scores the bar changes by only 0.2 from
    prevalence 0.05 to 0.5."""

    @cache
    def compute(on: int, beside: int) -> float:
        return evidence.find_level(on, q * (beside + 1))

    supports = np.unique([int(np.clip(v * evidence.n, 1, evidence.n - 1)) for v in _PREVALENCES])

    def find_level(on: int, beside: int) -> float:
        return compute(int(supports[np.abs(supports - on).argmin()]), beside)

    return find_level


def _table(n: int, on: Ints | int, total: Ints | int, on_sum: Ints) -> ContingencyTables:
    ones = np.ones(len(on_sum), dtype=np.int64)
    return ContingencyTables(ones * n, ones * on, ones * total, on_sum)


def _distributions(
    tables: ContingencyTables,
) -> tuple[null_distributions.NullDistributions, Places, Floats]:
    distinct, which, counts = null_distributions.find_distinct(tables)
    return null_distributions.from_errors(distinct, pooled=False), which, counts


@dataclass(frozen=True)
class MultiSplit:
    """Compound e-values averaged over random splits, selected by e-BH at q.

    On each split a candidate gets a weight times a holdout e-value. The weight is p to the power
    -1/2 for discovery p-values up to 0.2, else 0; weights are scaled to sum to the number L of
    candidates. The e-value is a mixture of noncentral against central likelihood ratios in the
    direction seen on discovery. Guarantee:
    the null e-values sum to at most L in expectation, hence the false discovery rate <= q under any
    dependence of the candidates, for independent units (Wang and Ramdas 2022,
    doi:10.1111/rssb.12489)."""

    name: str = "multisplit-e"
    confirmation: Confirmation = "none"
    lift_ranked: bool = False
    distinct: bool = True
    bounds: ErrorRate = "false discovery"

    def screen(self, units: Units, hypotheses: Places, plan: Plan, rng: Generator) -> Screening:
        """Confirm hypotheses that e-BH selects by their averaged e-values, if large enough."""
        e = np.zeros(len(hypotheses))
        # an average of e-values is an e-value under any dependence, which p-values of splits lack
        for _ in range(plan.splits):
            in_discovery = np.zeros(len(units), dtype=np.bool_)
            # halves: discovery chooses the weights, the holdout supplies the evidence
            in_discovery[rng.permutation(len(units))[: len(units) // 2]] = True
            one, two = (units.select_units(half) for half in (in_discovery, ~in_discovery))
            e += _compute_split_e_values(one, two, hypotheses) / plan.splits
        selected = multiple.e_benjamini_hochberg(e, float(plan.q))
        large = is_big_enough(units.tables[hypotheses], plan)
        p = compute_p_values(units, hypotheses, plan, rng)
        return Screening(selected & large, p, multiple.e_adjusted(e), too_small=selected & ~large)

    def find_bar(
        self, units: Units, hypotheses: Places, plan: Plan, rng: Generator
    ) -> ConfirmationBar:
        """Return simulated splits of errors; graded losses are simulated as errors of equal
        variance."""
        present = units.losses if units.scored is None else units.losses[units.scored]
        variance = float((present / (units.denominator or 1)).var())
        rate = float((present / (units.denominator or 1)).mean())
        if units.denominator != 1:
            rate = (1 - np.sqrt(max(0.0, 1 - 4 * variance))) / 2
        rivals = []
        for world in draw_null_worlds(units, hypotheses, rng):
            half = rng.permutation(len(units)) < len(units) // 2
            rivals.append(_weigh_all(world.select_units(half), hypotheses).sum())
        errors, n, log_odds = round(rate * len(units)), len(hypotheses), np.log(_ODDS_RATIOS)
        evidence = SplitEvidence(
            len(units), errors, n, plan.splits, np.array(rivals), _weigh, log_odds, rng
        )
        return ConfirmationBar(make_find_level(evidence, float(plan.q)))


def _weigh(p: Floats) -> Floats:
    return np.where(p <= _PROMISING, np.maximum(p, 1e-300) ** -0.5, 0.0)


def _weigh_all(discovery: Units, hypotheses: Places) -> Floats:
    """Return the weight of each hypothesis, from discovery alone."""
    tables = discovery.tables[hypotheses]
    distributions, which, _ = discovery.null_distributions(hypotheses, pooled=False)
    p = distributions.two_sided(which, np.asarray(tables.on_sum, dtype=np.float64))
    return np.asarray(_weigh(p) * ((tables.on > 0) & (tables.off > 0)))


def _compute_split_e_values(discovery: Units, holdout: Units, hypotheses: Places) -> Floats:
    tables = discovery.tables[hypotheses]
    # weights depend on discovery alone, so that a weight times a holdout e-value is an e-value
    weight = _weigh_all(discovery, hypotheses)
    if weight.sum() == 0:
        return weight
    positions = np.flatnonzero(weight)
    on_sum = np.asarray(holdout.tables[hypotheses[positions]].on_sum, dtype=np.float64)
    distributions, which, _ = holdout.null_distributions(hypotheses[positions], pooled=False)
    e = np.zeros(len(hypotheses))
    e[positions] = distributions.likelihood_ratio(
        which, on_sum, tables.sign[positions], np.log(_ODDS_RATIOS)
    )
    # scaled to sum to L: compound e-values, as e-BH allows (Wang and Ramdas 2022)
    return np.asarray(e * weight * (len(weight) / weight.sum()))
