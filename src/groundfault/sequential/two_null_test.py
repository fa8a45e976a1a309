"""The dual test: e-processes against the model's null and the auditor's, read every time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import chain
from math import log
from typing import Literal, NamedTuple, get_args

import numpy as np

from groundfault.base.arrays import Floats
from groundfault.sequential.bets import Bet
from groundfault.sequential.eprocess import EProcess, Try, advance_each
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
    by_group : dict of str or None to EProcess
        The groups in the order in which they were first bet on.
    """

    sharing: Sharing
    fresh: EProcess
    by_group: Mapping[str | None, EProcess] = field(default_factory=dict)

    def place_bet(self, case: ScoredCase) -> Try | None:
        """Return the bet on a case; None for a group outside the prior."""
        fresh = None if self.sharing == "prior" else self.fresh
        process = self.by_group.get(None if self.sharing == "alike" else case.group, fresh)
        score = 1.0 if case.score is None else case.score
        own = score, case.thresholds.model, case.forecast, True
        return None if process is None else (process, *own)

    def update(self, group: str | None, after: EProcess | None) -> GroupWealth:
        """Return the wealth after a bet on a case of a group."""
        if after is None:
            return self
        # a group keeps its place: the order of the first bets gives the shares
        key = None if self.sharing == "alike" else group
        return replace(self, by_group={**self.by_group, key: after})


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
            others = [bet for part in parts for bet in part.fresh.bets]
            own = GroupWealth("prior", EProcess.begin(others))
            parts.append(replace(own, by_group={n: EProcess.begin(b) for n, b in prior.items()}))
        return cls(tuple(parts), groups)

    def update(self, group: str | None, after: Iterable[EProcess | None]) -> ModelWealth:
        """Return the wealth after a bet of each part on a case of a group."""
        parts = (part.update(group, own) for part, own in zip(self.parts, after, strict=True))
        return ModelWealth(tuple(parts), self.groups, self.steps + 1)

    @cached_property
    def log_e(self) -> float:
        """Return the natural log of the e-value: the average over all bets."""
        return compute_log_e([self])[0]

    def warm_start(self, scores: Sequence[float], threshold: float) -> ModelWealth:
        """Return the wealth with forecasts that learnt from scores which no e-value counts."""
        warm = cache(partial(EProcess.warm_start, scores=scores, threshold=threshold))
        return replace(self, parts=tuple(replace(p, fresh=warm(p.fresh)) for p in self.parts))


def compute_log_e(models: Sequence[ModelWealth]) -> list[float]:
    """Return the natural log of the e-value of each of several wealths of the same bets."""
    groups, parts = models[0].groups, models[0].parts
    weights = np.array([len(part.fresh.bets) for part in parts], dtype=np.float64)
    values = [_sum_up(own, groups) for own in zip(*(each.parts for each in models), strict=True)]
    logs: list[float] = log_mean(
        np.array(values), np.log(weights / weights.sum())[:, None]
    ).tolist()
    return logs


def _sum_up(parts: Sequence[GroupWealth], groups: int) -> Floats:
    """Return the log of each one's wealth of all groups."""
    sizes = [len(part.by_group) for part in parts]
    # a group that was not bet on has its money in hand
    values = np.zeros((max(sizes), len(parts)))
    for column, part in zip(values.T, parts, strict=True):
        column[: len(part.by_group)] = [process.log_e[0] for process in part.by_group.values()]
    if parts[0].sharing == "apart":
        places = np.arange(1.0, len(values) + 1)[:, None]
        shares = np.where(places <= sizes, share_of(places, groups), 0.0)
        # what has not started is money in hand; rounding must not make it negative
        idle = np.maximum(0.0, 1.0 - shares.sum(axis=0))
        with np.errstate(divide="ignore"):
            logs = np.log(np.vstack([shares, idle]))
        return log_mean(np.vstack([values, np.zeros_like(idle)]), logs)
    if parts[0].sharing != "alike":
        values = np.logaddexp(0.0, values) - log(2.0)
    return np.asarray(values.sum(axis=0))


def share_of(place: Floats, groups: int) -> Floats:
    """Return share of the wealth that the group in a place, 1, 2, ..., ``groups``, begins with."""
    return 0.5 * (1 + 1 / groups) / (place * (place + 1)) + 0.5 / groups


Verdict = Literal["failure mode found", "audit passed", "inconclusive"]


class EProcessPair(NamedTuple):
    """A number for each null, such as natural logs of e-values."""

    model: float
    auditor: float


class ScoredCase(NamedTuple):
    """A score that both nulls are tested by.

    Attributes
    ----------
    score : float in [0, 1], or None
        None, a case that could not be scored, is a pass to the model's test and a failure to
        the auditor's.
    thresholds : EProcessPair
        What it is tested against under the model's null, and under the auditor's.
    claim : bool
        Whether the auditor claimed that the group fails.
    group : str, optional
        The group that the case was drawn from; None for a set of cases.
    forecast : float, optional
        Expected score, for ``-pred`` bets.
    """

    score: float | None
    thresholds: EProcessPair
    claim: bool
    group: str | None = None
    forecast: float | None = None


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

    def update(self, case: ScoredCase) -> TwoNullTest:
        """Return the tests after one more tested case."""
        return update_each([(self, case)])[0]


def update_each(tests: Sequence[tuple[TwoNullTest, ScoredCase]]) -> list[TwoNullTest]:
    """Return several tests after one more tested case each, computed side by side."""
    if not tests:
        return []
    bets = {
        (test.model, case): [part.place_bet(case) for part in test.model.parts]
        for test, case in tests
    }
    # the auditor's null is about claimed groups only: on other rounds it must not bet
    claims = [
        (test.auditor, case.score or 0.0, case.thresholds.auditor, case.forecast, case.claim)
        for test, case in tests
    ]
    after = advance_each([*filter(None, chain.from_iterable(bets.values())), *claims])
    models = {
        key: key[0].update(key[1].group, [bet and after[bet] for bet in own])
        for key, own in bets.items()
    }
    for model, log_e in zip(models.values(), compute_log_e(list(models.values())), strict=True):
        vars(model)["log_e"] = log_e  # where its cached property keeps it
    return [
        TwoNullTest(models[test.model, case], after[claim])
        for (test, case), claim in zip(tests, claims, strict=True)
    ]
