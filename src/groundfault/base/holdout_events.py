"""Openings: count from a ledger's events how often the same outcomes were looked at."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

OPENED = "holdout_opened"
REPLAYED = "holdout_replayed"
TRIED = "rule_tried"
"""Kind of an event: a user counted failures under a rule, on units whose outcomes are free."""

CRASHED = "audit_crashed"
"""Kind of an event: an audit ended without a report, so its outcomes stayed unseen."""

ALL = "all outcomes"
"""Scope in an event that looked at more than a holdout."""

_HASHES = ("evidence", "outcome", "split", "library", "plan")
# two audits that agree in these are the same audit; fields missing from an event are None
_IDENTITY = (*_HASHES, "compare")


@dataclass(frozen=True)
class Event:
    """One entry.

    Attributes
    ----------
    seq : int
        1, 2, 3, ... without a gap.
    time : str
        UTC, ISO 8601.
    actor : str
        ``user@host``.
    kind : str
        The action, such as ``holdout_opened``.
    body : dict
        Details, as JSON values.
    previous, hash : str
        SHA-256 of the event before, and of this event including ``previous``.
    """

    seq: int
    time: str
    actor: str
    kind: str
    body: Mapping[str, Any]
    previous: str
    hash: str


class Look(Struct, frozen=True, forbid_unknown_fields=True):
    """One look at outcomes, and the error level that was spent on it.

    Attributes
    ----------
    rule : str
        Name of the judge; empty if the ledger does not say.
    level : float or None
        Error level of the judge, in (0, 1); None if it has none, or the ledger does not say.
    """

    rule: str
    level: float | None


class Opening(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ledger's record of a holdout that was just opened.

    Attributes
    ----------
    path : str
        The ledger, without a password.
    head : str
        Hash of the event that recorded this opening.
    replay : bool
        Whether the same audit was recorded before; it was not counted again.
    times : int
        How often the holdout of these outcomes has been opened, including this time.
    libraries, plans, splits, versions : int
        How many different candidate libraries, plans, splits and versions of the evidence these
        openings used.
    reasons : tuple of str
        Reasons given for opening it again, oldest first.
    holdout : bool
        Whether this opening is of a held-out part.
    all_outcomes : bool
        Whether this audit looks at all outcomes, including held-out ones.
    all_before : bool
        Whether another audit looked at all outcomes before.
    looks : tuple of Look
        All looks at these outcomes, oldest first: as many as ``times``.
    overlapping : int
        How many of the looks were at other evidence with part of these outcomes.
    overlap : float in [0, 1]
        The largest shared part, estimated from samples.
    tried : int
        Rules whose failures were counted by hand before, on units whose outcomes were open.
    rescored : int
        How many of the looks were at the same answers under another scorer, or counted in another
        way.
    asides : int
        Looks at some of these outcomes for another question: other models, or a part of the rows.
        Not counted in ``times``.
    """

    path: str
    head: str
    replay: bool
    times: int
    libraries: int
    plans: int
    splits: int
    versions: int
    reasons: tuple[str, ...]
    holdout: bool = True
    all_outcomes: bool = False
    all_before: bool = False
    looks: tuple[Look, ...] = ()
    overlapping: int = 0
    overlap: float = 0.0
    tried: int = 0
    rescored: int = 0
    asides: int = 0

    @property
    def sentence(self) -> str:
        """Return the sentence for a report, such as "holdout opened 1 time"."""
        counts = [
            (self.libraries, "candidate libraries"),
            (self.plans, "plans"),
            (self.splits, "splits"),
            (self.versions, "versions of the evidence"),
        ]
        several = [f"{count} {what}" for count, what in counts if count > 1]
        what = "holdout opened" if self.holdout else "all outcomes were looked at"
        text = f"{what} {self.times} time{'s' if self.times > 1 else ''}"
        if several:
            text += f", with {_join_words(several)}"
        if self.overlapping:
            most = "up to " if self.overlapping > 1 else ""
            text += (
                f"; {self.overlapping} of them with other evidence, which has {most}about "
                f"{100 * self.overlap:.0f}% of these outcomes"
            )
        if self.rescored:
            text += f"; {self.rescored} of them with the same answers scored in another way"
        if self.asides:
            text += f"; looks at other models or parts of the table: {self.asides}"
        if self.holdout and self.all_before:
            text += "; all outcomes had been looked at before, so it was not fresh"
        elif self.holdout and self.all_outcomes:
            text += "; the search for failure modes looked at all outcomes"
        if self.tried:
            many = self.tried > 1
            text += f"; {self.tried} rule{'s' * many} {'were' if many else 'was'} tried before it"
        if self.reasons:
            many = len(self.reasons) > 1
            text += f"; reason{'s' * many} given: {'; '.join(self.reasons)}"
        return text


