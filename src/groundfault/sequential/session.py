"""The audit session: ask what to score next, tell the score, stop when either null has fallen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import exp, inf, log
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from groundfault import policies
from groundfault.errors import InputError, LedgerError, PlanError
from groundfault.policies import Policy, Query
from groundfault.sequential.claims import Claim
from groundfault.sequential.dual import Dual, Pair, Verdict
from groundfault.sequential.plan import AuditPlan
from groundfault.sequential.pool import ALL, Pool
from groundfault.sequential.record import ASKED, TOLD, Entry, Record, Round, query_of
from groundfault.sequential.tally import Tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groundfault.ledger import Ledger
    from groundfault.sequential.certificate import Certificate


class Audit:
    """A sequential audit: valid whichever case is asked next, and whenever one stops.

    Parameters
    ----------
    pool : Pool
        The cases and their declared groups.
    threshold : float in (0, 1)
        The least mean score that a group has to have; 1 is a pass.
    budget : int
        Cases the auditor has to find a failing group before its own test begins, the paper's m.
    alpha : float in (0, 1)
    policy : str or Policy
        What decides where to look.
    bet : str or sequence of str
        See `groundfault.sequential.BETS`.
    seed : int
    ledger : Ledger or path, optional
        Where every round is recorded before its score is seen. A ledger that holds this very audit resumes it.
        Without one the audit lives in memory, and its certificate says so.
    reopen : str, optional
        Why these cases are audited again with other settings, where the ledger holds an audit of them.
    **settings
        Further settings of an `AuditPlan`.

    Raises
    ------
    PlanError
        If a setting is impossible, or does not fit the pool or the policy.
    LedgerError
        If the ledger was altered, does not reproduce, or holds another audit of these cases.

    Notes
    -----
    ``P(the verdict is wrong) <= alpha`` for the null that `null` states, if groups and settings were fixed before
    scores were known, scores depend on the case and not on when it is asked, and every case asked is told. Choosing
    among several audits afterwards is not covered.

    Examples
    --------
    >>> pool = Pool.from_arrays(range(60), {"lang": ["de", "fr", "ja"] * 20})
    >>> audit = Audit(pool, threshold=0.8, policy="stratified", seed=1)
    >>> while (query := audit.ask()) is not None:
    ...     audit.tell(query, score=0.0 if "ja" in query.group else 1.0)
    >>> audit.verdict
    'failure mode found'
    """

    def __init__(
        self,
        pool: Pool,
        *,
        threshold: float,
        budget: int = 40,
        alpha: float = 0.05,
        policy: str | Policy = "stratified",
        bet: str | tuple[str, ...] | list[str] = "sr-lr-ui",
        seed: int = 0,
        ledger: Ledger | str | Path | None = None,
        reopen: str | None = None,
        **settings: Any,
    ) -> None:
        chosen = policies.get(policy) if isinstance(policy, str) else policy
        settings.setdefault("warm_up", getattr(chosen, "warm_up", 0))
        named = {"threshold": threshold, "budget": budget, "alpha": alpha, "bet": bet, "seed": seed}
        plan = AuditPlan.from_settings({**named, "policy": chosen.name, **settings})
        self._begin(pool, plan, chosen, ledger, reopen)

    @classmethod
    def of(
        cls,
        pool: Pool,
        plan: AuditPlan,
        *,
        policy: Policy | None = None,
        ledger: Ledger | str | Path | None = None,
        reopen: str | None = None,
    ) -> Audit:
        """The audit of a ready-made plan; the policy is the one that the plan names, unless given."""
        audit = cls.__new__(cls)
        audit._begin(pool, plan, policy or policies.get(plan.policy), ledger, reopen)
        return audit

    def _begin(
        self, pool: Pool, plan: AuditPlan, policy: Policy, ledger: Ledger | str | Path | None, reopen: str | None
    ) -> None:
        if policy.name != plan.policy:
            raise PlanError(f"the plan names the policy {plan.policy}, not {policy.name}")
        self.pool, self.plan, self.policy = pool, plan, policy
        self.seal = plan.seal(pool.hash)
        self.claim = Claim.of(plan, pool)
        self._tally, self._dual = Tally(self.claim), Dual.begin(plan)
        self._rounds: list[Round] = []
        self._claimed: set[str] = set()
        self._ended = False
        self._told_by: dict[int, int] = {}
        self._record = Record(ledger, self.seal)
        for entry in self._record.begin({"plan": plan.settings, "pool": pool.outline()}, reopen):
            self.replay(entry)

    # --- ask and tell -------------------------------------------------------------------------------------------------

    def ask(self) -> Query | None:
        """What to score next; the same query until it is told, and None once the audit has ended.

        Raises
        ------
        PlanError
            If the policy asks for what the claim does not allow.
        """
        self._catch_up()
        if self._open is None and not self.finished:
            query = self.choice()
            if query is None:
                self._ended = True
                return None
            for entry in self._record.append(ASKED, self._prepare(query).asked())[1]:
                self.replay(entry)
        return None if self._open is None else self._shown(self._open.query)

    def tell(self, query: Query, score: float | None) -> None:
        """Give the score of the query that `ask` returned; once this returns, it is never asked for again.

        Parameters
        ----------
        query : Query
        score : float in [0, 1], or None
            1 is a pass. None says that the case could not be scored; it then speaks for neither verdict.

        Raises
        ------
        InputError
            If the query was not asked, was told before, or belongs to another audit; or the score is outside [0, 1].
        """
        self._catch_up()
        self._require_open(query)
        entry, news = self._record.append(TOLD, {"step": query.step, "id": query.id, "score": checked(score, query)})
        for new in news:
            self.replay(new)
        if self._told_by[query.step] != entry.seq:
            kept = self._rounds[query.step - 1].score
            raise LedgerError(
                f"another process told query {query.step} first; its score {kept} stands, yours was not used"
            )

    def run(self, answer: Callable[[Query], float | None], progress: Callable[[Audit], object] = bool) -> Verdict:
        """Ask, score and tell until the audit ends.

        Parameters
        ----------
        answer : callable
            Gives a query's score.
        progress : callable
            Called after every score.
        """
        while (query := self.ask()) is not None:
            self.tell(query, answer(query))
            progress(self)
        return self.verdict

    def _require_open(self, query: Query) -> None:
        if not isinstance(query, Query) or query.audit != self.seal:
            raise InputError("only a query that this audit asked can be told; this one is of another audit, or of none")
        if 0 < query.step <= self.rounds_told:
            told = self._rounds[query.step - 1]
            raise InputError(
                f"query {query.step} (case {told.query.id!r}) was told before; its score {told.score} stands"
            )
        if self._open is None or query.step != self._open.query.step:
            due = f"query {self._open.query.step} waits for its score" if self._open else "no query is open: ask first"
            raise InputError(f"query {query.step} was not asked; {due}")
        if query.id != self._open.query.id:
            raise InputError(f"query {query.step} asked for case {self._open.query.id!r}, not {query.id!r}")

    def _shown(self, query: Query) -> Query:
        return replace(query, case=self.pool.case(self.pool.position[query.id]), audit=self.seal)

    # --- one round ----------------------------------------------------------------------------------------------------

    @property
    def _open(self) -> Round | None:
        return self._rounds[-1] if self._rounds and not self._rounds[-1].told else None

    def choice(self) -> Query | None:
        """Where the next case is to come from, before it is drawn: the warm-up's choice, then the policy's."""
        step, history = self._tally.rounds + 1, self._tally.history()
        if not history.offered.any():
            return None
        if step <= self.plan.warm_up:
            return self._warm_up(step, history.offered)
        return self.policy.ask(history, self.plan.rng("policy", step))

    def _warm_up(self, step: int, offered: NDArray[np.bool_]) -> Query:
        if not self.pool.generated:
            return Query(ALL, stake=False)
        if self.claim.anywhere:
            return Query(items=offered, stake=False)
        fresh = np.flatnonzero((self.pool.members & offered).any(axis=1))
        return Query(self.pool.groups[fresh[self.plan.pick("warm-up", step, len(fresh))]], stake=False)

    def _prepare(self, query: Query) -> Round:
        """Draw the case, and fix what is bet on it."""
        step = self._tally.rounds + 1
        eligible = self.claim.eligible(query, self._tally.offered())
        position = self._tally.draw(eligible)
        query = replace(query, step=step, id=self.pool.ids[position], stake=query.stake and step > self.plan.warm_up)
        thresholds = Pair(*self._tally.thresholds(query))
        if_fail, if_pass = (self._after(query, thresholds, score).log_e for score in (0.0, 1.0))
        return Round(query, int(eligible.sum()), thresholds, if_fail, if_pass)

    def _after(self, query: Query, thresholds: Pair, score: float | None) -> Dual:
        """Where both tests would stand after a score."""
        if query.stake:
            claim = query.claim or not self.claim.guaranteed
            return self._dual.update(score, thresholds, claim=claim, forecast=query.forecast)
        if self._dual.steps:
            return self._dual
        told = [*(r.score for r in self._rounds if r.told), score]
        return Dual.begin(self.plan, [x for x in told if x is not None])

    # --- the record ---------------------------------------------------------------------------------------------------

    def _catch_up(self) -> None:
        for entry in self._record.news():
            self.replay(entry)

    def replay(self, entry: Entry) -> None:
        """Take in one event of the record; what another process wrote too late is passed over.

        Raises
        ------
        LedgerError
            If the round is not what plan, pool and the rounds before it make of it.
        """
        if entry.kind == ASKED and self._open is None and entry.body["step"] == self._tally.rounds + 1:
            self._take_query(entry.body)
        elif entry.kind == TOLD and self._open is not None and entry.body["step"] == self._open.query.step:
            self._take_score(entry)

    def _take_query(self, body: Mapping[str, Any]) -> None:
        step = body["step"]
        wanted = self.choice() if step <= self.plan.warm_up else query_of(body, len(self.pool))
        try:
            made = None if wanted is None or self.finished else self._prepare(wanted)
        except PlanError as error:
            raise LedgerError(f"round {step} of the record does not follow the plan: {error}") from None
        stated = {key: value for key, value in body.items() if key != "audit"}
        if made is None or made.asked() != stated:
            asked = made.asked() if made else {}
            wrong = next((key for key in stated if asked.get(key) != stated[key]), "the round itself")
            raise LedgerError(
                f"round {step} of the record does not reproduce ({wrong}): the record was altered, or made by another "
                "version of groundfault"
            )
        self._rounds.append(made)

    def _take_score(self, entry: Entry) -> None:
        asked = self._rounds[-1]
        query, score = asked.query, checked(entry.body["score"], asked.query)
        if entry.body["id"] != query.id:
            raise LedgerError(f"round {query.step} of the record asks for {query.id!r} and scores {entry.body['id']!r}")
        self._dual = self._after(query, asked.thresholds, score)
        self._tally.tell(query, self.pool.position[query.id], score)
        self._rounds[-1] = asked.scored(score, self._dual.log_e)
        self._told_by[query.step] = entry.seq
        if query.stake and query.claim and query.group and self._dual.steps >= self.plan.budget:
            self._claimed.add(query.group)

    # --- where it stands ----------------------------------------------------------------------------------------------

    @property
    def rounds(self) -> tuple[Round, ...]:
        """All rounds, the open one last."""
        return tuple(self._rounds)

    @property
    def rounds_told(self) -> int:
        """Cases scored, warm-up included."""
        return self._tally.rounds

    @property
    def tested(self) -> int:
        """Cases bet on."""
        return self._dual.steps

    @property
    def groups(self) -> list[dict[str, object]]:
        """Size, labelled and unscored cases, and total score of each declared group."""
        return self._tally.summary()

    @property
    def log_wealth(self) -> Pair:
        """Natural logs of the e-values against the model's null and the auditor's; ``inf`` where counting decided."""
        model, auditor = self._dual.log_e
        return Pair(inf if self._counted_below else model, inf if self._counted_reached else auditor)

    @property
    def wealth(self) -> Pair:
        """The e-values; a null falls at 1 / alpha."""
        return Pair(*(exp(x) if x < 700 else inf for x in self.log_wealth))

    @property
    def verdict(self) -> Verdict:
        """``failure mode found``, ``audit passed``, or ``inconclusive``, which it is until either null has fallen."""
        cut, wealth = -log(self.plan.alpha), self.log_wealth
        if wealth.model >= cut:
            return "failure mode found"
        return "audit passed" if wealth.auditor >= cut else "inconclusive"

    @property
    def finished(self) -> bool:
        """Whether there is nothing more to ask."""
        spent = self.plan.limit is not None and self.rounds_told >= self.plan.limit
        return self.verdict != "inconclusive" or spent or self._ended

    @property
    def _counted_below(self) -> list[str]:
        return [self.pool.groups[g] for g in np.flatnonzero(self._tally.below())]

    @property
    def _counted_reached(self) -> list[str]:
        """Groups the auditor claimed from the budget on that have reached the threshold; all, where all have."""
        reached = self._tally.reached()
        names = [self.pool.groups[g] for g in np.flatnonzero(reached)]
        return names if reached.all() else [name for name in names if name in self._claimed]

    @property
    def reason(self) -> str:
        """The verdict's grounds, in a sentence."""
        q, cases = f"{self.plan.threshold:g}", f"{self.tested} tested cases ({self.rounds_told} labelled)"
        if self.verdict == "failure mode found":
            if self._counted_below:
                return f"counted: {self._counted_below[0]} is below {q} whatever its other cases would score"
            return f"the e-value against the model's null reached {self.wealth.model:.4g} after {cases}"
        if self.verdict == "audit passed":
            if self._tally.reached().all():
                return f"counted: every declared group has a mean score of {q} or more"
            if self._counted_reached:
                return f"counted: {self._counted_reached[0]}, which the auditor claimed, has a mean of {q} or more"
            return (
                f"the e-value against the auditor's null reached {self.wealth.auditor:.4g} after {cases}: this auditor "
                f"({self.plan.policy}), given {self.plan.budget} cases to find one, did not hold a failing group"
            )
        return f"neither null has fallen after {cases}"

    @property
    def null(self) -> str:
        """What "failure mode found" refutes."""
        return self.claim.null

    def certificate(self) -> Certificate:
        """All that it takes to recompute the verdict, as it stands.

        Raises
        ------
        LedgerError
            If the ledger was altered.
        """
        from groundfault.sequential.certificate import certify

        self._catch_up()
        return certify(self, self._record.check())


def checked(score: Any, query: Query) -> float | None:
    """The score as a number, or None.

    Raises
    ------
    InputError
        If it is neither None nor a number in [0, 1].
    """
    if score is None:
        return None
    if isinstance(score, str | bytes) or np.ndim(score):
        raise InputError(f"the score {score!r} of case {query.id!r} is not a number; scores lie in [0, 1]")
    try:
        value = float(score)
    except (TypeError, ValueError):
        raise InputError(f"the score {score!r} of case {query.id!r} is not a number; scores lie in [0, 1]") from None
    if not 0 <= value <= 1:
        raise InputError(f"the score {value:g} of case {query.id!r} is outside [0, 1]; 1 is a pass, 0 a failure")
    return value
