"""Changes since a baseline: two reports as two runs of the same examples.

On units in both reports, modes of the change are searched as in a comparison of two models. Without
shared units, similar units are compared if both tables exist, else the failures of a candidate then
and now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import polars as pl
from msgspec import Struct

from groundfault.auditing.changes import measure_overall, search_changes
from groundfault.auditing.failure_modes import (
    find_leaking_columns,
    list_own_rules,
    tabulate_attributes,
)
from groundfault.auditing.prepared_audit import PreparedAudit
from groundfault.auditing.report_schema import OverallChange, ReportData
from groundfault.auditing.results import read_losses, read_names, read_slice
from groundfault.base.arrays import Floats, Places
from groundfault.core.candidate import Candidate, Library, unique_names
from groundfault.core.finding import Finding
from groundfault.core.pairs import clip_changes
from groundfault.core.plan import Plan
from groundfault.core.rules import Rule
from groundfault.modes.changes import BETTER, WORSE
from groundfault.modes.examples import add_examples
from groundfault.modes.find import OwnRule
from groundfault.modes.mode import Mode, ModeSearch
from groundfault.stats import paired

_SHARED = 0.5
"""Least share of the report's units in the baseline; below it, the two are separate samples."""
_SAME = 0.5
"""Least overlap of a rule's slices now and then; below it, ids seem to name other examples now."""


class SinceBaseline(Struct, frozen=True):
    """How much more often a slice fails than in the baseline.

    Attributes
    ----------
    before, now : float
        Failure rates of the slice in the two reports, on the units that are compared.
    units : int
        Number of the report's units.
    shared : bool
        Whether these are the same in both reports.
    p : float
        One-sided p-value that the slice fails no more often than in the baseline, adjusted for all
        tests.
    """

    before: float
    now: float
    units: int
    shared: bool
    p: float


class OutcomeChange(NamedTuple):
    """The change of one outcome: the modes of the change, and all units together."""

    outcome: str
    modes: tuple[Mode, ...]
    search: ModeSearch
    overall: OverallChange


class _SharedUnits(NamedTuple):
    """Units that both reports scored: their places in each, and all losses then and now."""

    here: Places
    there: Places
    losses: Floats


