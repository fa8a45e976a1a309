"""The state of a holdout: how often it was opened, and how many rules were tried by hand.

Whoever has a report has looked at its outcomes, whether or not the ledger at hand recorded it.
Before there is one, they are sealed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from groundfault.auditing.evidence_again import read_evidence_again, select_audited
from groundfault.auditing.flow import audit
from groundfault.base.holdout_events import OPENED, TRIED, select_looks
from groundfault.core.candidate import Candidate, Library
from groundfault.core.rules import Rule
from groundfault.errors import InputError, LedgerError, PlanError, RuleError
from groundfault.render.words import plural
from groundfault.workbench.subjects import read_subject

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams

    from groundfault.auditing.report import Report
    from groundfault.base.holdout_events import Event
    from groundfault.base.ledger import Ledger
    from groundfault.case.settings import CaseSettings
    from groundfault.workbench.opened_report import OpenedReport


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
            return "Audited" if self.fresh else "Nothing held out"
        if not self.recorded:
            return "No ledger"
        return f"Opened {len(self.openings)}×" if self.openings else "Opened, not in this ledger"

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return remarks on it, of a few words each."""
        if not self.recorded:
            return ("nothing is recorded here",)
        remarks = [f"plan {self.seal[:8]}"]
        if self.fresh:
            remarks.append(f"{plural(self.fresh, 'fresh unit')} kept apart")
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
    """Return the events of a ledger; none where there is no file yet."""
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


_MAX_FILTERS = 20
"""At once: each is a clause of one rule, and an address has its limit."""


class RowSelection(NamedTuple):
    """The selection of an address: a rule and further conditions, in SQL; empty for none."""

    rule: str
    where: tuple[str, ...] = ()

    @classmethod
    def of(cls, bench: OpenedReport, params: QueryParams) -> RowSelection:
        """Read the parameters of an address, or of a form.

        Raises
        ------
        InputError, RuleError
            If there is no such mode or finding, or a rule cannot be read.
        """
        where = tuple(dict.fromkeys(filter(None, map(str.strip, params.getlist("where")))))
        if len(where) > _MAX_FILTERS:
            raise InputError(f"at most {_MAX_FILTERS} filters at once")
        return cls(read_subject(bench.audited, params).rule, where)

    @property
    def joined(self) -> str:
        """Return all of it as one rule; empty for none."""
        conditions = (*([self.rule] if self.rule else []), *self.where)
        return " AND ".join(f"({condition})" for condition in conditions)


def count_untried(
    bench: OpenedReport, chosen: RowSelection
) -> dict[str, dict[str, Sequence[float]]]:
    """Count the rules of a selection that are new: neither the report's, nor in the ledger.

    Filters show how many rows fail, as a rule does, so they are one, too.

    Parameters
    ----------
    bench : OpenedReport
        With a report.
    chosen : RowSelection

    Returns
    -------
    dict of str to dict of str to sequence of float
        By rule in its normal form, and outcome: units and failures on and off the rule; rows, where
        there are filters. Empty where there is no ledger to record them in.

    Raises
    ------
    RuleError, InputError
        If a rule cannot be read or evaluated.
    """
    state, untried = bench.state, dict[str, dict[str, Sequence[float]]]()
    assert state is not None
    if bench.ledger is None:
        return untried
    known = list_rules(bench.audited) | set(state.rules)
    if chosen.rule and (sql := Rule.parse(chosen.rule).sql) not in known:
        untried[sql] = {
            outcome: [cell.on, cell.on_errors, cell.off, cell.off_errors]
            for outcome, cell in bench.index.count(chosen.rule).items()
        }
    if chosen.where and (sql := Rule.parse(chosen.joined).sql) not in known:
        inside, fails = bench.index.filter(chosen.where), bench.rows.fails
        if chosen.rule:
            inside = inside & bench.index.holds(chosen.rule)
        counts = [inside.sum(), fails[inside].sum(), (~inside).sum(), fails[~inside].sum()]
        untried[sql] = {"": list(map(int, counts))}
    return untried


