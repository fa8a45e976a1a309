"""Subjects: the failure mode, finding or rule that a page of examples is about.

The server and the one file name it, say it, and call its sides in the same words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from groundfault.auditing.report_examples import find_subject
from groundfault.core.finding import Finding
from groundfault.core.rules import Rule
from groundfault.modes.mode import Mode
from groundfault.render import words
from groundfault.render.audit_groups import name_change
from groundfault.render.mode_words import ModeOutline, NumberedMode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from groundfault.auditing.report import Report


@dataclass(frozen=True)
class Subject:
    """What a page of examples is about.

    Attributes
    ----------
    rule : str
        In SQL; empty for all examples.
    of : NumberedMode, Finding or None
        What the rule is of in the report; None for a rule of the reader's own.
    pair : pair of str, optional
        The models whose difference the report is about.
    """

    rule: str
    of: NumberedMode | Finding | None = None
    pair: tuple[str, str] | None = None

    @property
    def mode(self) -> NumberedMode | None:
        """Return the failure mode, if it is one."""
        return self.of if isinstance(self.of, NumberedMode) else None

    @property
    def finding(self) -> Finding | None:
        """Return the finding, if it is one."""
        return self.of if isinstance(self.of, Finding) else None

    @property
    def title(self) -> str:
        """Return its name on a page."""
        if self.mode:
            return self.mode.name
        if self.finding:
            return words.label(self.finding)
        return "A rule of your own" if self.rule else "All examples"

    @property
    def kind(self) -> str:
        """Return what it is, in a word."""
        if self.finding is None:
            return "mode" if self.mode else "rule" if self.rule else "all"
        if not self.finding.confirmed:
            return "candidate"
        return "strength" if self.finding.is_strength else "finding"

    @property
    def sentence(self) -> str:
        """Return its counts as a sentence; empty where the report has none."""
        if self.mode:
            return f"{words.capital(self.mode.sentence)}."
        return self.finding.sentence if self.finding else ""

    @property
    def outcome(self) -> str:
        """Return the model, where it is about one."""
        return self.mode.mode.outcome if self.mode else self.finding.outcome if self.finding else ""

    def find_model(self, models: Sequence[str]) -> str:
        """Return the one of some models whose answers are shown; empty where it is about all.

        Of a comparison that is the second one.
        """
        name = self.pair[1] if self.pair else self.outcome
        return name if name in models else ""

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that the rule reads."""
        return Rule.parse(self.rule).columns if self.rule else ()

    @property
    def is_better(self) -> bool:
        """Return whether it is about what the second of two models does better."""
        return self.finding is not None and self.finding.is_less_frequent

    def name_sides(self, *, is_single: bool) -> tuple[str, str, str]:
        """Return what its lists of examples are called: inside on either side, and outside.

        Parameters
        ----------
        is_single : bool
            Whether all other examples miss its only condition.
        """
        if self.kind == "all":
            return "Fails", "Passes", "Near misses"
        outside = "Elsewhere" if is_single else "Near misses"
        if self.pair is None or self.mode:
            return "Fails inside", "Passes inside", outside
        change = words.clean(name_change(self.pair, is_better=self.is_better))
        return words.capital(change), f"Not {change}", outside


def read_subject(report: Report, params: Mapping[str, str]) -> Subject:
    """Return the subject of an address: a mode's number, a finding's name, or a rule.

    Raises
    ------
    InputError, RuleError
        If there is none such, or the rule cannot be read.
    """
    pair = report.manifest.compare
    if "mode" in params or "finding" in params:
        number = params.get("mode", "")
        is_number = number.isdecimal() and number.isascii()
        name = params["finding"] if "mode" not in params else int(number) if is_number else 0
        subject = find_subject(report, name)
        of = list_modes(report)[int(number) - 1] if isinstance(subject, Mode) else subject
        return Subject(subject.rule, of, pair)
    return Subject(Rule.parse(params.get("rule", "")).sql, pair=pair)


def list_modes(report: Report) -> tuple[NumberedMode, ...]:
    """Return the modes as they are numbered and said."""
    if not report.modes:
        return ()
    modes = [one for _, group in ModeOutline(report).groups for one in group]
    return tuple(sorted(modes, key=lambda one: one.number))


def list_subjects(report: Report, names: Collection[str]) -> Iterator[Subject]:
    """Yield the modes of a report, and of its findings those of some names, facing their failures.

    Parameters
    ----------
    report : Report
    names : collection of str
    """
    pair = report.manifest.compare
    for mode in list_modes(report):
        yield Subject(mode.mode.rule, mode, pair)
    for finding in report.findings:
        if finding.name in names:
            face = finding.face_failures(report.plan.effect)
            yield Subject(face.rule, face, pair)


def make_address(of: NumberedMode | Finding) -> dict[str, Any]:
    """Return the parameters by which an address names a mode or a finding."""
    return {"mode": of.number} if isinstance(of, NumberedMode) else {"finding": of.key}
