"""The audit session: ask what to score next, tell the score, stop when either null has fallen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from groundfault.base.deprecation import rename_members, warn_renamed
from groundfault.errors import InputError, PlanError
from groundfault.sequential import policies
from groundfault.sequential.certificate import Certificate, certify
from groundfault.sequential.draws import read_draws
from groundfault.sequential.plan import SequentialPlan, accept_stored_names
from groundfault.sequential.policies import History, Policy, Query
from groundfault.sequential.pool import Pool
from groundfault.sequential.record import OPENED, AuditRecord
from groundfault.sequential.state import AuditState

if TYPE_CHECKING:
    from groundfault.base.ledgers import LedgerChoice


@accept_stored_names
@rename_members(rounds_told="labelled", tally="counts", choice="choose", prepare="draw_round")
class SequentialAudit(AuditState):
    """A sequential audit: valid whichever case is asked next, and whenever one stops.

    Parameters
    ----------
    pool : Pool
        The cases and their declared groups.
    threshold : float in (0, 1)
        The least mean score that a group has to have; 1 is a pass.
    budget : int, optional
        Most cases to label, after which the audit ends; left out, all of them.
    burn_in : int
        Tested cases before the auditor's claims count, the paper's m: what it has to find a
        failing group.
    alpha : float in (0, 1)
    policy : str or Policy
        What decides where to look.
    bet : str or sequence of str, optional
        See `groundfault.sequential.BETS` and `SequentialPlan`.
    seed : int, optional
        A public seed, which lets others repeat, and foresee, the draws. Left out, they follow from
        a random key that is sealed until the audit has ended; see `groundfault.sequential.draws`.
    ledger : Ledger, path, URL or bool, optional
        Where every round is recorded before its score is seen; True is the place that
        $GROUNDFAULT_LEDGER names, else groundfault-ledger.db in the current folder. A ledger that
        holds this very audit, of the same cases and settings, resumes it. With False or None the
        audit lives in memory, and its certificate says so.
    reopen : str, optional
        Why these cases are audited again with other settings, where the ledger holds an audit of
        them.
    **settings
        Further settings of an `SequentialPlan`.

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
    the population of each group: the cases have to be a random sample of it, answered independently
    of each other. Choosing among several audits afterwards is not covered, nor is
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
        **settings: Any,
    ) -> None:
        # a policy knows how many draws it needs before it can claim anything
        sampler = policies.get(policy) if isinstance(policy, str) else policy
        if settings.get("warm_up") is None:
            settings["warm_up"] = getattr(sampler, "warm_up", 0)
        settings |= {"threshold": threshold, "budget": budget, "burn_in": burn_in, "alpha": alpha}
        settings |= {"policy": sampler.name, "bet": bet, "seed": seed}
        plan = SequentialPlan.from_settings(settings)
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
    ) -> SequentialAudit:
        """Return the audit of a ready-made plan, with the policy that it names unless one is
        passed.
        """
        audit = cls.__new__(cls)
        audit._begin(pool, plan, policy or policies.get(plan.policy), ledger, reopen)
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
            If there is no such audit in it.
        """
        book = AuditRecord(ledger, seal).ledger
        if book is None:
            raise InputError("no ledger is named to take the audit from: name it")
        openings = [event for event in book.events(OPENED) if event.body["audit"].startswith(seal)]
        if not openings:
            raise InputError(f"the ledger {book.place} holds no audit{f' {seal}' if seal else ''}")
        header = openings[-1].body
        plan = SequentialPlan.from_settings(header["plan"])
        return cls.of(
            Pool.from_outline(header["pool"]), plan, policy=_Absent(plan.policy), ledger=book
        )

    @classmethod
    def recorded(cls, ledger: LedgerChoice, seal: str = "") -> SequentialAudit:
        """Return `from_ledger` under its old name."""
        warn_renamed("SequentialAudit.recorded", "SequentialAudit.from_ledger", stacklevel=2)
        return cls.from_ledger(ledger, seal)

    def _begin(
        self,
        pool: Pool,
        plan: SequentialPlan,
        policy: Policy,
        ledger: LedgerChoice,
        reopen: str | None,
    ) -> None:
        if not isinstance(pool, Pool):
            raise InputError(
                f"an audit needs a Pool, not a {type(pool).__name__}: make one with Pool.from_table"
            )
        if policy.name != plan.policy:
            raise PlanError(f"the plan names the policy {plan.policy}, not {policy.name}")
        super().__init__(pool, plan)
        self.policy = policy
        self.record = AuditRecord(ledger, self.seal)
        sealed_key = self.draws.sealed_key
        header = {
            "plan": plan.stored_settings,
            "pool": pool.outline(),
            "draws": None if sealed_key is None else msgspec.to_builtins(sealed_key),
        }
        self._begin_draws(read_draws(plan.seed, self.record.open(header, reopen).get("draws")))
        # to resume is to replay: the state is recomputed from plan, pool and events, never stored
        self.catch_up()

    def _draw_event(self) -> Mapping[str, Any] | None:
        if self.decided:
            return None
        query = self.choose(self.policy)
        self._is_over = query is None
        if query is None:
            return None
        self._draft = self.draw_round(query)
        return self._draft.to_query_event()

    @property
    def finished(self) -> bool:
        """Return whether there is nothing more to ask."""
        if self.decided or self._is_over:
            return True
        return self.open is None and not self.counts.find_available().any()

    def certificate(self) -> Certificate:
        """Return all that it takes to recompute the verdict, as it stands.

        Raises
        ------
        LedgerError
            If the ledger was altered.
        """
        self.catch_up()
        return certify(self, self.record.check(), reveal=self.finished)


@dataclass(frozen=True)
class _Absent:
    """Stands for a policy where nothing is asked."""

    name: str

    def ask(self, history: History, rng: np.random.Generator) -> Query | None:  # noqa: ARG002
        raise PlanError(
            f"the audit was read from its record, without its cases and its policy {self.name}: "
            "open it anew"
        )
