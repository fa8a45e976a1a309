"""The wealth against the model's null: of bets on all rounds alike, and of bets group by group.

An auditor that looks into many groups before it comes to the failing one loses wealth on the sound
ones, and what is left starts low. Under a ``group-`` bet each group has a wealth of its own, which
starts when the group is first bet on and which no other group touches. The k-th group that is bet
on holds the share

    (1 + 1 / G) / (2 k (k + 1)) + 1 / (2 G)

of the whole, for G groups: much where the auditor goes to the failing group at once, all of it
where there is but one group, and never less than half of an equal share. The order in which groups
are bet on is known before each score, and the shares of all groups add up to 1, so that their sum,
with what has not started, is a nonnegative supermartingale as each of them is (Vovk and Wang 2021,
https://doi.org/10.1214/20-AOS2020).

Where several groups fail, an auditor goes from one to the other, and each has to refute the null by
itself. Under a ``joint-`` bet each group has a wealth E of its own, too, of which half is never at
stake, and what counts is the product over groups of

    (1 + E) / 2

A failing group adds to what others have shown, and a sound one takes at most half. A score changes
one factor of the product, the others are fixed before it is seen: that factor is a nonnegative
supermartingale, hence so is the product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from groundfault.sequential.bets import Bet
from groundfault.sequential.eprocess import EProcess
from groundfault.stats.betting import log_mean


@dataclass(frozen=True, eq=False)
class GroupProcesses:
    """An e-process for each group that was bet on; `update` returns new ones.

    Attributes
    ----------
    fresh : EProcess
        Of a group that no bet was placed on yet.
    by_group : tuple of (str or None, EProcess)
        The groups in the order in which they were first bet on.
    """

    fresh: EProcess
    by_group: tuple[tuple[str | None, EProcess], ...] = ()

    @property
    def log_values(self) -> list[float]:
        """Natural logs of the wealth of each group."""
        return [float(process.log_e[0]) for _, process in self.by_group]

    def update(
        self, group: str | None, score: float, threshold: float, forecast: float | None
    ) -> GroupProcesses:
        """After one more score of a case that was drawn from a group."""
        process = dict(self.by_group).get(group, self.fresh)
        after = process.update(score, threshold, forecast=forecast)
        # a group keeps its place: the order of the first bets gives the shares
        return replace(self, by_group=tuple({**dict(self.by_group), group: after}.items()))


@dataclass(frozen=True, eq=False)
class ModelWealth:
    """Where all bets against the model's null stand; `update` returns a new one.

    Make one with `begin`.

    Attributes
    ----------
    alike : EProcess, optional
        The bets that are placed on all rounds alike; None where there are none.
    apart, joint : GroupProcesses, optional
        The bets whose wealth is added up over groups, and those whose wealth is multiplied; None
        where there are none.
    groups : int
        G, the number of groups.
    steps : int
        Scores so far.
    """

    alike: EProcess | None
    apart: GroupProcesses | None
    joint: GroupProcesses | None
    groups: int
    steps: int = 0

    @classmethod
    def begin(
        cls, alike: Sequence[Bet], apart: Sequence[Bet], groups: int, joint: Sequence[Bet] = ()
    ) -> ModelWealth:
        """The wealth before the first score."""
        return cls(
            EProcess.begin(alike) if alike else None,
            GroupProcesses(EProcess.begin(apart)) if apart else None,
            GroupProcesses(EProcess.begin(joint)) if joint else None,
            groups,
        )

    @cached_property
    def log_e(self) -> float:
        """Natural log of the e-value: the average over all bets."""
        parts = []
        if self.alike is not None:
            parts.append((len(self.alike.bets), float(self.alike.log_e[0])))
        if self.apart is not None:
            parts.append((len(self.apart.fresh.bets), _add_up(self.apart.log_values, self.groups)))
        if self.joint is not None:
            parts.append((len(self.joint.fresh.bets), _multiply(self.joint.log_values)))
        weights = np.array([count for count, _ in parts], dtype=np.float64)
        values = np.array([value for _, value in parts])
        return float(log_mean(values[:, None], np.log(weights / weights.sum())[:, None])[0])

    def warm_start(self, scores: Sequence[float], threshold: float) -> ModelWealth:
        """Let forecasts learn from scores that no e-value counts."""
        alike = None if self.alike is None else self.alike.warm_start(scores, threshold)
        apart, joint = (
            None if kind is None else replace(kind, fresh=kind.fresh.warm_start(scores, threshold))
            for kind in (self.apart, self.joint)
        )
        return replace(self, alike=alike, apart=apart, joint=joint)

    def update(
        self, group: str | None, score: float, threshold: float, forecast: float | None
    ) -> ModelWealth:
        """After one more score of a case that was drawn from a group, or from a set of cases."""
        alike = self.alike
        if alike is not None:
            alike = alike.update(score, threshold, forecast=forecast)
        apart, joint = (
            None if kind is None else kind.update(group, score, threshold, forecast)
            for kind in (self.apart, self.joint)
        )
        return replace(self, alike=alike, apart=apart, joint=joint, steps=self.steps + 1)


def _add_up(log_values: list[float], groups: int) -> float:
    shares = [share_of(k, groups) for k in range(1, len(log_values) + 1)]
    # what has not started is money in hand; rounding must not make it negative
    idle = max(0.0, 1.0 - sum(shares))
    with np.errstate(divide="ignore"):
        logs = np.log(np.array([*shares, idle]))
    return float(log_mean(np.array([*log_values, 0.0])[:, None], logs[:, None])[0])


def _multiply(log_values: list[float]) -> float:
    return float(np.sum(np.logaddexp(0.0, log_values) - np.log(2.0)))


def share_of(place: int, groups: int) -> float:
    """Share of the wealth that the group in a place, 1, 2, ..., ``groups``, begins with."""
    return 0.5 * (1 + 1 / groups) / (place * (place + 1)) + 0.5 / groups
