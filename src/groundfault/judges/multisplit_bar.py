"""What multi-split e-values ask of one true hypothesis: simulated, since they have no formula."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from groundfault.stats import null_distributions
from groundfault.stats.contingency import ContingencyTables

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_REPEATS = 5
"""Audits of the same counts that are simulated, each with all its splits."""

_PREVALENCES = (0.05, 0.1, 0.3, 0.5, 0.7, 0.9)


@dataclass(frozen=True)
class SplitEvidence:
    """Splits of one hypothesis of 0/1 errors, beside null ones.

    Attributes
    ----------
    n, errors : int
        Units, and errors among them.
    size : int
        Hypotheses that compete.
    splits : int
        That an audit averages over.
    rivals : float64 array, shape (R,)
        Sums of the weights of null hypotheses, in splits of null worlds.
    weigh : callable
        The weight of discovery p-values.
    log_odds : float64 array
        What the likelihood ratio averages over.
    rng : numpy.random.Generator
    """

    n: int
    errors: int
    size: int
    splits: int
    rivals: Floats
    weigh: Callable[[Floats], Floats]
    log_odds: Floats
    rng: np.random.Generator

    def find_level(self, on: int, q: float) -> float:
        """The two-sided p-value at which half of the audits confirm, at a support.

        Parameters
        ----------
        on : int
            Support, in 1..n-1.
        q : float
            Level that its e-value has to reach alone, as e-BH asks: e >= size / q.
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
        """The e-value of a hypothesis of these counts: the median over repeated audits."""
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
    """`SplitEvidence.find_level` for any support: that of the nearest of a few prevalences.

    In z-scores the bar hardly depends on the support: by 0.2 from prevalence 0.05 to 0.5."""

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
) -> tuple[null_distributions.NullDistributions, NDArray[np.intp], Floats]:
    distinct, which, counts = null_distributions.find_distinct(tables)
    return null_distributions.from_errors(distinct, pooled=False), which, counts
