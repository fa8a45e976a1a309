"""The state of an audit after each event of its record. Nothing here asks, waits or writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, inf, log
from typing import TYPE_CHECKING, Any

import numpy as np

from groundfault.base.json_diff import differences_of
from groundfault.errors import InputError, LedgerError, PlanError
from groundfault.sequential.certificate import GroupCount
from groundfault.sequential.claims import Claim
from groundfault.sequential.draws import Draws
from groundfault.sequential.label_counts import LabelCounts
from groundfault.sequential.plan import SequentialPlan
from groundfault.sequential.policies import Policy, Query
from groundfault.sequential.pool import ALL, Pool
from groundfault.sequential.record import ASKED, REVIEWED, TOLD, AuditEvent, Round, read_query
from groundfault.sequential.two_null_test import EProcessPair, TwoNullTest, Verdict

if TYPE_CHECKING:
    from numpy.typing import NDArray


class AuditState:
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
    dual : TwoNullTest
    reviews : list of dict
        Judgements of an `AnnotatorPanel`, in their order.
    """

    def __init__(self, pool: Pool, plan: SequentialPlan, draws: Draws | None = None) -> None:
        self.pool, self.plan = pool, plan
        self.seal = plan.seal(pool.hash)
        self.claim = Claim.of(plan, pool)
        self._draw_by(draws or Draws.begin(plan.seed))
        self.test = self._begin_test()
        self.reviews: list[dict[str, Any]] = []
        self._rounds: list[Round] = []
        self._draft: Round | None = None
        self._outcomes: dict[float | None, TwoNullTest] = {}
        self._claimed: set[str] = set()
        self._score_events: dict[int, int] = {}

    def _draw_by(self, draws: Draws) -> None:
        """Begin with these draws; there are no rounds yet."""
        self.draws = draws
        self.counts = LabelCounts(self.claim, draws)

    # -------------------------------------------------------------------------------- --- one round

    @property
    def open(self) -> Round | None:
        """The round that waits for its score."""
        return self._rounds[-1] if self._rounds and not self._rounds[-1].closed else None

    def choose(self, policy: Policy | None) -> Query | None:
        """Where the next case is to come from: the warm-up's choice, then the policy's."""
        step, history = self.counts.rounds + 1, self.counts.make_history()
        if not history.available.any():
            return None
        if step <= self.plan.warm_up or policy is None:
            return self._warm_up(step, history.available)
        return policy.ask(history, self.draws.policy_rng(step))

    def _warm_up(self, step: int, available: NDArray[np.bool_]) -> Query:
        if not self.pool.generated:
            return Query(ALL, stake=False)
        if self.claim.anywhere:
            return Query(items=available, stake=False)
        fresh = np.flatnonzero((self.pool.members & available).any(axis=1))
        return Query(
            self.pool.groups[fresh[self.draws.pick("warm-up", step, len(fresh))]], stake=False
        )

    def draw_round(self, query: Query) -> Round:
        """Draw the case, and fix what is bet on it."""
        step = self.counts.rounds + 1
        eligible = self.claim.find_eligible(query, self.counts.find_available())
        position = self.counts.draw(query, eligible)
        query = replace(
            query,
            step=step,
            id=self.pool.ids[position],
            stake=query.stake and step > self.plan.warm_up,
        )
        thresholds = self.counts.thresholds(query)
        # the bet is worked out for both outcomes before either is seen; scores in between use the
        # same stake
        self._outcomes = {score: self._after(query, thresholds, score) for score in (0.0, 1.0)}
        if_fail, if_pass = (outcome.log_e for outcome in self._outcomes.values())
        return Round(query, int(eligible.sum()), thresholds, if_fail, if_pass)

    def _after(self, query: Query, thresholds: EProcessPair, score: float | None) -> TwoNullTest:
        """Where both tests would stand after a score."""
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

    def replay(self, entry: AuditEvent) -> None:
        """Take in one event of the record; what another process wrote too late is passed over.

        Raises
        ------
        LedgerError
            If the round is not what plan, pool and the rounds before it make of it.
        """
        body = {key: value for key, value in entry.body.items() if key != "audit"}
        if entry.kind not in (ASKED, REVIEWED, TOLD):
            return
        step, due = body.get("step"), self.counts.rounds + 1
        late = isinstance(step, int) and (
            step < due or (step == due and entry.kind == ASKED and self.open is not None)
        )
        if late:
            return
        if step != due or (entry.kind != ASKED and self.open is None):
            raise LedgerError(
                f"the record goes on with round {step} where {due} is due: rounds "
                "were removed or moved"
            )
        if entry.kind == ASKED:
            self._take_query(body)
        elif entry.kind == TOLD:
            self._take_score(body, entry.seq)
        else:
            self.reviews.append(body)

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
        """The round as it is made now, from the group that the record says was chosen."""
        query = (
            self.choose(None)
            if body["step"] <= self.plan.warm_up
            else read_query(body, len(self.pool))
        )
        try:
            return None if query is None or self.decided else self.draw_round(query)
        except PlanError as error:
            raise LedgerError(
                f"round {body['step']} of the record does not follow the plan: {error}"
            ) from None

    def _take_score(self, body: Mapping[str, Any], seq: int) -> None:
        open_round = self._rounds[-1]
        query = open_round.query
        try:
            score = check_score(body["score"], query)
        except (KeyError, InputError) as error:
            raise LedgerError(
                f"round {query.step} of the record has no usable score ({error}): it was altered"
            ) from None
        if body.get("id") != query.id:
            raise LedgerError(
                f"round {query.step} of the record asks for {query.id!r} and scores "
                f"{body.get('id')!r}"
            )
        self.test = self._outcomes.get(score) or self._after(query, open_round.thresholds, score)
        self.counts.add(query, self.pool.position[query.id], score)
        self._rounds[-1] = open_round.with_score(score, self.test.log_e)
        self._score_events[query.step] = seq
        # a claim counts from the burn-in m on, like the auditor's bets
        if query.stake and query.claim and query.group and self.test.steps >= self.plan.burn_in:
            self._claimed.add(query.group)

    # -------------------------------------------------------------------------- --- where it stands

    @property
    def rounds(self) -> tuple[Round, ...]:
        """All rounds, the open one last."""
        return tuple(self._rounds)

    @property
    def labelled(self) -> int:
        """Cases scored, warm-up included."""
        return self.counts.rounds

    @property
    def tested(self) -> int:
        """Cases bet on."""
        return self.test.steps

    @property
    def groups(self) -> tuple[GroupCount, ...]:
        """Size, labels and total score of each declared group."""
        return self.counts.summarize()

    @property
    def log_wealth(self) -> EProcessPair:
        """Natural logs of both e-values; ``inf`` where counting decided."""
        model, auditor = self.test.log_e
        return EProcessPair(
            inf if self._groups_below else model, inf if self._groups_reached else auditor
        )

    @property
    def wealth(self) -> EProcessPair:
        """The e-values; a null falls at 1 / alpha."""
        return EProcessPair(*(exp(x) if x < 700 else inf for x in self.log_wealth))

    @property
    def verdict(self) -> Verdict:
        """``failure mode found``, ``audit passed``, or ``inconclusive``, which it is until either
        null has fallen.
        """
        # Ville's inequality: under a true null the e-value ever reaches 1 / alpha with
        # probability at most alpha, so no correction for the number of looks is due
        cut, wealth = -log(self.plan.alpha), self.log_wealth
        if wealth.model >= cut:
            return "failure mode found"
        return "audit passed" if wealth.auditor >= cut else "inconclusive"

    @property
    def decided(self) -> bool:
        """Whether either null has fallen, or the budget is spent."""
        is_spent = self.plan.budget is not None and self.labelled >= self.plan.budget
        return self.verdict != "inconclusive" or is_spent

    @property
    def _groups_below(self) -> list[str]:
        return [self.claim.pool.groups[g] for g in np.flatnonzero(self.counts.below)]

    @property
    def _groups_reached(self) -> list[str]:
        """Groups claimed from the burn-in on that have reached the threshold; all, if all have."""
        # all groups at the threshold makes every claim false, named or not
        reached = self.counts.reached
        names = [self.claim.pool.groups[g] for g in np.flatnonzero(reached)]
        return names if reached.all() else [name for name in names if name in self._claimed]

    @property
    def reason(self) -> str:
        """The verdict's grounds, in a sentence.

        Certificates store it, and verification compares it: the words stay as they are.
        """
        q, cases = (
            f"{self.plan.threshold:g}",
            f"{self.tested} tested cases ({self.labelled} labelled)",
        )
        if self.verdict == "failure mode found":
            if self._groups_below:
                name = self._groups_below[0]
                return f"counted: {name} is below {q} whatever its other cases would score"
            reached = f"{self.wealth.model:.4g}"
            return f"the e-value against the model's null reached {reached} after {cases}"
        if self.verdict == "audit passed":
            if self.counts.reached.all():
                return f"counted: every declared group has a mean score of {q} or more"
            if self._groups_reached:
                name = self._groups_reached[0]
                return f"counted: {name}, which the auditor claimed, has a mean of {q} or more"
            return (
                f"the e-value against the auditor's null reached {self.wealth.auditor:.4g} after "
                f"{cases}: this auditor ({self.plan.policy}), given {self.plan.burn_in} cases to "
                "find one, did not hold a failing group"
            )
        return f"neither null has fallen after {cases}"

    @property
    def null(self) -> str:
        """What "failure mode found" refutes."""
        return self.claim.null


def check_score(score: Any, query: Query) -> float | None:
    """The score as a number, or None.

    Raises
    ------
    InputError
        If it is neither None nor a number in [0, 1].
    """
    if score is None:
        return None
    if isinstance(score, str | bytes) or np.ndim(score):
        raise InputError(
            f"the score {score!r} of case {query.id!r} is not a number; scores lie in [0, 1]"
        )
    try:
        value = float(score)
    except (TypeError, ValueError):
        raise InputError(
            f"the score {score!r} of case {query.id!r} is not a number; scores lie in [0, 1]"
        ) from None
    if not 0 <= value <= 1:
        raise InputError(
            f"the score {value:g} of case {query.id!r} is outside [0, 1]; 1 is a pass, 0 a failure"
        )
    return value
