"""The least change that a comparison of two models could find: its power, from what varies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from groundfault.auditing.detectable import POWER, PREVALENCES
from groundfault.core.pairs import Pairs
from groundfault.core.plan import Plan, to_fraction

_STEPS = 1000
"""A least change is a multiple of one over this."""


@dataclass(frozen=True)
class ChangeDesign:
    """What a single slice has to pass for its change to be confirmed.

    Attributes
    ----------
    churn : float
        Mean squared change of a unit by chance: of 0/1 losses the share that comes out otherwise.
    level : float
        p-value, two-sided, that is small enough beside the other candidates.
    least : float
        Least change worth confirming.
    holdout : float
        Share of units held out; 0 where all are tested at once.
    growth : float
        How much the mean squared change grows with each failure that is added, in [0, 1]: one that
        meets a unit which the first model failed takes a change away.
    """

    churn: float
    level: float
    least: float
    holdout: float
    growth: float = 1.0

    @classmethod
    def of(cls, plan: Plan, discovery: Pairs, n_holdout: int, hypotheses: int) -> ChangeDesign:
        """The design of an audit.

        Parameters
        ----------
        plan : Plan
            Resolved.
        discovery : Pairs
            Discovery units, or all; what varies by chance is estimated from these alone.
        n_holdout : int
            Units held out.
        hypotheses : int
            Candidates that compete. Each is taken to be a test of its own, so that the power is not
            overstated where they overlap.
        """
        changes = discovery.changes[discovery.present]
        level = float(to_fraction(plan.alpha))
        losses = discovery.losses[0][discovery.present] / (discovery.denominator or 1)
        passes = float((1 - losses).sum())
        better = float(np.maximum(-changes, 0).sum())
        return cls(
            float(np.mean(changes**2)) if len(changes) else 0.0,
            # one-sided on the holdout, where a lone survivor has the whole level
            2 * level if n_holdout else level / max(1, hypotheses),
            float(to_fraction(plan.min_lift or 0)),
            n_holdout / max(1, len(discovery) + n_holdout),
            max(0.0, 1 - 2 * better / passes) if passes else 1.0,
        )

    def power(self, change: float, units: float) -> float:
        """Probability that a slice of so many units, truly worse by ``change``, is confirmed.

        Parameters
        ----------
        change : float
            Share of units that fail in addition to what varies by chance.
        units : float
            On the slice, in both parts together.

        Notes
        -----
        Normal approximation of the sign-flip test.
        """
        from scipy.special import ndtr, ndtri

        spread = self.churn + self.growth * change
        held = units * (self.holdout or 1.0)
        if spread <= 0 or held < 1:
            return 0.0
        bar = max(self.least, -float(ndtri(min(self.level, 1) / 2)) * np.sqrt(spread / held))
        deviation = np.sqrt(max(spread - change**2, 1e-12))
        chance = float(ndtr((change - bar) / deviation * np.sqrt(held)))
        if self.holdout:
            rest = units - held
            chance *= float(ndtr((change - self.least) / deviation * np.sqrt(rest)))
        return chance

    def least_change(self, units: float) -> float | None:
        """The smallest change found with 80 % power on a slice of so many units, or None."""
        possible = np.arange(1, _STEPS + 1) / _STEPS
        return next((float(x) for x in possible if self.power(float(x), units) >= POWER), None)

    def by_prevalence(
        self, units: int, prevalences: Iterable[float] = PREVALENCES
    ) -> dict[float, float | None]:
        """`least_change` at each share of all units."""
        return {share: self.least_change(share * units) for share in prevalences}
