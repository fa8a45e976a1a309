"""Subjects: the failure mode, finding or rule that a page of examples is about.

The server and the one file name it, say it, and call its sides in the same words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from groundfault.auditing.report import Report
from groundfault.auditing.report_examples import find_subject
from groundfault.core.finding import Finding
from groundfault.core.rules import Rule
from groundfault.modes.mode import Mode
from groundfault.modes.near_misses import NearMiss
from groundfault.render import words
from groundfault.render.audit_groups import name_change
from groundfault.render.mode_words import ModeOutline, NumberedMode


@dataclass(frozen=True)
class Subject:
    """The subject of a page of examples.

    Attributes
    ----------
    rule : str
        In SQL; empty for all examples.
    title : str
        Its name on a page.
    kind : {"mode", "finding", "strength", "candidate", "rule", "all"}
    pair : pair of str, optional
        The models whose difference the report is about.
    sentence : str
        Its counts; empty if the report has none.
    outcome : str
        The model, where it is about one.
    is_better : bool
        Whether it is about examples that the second of two models does better.
    mode : NumberedMode, optional
        The failure mode, if it is one.
    """

    rule: str
    title: str
    kind: str
    pair: tuple[str, str] | None = None
    sentence: str = ""
    outcome: str = ""
    is_better: bool = False
    mode: NumberedMode | None = None

    @classmethod
    def of(cls, of: NumberedMode | Finding, pair: tuple[str, str] | None) -> Subject:
        """Return a mode or a finding of a report as the subject."""
        if isinstance(of, NumberedMode):
            sentence, mode = f"{words.capital(of.sentence)}.", of.mode
            # of a change the outcome is the list, and no model
            outcome, better = "" if mode.change else mode.outcome, mode.is_less_frequent
            return cls(mode.rule, of.name, "mode", pair, sentence, outcome, better, of)
        kind = "strength" if of.is_strength else "finding"
        return cls(
            of.rule,
            words.label(of),
            kind if of.confirmed else "candidate",
            pair,
            of.sentence,
            of.outcome,
            of.is_less_frequent,
        )

    @classmethod
    def of_rule(cls, rule: str, pair: tuple[str, str] | None = None) -> Subject:
        """Return a rule of the reader's own as the subject; without a rule, all examples."""
        title, kind = ("A rule of your own", "rule") if rule else ("All examples", "all")
        return cls(rule, title, kind, pair)

    def find_model(self, models: Sequence[str]) -> str:
        """Return the one of some models whose answers are shown; empty where it is about all.

        Of a comparison that is the second one, or the one with more failures where the two share no
        example.
        """
        first = self.is_better and self.mode is not None and self.mode.mode.is_unpaired
        name = self.pair[int(not first)] if self.pair else self.outcome
        return name if name in models else ""

    def name_conditions(self, misses: Sequence[NearMiss]) -> tuple[str, ...]:
        """Return the conditions that AND joins: as the mode says them, or in SQL."""
        names = self.mode.mode.conditions if self.mode else ()
        return names if len(names) == len(misses) else tuple(miss.condition for miss in misses)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that the rule reads."""
        return Rule.parse(self.rule).columns if self.rule else ()

    def name_sides(self, *, is_single: bool) -> tuple[str, str, str]:
        """Return the titles of the lists of examples: inside on either side, and outside.

        Parameters
        ----------
        is_single : bool
            Whether all other examples miss its only condition.
        """
        if self.kind == "all":
            return "Fails", "Passes", "Near misses"
        outside = "Elsewhere" if is_single else "Near misses"
        mode = self.mode.mode if self.mode else None
        if self.pair is None or (mode and (mode.is_unpaired or not mode.change)):
            return "Fails inside", "Passes inside", outside
        change = words.clean(name_change(self.pair, is_better=self.is_better))
        return words.capital(change), f"Not {change}", outside


def read_subject(report: Report, params: Mapping[str, str]) -> Subject:
    """Return the subject of an address: a mode's number, a finding's name, or a rule.

    Raises
    ------
    InputError, RuleError
        If the report has no such subject, or the rule cannot be read.
    """
    pair = report.manifest.compare
    if "mode" in params or "finding" in params:
        number = params.get("mode", "")
        is_number = number.isdecimal() and number.isascii()
        name = params["finding"] if "mode" not in params else int(number) if is_number else 0
        subject = find_subject(report, name)
        if isinstance(subject, Mode):
            return Subject.of(list_modes(report)[int(number) - 1], pair)
        return Subject.of(subject, pair)
    rule = params.get("rule", "").strip()
    return Subject.of_rule(Rule.parse(rule).sql if rule else "", pair)


def list_modes(report: Report) -> tuple[NumberedMode, ...]:
    """Return the modes as they are numbered and said."""
    if not report.modes:
        return ()
    modes = [one for _, group in ModeOutline(report).groups for one in group]
    return tuple(sorted(modes, key=lambda one: one.number))


def list_subjects(report: Report, names: Collection[str]) -> Iterator[Subject]:
    """Yield the modes of a report and its findings of some names, each facing its failures.

    Parameters
    ----------
    report : Report
    names : collection of str
    """
    pair = report.manifest.compare
    for mode in list_modes(report):
        yield Subject.of(mode, pair)
    for finding in report.findings:
        if finding.name in names:
            yield Subject.of(finding.face_failures(report.plan.effect), pair)
