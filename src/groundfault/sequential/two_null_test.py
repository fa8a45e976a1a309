"""The dual test: e-processes against the model's null and the auditor's, read every time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Literal, NamedTuple, get_args

import numpy as np

from groundfault.sequential.bets import Bet
from groundfault.sequential.eprocess import EProcess
from groundfault.sequential.plan import SequentialPlan
from groundfault.stats.betting import log_mean

Sharing = Literal["alike", "apart", "joint", "prior"]
"""Whether a bet has one wealth for all rounds, or one for each group, added up or multiplied; or
one for each group of a prior, multiplied, with bets of its own."""


@dataclass(frozen=True, eq=False)
class GroupWealth:
    """The wealth of bets that share it in one way; `update` returns a new one.

    Attributes
    ----------
    sharing : {"alike", "apart", "joint", "prior"}
    fresh : EProcess
        Of a group that no bet was placed on yet.
    by_group : tuple of (str or None, EProcess)
        The groups in the order in which they were first bet on.
    """

    sharing: Sharing
    fresh: EProcess
    by_group: tuple[tuple[str | None, EProcess], ...] = ()

    def compute_log_e(self, groups: int) -> float:
        """Return the natural log of the e-value, where there are so many groups."""
        log_values = [float(process.log_e[0]) for _, process in self.by_group]
        if self.sharing == "alike":
            return sum(log_values)
        return _add_up(log_values, groups) if self.sharing == "apart" else _multiply(log_values)

    def update(self, group: str | None, bet: Callable[[EProcess], EProcess]) -> GroupWealth:
        """Return the wealth after one more bet, on a case that was drawn from a group."""
        key, wealth = None if self.sharing == "alike" else group, dict(self.by_group)
        if self.sharing == "prior" and group not in wealth:
            return self
        # a group keeps its place: the order of the first bets gives the shares
        wealth[key] = bet(wealth.get(key, self.fresh))
        return GroupWealth(self.sharing, self.fresh, tuple(wealth.items()))


@dataclass(frozen=True, eq=False)
class ModelWealth:
    """Where all bets against the model's null stand; `update` returns a new one.

    Make one with `begin`.

    Attributes
    ----------
    parts : tuple of GroupWealth
        One for each way of sharing wealth that some bet has.
    groups : int
        G, the number of groups.
    steps : int
        Scores so far.
    """

    parts: tuple[GroupWealth, ...]
    groups: int
    steps: int = 0

    @classmethod
    def begin(
        cls,
        alike: Sequence[Bet],
        apart: Sequence[Bet],
        groups: int,
        joint: Sequence[Bet] = (),
        prior: Mapping[str, Sequence[Bet]] | None = None,
    ) -> ModelWealth:
        """Return the wealth before the first score."""
        kinds = zip(get_args(Sharing), (alike, apart, joint), strict=False)
        begin = cache(EProcess.begin)
        parts = [GroupWealth(kind, begin(tuple(bets))) for kind, bets in kinds if bets]
        if prior:
            # as many bets as all others together: half of the wealth
            own = tuple((name, EProcess.begin(bets)) for name, bets in prior.items())
            others = [bet for part in parts for bet in part.fresh.bets]
            parts.append(GroupWealth("prior", EProcess.begin(others), own))
        return cls(tuple(parts), groups)

    @cached_property
    def log_e(self) -> float:
        """Return the natural log of the e-value: the average over all bets."""
        weights = np.array([len(part.fresh.bets) for part in self.parts], dtype=np.float64)
        values = np.array([part.compute_log_e(self.groups) for part in self.parts])
        return float(log_mean(values[:, None], np.log(weights / weights.sum())[:, None])[0])

    def warm_start(self, scores: Sequence[float], threshold: float) -> ModelWealth:
        """Return the wealth with forecasts that learnt from scores which no e-value counts."""
        warm = cache(partial(EProcess.warm_start, scores=scores, threshold=threshold))
        return replace(self, parts=tuple(replace(p, fresh=warm(p.fresh)) for p in self.parts))

    def update(
        self, group: str | None, score: float, threshold: float, forecast: float | None
    ) -> ModelWealth:
        """Return the wealth after one more score of a case drawn from a group, or from a set."""

        # wealth that is added up over groups and wealth that is multiplied are of the same bets
        @cache
        def bet(process: EProcess) -> EProcess:
            return process.update(score, threshold, forecast=forecast)

        parts = tuple(part.update(group, bet) for part in self.parts)
        return ModelWealth(parts, self.groups, self.steps + 1)


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
    """Return share of the wealth that the group in a place, 1, 2, ..., ``groups``, begins with."""
    return 0.5 * (1 + 1 / groups) / (place * (place + 1)) + 0.5 / groups


Verdict = Literal["failure mode found", "audit passed", "inconclusive"]


class EProcessPair(NamedTuple):
    """A number for each null, such as natural logs of e-values."""

    model: float
    auditor: float


@dataclass(frozen=True, eq=False)
class TwoNullTest:
    """Algorithm 1 of the paper, between two scores; each update gives a new one.

    The model's test runs from the first tested case; the auditor's bets start at the end of the
    plan's burn-in m, and are placed on claimed rounds only. No correction for two tests is due:
    where the model's null is true, a claim that some group fails is false.

    Attributes
    ----------
    model : ModelWealth
    auditor : EProcess
    """

    model: ModelWealth
    auditor: EProcess

    @classmethod
    def begin(cls, plan: SequentialPlan, groups: int, warm_up: Sequence[float] = ()) -> TwoNullTest:
        """Return both processes before the first tested case, their forecasts taught by the warm-
        up.

        Parameters
        ----------
        plan : SequentialPlan
        groups : int
            How many groups, or sets of cases, bets may be placed on.
        warm_up : sequence of float
        """
        model = ModelWealth.begin(
            plan.bets("model"), plan.group_bets, groups, plan.joint_bets, plan.prior_bets
        )
        auditor = EProcess.begin(plan.bets("auditor"))
        if not len(warm_up):
            return cls(model, auditor)
        return cls(
            model.warm_start(warm_up, plan.threshold), auditor.warm_start(warm_up, plan.threshold)
        )

    @property
    def steps(self) -> int:
        """Return tested cases so far."""
        return self.model.steps

    @property
    def log_e(self) -> EProcessPair:
        """Return natural logs of both e-values."""
        return EProcessPair(self.model.log_e, float(self.auditor.log_e[0]))

    def update(
        self,
        score: float | None,
        thresholds: tuple[float, float],
        *,
        claim: bool,
        group: str | None = None,
        forecast: float | None = None,
        model: ModelWealth | None = None,
    ) -> TwoNullTest:
        """Return the tests after one more tested case.

        Parameters
        ----------
        score : float in [0, 1], or None
            None, a case that could not be scored, is a pass to the model's test and a failure to
            the auditor's.
        thresholds : pair of float
            What it is tested against under the model's null, and under the auditor's.
        claim : bool
            Whether the auditor claimed that the group fails.
        group : str, optional
            The group that the case was drawn from; None for a set of cases.
        forecast : float, optional
            Expected score, for ``-pred`` bets.
        model : ModelWealth, optional
            The bets against the model's null after that case, where they are known already.
        """
        # an unscored case must help neither verdict: each test takes it as its null would have it
        high, low = (1.0, 0.0) if score is None else (score, score)
        return TwoNullTest(
            model or self.model.update(group, high, thresholds[0], forecast),
            # the auditor's null is about claimed groups only: on other rounds it must not bet
            self.auditor.update(low, thresholds[1], forecast=forecast, stake=claim),
        )
