"""Confirmed findings in groups: those that say the same stand under one of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from groundfault.core.finding import Cell, Finding
from groundfault.render.cuts import read_cut

INSTRUMENT = "instrument"


@dataclass(frozen=True)
class FindingGroup:
    """A confirmed finding and those that an audit of single candidates cannot tell apart from
    it.

    Attributes
    ----------
    lead : Finding
    others : tuple of Finding
        Not told apart from it.
    cuts : tuple of Finding
        Findings that cut the same column of numbers elsewhere, and those not told apart from them.
    """

    lead: Finding
    others: tuple[Finding, ...]
    cuts: tuple[Finding, ...] = ()

    @property
    def distinct(self) -> tuple[Finding, ...]:
        """Those grouped under the lead without being another name for it or for each other."""
        return distinct((self.lead, *self.others))[1:]


def group_findings(findings: Iterable[Finding]) -> tuple[FindingGroup, ...]:
    """Findings, in order, under their leads; cuts of one column joined."""
    ordered = list(findings)
    names = {(f.outcome, f.name) for f in ordered}
    members: dict[tuple[str, str], list[Finding]] = {}
    for f in ordered:
        is_lead = f.representative is None or (f.outcome, f.representative) not in names
        home = f.name if is_lead else f.representative or ""
        members.setdefault((f.outcome, home), []).append(f)
    groups: dict[tuple[str, ...], FindingGroup] = {}
    for (outcome, name), some in members.items():
        lead = next(f for f in some if f.name == name)
        column = find_cut_column(lead)
        key = (outcome, "cut", column) if column else (outcome, "name", name)
        cuts = tuple(f for f in some if f is not lead and column and find_cut_column(f) == column)
        others = tuple(f for f in some if f is not lead and f not in cuts)
        earlier = groups.get(key)
        groups[key] = (
            FindingGroup(lead, others, cuts)
            if earlier is None
            else replace(earlier, cuts=(*earlier.cuts, lead, *cuts, *others))
        )
    return tuple(groups.values())


def effect_size(finding: Finding) -> tuple[bool, float]:
    """To sort by: findings of the measurement first, then the largest lift."""
    return finding.source != INSTRUMENT, -abs(main_cell(finding).lift or 0.0)


def find_cut_column(finding: Finding) -> str:
    """The column of numbers that a rule is a single cut of; empty for every other rule."""
    cut = read_cut(finding.rule)
    return cut.column if cut else ""


def distinct(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings without those that are true for the same units as an earlier one, or for exactly
    the others.
    """
    findings_left: list[Finding] = []
    name_of_alias: dict[tuple[str, str], str] = {}
    for f in findings:
        twin = name_of_alias.get(
            (f.outcome, f.name), name_of_alias.get((f.outcome, f"not {f.name}"))
        )
        if twin is None or not {twin, f"not {twin}"} & set(f.aliases):
            findings_left.append(f)
            name_of_alias |= {(f.outcome, alias): f.name for alias in f.aliases}
    return tuple(findings_left)


def main_cell(finding: Finding) -> Cell:
    """The numbers a finding is read by: held-out ones where there are some."""
    return finding.holdout or finding.discovery
