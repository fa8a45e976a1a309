"""Stopping times: how far an audit is from its end, and how long one is likely to last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import astuple, dataclass, replace
from functools import partial
from math import isfinite, log
from typing import Any, NamedTuple, Self, get_args

import msgspec
import numpy as np

from groundfault.base.arrays import Floats
from groundfault.base.long_work import Progress, listener, run_in_order
from groundfault.errors import PlanError, require_name
from groundfault.sequential import policies
from groundfault.sequential.plan import SequentialPlan
from groundfault.sequential.policies import Policy, Query
from groundfault.sequential.policies.learned import Learned
from groundfault.sequential.pool import Pool
from groundfault.sequential.session import SequentialAudit
from groundfault.sequential.two_null_test import ScoredCase, TwoNullTest, Verdict, update_each

_SIDE_BY_SIDE = 30  # more save little time; cases with an embedding are fitted as fast one by one
_FARTHEST = 1000
"""Labels in a row beyond which no count is given: nobody plans for so many."""


class ToStop(NamedTuple):
    """Equal scores in a row, from the open query's group, that would end an audit, or None."""

    group: str | None
    failures: int | None
    passes: int | None


def count_to_stop(audit: SequentialAudit) -> ToStop:
    """Count failures in a row that would stop the audit; or passes, of a claimed group.

    The group is that of the open query, or of the last one where none is open.
    """
    if not audit.rounds or audit.finished:
        return ToStop(None, None, None)
    query = audit.rounds[-1].query
    claimed = query.claim or not audit.claim.guaranteed
    return ToStop(
        query.group,
        _count_in_a_row(audit, query.group, 0.0),
        _count_in_a_row(audit, query.group, 1.0) if claimed else None,
    )


def _count_in_a_row(audit: SequentialAudit, group: str | None, score: float) -> int | None:
    """Count how many times ``score`` in a row would stop the audit."""
    cut, test = -log(audit.plan.alpha), audit.test
    before = audit.counts.find_thresholds(group)
    for count in range(1, _FARTHEST + 1):
        if not isfinite(before.model):
            return None
        test = test.update(ScoredCase(score, before, True, group, audit.plan.threshold))
        before = audit.counts.find_thresholds(group, count, score)
        log_e, is_counted = test.log_e.model, before.model > 1.0
        if score:
            log_e = test.log_e.auditor
            is_counted = before.auditor <= 0.0 and test.steps >= audit.plan.burn_in
        if is_counted or log_e >= cut:
            return count
    return None


@dataclass(frozen=True)
class StoppingForecast:
    """How an audit would go in one simulated world, with one burn-in.

    Attributes
    ----------
    world : str
        Pass rates by group; other groups pass at the rate of the world without a failing group.
    burn_in : int
    failure_rate, pass_rate, inconclusive_rate : float
        Shares of the replicates with each verdict.
    labels : tuple of three int
        10 %, 50 % and 90 % points of the cases labelled until the audit ended.
    """

    world: str
    burn_in: int
    failure_rate: float
    pass_rate: float
    inconclusive_rate: float
    labels: tuple[int, int, int]

    def to_dict(self) -> dict[str, Any]:
        """Return the forecast as plain words and numbers, by the keys that version 0.1.0 wrote, but
        for the burn-in.
        """
        names = ("world", "burn_in", "found", "passed", "inconclusive", "labels")
        return dict(zip(names, msgspec.to_builtins(astuple(self)), strict=True))