def select_looks(events: Sequence[Event], outcomes: Collection[str]) -> list[Event]:
    """Return the events that looked at any of these outcomes, including replays, in order.

    Audits that crashed are left out.
    """
    crashed = {event.body.get("opening") for event in events if event.kind == CRASHED}
    # by outcomes: new attributes or another version of the evidence do not make labels fresh
    return [
        event
        for event in events
        if event.kind in (OPENED, REPLAYED)
        and event.body.get("outcome") in outcomes
        and event.hash not in crashed
    ]


def is_same_audit(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    """Return whether two bodies of events are of the same audit."""
    return all(one.get(key) == other.get(key) for key in _IDENTITY)


def describe_opening(path: str, events: Sequence[Event], event: Event) -> Opening:
    """Count the looks at the outcomes of an event, up to that event.

    Parameters
    ----------
    path : str
        The ledger, without a password.
    events : sequence of Event
        All events of the ledger in order; events after ``event`` are not counted.
    event : Event
        The opening, or the replay of one.
    """
    body, outcome = event.body, str(event.body.get("outcome"))
    # overlaps were measured when the event was recorded; events before 0.2 have none
    every: Mapping[str, float] = body.get("overlaps", {})
    scope = body.get("scope")
    asides = [
        e
        for e in select_looks([e for e in events if e.seq < event.seq], every)
        if e.kind == OPENED and e.body.get("scope", scope) != scope is not None
    ]
    apart = {e.body["outcome"] for e in asides}
    overlaps = {name: share for name, share in every.items() if name not in apart}
    rescored: Mapping[str, float] = body.get("rescored", {})
    same = {outcome, *overlaps, *rescored}
    looks = select_looks([e for e in events if e.seq <= event.seq], same)
    distinct = [e for e in looks if e.kind == OPENED]
    shares = [overlaps[e.body["outcome"]] for e in distinct if e.body["outcome"] in overlaps]
    several = {key: len({e.body.get(key) for e in distinct}) for key in _HASHES}
    all_outcomes = body.get("looked_at") == ALL
    tries = {
        str(e.body.get("rule"))
        for e in events
        if e.kind == TRIED and e.seq < event.seq and e.body.get("outcome") in same
    }
    return Opening(
        path=path,
        head=event.hash,
        replay=event.kind == REPLAYED,
        times=len(distinct),
        libraries=several["library"],
        plans=several["plan"],
        splits=several["split"],
        versions=several["evidence"],
        reasons=tuple(e.body["reason"] for e in distinct if e.body.get("reason")),
        # events of 0.1 do not say it
        holdout=bool(body.get("holdout", not all_outcomes)),
        all_outcomes=all_outcomes,
        all_before=any(
            e.body.get("looked_at") == ALL
            and e.body["outcome"] == outcome
            and not is_same_audit(e.body, body)
            for e in looks
        ),
        looks=tuple(Look(e.body.get("rule") or "", e.body.get("level")) for e in distinct),
        overlapping=len(shares),
        overlap=max(shares, default=0.0),
        tried=len(tries),
        rescored=sum(e.body["outcome"] in rescored for e in distinct),
        asides=len(asides),
    )


def _join_words(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
