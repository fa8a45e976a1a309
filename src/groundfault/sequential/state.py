"""The state of an audit after each event of its record. Nothing here asks, waits or writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, inf, log
from typing import TYPE_CHECKING, Any

import numpy as np

from groundfault.base.arrays import Bools
from groundfault.base.json_diff import differences_of
from groundfault.errors import LedgerError, PlanError
from groundfault.sequential.certificate import GroupCount
from groundfault.sequential.claims import Claim
from groundfault.sequential.draws import Draws
from groundfault.sequential.label_counts import LabelCounts
from groundfault.sequential.labelling import EventKinds, RecordedSession
from groundfault.sequential.plan import SequentialPlan
from groundfault.sequential.policies import Policy, Query
from groundfault.sequential.pool import ALL, Pool
from groundfault.sequential.record import ASKED, REVIEWED, TOLD, UNDONE, Round, read_query
from groundfault.sequential.two_null_test import EProcessPair, TwoNullTest, Verdict

if TYPE_CHECKING:
    pass


class AuditState(RecordedSession[Verdict]):
    """Where an audit stands after each event; live, resumed and verified audits share it.

    Parameters
    ----------
    pool : Pool
    plan : SequentialPlan
    draws : Draws, optional
        Left out, those of the plan's seed, or of a new random key.

    Attributes
    ----------
    seal : str
        SHA-256 of plan and pool.
    claim : Claim
    draws : Draws
    counts : LabelCounts
    test : TwoNullTest
    reviews : list of dict
        Judgements of an `AnnotatorPanel`, in their order.
    """

    kinds = EventKinds(ASKED, TOLD, UNDONE, REVIEWED)

    def __init__(self, pool: Pool, plan: SequentialPlan, draws: Draws | None = None) -> None:
        self.pool, self.plan = pool, plan
        self.seal = plan.seal(pool.hash)
        self.claim = Claim.of(plan, pool)
        self._begin_draws(draws or Draws.begin(plan.seed))

    def _begin_draws(self, draws: Draws) -> None:
        self.draws = draws
        self._begin_labels()

    def _restart(self) -> None:
        self.counts = LabelCounts(self.claim, self.draws)
        self._rounds: list[Round] = []
        self.test = self._begin_test()
        self.reviews: list[dict[str, Any]] = []
        self._draft: Round | None = None
        self._outcomes: dict[float | None, TwoNullTest] = {}
        self._claimed: set[str] = set()
        self._is_over = False

    # -------------------------------------------------------------------------------- --- one round

    @property
    def open(self) -> Round | None:
        """Return the round that waits for its score."""
        return self._rounds[-1] if self._rounds and not self._rounds[-1].closed else None

    def choose(self, policy: Policy | None) -> Query | None:
        """Return where the next case is to come from: the warm-up's choice, then the policy's."""
        step, history = self.counts.rounds + 1, self.counts.make_history()
        if not history.available.any():
            return None
        if step <= self.plan.warm_up or policy is None:
            return self._warm_up(step, history.available)
        return policy.ask(history, self.draws.policy_rng(step))

    def _warm_up(self, step: int, available: Bools) -> Query:
        if not self.pool.generated:
            return Query(ALL, stake=False)
        if self.claim.anywhere:
            return Query(items=available, stake=False)
        fresh = np.flatnonzero((self.pool.members & available).any(axis=1))
        group = fresh[self.draws.pick("warm-up", step, len(fresh))]
        return Query(self.pool.groups[group], stake=False)

    def draw_round(self, query: Query) -> Round:
        """Draw the case, and fix what is bet on it."""
        step = self.counts.rounds + 1
        eligible = self.claim.find_eligible(query, self.counts.find_available())
        position = self.counts.draw(query, eligible)
        stake = query.stake and step > self.plan.warm_up
        query = replace(query, step=step, id=self.pool.ids[position], stake=stake)
        thresholds = self.counts.find_thresholds(query.group)
        # the bet is worked out for both outcomes before either is seen; scores in between use the
        # same stake
        self._outcomes = {score: self._after(query, thresholds, score) for score in (0.0, 1.0)}
        if_fail, if_pass = (outcome.log_e for outcome in self._outcomes.values())
        return Round(query, int(eligible.sum()), thresholds, if_fail, if_pass)

    def _after(self, query: Query, thresholds: EProcessPair, score: float | None) -> TwoNullTest:
        """Return both tests as they would stand after a score."""
        if query.stake:
            claim = query.claim or not self.claim.guaranteed
            return self.test.update(
                score, thresholds, claim=claim, group=query.group, forecast=query.forecast
            )
        # a round without a stake after the first bet leaves the wealth alone; before it, the score
        # only teaches the forecasts (warm start)
        if self.test.steps:
            return self.test
        scores = [*(r.score for r in self._rounds if r.closed), score]
        return self._begin_test([x for x in scores if x is not None])

    def _begin_test(self, warm_up: Sequence[float] = ()) -> TwoNullTest:
        # where any set of cases may be named, sets together count as one more group
        groups = len(self.claim.pool.groups) + int(self.claim.anywhere)
        return TwoNullTest.begin(self.plan, groups, warm_up)

    # ------------------------------------------------------------------------------- --- the record

    @property
    def open_query(self) -> Query | None:
        """Return the query that waits for its score, with its case."""
        if self.open is None:
            return None
        query = self.open.query
        return replace(query, case=self.pool.case(self.pool.position[query.id]), audit=self.seal)

    def _draw_event(self) -> Mapping[str, Any] | None:
        raise PlanError("the state of an audit is replayed, and asks nothing")

    def _take_review(self, body: Mapping[str, Any]) -> None:
        self.reviews.append(dict(body))

    def _take_query(self, body: Mapping[str, Any]) -> None:
        draft, self._draft = self._draft, None
        # another process, or an earlier one, asked: this one recomputes the round and must agree
        if draft is None or draft.to_query_event() != body:
            draft = self._redraw(body)
        wrong = next(differences_of(body, draft.to_query_event()), "") if draft else "none is due"
        if draft is None or wrong:
            raise LedgerError(
                f"round {body['step']} of the record does not reproduce ({wrong}): the record was "
                "altered, or made by another version of groundfault"
            )
        self._rounds.append(draft)

    def _redraw(self, body: Mapping[str, Any]) -> Round | None:
        """Return the round as it is made now, from the group that the record says was chosen."""
        is_warm_up = body["step"] <= self.plan.warm_up
        query = self.choose(None) if is_warm_up else read_query(body, len(self.pool))
        try:
            return None if query is None or self.decided else self.draw_round(query)
        except PlanError as error:
            raise LedgerError(
                f"round {body['step']} of the record does not follow the plan: {error}"
            ) from None

    def _take_score(self, query: Query, score: float | None) -> None:
        drawn = self._rounds[-1]
        query = drawn.query
        self.test = self._outcomes.get(score) or self._after(query, drawn.thresholds, score)
        self.counts.add(query, self.pool.position[query.id], score)
        self._rounds[-1] = drawn.with_score(score, self.test.log_e)
        # a claim counts from the burn-in m on, like the auditor's bets
        if query.stake and query.claim and query.group and self.test.steps >= self.plan.burn_in:
            self._claimed.add(query.group)

    # -------------------------------------------------------------------------- --- where it stands

    @property
    def rounds(self) -> tuple[Round, ...]:
        """Return all rounds, the open one last."""
        return tuple(self._rounds)

    @property
    def labelled(self) -> int:
        """Return the cases scored, warm-up included."""
        return self.counts.rounds

    @property
    def tested(self) -> int:
        """Return the cases bet on."""
        return self.test.steps

    @property
    def groups(self) -> tuple[GroupCount, ...]:
        """Return the size, labels and total score of each declared group."""
        return self.counts.summarize()

    @property
    def log_wealth(self) -> EProcessPair:
        """Return natural logs of both e-values; ``inf`` where counting decided."""
        model, auditor = self.test.log_e
        return EProcessPair(
            inf if self._groups_below else model, inf if self._groups_reached else auditor
        )

    @property
    def wealth(self) -> EProcessPair:
        """Return the e-values; a null falls at 1 / alpha."""
        return EProcessPair(*(exp(x) if x < 700 else inf for x in self.log_wealth))

    @property
    def verdict(self) -> Verdict:
        """Return ``failure mode found``, ``audit passed``, or ``inconclusive``, which it is until
        either null has fallen.
        """
        # Ville's inequality: under a true null the e-value ever reaches 1 / alpha with
        # probability at most alpha, so no correction for the number of looks is due
        cut, wealth = -log(self.plan.alpha), self.log_wealth
        if wealth.model >= cut:
            return "failure mode found"
        return "audit passed" if wealth.auditor >= cut else "inconclusive"

    @property
    def standing(self) -> Verdict:
        """Return the verdict."""
        return self.verdict

    @property
    def decided(self) -> bool:
        """Return whether either null has fallen, or the budget is spent."""
        is_spent = self.plan.budget is not None and self.labelled >= self.plan.budget
        return self.verdict != "inconclusive" or is_spent

    @property
    def _groups_below(self) -> list[str]:
        return [self.claim.pool.groups[g] for g in np.flatnonzero(self.counts.below)]

    @property
    def _groups_reached(self) -> list[str]:
        """Return groups claimed from the burn-in on that have reached the threshold; all, if all
        have.
        """
        # all groups at the threshold makes every claim false, named or not
        reached = self.counts.reached
        names = [self.claim.pool.groups[g] for g in np.flatnonzero(reached)]
        return names if reached.all() else [name for name in names if name in self._claimed]

    @property
    def reason(self) -> str:
        """Return the verdict's grounds, in a sentence.

        Certificates store it, and verification compares it: the words stay as they are.
        """
        q, cases = self.plan.threshold, f"{self.tested} tested cases ({self.labelled} labelled)"
        if self.verdict == "failure mode found":
            if self._groups_below:
                name = self._groups_below[0]
                return f"counted: {name} is below {q:g} whatever its other cases would score"
            reached = f"{self.wealth.model:.4g}"
            return f"the e-value against the model's null reached {reached} after {cases}"
        if self.verdict == "audit passed":
            if self.counts.reached.all():
                return f"counted: every declared group has a mean score of {q:g} or more"
            if self._groups_reached:
                name = self._groups_reached[0]
                return f"counted: {name}, which the auditor claimed, has a mean of {q:g} or more"
            return (
                f"the e-value against the auditor's null reached {self.wealth.auditor:.4g} after "
                f"{cases}: this auditor ({self.plan.policy}), given {self.plan.burn_in} cases to "
                "find one, did not hold a failing group"
            )
        return f"neither null has fallen after {cases}"

    @property
    def null(self) -> str:
        """Return the hypothesis that "failure mode found" refutes."""
        return self.claim.null