def forecast_stopping(
    pool: Pool,
    plan: SequentialPlan,
    *,
    burn_ins: Sequence[int] = (10, 40, 70),
    base: float | None = None,
    failing: str | None = None,
    at: Sequence[float] | None = None,
    replicates: int = 30,
    policy: Policy | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> list[StoppingForecast]:
    """Simulate an audit before a label is spent: verdicts and stopping times, for several burn-ins.

    Worlds are one without a failing group, every case passing with chance ``base``, and one for
    each of ``at``, where a group passes with that chance instead. Burn-ins share their draws, and
    the plan's seed fixes them all.

    Parameters
    ----------
    pool : Pool
    plan : SequentialPlan
    burn_ins : sequence of int
        Values of the burn-in to compare.
    base : float in [0, 1], optional
        Pass rate outside the failing group. A third of the way from 1 to the threshold, where left
        out.
    failing : str, optional
        Group that fails; by default another one at random in each simulation.
    at : sequence of float in [0, 1], optional
        Pass rates inside that group; by default threshold less .10 and less .25.
    replicates : int
        Number of simulated audits of each world.
    policy : Policy, optional
        Left out, the one that the plan names.
    jobs : int
        Processes; the answer does not depend on it.
    progress : callable, optional
        Called with a message after each simulation.

    Returns
    -------
    list of StoppingForecast
        For each world, one a burn-in, in rising order.

    Raises
    ------
    PlanError
        If an accuracy is outside [0, 1], a group does not exist, or a number is out of range.
    """
    base = 1 - (1 - plan.threshold) / 3 if base is None else base
    # a mild failure, and a plain one
    levels = tuple(max(0.0, plan.threshold - gap) for gap in (0.10, 0.25)) if at is None else at
    if not all(0 <= p <= 1 for p in (base, *levels)):
        raise PlanError("base and at are chances of a pass: numbers in [0, 1]")
    if failing is not None:
        require_name("group", failing, pool.groups)
    if replicates < 1 or not burn_ins:
        raise PlanError("a simulation needs one replicate or more, and one burn-in or more")
    from joblib import delayed

    policy = policy or policies.get(plan.policy)
    plans = [replace(plan, burn_in=m) for m in sorted(set(burn_ins))]
    worlds = [(level, r) for level in (None, *levels) for r in range(replicates)]
    width = _SIDE_BY_SIDE if pool.embedding is None else 1
    world = partial(_simulate_world, pool, plan, base, failing)
    calls = (
        delayed(_simulate_audits)(pool, plans, policy, world, worlds[start : start + width])
        for start in range(0, len(worlds), width)
    )
    runs, report_progress = [], listener(progress)
    for several in run_in_order(calls, jobs):
        runs += several
        report_progress(f"simulating audits: {len(runs)} of {len(worlds)}")
    forecasts = []
    for k, level in enumerate((None, *levels)):
        place = f"everywhere {base:.3g}"
        if level is not None:
            place = f"{failing or 'one group'} {level:.3g}"
        own = runs[k * replicates : (k + 1) * replicates]
        forecasts += [
            _summarize_runs(place, each.burn_in, [run[i] for run in own])
            for i, each in enumerate(plans)
        ]
    return forecasts


def _simulate_world(
    pool: Pool,
    plan: SequentialPlan,
    base: float,
    failing: str | None,
    level: float | None,
    replicate: int,
) -> Floats:
    """Return each case's chance of a pass."""
    parts = [
        name for name, members in zip(pool.groups, pool.members, strict=True) if not members.all()
    ]
    group = failing or str(plan.rng("world", replicate).choice(parts or list(pool.groups)))
    inside = pool.members[pool.groups.index(group)]
    return np.where(inside, base if level is None else level, base)


def _simulate_audits(
    pool: Pool,
    plans: Sequence[SequentialPlan],
    policy: Policy,
    world: Callable[[float | None, int], Floats],
    worlds: Sequence[tuple[float | None, int]],
) -> list[list[tuple[str, int]]]:
    """Return verdict and cases labelled under each plan, for each draw of the scores."""
    runs = [_Simulation.begin(pool, plans, policy, world(*each), each[1]) for each in worlds]
    while going := [run for run in runs if run.audits]:
        step = going[0].labelled + 1
        if isinstance(policy, Learned) and step > plans[0].warm_up:
            histories = [run.counts.make_history() for run in going]
            queries = policy.ask_each(histories, [run.draws.policy_rng(step) for run in going])
        else:
            queries = [run.choose(policy) for run in going]
        cases = [run.draw(query) for run, query in zip(going, queries, strict=True)]
        pairs = zip(going, cases, strict=True)
        bets = [(audit, case) for run, case in pairs if case for audit in run.audits]
        tests = update_each([(audit.test, case) for audit, case in bets])
        for (audit, _), test in zip(bets, tests, strict=True):
            audit.test = test
        for run, query in zip(going, queries, strict=True):
            run.end_decided(is_over=query is None)
    return [[run.results[plan.burn_in] for plan in plans] for run in runs]


class _Simulation(SequentialAudit):
    """Audits of one draw of the scores, under plans that differ in their burn-in alone.

    No policy is shown the burn-in, so that all ask for the same cases until they end. They share
    rounds and counts, and compute bets for the scores that came alone.
    """

    audits: list[Self]
    answer: Callable[[int], float]
    results: dict[int, tuple[str, int]]

    @classmethod
    def begin(
        cls, pool: Pool, plans: Sequence[SequentialPlan], policy: Policy, chance: Floats, r: int
    ) -> Self:
        """Return the audits before the first score, in a world and a replicate."""
        rng, anew = plans[0].rng("scores", r), plans[0].rng("answers", r)
        scores, seed = (rng.random(len(pool)) < chance).astype(float), int(rng.integers(2**62))
        run = cls.of(pool, replace(plans[0], seed=seed), policy=policy)
        is_anew = plans[0].claim == "rates"
        run.answer = lambda i: float(anew.random() < chance[i] if is_anew else scores[i])
        run.audits, run.results = [copy(run) for _ in plans], {}
        for audit, plan in zip(run.audits, plans, strict=True):
            audit.plan, audit._claimed = plan, set()
        run.begin_tests([])
        return run

    def begin_tests(self, warm_up: Sequence[float]) -> None:
        """Begin the test of each audit; one wealth serves all where the burn-in does not matter."""
        for audit in self.audits:
            audit.test = audit._begin_test(warm_up)
        model = self.audits[0].test.model
        # only shares of the wealth that start step by step depend on the burn-in
        if all(bet.starts != "uniform" for part in model.parts for bet in part.fresh.bets):
            for audit in self.audits:
                audit.test = TwoNullTest(model, audit.test.auditor)

    def draw(self, query: Query | None) -> ScoredCase | None:
        """Draw a case and score it; return it if it is bet on."""
        if query is None:
            return None
        drawn = self._draw_case(query)
        position = self.pool.position[drawn.query.id]
        score = self.answer(position)
        case = self._find_case(drawn, score)
        self._rounds.append(replace(drawn, closed=True, score=score))
        self.counts.add(drawn.query, position, score)
        if not (drawn.query.stake or self.audits[0].tested):
            self.begin_tests([each.score for each in self._rounds if each.score is not None])
        return case if drawn.query.stake else None

    def end_decided(self, *, is_over: bool) -> None:
        """End the audits that the last case decided, or all if no case is left."""
        for audit in self.audits:
            if self._rounds:
                audit._note_claim(self._rounds[-1].query)
            if is_over or audit.decided:
                self.results[audit.plan.burn_in] = audit.verdict, audit.labelled
        self.audits = [each for each in self.audits if each.plan.burn_in not in self.results]


def _summarize_runs(world: str, burn_in: int, runs: Sequence[tuple[str, int]]) -> StoppingForecast:
    verdicts, labels = zip(*runs, strict=True)
    failed, passed, neither = (verdicts.count(one) / len(runs) for one in get_args(Verdict))
    low, middle, high = map(int, np.quantile(labels, (0.1, 0.5, 0.9), method="inverted_cdf"))
    return StoppingForecast(world, burn_in, failed, passed, neither, (low, middle, high))


def advise_burn_in(forecasts: Sequence[StoppingForecast], alpha: float) -> int | None:
    """Return the shortest burn-in that passes a failing model with probability at most ``alpha``.

    None if none does. The first world of `forecast_stopping` has no failure, and is left out.
    """
    # the claim to keep is against the failing model that is hardest to notice
    failing = [p for p in forecasts if p.world != forecasts[0].world]
    unfit = {p.burn_in for p in failing if p.pass_rate > alpha}
    return min({p.burn_in for p in failing} - unfit, default=None)
