"""The audit session: ask for the next case, tell its score, stop when either null has fallen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, inf, log
from typing import Any, Self, Unpack

import msgspec
import numpy as np

from groundfault.auditing.verification_checks import differences_of
from groundfault.base.arrays import Bools
from groundfault.base.ledgers import LedgerChoice, find_ledger
from groundfault.base.long_work import version
from groundfault.errors import InputError, LedgerError, PlanError, require_name
from groundfault.sequential import policies
from groundfault.sequential.certificate import Certificate, GroupCount
from groundfault.sequential.claims import Claim, LabelCounts
from groundfault.sequential.draws import Draws, read_draws
from groundfault.sequential.labelling import EventKinds, RecordedSession
from groundfault.sequential.plan import FurtherSettings, SequentialPlan
from groundfault.sequential.policies import Policy, Query
from groundfault.sequential.pool import ALL, Pool
from groundfault.sequential.record import (
    ASKED,
    OPENED,
    REVIEWED,
    TOLD,
    UNDONE,
    AuditRecord,
    LedgerPlace,
    Round,
    read_query,
    write_pair,
)
from groundfault.sequential.two_null_test import EProcessPair, ScoredCase, TwoNullTest, Verdict


class AuditSettings(FurtherSettings, total=False):
    """Settings of a `SequentialAudit` beside the threshold and the policy."""

    budget: int | None
    burn_in: int
    alpha: float
    bet: str | Sequence[str] | None
    seed: int | None
    ledger: LedgerChoice
    reopen: str | None


class SequentialAudit(RecordedSession[Verdict]):
    """A sequential audit: valid for any choice of the next case, and whenever you stop.

    Parameters
    ----------
    pool : Pool
        The cases and their declared groups.
    threshold : float in (0, 1)
        The least mean score that a group has to have; 1 is a pass.
    budget : int, optional
        Most cases to label, after which the audit ends; left out, all cases.
    burn_in, alpha, policy, bet, **settings
        As in `SequentialPlan`.
    seed : int, optional
        A public seed, which lets others repeat, and foresee, the draws. Left out, they follow from
        a random key that is sealed until the audit has ended; see `groundfault.sequential.draws`.
    ledger : Ledger, path, URL or bool, optional
        Where every round is recorded before its score is seen; True is the place that
        $GROUNDFAULT_LEDGER names, else groundfault-ledger.db in the current folder. A ledger that
        holds this very audit resumes it. Without one the audit lives in memory, and its certificate
        says so.
    reopen : str, optional
        Why cases whose audit the ledger holds are audited again with other settings.

    Attributes
    ----------
    seal : str
        SHA-256 of plan and pool.
    claim, draws, counts, test : Claim, Draws, LabelCounts, TwoNullTest
    reviews : list of dict
        Judgements of an `AnnotatorPanel`, in their order.

    Raises
    ------
    PlanError
        If a setting is impossible, or does not fit the pool or the policy.
    LedgerError
        If the ledger was altered, does not reproduce, or holds another audit of these cases.

    Notes
    -----
    ``P(the verdict is wrong) <= alpha`` for the null that `null` states, if groups and settings
    were fixed before scores were known, scores depend on the case and not on when it is asked,
    every case asked is told, and the policy does not foresee the draws. The default claim is about
    the population of each group, of which the cases have to be a random sample that is answered
    independently. Choosing among several audits afterwards is not covered, nor is
    ``sampling="paper"``.

    Examples
    --------
    >>> pool = Pool.from_arrays(range(60), {"lang": ["de", "fr", "ja"] * 20})
    >>> audit = SequentialAudit(pool, threshold=0.8, policy="stratified", seed=1)
    >>> while (query := audit.ask()) is not None:
    ...     audit.tell(query, score=0.0 if "ja" in query.group else 1.0)
    >>> audit.verdict
    'failure mode found'
    """

    kinds = EventKinds(ASKED, TOLD, UNDONE, REVIEWED)

    def __init__(
        self,
        pool: Pool,
        *,
        threshold: float,
        budget: int | None = None,
        burn_in: int = 40,
        alpha: float = 0.05,
        policy: str | Policy = "logistic",
        bet: str | Sequence[str] | None = None,
        seed: int | None = None,
        ledger: LedgerChoice = None,
        reopen: str | None = None,
        **settings: Unpack[FurtherSettings],
    ) -> None:
        # a policy knows how many draws it needs before it can claim anything
        sampler = policies.get(policy) if isinstance(policy, str) else policy
        if settings.get("warm_up") is None:
            settings["warm_up"] = getattr(sampler, "warm_up", 0)
        first = {"threshold": threshold, "budget": budget, "burn_in": burn_in, "alpha": alpha}
        last = {"policy": sampler.name, "bet": bet, "seed": seed}
        plan = SequentialPlan.from_settings({**settings, **first, **last})
        self._begin(pool, plan, sampler, ledger, reopen)

    @classmethod
    def of(
        cls,
        pool: Pool,
        plan: SequentialPlan,
        *,
        policy: Policy | None = None,
        ledger: LedgerChoice = None,
        reopen: str | None = None,
        draws: Draws | None = None,
    ) -> Self:
        """Return the audit of a ready-made plan, with the policy that it names unless one is
        passed.

        Without draws they are those of the ledger, of the plan's seed, or of a new random key.
        """
        audit = cls.__new__(cls)
        audit._begin(pool, plan, policy or policies.get(plan.policy), ledger, reopen, draws)
        return audit

    @classmethod
    def from_ledger(cls, ledger: LedgerChoice = True, seal: str = "") -> SequentialAudit:
        """Return the audit in a ledger, to look at and not to ask: its policy is not stored.

        Parameters
        ----------
        ledger : Ledger, path, URL or True
        seal : str
            First digits of the seal, where the ledger holds several; the last one begun, where left
            out.

        Raises
        ------
        InputError
            If the ledger does not hold the audit.
        """
        book = find_ledger(ledger)
        if book is None:
            raise InputError("no ledger is named to take the audit from: name it")
        openings = [event for event in book.events(OPENED) if event.body["audit"].startswith(seal)]
        if not openings:
            raise InputError(f"the ledger {book.place} holds no audit{f' {seal}' if seal else ''}")
        header = openings[-1].body
        plan = SequentialPlan.from_settings(header["plan"])
        absent = policies.Absent(plan.policy)
        return cls.of(Pool.from_outline(header["pool"]), plan, policy=absent, ledger=book)

    def _begin(
        self,
        pool: Pool,
        plan: SequentialPlan,
        policy: Policy,
        ledger: LedgerChoice,
        reopen: str | None,
        draws: Draws | None = None,
    ) -> None:
        if not isinstance(pool, Pool):
            kind = type(pool).__name__
            raise InputError(f"an audit needs a Pool, not a {kind}: make one with Pool.from_table")
        if policy.name != plan.policy:
            raise PlanError(f"the plan names the policy {plan.policy}, not {policy.name}")
        self.pool, self.plan, self.policy = pool, plan, policy
        self.seal = plan.seal(pool.hash)
        self.claim = Claim.of(plan, pool)
        for name in plan.prior or ():
            require_name("group of the prior", name, self.claim.pool.groups)
        self.record = AuditRecord(ledger, self.seal)
        key = (draws or Draws.begin(plan.seed)).sealed_key
        header = {
            "plan": plan.stored_settings,
            "pool": pool.outline(),
            "draws": None if key is None else msgspec.to_builtins(key),
        }
        self.draws = read_draws(plan.seed, self.record.open(header, reopen).get("draws"))
        self._begin_labels()
        # to resume is to replay: the state is recomputed from plan, pool and events, never stored
        self.catch_up()

    def _restart(self) -> None:
        self.counts = LabelCounts(self.claim, self.draws)
        self._rounds: list[Round] = []
        self.test = self._begin_test()
        self.reviews: list[dict[str, Any]] = []
        self._draft: Round | None = None
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
        """Draw the case, and fix the bets on it."""
        drawn = self._draw_case(query)
        # the bet is worked out for both outcomes before either is seen; scores in between use the
        # same stake
        fail, passed = (self._after(drawn, score) for score in (0.0, 1.0))
        return replace(drawn, if_fail=fail.log_e, if_pass=passed.log_e)

    def _draw_case(self, query: Query) -> Round:
        step = self.counts.rounds + 1
        eligible = self.claim.find_eligible(query, self.counts.find_available())
        position = self.counts.draw(query, eligible)
        stake = query.stake and step > self.plan.warm_up
        query = replace(query, step=step, id=self.pool.ids[position], stake=stake)
        return Round(query, int(eligible.sum()), self.counts.find_thresholds(query.group))

    def _after(self, drawn: Round, score: float | None) -> TwoNullTest:
        """Return both tests as they would stand after a score."""
        if drawn.query.stake:
            return self.test.update(self._find_case(drawn, score))
        # a round without a stake after the first bet leaves the wealth alone; before it, the score
        # only teaches the forecasts (warm start)
        if self.test.steps:
            return self.test
        scores = [*(r.score for r in self._rounds if r.closed), score]
        return self._begin_test([x for x in scores if x is not None])

    def _find_case(self, drawn: Round, score: float | None) -> ScoredCase:
        """Return a staked score as both tests take it."""
        query, share = drawn.query, self.counts.find_share(drawn.query)
        # draws from a part of a group say nothing for the auditor's null; for the model's, the
        # rest of the group passes at best: bet on what a draw from the whole would then be
        claim = (query.claim and share == 1) or not self.claim.guaranteed
        score = None if score is None else 1.0 - share * (1.0 - score)
        return ScoredCase(score, drawn.thresholds, claim, query.group, query.forecast)

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

    def _draw_event(self) -> Mapping[str, object] | None:
        if self.decided:
            return None
        query = self.choose(self.policy)
        self._is_over = query is None
        self._draft = None if query is None else self.draw_round(query)
        return None if self._draft is None else self._draft.to_query_event()

    def _take_review(self, body: Mapping[str, object]) -> None:
        self.reviews.append(dict(body))

    def _take_query(self, body: Mapping[str, object]) -> None:
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
        """Return the round as computed now, from the recorded choice of the group."""
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
        self.test = self._after(drawn, score)
        self.counts.add(query, self.pool.position[query.id], score)
        self._rounds[-1] = drawn.with_score(score, self.test.log_e)
        self._note_claim(query)

    def _note_claim(self, query: Query) -> None:
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
        if self.claim.conditional and self.counts.below.any():
            model = inf
        if self.claim.conditional and self.counts.name_reached(self._claimed):
            auditor = inf
        return EProcessPair(model, auditor)

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

    standing = verdict

    @property
    def decided(self) -> bool:
        """Return whether either null has fallen, or the budget is spent."""
        is_spent = self.plan.budget is not None and self.labelled >= self.plan.budget
        return self.verdict != "inconclusive" or is_spent

    @property
    def finished(self) -> bool:
        """Return whether the audit has no more cases to ask for."""
        if self.decided or self._is_over:
            return True
        return self.open is None and not self.counts.find_available().any()

    @property
    def reason(self) -> str:
        """Return the verdict's grounds, in a sentence.

        Certificates store it, and verification compares it: the words stay as they are.
        """
        q, cases = self.plan.threshold, f"{self.tested} tested cases ({self.labelled} labelled)"
        if self.verdict == "failure mode found":
            if self.counts.groups_below:
                name = self.counts.groups_below[0]
                return f"counted: {name} is below {q:g} whatever its other cases would score"
            reached = f"{self.wealth.model:.4g}"
            return f"the e-value against the model's null reached {reached} after {cases}"
        if self.verdict == "audit passed":
            if self.counts.reached.all():
                return f"counted: every declared group has a mean score of {q:g} or more"
            if names := self.counts.name_reached(self._claimed):
                name = names[0]
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

    def certificate(self) -> Certificate:
        """Return the present certificate, from which the verdict can be recomputed.

        Raises
        ------
        LedgerError
            If the ledger was altered.
        """
        self.catch_up()
        return self.certify(self.record.check(), reveal=self.finished)

    def certify(self, ledger: LedgerPlace | None, *, reveal: bool = False) -> Certificate:
        """Return the certificate with a place in the ledger, and with the key of the draws once it
        may be known.
        """
        own = ("verdict", "reason", "null", "labelled", "tested", "groups", "seal", "reviews")
        return msgspec.convert(
            {name: getattr(self, name) for name in (*own, "corrections")}
            | {
                "groundfault_certificate": Certificate.LAYOUT,
                "groundfault_version": version("groundfault"),
                "guaranteed": self.claim.guaranteed,
                "log_wealth": write_pair(self.log_wealth),
                "plan": self.plan.settings,
                "pool": self.pool.outline(),
                "rounds": [drawn.to_dict() for drawn in self.rounds],
                "ledger": ledger,
                "draws": self.draws.sealed_key if reveal else self.draws.hash_alone,
            },
            Certificate,
        )
