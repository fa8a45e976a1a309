"""The state of a holdout: how often it was opened, and how many rules were tried by hand.

A report exists only after a look at its outcomes, even if this ledger has no record of that look.
Before the report, outcomes are sealed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from groundfault.base.holdout_events import OPENED, TRIED, select_looks
from groundfault.core.rules import Rule
from groundfault.render.words import plural

if TYPE_CHECKING:
    from groundfault.auditing.report import Report
    from groundfault.base.holdout_events import Event
    from groundfault.base.ledger import Ledger
    from groundfault.case.settings import CaseSettings


@dataclass(frozen=True)
class HoldoutState:
    """Looks at a report's outcomes, as a ledger recorded them.

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
        """Return whether the outcomes were never looked at."""
        return not self.has_report and not self.openings

    @cached_property
    def rules(self) -> dict[str, Mapping[str, Sequence[float]]]:
        """Return the rules that were tried, the last first, each with its counts.

        By outcome, these are units and failures on the rule, and off it.
        """
        return {str(e.body.get("rule")): e.body.get("counts", {}) for e in reversed(self.tried)}

    @cached_property
    def late_rules(self) -> frozenset[str]:
        """Return the rules tried since the last look, which need fresh data."""
        last = self.openings[-1].seq if self.openings else 0
        return frozenset(str(event.body.get("rule")) for event in self.tried if event.seq > last)

    def is_late(self, rule: str) -> bool:
        """Return whether a rule was first tried after the outcomes had been looked at."""
        return Rule.parse(rule).sql in self.late_rules

    @property
    def name(self) -> str:
        """Return the state in a word."""
        if self.sealed:
            return "Sealed"
        if not self.holds_out:
            return "Audited" if self.fresh else "No holdout"
        if not self.recorded:
            return "No ledger"
        return f"Opened {len(self.openings)}×" if self.openings else "Opened, not in this ledger"

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return remarks, of a few words each."""
        if not self.recorded:
            return ("nothing is recorded here",)
        remarks = [f"plan {self.seal[:8]}"]
        if self.fresh:
            remarks.append(f"{plural(self.fresh, 'fresh example')} kept apart")
        if self.sealed:
            return (*remarks, "no outcome was looked at")
        if self.openings:
            last = self.openings[-1]
            remarks.append(f"{name_day(last.time)} by {last.actor.partition('@')[0]}")
        if late := len(self.late_rules):
            remarks.append(f"{plural(late, 'rule')} tried since need{'s' * (late == 1)} fresh data")
        else:
            remarks.append(f"{plural(len(self.rules), 'rule')} tried here")
        return tuple(remarks)


def find_state(
    report: Report | None, settings: CaseSettings | None, ledger: Ledger | None, head: str
) -> HoldoutState | None:
    """Return the state of a report's outcomes, or of a case's that has no report yet.

    Parameters
    ----------
    report : Report or None
        None for a case before its audit: sealed, unless its ledger has a look.
    settings : CaseSettings or None
        Of the case, if it is one.
    ledger : Ledger or None
    head : str
        Hash of its last event.
    """
    events, fresh = read_events(ledger), settings.fresh_units if settings else 0
    if report is not None:
        outcome = report.hashes.outcome
        looks = [e for e in select_looks(events, {outcome}) if e.kind == OPENED]
        return HoldoutState(
            head,
            report.hashes.plan,
            tuple(looks),
            tuple(e for e in events if e.kind == TRIED and e.body.get("outcome") == outcome),
            recorded=ledger is not None,
            holds_out=any(finding.holdout is not None for finding in report.findings),
            fresh=fresh,
        )
    if settings is None:
        return None
    looks = [event for event in events if event.kind == OPENED]
    return HoldoutState(head, settings.seal, tuple(looks), has_report=False, fresh=fresh)


def read_events(ledger: Ledger | None) -> list[Event]:
    """Return the events of a ledger; an empty list if the file does not exist yet."""
    if ledger is None or _is_missing(ledger):
        return []
    return ledger.events()


def read_head(ledger: Ledger | None) -> str:
    """Return the hash of a ledger's last event; empty where there is no ledger, or no file yet."""
    return "" if ledger is None or _is_missing(ledger) else ledger.head


def _is_missing(ledger: Ledger) -> bool:
    return "://" not in ledger.place and not Path(ledger.place).exists()


def name_day(time: str) -> str:
    """Return the day of an event as people write it.

    Examples
    --------
    >>> name_day("2026-11-22T10:00:00+00:00")
    '22 Nov 2026'
    """
    return f"{datetime.fromisoformat(time):%d %b %Y}".lstrip("0")
