"""Subjects: the failure mode, finding or rule that a page is about."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from groundfault.auditing.report_examples import find_subject
from groundfault.core.rules import Rule
from groundfault.modes.mode import Mode
from groundfault.render import words
from groundfault.render.audit_groups import name_change
from groundfault.render.mode_words import ModeOutline, NumberedMode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from groundfault.auditing.report import Report
    from groundfault.core.finding import Finding


@dataclass(frozen=True)
class Subject:
    """What a page of examples is about.

    Attributes
    ----------
    title, sentence : str
    rule : str
        In SQL.
    outcome : str
        The model, where it is about one.
    params : dict
        How an address names it.
    before, after : dict or None
        Of the modes next to it.
    mode : NumberedMode or None
    finding : Finding or None
    pair : pair of str, optional
        The models whose difference the report is about.
    """

    title: str
    sentence: str
    rule: str
    outcome: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    mode: NumberedMode | None = None
    finding: Finding | None = None
    pair: tuple[str, str] | None = None

    @property
    def is_better(self) -> bool:
        """Whether it is about what the second of two models does better."""
        return self.finding is not None and self.finding.is_less_frequent

    @property
    def sides(self) -> tuple[str, str]:
        """What the examples inside are called, on either side."""
        if self.pair is None:
            return "Fails inside", "Passes inside"
        change = name_change(self.pair, is_better=self.is_better)
        return words.capital(change), f"Not {change}"


def read_subject(report: Report, params: Mapping[str, str]) -> Subject:
    """The subject of an address: a mode's number, a finding's name, or a rule.

    Raises
    ------
    InputError, RuleError
        If there is none such, or the rule cannot be read.
    """
    return replace(_read(report, params), pair=report.manifest.compare)


def _read(report: Report, params: Mapping[str, str]) -> Subject:
    if "mode" in params:
        number = params["mode"]
        return _make_of_mode(report, int(number) if number.isdecimal() and number.isascii() else 0)
    if "finding" in params:
        return _make_of_finding(report, params["finding"])
    rule = params.get("rule", "")
    return Subject("A rule of your own", "", Rule.parse(rule).sql, params={"rule": rule})


def list_modes(report: Report) -> tuple[NumberedMode, ...]:
    """The modes as they are numbered and said."""
    if not report.modes:
        return ()
    modes = [one for _, group in ModeOutline(report).groups for one in group]
    return tuple(sorted(modes, key=lambda one: one.number))


def _make_of_mode(report: Report, number: int) -> Subject:
    mode = find_subject(report, number)
    assert isinstance(mode, Mode)
    one = list_modes(report)[number - 1]
    return Subject(
        one.name,
        f"{one.sentence}.",
        mode.rule,
        mode.outcome,
        {"mode": number},
        {"mode": number - 1} if number > 1 else None,
        {"mode": number + 1} if number < len(report.modes) else None,
        mode=one,
    )


def _make_of_finding(report: Report, name: str) -> Subject:
    finding = find_subject(report, name)
    assert not isinstance(finding, Mode)
    return Subject(
        words.label(finding),
        finding.sentence,
        finding.rule,
        finding.outcome,
        {"finding": finding.key},
        finding=finding,
    )