@dataclass(frozen=True)
class ReportPair:
    """A report and its baseline.

    Attributes
    ----------
    now, then : ReportData
    audit : PreparedAudit, optional
        The evidence of the report; without it, only rules that a report stores are tested.
    level : float
        Level over all claims that a rule got worse, in (0, 1).
    earlier : PreparedAudit, optional
        The evidence of the baseline, whose examples take the place of shared ones.
    """

    now: ReportData
    then: ReportData
    audit: PreparedAudit | None
    level: float
    earlier: PreparedAudit | None = None

    def list_changes(self) -> Iterator[OutcomeChange]:
        """Yield the change of each outcome with units in both reports.

        The level is shared out equally among the outcomes of the report.
        """
        for outcome in self.now.outcomes:
            both = self._match_losses(outcome)
            if not isinstance(both, str):
                yield self._search(outcome, both)
            elif change := self._search_samples(outcome):
                yield change

    def explain_counts(self) -> Iterator[str]:
        """Yield why units of an outcome cannot be compared one by one, each reason once."""
        matches = [self._match_losses(outcome) for outcome in self.now.outcomes]
        yield from dict.fromkeys(why for why in matches if isinstance(why, str))

    def measure_counts(self, finding: Finding) -> SinceBaseline | None:
        """Return the change of a candidate from its counts in both reports.

        None if the baseline did not judge the same rule.

        Parameters
        ----------
        finding : Finding
            Of the report; its side with more failures is compared.
        """
        outcome = self._find_outcome(finding.outcome)
        same = (f for f in self.then.findings if (f.rule, f.outcome) == (finding.rule, outcome))
        before = next(same, None)
        if before is None:
            return None
        now, then = (
            one.full.swap() if finding.is_less_frequent else one.full for one in (finding, before)
        )
        if not now.on or not then.on:
            return None
        # graded losses vary less than errors of the same mean, so that this test is cautious
        many, few = int(np.floor(now.on_errors)), int(np.ceil(then.on_errors))
        p = paired.more_errors(many, now.on, many + few, now.on + then.on)
        return SinceBaseline(
            before=then.on_errors / then.on,
            now=now.on_errors / now.on,
            units=now.on,
            shared=False,
            p=min(1.0, p * max(1, self.now.candidates.distinct)),
        )

    def has_anything_alike(self) -> bool:
        """Return whether two reports share units, or a candidate with its counts."""
        alike = [name for name in self.now.outcomes if self._find_outcome(name) is not None]
        rules, earlier = ({f.rule for f in report.findings} for report in (self.now, self.then))
        if alike and rules & earlier:
            return True
        return any(not isinstance(self._match_losses(name), str) for name in alike)

    def _search(self, outcome: str, both: _SharedUnits) -> OutcomeChange:
        losses = both.losses
        plan = replace(self.now.plan.to_plan(), alpha=self.level / len(self.now.outcomes))
        if self.audit is None:
            own = tuple(self._list_slices(both))
            named = self.now.candidates.distinct + len(self.then.modes)
            modes, search = search_changes(pl.DataFrame(), losses, plan, own, named)
        else:
            table, _ = tabulate_attributes(self.audit)
            own = tuple(list_own_rules(self._add_candidates(self.audit)))
            modes, search = _search_table(self.audit, table, losses, plan, own)
            sides = np.stack([clip_changes(losses, less=less) for less in (False, True)])
            modes = add_examples(
                modes, table, self.audit.evidence, sides, outcomes=(WORSE, BETTER), model=outcome
            )
        level = float(plan.alpha)
        return OutcomeChange(outcome, modes, search, measure_overall(losses, level, search))

    def _search_samples(self, outcome: str) -> OutcomeChange | None:
        """Return the change between different examples; None unless both tables are known."""
        earlier = self._find_outcome(outcome)
        if self.audit is None or self.earlier is None or earlier is None:
            return None
        assert self.now.units is not None
        assert self.then.units is not None
        losses, old = read_losses(self.now.units, outcome), read_losses(self.then.units, earlier)
        here, there = (tabulate_attributes(audit)[0] for audit in (self.audit, self.earlier))
        names = [n for n in here.columns if there.schema.get(n) == here.schema[n]]
        if losses is None or old is None or not names:
            return None
        runs = np.full((2, len(old) + len(losses)), np.nan)
        runs[0, : len(old)], runs[1, len(old) :] = old, losses
        plan = replace(self.now.plan.to_plan(), alpha=self.level / len(self.now.outcomes))
        table = pl.concat([there.select(names), here.select(names)])
        known = (c for c in self._add_candidates(self.audit).library if {*c.columns} <= {*names})
        own = tuple(OwnRule(c, c.parsed.holds(table).to_numpy()) for c in known)
        modes, search = _search_table(self.audit, table, runs, plan, own)
        sides, of = np.stack([losses, np.full_like(losses, np.nan)]), self.audit.evidence
        modes = add_examples(modes, here, of, sides, outcomes=(WORSE, BETTER), model=outcome)
        overall = measure_overall(runs, float(plan.alpha), search)
        return OutcomeChange(outcome, modes, search, overall)

    def _add_candidates(self, audit: PreparedAudit) -> PreparedAudit:
        """Return the audit with the named candidates, and those the baseline confirmed."""
        declared = [f for f in self.now.findings if f.source == "declared"]
        confirmed = [f for f in self.then.findings if f.confirmed]
        rules: dict[str, Candidate] = {}
        every: tuple[Finding | Mode, ...] = (*declared, *confirmed, *self.then.modes)
        for one in every:
            name = one.meaning if isinstance(one, Mode) else one.name
            if set(Rule.parse(one.rule).columns) <= set(audit.evidence.frame.columns):
                rules.setdefault(one.rule, Candidate(name, one.rule, one.meaning))
        candidates = unique_names(list(rules.values()))
        names = tuple(candidate.name for candidate in candidates)
        return audit.with_library(Library(tuple(candidates)), names)

    def _list_slices(self, both: _SharedUnits) -> Iterator[OwnRule]:
        """Yield the slices that either report stores: of its modes and confirmed findings."""
        assert self.now.units is not None
        assert self.then.units is not None
        seen = set()
        places: list[tuple[Finding | Mode, str | int]] = [
            *((mode, place) for place, mode in enumerate(self.then.modes)),
            *((f, f.key) for f in self.then.findings if f.confirmed),
        ]
        for one, place in places:
            members = read_slice(self.then.units, place)
            if members is not None and one.rule not in seen:
                seen.add(one.rule)
                on = np.zeros(both.losses.shape[1], dtype=np.bool_)
                on[both.here] = members[both.there]
                yield OwnRule(_name_side(one), on)
        for finding in self.now.findings:
            on_now = read_slice(self.now.units, finding.key) if finding.confirmed else None
            if on_now is not None and finding.rule not in seen:
                yield OwnRule(_name_side(finding), on_now)

    def _match_losses(self, outcome: str) -> _SharedUnits | str:
        """Find the units that both scored, or say why they cannot be compared."""
        now, then, earlier = self.now.units, self.then.units, self._find_outcome(outcome)
        if now is None or then is None or earlier is None:
            return f"the {'report' if now is None else 'baseline'} keeps no loss of each example"
        if self.now.manifest.roles.numbered or self.then.manifest.roles.numbered:
            return (
                "numbers of rows name other examples as soon as a row is added; name an id column"
            )
        losses, old = read_losses(now, outcome), read_losses(then, earlier)
        if losses is None or old is None:
            return f"the {'report' if losses is None else 'baseline'} keeps no loss of each example"
        _, here, there = np.intersect1d(read_names(now), read_names(then), return_indices=True)
        scored = ~(np.isnan(losses[here]) | np.isnan(old[there]))
        here, there = here[scored], there[scored]
        if len(here) < _SHARED * np.count_nonzero(~np.isnan(losses)) or not len(here):
            return "report and baseline share too few examples; keep the ids"
        if not self._name_same_examples(here, there):
            return "an id names other examples in the report than in the baseline; keep the ids"
        before = np.full(len(losses), np.nan)
        before[here] = old[there]
        return _SharedUnits(here, there, np.stack([before, losses]))

    def _name_same_examples(self, here: Places, there: Places) -> bool:
        """Return whether slices of one rule have the same ids in both reports."""
        for key in set(self.now.units.findings) & set(self.then.units.findings):  # type: ignore[union-attr]
            one, other = read_slice(self.now.units, key), read_slice(self.then.units, key)  # type: ignore[arg-type]
            if one is not None and other is not None:
                a, b = one[here], other[there]
                # a rule that failed more then may fail less now: then the other side is stored
                if all((a & c).sum() < _SAME * (a | c).sum() for c in (b, ~b)):
                    return False
        return True

    def _find_outcome(self, outcome: str) -> str | None:
        """Return the baseline's name of an outcome of the report; None if it lacks the outcome."""
        if len(self.now.outcomes) == len(self.then.outcomes) == 1:
            return self.then.outcomes[0]
        return outcome if outcome in self.then.outcomes else None


def _search_table(
    audit: PreparedAudit, table: pl.DataFrame, losses: Floats, plan: Plan, own: tuple[OwnRule, ...]
) -> tuple[tuple[Mode, ...], ModeSearch]:
    """Search for modes of a change, without the columns that follow from the outcome."""
    while True:
        modes, search = search_changes(table, losses, plan, own)
        leaks = find_leaking_columns(audit, modes)
        if not leaks:
            return modes, search
        table = table.drop(leaks)


def _name_side(one: Finding | Mode) -> Candidate:
    """Return the candidate of a mode, or of the side of a finding with more failures."""
    if isinstance(one, Mode):
        return Candidate(one.meaning, one.rule, one.meaning)
    rule = f"NOT ({one.rule})" if one.is_less_frequent else one.rule
    meaning = f"not: {one.meaning}" if one.is_less_frequent else one.meaning
    return Candidate(one.name, rule, meaning)
