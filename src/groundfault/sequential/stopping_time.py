"""Stopping times: how far an audit is from its end, and how long one is likely to last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from math import isfinite, log
from typing import Any, NamedTuple, get_args

import msgspec
import numpy as np

from groundfault.base.arrays import Floats
from groundfault.base.long_work import Progress, listener, run_in_order
from groundfault.errors import PlanError, require_name
from groundfault.sequential import policies
from groundfault.sequential.plan import SequentialPlan
from groundfault.sequential.policies import Policy, Query
from groundfault.sequential.pool import Pool
from groundfault.sequential.record import Round
from groundfault.sequential.session import SequentialAudit
from groundfault.sequential.two_null_test import ModelWealth, Verdict

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
        test = test.update(score, before, claim=True, group=group, forecast=audit.plan.threshold)
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
    # the longest burn-in first: a policy is not shown it, so the rounds of the longest audit
    # are the script of the others, and its work is done once
    plans = [replace(plan, burn_in=m) for m in sorted(set(burn_ins), reverse=True)]
    worlds = [(level, r) for level in (None, *levels) for r in range(replicates)]
    calls = (
        delayed(_simulate_audits)(
            pool, plans, policy, _simulate_world(pool, plan, base, level, failing, r), r
        )
        for level, r in worlds
    )
    runs, report_progress = [], listener(progress)
    for run in run_in_order(calls, jobs):
        runs.append(run)
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
        ][::-1]
    return forecasts


def _simulate_world(
    pool: Pool,
    plan: SequentialPlan,
    base: float,
    level: float | None,
    failing: str | None,
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
    pool: Pool, plans: Sequence[SequentialPlan], policy: Policy, chance: Floats, replicate: int
) -> list[tuple[str, int]]:
    """Return verdict and cases labelled under each plan, for one draw of the scores."""
    rng = plans[0].rng("scores", replicate)
    scores, seed = (rng.random(len(pool)) < chance).astype(float), int(rng.integers(2**62))
    bets = (*plans[0].bets("model"), *plans[0].group_bets, *plans[0].joint_bets)
    # only shares of the wealth that start step by step depend on the burn-in
    are_alike = all(bet.starts != "uniform" for bet in bets)
    results: list[tuple[str, int]] = []
    steps: list[tuple[Round, ModelWealth | None]] = []
    for plan in plans:
        # the same scores for every burn-in, so that they differ by their rule and not by luck
        anew = plan.rng("answers", replicate)
        audit = _SimulatedAudit.of(pool, replace(plan, seed=seed), policy=policy)
        audit.follow(steps)
        anew.random(audit.labelled)

        def answer(query: Query, anew: np.random.Generator = anew) -> float:
            position = pool.position[query.id]
            if plans[0].claim == "rates":
                return float(anew.random() < chance[position])
            return float(scores[position])

        more = audit.simulate(answer)
        results.append((audit.verdict, audit.labelled))
        steps = steps or [(drawn, model if are_alike else None) for drawn, model in more]
    return results


class _SimulatedAudit(SequentialAudit):
    """An audit without a record, which computes bets for the scores that came alone."""

    def follow(self, steps: Iterable[tuple[Round, ModelWealth | None]]) -> None:
        """Take in scored rounds of an audit that drew alike, until this one ends.

        The other audit has the same pool, draws and policy, and a longer burn-in, which no policy
        is shown. A round may come with the wealth of the bets against the model's null after it.
        """
        for drawn, model in steps:
            if self.decided:
                return
            self._take(drawn, model)

    def _take(self, drawn: Round, model: ModelWealth | None = None) -> None:
        after = self._after(drawn.query, drawn.thresholds, drawn.score, model)
        self._outcomes = {drawn.score: after}
        self._rounds.append(replace(drawn, closed=False))
        self._take_score(drawn.query, drawn.score)

    def simulate(self, answer: Callable[[Query], float]) -> list[tuple[Round, ModelWealth]]:
        """Run to the end; return the rounds, each with the wealth against the model's null."""
        steps = []
        while not self.decided and (query := self.choose(self.policy)) is not None:
            drawn = self._draw_case(query)
            drawn = replace(drawn, score=answer(drawn.query))
            self._take(drawn)
            steps.append((drawn, self.test.model))
        return steps


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
