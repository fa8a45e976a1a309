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
https://doi.org/10.1214/20-AOS2020)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from groundfault.sequential.bets import Bet
from groundfault.sequential.eprocess import EProcess
from groundfault.stats.betting import log_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ModelWealth:
    """Where all bets against the model's null stand; `update` returns a new one.

    Make one with `begin`.

    Attributes
    ----------
    alike : EProcess, optional
        The bets that are placed on all rounds alike; None where there are none.
    fresh : EProcess, optional
        The bets of a group that none was placed on yet; None where none is placed by group.
    groups : int
        G, the number of groups.
    by_group : tuple of (str or None, EProcess)
        The groups in the order in which they were first bet on.
    steps : int
        Scores so far.
    """

    alike: EProcess | None
    fresh: EProcess | None
    groups: int
    by_group: tuple[tuple[str | None, EProcess], ...] = ()
    steps: int = 0

    @classmethod
    def begin(cls, alike: Sequence[Bet], by_group: Sequence[Bet], groups: int) -> ModelWealth:
        """The wealth before the first score."""
        return cls(
            EProcess.begin(alike) if alike else None,
            EProcess.begin(by_group) if by_group else None,
            groups,
        )

    @cached_property
    def log_e(self) -> float:
        """Natural log of the e-value: the average over all bets."""
        parts = [
            (process, value)
            for process, value in (
                (self.alike, self._log_alike()),
                (self.fresh, self._log_groups()),
            )
            if process is not None
        ]
        weights = np.array([len(process.bets) for process, _ in parts], dtype=np.float64)
        values = np.array([value for _, value in parts])
        return float(log_mean(values[:, None], np.log(weights / weights.sum())[:, None])[0])

    def _log_alike(self) -> float:
        return 0.0 if self.alike is None else float(self.alike.log_e[0])

    def _log_groups(self) -> float:
        shares = [share_of(k, self.groups) for k in range(1, len(self.by_group) + 1)]
        values = [float(process.log_e[0]) for _, process in self.by_group]
        # what has not started is money in hand; rounding must not make it negative
        idle = max(0.0, 1.0 - sum(shares))
        with np.errstate(divide="ignore"):
            logs = np.log(np.array([*shares, idle]))
        return float(log_mean(np.array([*values, 0.0])[:, None], logs[:, None])[0])

    def warm_start(self, scores: Sequence[float], threshold: float) -> ModelWealth:
        """Let forecasts learn from scores that no e-value counts."""
        alike, fresh = (
            None if process is None else process.warm_start(scores, threshold)
            for process in (self.alike, self.fresh)
        )
        return replace(self, alike=alike, fresh=fresh)

    def update(
        self, group: str | None, score: float, threshold: float, forecast: float | None
    ) -> ModelWealth:
        """After one more score of a case that was drawn from a group, or from a set of cases."""
        alike, by_group = self.alike, self.by_group
        if alike is not None:
            alike = alike.update(score, threshold, forecast=forecast)
        if self.fresh is not None:
            process = dict(by_group).get(group, self.fresh)
            after = process.update(score, threshold, forecast=forecast)
            # a group keeps its place: the order of the first bets gives the shares
            by_group = tuple({**dict(by_group), group: after}.items())
        return replace(self, alike=alike, by_group=by_group, steps=self.steps + 1)


def share_of(place: int, groups: int) -> float:
    """Share of the wealth that the group in a place, 1, 2, ..., ``groups``, begins with."""
    return 0.5 * (1 + 1 / groups) / (place * (place + 1)) + 0.5 / groups
