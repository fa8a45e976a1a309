"""The record of a sequential audit: each round is written down before its score is seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from groundfault.base.holdout_events import Event
from groundfault.base.ledgers import LedgerChoice, find_ledger
from groundfault.errors import LedgerError
from groundfault.sequential.plan import from_stored_names
from groundfault.sequential.policies import Query
from groundfault.sequential.pool import from_hex, to_hex
from groundfault.sequential.two_null_test import EProcessPair

_NOTHING = EProcessPair(0.0, 0.0)
OPENED, ASKED, TOLD, UNDONE = "audit_opened", "audit_asked", "audit_told", "audit_undone"
REVIEWED = "audit_reviewed"


@dataclass(frozen=True, eq=False)
class Round:
    """One round: where the case was drawn from, which it was, the bets, and the score.

    Attributes
    ----------
    query : Query
        Group or set, claim and stake, with step and id of the case drawn.
    eligible : int
        Cases it was drawn from, uniformly.
    thresholds : Pair
        Thresholds of its score, under the model's null and the auditor's.
    if_fail, if_pass : Pair
        Log e-values after a score of 0 and of 1, which is all there is to know of the bets.
    closed : bool
        Whether it has been scored; the next two say how.
    score : float, optional
        None where the case could not be scored.
    log_e : Pair
        Log e-values after it.
    """

    query: Query
    eligible: int
    thresholds: EProcessPair
    if_fail: EProcessPair = _NOTHING
    if_pass: EProcessPair = _NOTHING
    closed: bool = False
    score: float | None = None
    log_e: EProcessPair = _NOTHING

    def with_score(self, score: float | None, log_e: EProcessPair) -> Round:
        """Return the round with its score."""
        return replace(self, closed=True, score=score, log_e=log_e)

    def to_query_event(self) -> dict[str, Any]:
        """Return the body of the event that is written before the score is seen."""
        query = self.query
        return {
            "step": query.step,
            "id": query.id,
            "group": query.group,
            "items": None if query.items is None else to_hex(query.items),
            "claim": query.claim,
            "stake": query.stake,
            "forecast": query.forecast,
            "eligible": self.eligible,
            "thresholds": write_pair(self.thresholds),
            "if_fail": write_pair(self.if_fail),
            "if_pass": write_pair(self.if_pass),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain values."""
        return {
            **self.to_query_event(),
            "told": self.closed,
            "score": self.score,
            "log_e": write_pair(self.log_e),
        }