def try_rules(bench: OpenedReport, params: QueryParams) -> None:
    """Record the new rules of a form with their counts; none where one cannot be evaluated.

    Raises
    ------
    InputError
        If the ledger cannot be written to.
    """
    try:
        untried = count_untried(bench, RowSelection.of(bench, params))
    except (RuleError, InputError):
        return  # the page says what is wrong
    hashes = bench.audited.hashes
    names = ("evidence", "outcome", "split", "plan")
    for rule, counts in untried.items():
        assert bench.ledger is not None
        body = {name: getattr(hashes, name) for name in names}
        bench.ledger.append(TRIED, {**body, "rule": rule, "counts": counts, "via": "web"})


def freeze_rules(bench: OpenedReport, rules: Sequence[str]) -> Library:
    """Return rules that were tried here, as candidates that were mined from the discovery outcomes.

    Parameters
    ----------
    bench : OpenedReport
        With a report.
    rules : sequence of str
        In SQL.

    Raises
    ------
    InputError
        If none is named, or one was not tried.
    """
    state, report = bench.state, bench.audited
    assert state is not None
    parsed = [Rule.parse(rule).sql for rule in rules]
    if not parsed:
        raise InputError("no rule is selected: try and tick at least one rule first")
    for rule in parsed:
        if rule not in state.rules:
            raise InputError(f"the rule {rule} was not tried here; count it first")
    origin = f"{report.hashes.outcome[:16]}/{report.hashes.split[:16]}"
    return Library.of(
        Candidate(
            name=rule,
            rule=rule,
            missing="off",
            source="tried after an opening" if rule in state.late_rules else "tried by hand",
            mined=origin,
        )
        for rule in parsed
    )


def list_rules(report: Report) -> frozenset[str]:
    """Return the rules that a report is about, in their normal form."""
    alternatives = (other.rule for mode in report.modes for other in mode.alternatives)
    modes = (mode.rule for mode in report.modes)
    rules = (candidate.rule for candidate in report.library)
    return _normalise((*modes, *alternatives, *rules))


@cache
def _normalise(rules: tuple[str, ...]) -> frozenset[str]:
    return frozenset(Rule.parse(rule).sql for rule in rules)


PREFIX = 8
"""Characters of the plan's seal that are typed: as many as the top bar shows."""


def spend_holdout(bench: OpenedReport, rules: Sequence[str], seal: str, reason: str) -> None:
    """Judge rules that were tried here on the holdout, and write the report beside the first.

    Parameters
    ----------
    bench : OpenedReport
    rules : sequence of str
        In SQL, each tried before.
    seal : str
        What was typed: the beginning of the seal of the report's plan.
    reason : str
        Why the outcomes are looked at again; it stays in every report.

    Raises
    ------
    InputError, PlanError
        If nothing is held out or named, a rule was not tried, or the seal is another; the holdout
        stays closed then.
    LedgerError
        If there is no ledger, or no reason: the report was the first look.
    """
    report, state = bench.audited, bench.state
    assert state is not None
    if not state.holds_out:
        raise PlanError("the judge of this report holds nothing out, so there is nothing to open")
    if bench.ledger is None:
        raise LedgerError("without a ledger no holdout is opened here: start without --no-ledger")
    if not reason.strip():
        raise LedgerError("these outcomes were looked at before: give the reason to look again")
    if seal.strip().lower() != state.seal[:PREFIX]:
        raise InputError(f"type the first {PREFIX} characters of the plan's seal to go on")
    library = freeze_rules(bench, rules)
    place = bench.folder.with_name(f"{bench.folder.name}-{library.hash[:PREFIX]}")
    if place.exists():
        raise InputError(f"{place} is there already: the same rules were tested before")
    evidence = read_evidence_again(report.data, bench.folder, bench.evidence)
    result = audit(
        select_audited(evidence, report.manifest),
        report.plan.to_plan(),
        library,
        compare=report.manifest.compare,
        ledger=bench.ledger.through("web"),
        reopen=reason.strip(),
        modes=False,
    )
    result.write(place)
    bench.spendings[place] = result
