"""Power of an audit, from the requirements of its judge on one true candidate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, floor
from typing import NamedTuple

import numpy as np

from groundfault.base.arrays import Floats
from groundfault.base.long_work import enough_threads
from groundfault.core.judge import ConfirmationBar, Judge
from groundfault.core.pairs import Pairs
from groundfault.core.plan import Plan, to_fraction
from groundfault.core.units import Units
from groundfault.judges.rule import least_score
from groundfault.stats import flips, power
from groundfault.stats.power import Design, DesignMixture, Stage, chance_of_support

POWER = 0.8  # the usual convention (Cohen 1988)
PREVALENCES = (0.1, 0.3, 0.5)  # a rare slice, a usual one, half of the units
USUAL_PREVALENCE = 0.3  # the one that a single sentence is about

# bars that represent all bars of null worlds; with more, no power changed by 0.01
_NODES = 4

DesignOf = Callable[[int], DesignMixture]


class _Losses(NamedTuple):
    """The failure rate of units, and the variance of losses that are not 0/1."""

    rate: float
    variance: float | None


def make_designs(
    judge: Judge,
    plan: Plan,
    discovery: Units,
    n_holdout: int,
    bar: ConfirmationBar | None,
    *,
    drawn: bool = True,
) -> DesignOf | None:
    """Return the test of a single true candidate, as a function of its support.

    Parameters
    ----------
    judge : Judge
    plan : Plan
        Resolved.
    discovery : Units
        Discovery units, or all units for a judge without a holdout; only these give the failure
        rate.
    n_holdout : int
        Number of held-out units.
    bar : ConfirmationBar, optional
        The judge's bar on the discovery units; see `groundfault.judges.rule.find_bar`.
    drawn : bool
        Whether chance divides the support between discovery and holdout, and so decides whether the
        candidate is tested; False for a candidate whose marks are known.

    Returns
    -------
    callable or None
        None if the judge states no bar, or all graded losses are equal.
    """
    losses = _Losses(*discovery.describe_losses())
    if bar is None or losses.variance == 0:
        return None
    n = len(discovery)
    if n_holdout == 0:
        return partial(_full_sample, bar, plan, losses, n)
    exact_p = judge.confirmation == "exact"
    return partial(_split, bar, plan, losses, (n, n_holdout), exact_p, drawn)


def minimum_detectable_lifts(design_of: DesignOf | None, units: int) -> dict[float, float | None]:
    """Return the least lift found with 80 % power at usual prevalences; None if no lift is found.

    Empty if the judge states no bar. If errors are so rare that no lift at their rate could be
    found, the lift is of a slice with additional errors.
    """
    if design_of is None:
        return {}
    # small tables, for which it is not worth to wake other threads
    with enough_threads(0):
        return {v: _find_least_lift(design_of(round(v * units))) for v in PREVALENCES}


def _find_least_lift(mixture: DesignMixture) -> float | None:
    lift = power.minimum_detectable_lift(mixture, POWER)
    if lift is not None:
        return lift
    weights = [mixture.tested * weight for weight in mixture.weights]
    return power.minimum_detectable_rise(mixture.designs, weights, POWER)


def _full_sample(
    bar: ConfirmationBar, plan: Plan, losses: _Losses, n: int, on: int
) -> DesignMixture:
    level = bar.level(on, 0) if bar.level is not None else 1.0
    stage = Stage(n=n, on=on, level=level, min_effect=least_score(plan), effect=plan.effect)
    low, high = _support_window(plan, n)
    is_tested = max(low, plan.min_on_total) <= on <= high
    return DesignMixture((Design((stage,), *losses),), (1.0,), float(is_tested))


def _split(
    bar: ConfirmationBar,
    plan: Plan,
    losses: _Losses,
    sizes: tuple[int, int],
    exact_p: bool,
    drawn: bool,
    on: int,
) -> DesignMixture:
    held_on = round(on * sizes[1] / sum(sizes))
    confirm = Stage(
        n=sizes[1], on=held_on, sides=1, min_effect=least_score(plan), effect=plan.effect
    )
    designs, weights = [], []
    for weight, least, rivals in _summarise(bar):
        screen = Stage(n=sizes[0], on=on - held_on, min_effect=least, effect=plan.effect)
        # Holm's first step, which the smallest p-value has to pass
        level = float(to_fraction(plan.alpha)) / (1 + rivals) if exact_p else 1.0
        designs.append(Design((screen, replace(confirm, level=level)), *losses))
        weights.append(weight)
    tested = _chance_of_test(plan, sizes, on) if drawn else 1.0
    return DesignMixture(tuple(designs), tuple(weights), tested)


def _chance_of_test(plan: Plan, sizes: tuple[int, int], on: int) -> float:
    """Return the probability that a slice of this support is large enough in both parts."""
    n, (low, high) = sum(sizes), _support_window(plan, sizes[0])
    if plan.scope == "full":
        least, most = _support_window(plan, n)
        if not least <= on <= most:
            return 0.0
        low, high = 1, sizes[0] - 1
    held = (plan.hold_min_on or plan.min_on, sizes[1] - (plan.hold_min_off or plan.min_off))
    return chance_of_support(n, on, sizes[0], (low, high), held) * (on >= plan.min_on_total)


def _support_window(plan: Plan, n: int) -> tuple[int, int]:
    """Return the least and largest support of a tested candidate, on the n units that decide."""
    low, high = (to_fraction(x) for x in plan.prevalence or (0, 1))
    return max(plan.min_on, ceil(low * n), 1), min(n - max(plan.min_off, 1), floor(high * n))


def _summarise(bar: ConfirmationBar) -> list[tuple[float, float, float]]:
    """Return a few bars that represent all: weight, floor and rivals of each."""
    order = np.lexsort((bar.rivals, bar.floors)) if len(bar.floors) == len(bar.rivals) else [0]
    floors, rivals = np.broadcast_to(bar.floors, len(order))[order], np.asarray(bar.rivals)[order]
    pairs = np.column_stack([floors, rivals])
    parts = np.array_split(pairs, min(_NODES, len(np.unique(pairs, axis=0))))
    # the bar moves with the logarithm of the level that is shared
    levels = (float(np.expm1(np.log1p(part[:, 1]).mean())) for part in parts)
    return [
        (len(part) / len(pairs), float(part[:, 0].mean()), level)
        for part, level in zip(parts, levels, strict=True)
    ]


_STEPS = 1000  # a least change is a multiple of one over this


@dataclass(frozen=True)
class ChangeDesign:
    """Requirements on a single slice for its change to be confirmed.

    Attributes
    ----------
    churn : float
        Mean squared change of a unit by chance: for 0/1 losses, the share with another outcome.
    level : float
        Two-sided p-value that is small enough given the other candidates.
    least : float
        Least change worth confirming.
    holdout : float
        Share of held-out units; 0 if all are tested at once.
    growth : float
        Growth of the mean squared change with each added failure, in [0, 1]: a failure added to a
        unit that the first model failed removes a change.
    graded : bool
        Whether changes have several sizes, so that they are tested by bets.
    """

    churn: float
    level: float
    least: float
    holdout: float
    growth: float = 1.0
    graded: bool = False

    @classmethod
    def of(cls, plan: Plan, discovery: Pairs, n_holdout: int, hypotheses: int) -> ChangeDesign:
        """Return the design of an audit.

        Parameters
        ----------
        plan : Plan
            Resolved.
        discovery : Pairs
            Discovery units, or all; variation by chance is estimated from these alone.
        n_holdout : int
            Units held out.
        hypotheses : int
            Number of competing candidates. Each counts as a separate test, so that the power is not
            overstated if they overlap.
        """
        level = float(to_fraction(plan.alpha))
        pairs = np.stack([discovery.first[0], discovery.losses[0]])[:, discovery.present]
        # one-sided on the holdout, where a lone survivor has the whole level
        level = 2 * level if n_holdout else level / max(1, hypotheses)
        return replace(
            cls.of_losses(pairs / (discovery.denominator or 1), level),
            least=float(to_fraction(plan.min_lift or 0)),
            holdout=n_holdout / max(1, len(discovery) + n_holdout),
        )

    @classmethod
    def of_losses(cls, losses: Floats, level: float) -> ChangeDesign:
        """Return the design of a test of all units at once.

        Parameters
        ----------
        losses : float64 array, shape (2, units)
            Before and after; NaN where not scored.
        level : float
            Two-sided.
        """
        paired = ~np.isnan(losses).any(axis=0)
        if not paired.any():
            return cls._of_samples(losses, level)
        before, after = losses[:, paired]
        changes = after - before
        passes = float((1 - after).sum())
        better = float(np.maximum(-changes, 0).sum())
        return cls(
            float(np.mean(changes**2)) if len(changes) else 0.0,
            level,
            0.0,
            0.0,
            max(0.0, 1 - 2 * better / passes) if passes else 1.0,
            flips.is_graded(changes),
        )

    @classmethod
    def _of_samples(cls, losses: Floats, level: float) -> ChangeDesign:
        """Return the design for runs without common units: each unit is a part of a pair."""
        first, second = (row[~np.isnan(row)] for row in losses)
        units = len(first) + len(second)
        parts = units**2 / max(1, 2 * len(first) * len(second))
        before = float(first.mean())
        churn = parts * float(first.var() + second.var())
        graded = flips.is_graded(np.concatenate([first, second]))
        return cls(churn, level, 0.0, 0.0, max(0.0, parts * (1 - 2 * before)), graded)

    def power(self, change: float, units: float) -> float:
        """Return the chance to confirm a slice of this many units that is worse by ``change``.

        Parameters
        ----------
        change : float
            Share of units that fail in addition to variation by chance.
        units : float
            On the slice, in both parts together.

        Notes
        -----
        Normal approximation, of the mean change and of the test. Bets need the wealth one over the
        level: a stake s gains about s x mean - s^2 x spread / 2 a unit in logarithms, most where
        s = mean / spread, and never more than the largest of `flips.STAKES`.
        """
        from scipy.special import ndtr, ndtri

        # graded losses all shift a little, others fail here and there
        spread = self.churn + change * (change if self.graded else self.growth)
        held = units * (self.holdout or 1.0)
        if spread <= 0 or held < 1:
            return 0.0
        if self.graded:
            wealth = np.log(2 * len(flips.STAKES) / min(self.level, 1)) / held
            stake = min(np.sqrt(2 * wealth / spread), flips.STAKES[-1])
            bar = wealth / stake + stake * spread / 2
        else:
            bar = -float(ndtri(min(self.level, 1) / 2)) * np.sqrt(spread / held)
        bar = max(self.least, float(bar))
        deviation = np.sqrt(max(spread - change**2, 1e-12))
        chance = float(ndtr((change - bar) / deviation * np.sqrt(held)))
        if self.holdout:
            rest = units - held
            chance *= float(ndtr((change - self.least) / deviation * np.sqrt(rest)))
        return chance

    def least_change(self, units: float) -> float | None:
        """Return the least change found with 80 % power on a slice of this many units, or None."""
        possible = np.arange(1, _STEPS + 1) / _STEPS
        return next((float(x) for x in possible if self.power(float(x), units) >= POWER), None)

    def by_prevalence(
        self, units: int, prevalences: Iterable[float] = PREVALENCES
    ) -> dict[float, float | None]:
        """Return `least_change` at each share of all units."""
        return {share: self.least_change(share * units) for share in prevalences}