def read_query(body: Mapping[str, Any], cases: int) -> Query:
    """Return the policy's part of a round that was written down.

    Raises
    ------
    LedgerError
        If it is not one.
    """
    try:
        items = None if body["items"] is None else from_hex(body["items"], cases)
        return Query(
            body["group"], items, bool(body["claim"]), bool(body["stake"]), body["forecast"]
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise LedgerError(
            f"a round in the record cannot be read ({error}): it was altered"
        ) from None


def write_pair(values: EProcessPair) -> list[float | str]:
    """Return numbers as JSON holds them; infinities as words."""
    return [float(x) if abs(x) < float("inf") else str(float(x)) for x in values]


class AuditEvent(NamedTuple):
    """One event of one audit: its number in the ledger, and its content."""

    seq: int
    kind: str
    body: Mapping[str, Any]


class LedgerPlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The place of the rounds, the hash of the last event, and other records of that place.

    Attributes
    ----------
    path, head : str
    audits : int
        How many audits of these cases and groups it holds, this one included.
    level : float, optional
        The sum of their alphas; None where this is the only one.
    """

    path: str
    head: str
    audits: int = 1
    level: float | None = None


class AuditRecord:
    """The events of one audit, in memory or in a ledger that other processes write to as well.

    Parameters
    ----------
    ledger : Ledger, path, URL or bool, optional
        As `groundfault.base.ledgers.find_ledger` takes it.
    seal : str
        The audit's seal, which marks its events.
    """

    def __init__(self, ledger: LedgerChoice, seal: str) -> None:
        self.ledger = find_ledger(ledger)
        self.seal = seal
        self._head = ""
        self._last = 0

    def open(self, header: Mapping[str, Any], reopen: str | None) -> Mapping[str, Any]:
        """Open the audit, or take it up again: the header with which it was opened.

        Raises
        ------
        LedgerError
            If the ledger does not add up, or holds another audit of these cases and no reason is
            given.
        InputError
            If the ledger cannot be read or written to.
        """
        if self.ledger is None:
            return header
        openings, opened = self._find_header()
        if opened is None:
            self.ledger.refuse_earlier(OPENED, lambda e: _asks_the_same(e, header), "these cases")
            others = [event for event in openings if _asks_the_same(event.body, header)]
            reason = " ".join((reopen or "").split())
            # trying plans until one gives the wanted verdict is not covered by any e-value, so a
            # second plan for the same cases has to be explained, and stays visible
            if others and not reason:
                settings = _list_differences(others[-1].body["plan"], header["plan"])
                raise LedgerError(
                    f"the ledger {self.ledger.place} holds an audit of these cases with other "
                    f"settings ({settings}), begun {others[-1].time}: go on with those, or give a "
                    "reason to begin anew (reopen)"
                )
            history = {"reason": reason or None, "before": len(others)}
            self.ledger.append(OPENED, {"audit": self.seal, **header, **history})
            # another process may have opened it at the same time: the first one's header counts
            _, opened = self._find_header()
        assert opened is not None
        return opened

    def _find_header(self) -> tuple[list[Event], Mapping[str, object] | None]:
        """Return all openings of audits, and this audit's opening."""
        assert self.ledger is not None
        exists = "://" in self.ledger.place or Path(self.ledger.place).exists()
        openings = self.ledger.events(OPENED) if exists else []
        return openings, next((e.body for e in openings if e.body["audit"] == self.seal), None)

    def append(self, kind: str, body: Mapping[str, object]) -> tuple[AuditEvent, list[AuditEvent]]:
        """Write an event down; once this returns it is on disk.

        Returns
        -------
        AuditEvent, list of AuditEvent
            The event, and all that are new, in their order: other processes may have been first.
        """
        if self.ledger is None:
            self._last += 1
            entry = AuditEvent(self._last, kind, body)
            return entry, [entry]
        # one place in the chain for each event; if it does not follow the last one read here,
        # another process wrote in between and its events come first
        event = self.ledger.append(kind, {"audit": self.seal, **body})
        entry = AuditEvent(event.seq, kind, event.body)
        if event.previous != self._head:
            return entry, self.read_new()
        self._head, self._last = event.hash, event.seq
        return entry, [entry]

    def read_new(self) -> list[AuditEvent]:
        """Return events of this audit written since the last look, by any process.

        Raises
        ------
        LedgerError
            If the ledger does not add up.
        """
        # the whole chain is checked again only if the head moved: checking is linear in its length
        if self.ledger is None or self.ledger.head == self._head:
            return []
        self.ledger.check()
        events = [event for event in self.ledger.events() if event.seq > self._last]
        if events:
            self._head, self._last = events[-1].hash, events[-1].seq
        return [
            AuditEvent(e.seq, e.kind, e.body) for e in events if e.body.get("audit") == self.seal
        ]

    def check(self) -> LedgerPlace | None:
        """Check the ledger; return its state for a certificate, None in memory."""
        if self.ledger is None:
            return None
        self.ledger.check()
        counts = count_audits(self.ledger.events(OPENED), self.seal)
        return LedgerPlace(self.ledger.place, self.ledger.head, *counts)


def count_audits(openings: Sequence[Event], seal: str) -> tuple[int, float | None]:
    """Count the audits of the same cases, and add up their levels if there are several.

    Whoever may choose among audits is wrong with a chance that the sum bounds.
    """
    own = [event.body for event in openings if event.body["audit"] == seal]
    same = [event for event in openings if own and _asks_the_same(event.body, own[0])]
    alphas = [Fraction(str(event.body["plan"]["alpha"])) for event in same]
    return (len(same), float(sum(alphas))) if len(same) > 1 else (1, None)


def _asks_the_same(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Return whether two headers are of one model and the same cases and groups."""
    pools = (a["pool"], b["pool"])
    models = {header["plan"].get("model", "") for header in (a, b)}
    return len(models) == 1 and all(
        pools[0][key] == pools[1][key] for key in ("ids", "groups", "generated", "embedding")
    )


def _list_differences(stored: Mapping[str, object], wanted: Mapping[str, object]) -> str:
    """Return the settings of a stored plan that are not those wanted now."""
    stored, wanted = from_stored_names(stored), from_stored_names(wanted)
    names = [name for name in wanted if stored.get(name) != wanted[name]]
    return ", ".join(f"{name}={stored.get(name)}" for name in names) or "its groups are others"
