"""The state of a holdout: how often it was opened, and how many rules were tried by hand.

Whoever has a report has looked at its outcomes, whether or not the ledger at hand recorded it.
Before there is one, they are sealed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from groundfault.base.openings import OPENED, TRIED, select_looks

if TYPE_CHECKING:
    from groundfault.auditing.report import Report
    from groundfault.base.ledger import Event, Ledger
    from groundfault.case.settings import CaseSettings


@dataclass(frozen=True)
class HoldoutState:
    """What a ledger says of a report's outcomes.

    Attributes
    ----------
    head : str
        Hash of the ledger's last event when it was read; empty without a ledger.
    seal : str
        Of the report's plan.
    openings : tuple of Event
        Looks at the outcomes, replays of the same audit not counted.
    tried : tuple of Event
        Rules that were tried here by hand, oldest first.
    recorded : bool
        Whether there is a ledger.
    holds_out : bool
        Whether the report's judge holds anything out.
    has_report : bool
        Whether there is a report.
    fresh : int
        Units that a case keeps apart from its audit; their labels are bought one by one.
    """

    head: str
    seal: str
    openings: tuple[Event, ...] = ()
    tried: tuple[Event, ...] = ()
    recorded: bool = True
    holds_out: bool = True
    has_report: bool = True
    fresh: int = 0

    @property
    def sealed(self) -> bool:
        """Whether nobody looked yet."""
        return not self.has_report and not self.openings

    @property
    def rules(self) -> int:
        """How many different rules were tried."""
        return _count_rules(self.tried)

    @property
    def late(self) -> tuple[Event, ...]:
        """Tries since the last look: what they suggest needs fresh data."""
        last = self.openings[-1].seq if self.openings else 0
        return tuple(event for event in self.tried if event.seq > last)

    @property
    def name(self) -> str:
        """The state in a word."""
        if self.sealed:
            return "Sealed"
        if not self.holds_out:
            return "Audited" if self.fresh else "Nothing held out"
        if not self.recorded:
            return "No ledger"
        return f"Opened {len(self.openings)}×" if self.openings else "Opened, not in this ledger"

    @property
    def remarks(self) -> tuple[str, ...]:
        """What belongs to it, in a few words each."""
        if not self.recorded:
            return ("nothing is recorded here",)
        remarks = [f"plan {self.seal[:8]}"]
        if self.fresh:
            remarks.append(f"{_count(self.fresh, 'fresh unit')} kept apart")
        if self.sealed:
            return (*remarks, "no outcome was looked at")
        if self.openings:
            last = self.openings[-1]
            remarks.append(f"{name_day(last.time)} by {last.actor.partition('@')[0]}")
        if self.late:
            late = _count_rules(self.late)
            remarks.append(f"{_count(late, 'rule')} tried since need{'s' * (late == 1)} fresh data")
        else:
            remarks.append(f"{_count(self.rules, 'rule')} tried here")
        return tuple(remarks)


def find_state(report: Report, ledger: Ledger | None, head: str, fresh: int = 0) -> HoldoutState:
    """The state of a report's outcomes.

    Parameters
    ----------
    report : Report
    ledger : Ledger or None
    head : str
        Hash of its last event.
    fresh : int
        Units that a case keeps apart from this audit.
    """
    holds_out = any(finding.holdout is not None for finding in report.findings)
    if ledger is None:
        return HoldoutState(
            head, report.hashes.plan, recorded=False, holds_out=holds_out, fresh=fresh
        )
    events = read_events(ledger)
    outcome = report.hashes.outcome
    looks = tuple(e for e in select_looks(events, {outcome}) if e.kind == OPENED)
    tried = tuple(e for e in events if e.kind == TRIED and e.body.get("outcome") == outcome)
    return HoldoutState(head, report.hashes.plan, looks, tried, holds_out=holds_out, fresh=fresh)


def find_state_before(settings: CaseSettings, ledger: Ledger | None, head: str) -> HoldoutState:
    """The state of a case that has no report: sealed, unless its ledger has a look.

    Parameters
    ----------
    settings : CaseSettings
        What was decided before any look.
    ledger : Ledger or None
        Of these outcomes alone.
    head : str
        Hash of its last event.
    """
    looks = tuple(event for event in read_events(ledger) if event.kind == OPENED)
    return HoldoutState(head, settings.seal, looks, has_report=False, fresh=settings.fresh_units)


def read_events(ledger: Ledger | None) -> list[Event]:
    """The events of a ledger; none where there is no file yet."""
    if ledger is None or _is_missing(ledger):
        return []
    return ledger.events()


def read_head(ledger: Ledger | None) -> str:
    """The hash of a ledger's last event; empty where there is no ledger, or no file yet."""
    return "" if ledger is None or _is_missing(ledger) else ledger.head


def _is_missing(ledger: Ledger) -> bool:
    return "://" not in ledger.place and not Path(ledger.place).exists()


def name_day(time: str) -> str:
    """The day of an event as people write it.

    Examples
    --------
    >>> name_day("2026-11-22T10:00:00+00:00")
    '22 Nov 2026'
    """
    return f"{datetime.fromisoformat(time):%d %b %Y}".lstrip("0")


def _count_rules(events: Sequence[Event]) -> int:
    return len({str(event.body.get("rule")) for event in events})


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
