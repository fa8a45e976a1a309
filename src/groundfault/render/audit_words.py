"""The sentences of a report, in the order a reader needs, for any format.

Everything here is in `Report.to_dict` already: renderings choose, count and phrase, and compute
nothing statistical."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

from groundfault.auditing import messages
from groundfault.auditing.report import Report
from groundfault.core.finding import Finding, Verdict
from groundfault.core.status import Status
from groundfault.render import words
from groundfault.render.audit_groups import (
    INSTRUMENT,
    FindingGroup,
    describe_elsewhere,
    describe_overall,
    distinct,
    effect_size,
    group_findings,
    is_unlike_rest,
    list_alike,
    main_cell,
    name_sides,
    write_headline,
)
from groundfault.render.audit_tables import is_named_by_rule
from groundfault.render.description_tables import describe_annotation
from groundfault.render.mode_words import ModeOutline
from groundfault.render.page import Code

ASSOCIATION = (
    "A confirmed finding is an association, not a cause: failures are more, or less, frequent on "
    "the slice than off it. Only the candidates were tested."
)
SELECTED = (
    "Differences on discovery are the largest of many, so they are too large on average (the "
    "winner's curse); those of all examples contain them. p-values are two-sided on discovery, "
    "one-sided on the holdout."
)
UNSPLIT = "All examples were used at once; adjusted p-values pay for looking at every candidate."
CORRECTED = (
    "Confirmed differences had to pass a bar, so they are too large on average: the estimate is "
    "corrected for that. Its interval assumes the confirmed direction."
)
NOT_CORRECTED = (
    "Confirmed differences had to pass a bar, so they are too large on average, and their "
    "intervals too narrow: this judge does not say how high the bar is, so neither is corrected."
)
UNCONFIRMED = (
    "These stood out on the discovery part and did not hold up on the holdout: they are not to be "
    "reported."
)
TOO_SMALL = (
    "These are beyond chance like the confirmed ones, but their difference is smaller than the "
    "least that the plan asks for."
)
BOUNDED = (
    "Losses lie between 0 and 1: counts of failures are sums of losses, failure rates mean losses, "
    "and points hundredths of a loss."
)
BETTER = "Where it does better"
_MAX_BETTER = 4
"""Slices named in one sentence."""
NO_MODE = "No failure mode stands out"
_UNTESTED = "No rule could be tested"


@dataclass(frozen=True)
class Outline:
    """The prose, counts and grouping of a report.

    Attributes
    ----------
    report : Report
    """

    report: Report

    @property
    def title(self) -> str:
        """Return the name of the audited table and models."""
        manifest = self.report.manifest
        sources, models = manifest.sources, manifest.models
        what = (
            PurePath(sources[0]).name if len(sources) == 1 else words.plural(len(sources), "source")
        )
        if manifest.compare:
            what = "{} against {}: {}".format(*manifest.compare, what)
        elif models and len(models) == 1:
            what = f"{models[0]}: {what}"
        return words.clean(what if sources else "a table in memory")

    @property
    def headline(self) -> str:
        """Return the answer in a few words."""
        if self.report.uniform:
            return words.clean(self.report.uniform)
        if self.report.deciding:
            return words.clean(
                messages.write_deciding([one.column for one in self.report.deciding])
            )
        if self.report.modes:
            return ModeOutline(self.report).headline
        if self.report.change is not None:
            return write_headline(self.report, len(self.groups))
        search = self.report.mode_search
        nothing = NO_MODE if search is not None and search.columns else messages.NOTHING
        is_tested = messages.was_tested(search, self.report.findings)
        found = self.findings_headline or self.behaviours_headline
        return found or (nothing if is_tested else _UNTESTED)

    @property
    def behaviours_headline(self) -> str:
        """Return how many behaviours of runs go with failing; empty without any."""
        search = self.report.transcripts
        count = sum(
            one.p <= search.level and one.failed > one.expected
            for one in self.report.behaviours
            if search is not None and one.p is not None
        )
        if not count:
            return ""
        return f"{words.plural(count, 'behaviour')} {'goes' if count == 1 else 'go'} with failing"

    @property
    def findings_headline(self) -> str:
        """Return how many findings of more failures are confirmed; empty without any."""
        confirmed, groups = len(self.report.weaknesses), len(self.groups)
        if not confirmed:
            return ""
        slices = sum(1 + len(group.distinct) + len(group.cuts) for group in self.groups)
        parts = [words.plural(confirmed, "confirmed finding")]
        if slices < confirmed:
            parts.append(f"{words.count(slices)} distinct")
        if groups < slices:
            parts.append(f"in {words.plural(groups, 'group')}")
        return ", ".join(parts)

    @property
    def instrument(self) -> str:
        """Return a warning that the grader may be at fault; empty without evidence for it."""
        evidence = self.report.grader
        if not evidence:
            return ""
        names = {(one.name, one.outcome) for one in evidence}
        suspects = distinct(f for f in self.report.weaknesses if (f.name, f.outcome) in names)
        bases = dict.fromkeys(one.basis for one in evidence)
        return (
            f"The grader may be at fault: more failures among {', and among '.join(bases)} "
            f"({words.listing([self.face(f).name for f in suspects], 3)}). Read some of these "
            "answers first."
        )

    @property
    def selection(self) -> str:
        """Return the condition on the audited rows; empty where all were audited."""
        where = self.report.manifest.where
        return f"Only rows where {words.clean(where)}." if where else ""

    @property
    def conclusion(self) -> str:
        """Return which effects the audit could have detected, without repeating the headline."""
        sentence = words.clean(self.report.conclusion)
        return sentence.removeprefix(f"{messages.NOTHING}. ").removeprefix(f"{self.headline}. ")

    @property
    def guarantee(self) -> str:
        """Return the guarantee of a confirmation, and the reason for this judge."""
        reason, guarantee = self.report.judge_reason, self.report.guarantee
        if reason:
            return f"{words.capital(reason)}, {guarantee}."
        return f"Judged by {self.report.judge}: {guarantee}."

    @property
    def caution(self) -> str:
        """Return how to read the two sets of lifts."""
        sentence = SELECTED if self.report.n_holdout else UNSPLIT
        sentence += f" {explain_correction(self.report.confirmed)}"
        return (
            sentence
            if all(f.full.on_errors % 1 == 0 for f in self.report.findings)
            else f"{sentence} {BOUNDED}"
        )

    @property
    def ledger(self) -> str:
        """Return how often the holdout was opened."""
        ledger = self.report.ledger
        if ledger is not None:
            return words.clean(ledger.sentence)
        return "this look is not recorded: no ledger" if self.report.n_holdout else "no holdout"

    @property
    def reopened(self) -> bool:
        """Return whether the holdout, or all outcomes, had been looked at before.

        Then the ledger's sentence is a warning.
        """
        ledger = self.report.ledger
        if ledger is None:
            return False
        known = ledger.holdout and ledger.all_before
        return ledger.times > 1 or bool(ledger.reasons) or known

    @property
    def warning(self) -> str:
        """Return a warning about earlier looks at the outcomes, where there were some."""
        if not self.reopened or self.report.ledger is None:
            return ""
        what = (
            "This holdout had been seen before"
            if self.report.ledger.holdout
            else "These outcomes had been looked at before"
        )
        return f"{what}. {words.capital(self.ledger)}."

    @property
    def footing(self) -> str:
        """Return the guarantee, and how often the holdout was opened unless that is a warning."""
        # why nothing is held out says that nothing was
        known = self.reopened or (self.report.judge_reason and self.report.ledger is None)
        return self.guarantee if known else f"{self.guarantee} {words.capital(self.ledger)}."

    @property
    def is_finding(self) -> bool:
        """Return whether there is a failure mode, or a confirmed finding of more failures."""
        return bool(self.report.modes or self.groups)

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """Return labels and numbers of the audited units, and the failure rates."""
        report = self.report
        units = words.count(report.n)
        if report.n_holdout:
            units += f" ({words.count(report.n_holdout)} held out)"
        answers, roles = words.count(report.rows) * (report.rows != report.n), report.manifest.roles
        several = len(report.outcomes) > 1 or report.manifest.compare or roles.repeat or roles.group
        if answers and not several:
            copies = report.rows - report.n
            answers += f" ({words.count(copies)} {'copy' if copies == 1 else 'copies'})"
        unscored = ((n, words.STATUSES.get(s, s)) for s, n in report.statuses.items() if n)
        rest = ", ".join(f"{words.count(n)} {s}" for n, s in unscored if s != Status.SCORED)
        facts = (
            (f"{report.unit.capitalize()}s", units),
            ("Answers", answers),
            ("Not scored", rest),
            ("Models", words.count(len(report.outcomes)) * (len(report.outcomes) > 1)),
            ("Mean loss" if report.is_graded else "Failure rate", self._rates),
        )
        return tuple(fact for fact in facts if fact[1])

    @property
    def tests(self) -> tuple[tuple[str, str], ...]:
        """Return labels and numbers of the candidates and the judge."""
        report, counts = self.report, self.report.candidates
        tested = "all" if counts.tested == counts.size else words.count(counts.tested)
        candidates = f"{words.count(counts.size)}, {tested} tested"
        if counts.hypotheses != counts.size:
            candidates = (
                f"{words.count(counts.size)} for {words.plural(len(report.outcomes), 'outcome')} "
                f"({words.count(counts.tested)} of {words.count(counts.hypotheses)} tested)"
            )
        return ("Candidates", candidates), ("Judge", report.judge)

    @property
    def _rates(self) -> str:
        """Return the failure rate: of two models both, of more the lowest and the highest."""
        report, search = self.report, self.report.mode_search
        write = "{:.2f}".format if report.is_graded else words.rate
        if report.change is not None and report.manifest.compare is not None:
            pairs = zip(report.manifest.compare, report.change.error_rates, strict=True)
            return ", ".join(f"{words.clean(name)} {write(rate)}" for name, rate in pairs)
        of_models = [
            (one.errors / one.n, words.clean(one.outcome))
            for one in (search.outcomes if search else ())
            if one.n and one.outcome in report.outcomes
        ]
        if len(of_models) > 1:
            ends = [f"{write(rate)} ({name})" for rate, name in sorted(of_models)]
            return f"{ends[0]} to {ends[-1]}"
        if search and of_models and search.outcomes[0].errors % 1 == 0:
            return f"{words.rate(of_models[0][0])} ({words.count(int(search.outcomes[0].errors))})"
        return write(report.error_rate)

    @property
    def overall(self) -> str:
        """Return the change over all units; empty where no two models were compared."""
        return describe_overall(self.report)

    @cached_property
    def groups(self) -> tuple[FindingGroup, ...]:
        """Return the confirmed findings of more failures under their leads.

        In a comparison these are the findings whose change differs from the change elsewhere.

        Findings about the measurement come first, then the largest lift. Cuts of one column of
        numbers are one group. A finding of fewer failures stands here only if it says the same as
        one of more: that it holds for all other units.
        """
        strengths = {f.key for f in self.strengths}
        return group_findings(
            sorted(
                (f for f in self.report.confirmed if f.key not in strengths and is_unlike_rest(f)),
                key=effect_size,
            )
        )

    @cached_property
    def strengths(self) -> tuple[Finding, ...]:
        """Return the confirmed findings of fewer failures, the largest lift first."""
        mirrors = {
            (f.outcome, alias.removeprefix("not "))
            for f in self.report.weaknesses
            for alias in f.aliases
            if alias.startswith("not ")
        }
        return tuple(
            sorted(
                (
                    f
                    for f in self.report.strengths
                    if (f.outcome, f.name) not in mirrors and is_unlike_rest(f)
                ),
                key=lambda f: main_cell(f).lift or 0.0,
            )
        )

    @property
    def alike(self) -> str:
        """Return the slices on which the models differ as they do elsewhere; empty without any."""
        return list_alike(self.report.confirmed)

    @cached_property
    def strength_groups(self) -> tuple[FindingGroup, ...]:
        """Return the groups of findings of fewer failures, as `groups`."""
        return group_findings(self.strengths)

    @property
    def tally(self) -> str:
        """Return how many findings have each verdict, the confirmed ones by direction."""
        tally = words.tally(self.report.counts())
        strengths = len(self.report.strengths)
        if not strengths:
            return tally
        weaknesses = words.count(len(self.report.weaknesses))
        start, _, end = tally.partition(",")
        return (
            f"{start} ({weaknesses} with more failures, {words.count(strengths)} with fewer),{end}"
        )

    @property
    def better_title(self) -> str:
        """Return the title of the slices of fewer failures."""
        if self.report.change is None:
            return BETTER
        return "Where {} does better than {}".format(*name_sides(self.report))

    @property
    def better(self) -> str:
        """Return the slices of examples on which failures are less frequent; empty without any."""
        groups = self.strength_groups
        leads = [group.lead for group in groups if group.lead.source != INSTRUMENT]
        if not leads:
            return ""
        parts = [
            f"{words.label(f)} ({words.rate(main_cell(f).on_rate)} against"
            f" {words.rate(main_cell(f).off_rate)})"
            for f in leads
        ]
        return f"{self.better_title}: {words.listing(parts, _MAX_BETTER)}."

    @property
    def unscored(self) -> str:
        """Return whether verdicts depend on unscored observations; empty where all were scored."""
        count = sum(n for status, n in self.report.statuses.items() if status != "scored")
        if not count:
            return ""
        changes = sum(
            any(v != f.verdict for v in (f.sensitivity or {}).values())
            for f in self.report.findings
        )
        verdicts = (
            "No verdict" if not changes else f"The verdict on {words.plural(changes, 'candidate')}"
        )
        return (
            f"{words.plural(count, 'observation')} could not be scored. {verdicts} would be "
            "another had all of them failed, or all passed."
        )

    @property
    def repeats(self) -> str:
        """Return the result of repeating over random splits; empty where that was not done."""
        robustness = self.report.robustness
        if not robustness:
            return ""
        return (
            f"Of {words.count(robustness.splits)} random splits of the same examples, "
            f"{words.rate(robustness.nonempty)} confirmed anything. They share one sample: how "
            "often a finding is confirmed is not a probability of its being true."
        )

    def face(self, finding: Finding) -> Finding:
        """Return the finding for the side on which failures are more frequent, if any."""
        return finding.face_failures(self.report.plan.effect)

    def name_representative(self, finding: Finding) -> str:
        """Return the printed name of the finding that another one is grouped under."""
        names = {f.name: self.face(f).name for f in self.report.confirmed}
        return names.get(finding.representative or "", finding.representative or "")

    def list_remarks(self, candidate: Finding) -> Iterator[tuple[str, str | Code]]:
        """Yield labels and values of everything else that is known of a finding."""
        finding = self.face(candidate)
        if finding is not candidate:
            yield "The other side of", Code(candidate.name)
        if finding.meaning.strip('"') not in (finding.rule, finding.name):
            yield "Meaning", finding.meaning
        if not is_named_by_rule(finding):
            yield "Rule", Code(finding.rule)
        yield "Source", finding.source
        if annotation := describe_annotation(self.report, finding.rule, finding.source):
            yield "Annotation", annotation
        if finding.aliases:
            yield "Same examples as", Code(words.listing(finding.aliases))
        if finding.elsewhere is not None:
            yield "Change elsewhere", describe_elsewhere(finding)
        if finding.decoys is not None:
            decoys = f"{finding.decoys:.2g} expected by chance at or above this effect"
            yield "Decoys as large", decoys
        if finding.sensitivity:
            yield "Unscored", describe_sensitivity(finding)
        if finding.frequency is not None and self.report.robustness:
            splits = words.count(self.report.robustness.splits)
            rate = words.rate(finding.frequency)
            yield (
                "Confirmed again",
                f"in {rate} of {splits} random splits; not a probability of being true",
            )
        examples = self.report.examples.get(candidate.key)
        if examples:
            side = "on" if (finding.full.lift or 0) > 0 else "off"
            label = f"Failures {side} it" if self.report.change is None else "Changed on it"
            yield label, Code(words.listing(examples))


def explain_correction(confirmed: Sequence[Finding]) -> str:
    """Explain whether confirmed lifts are corrected for the bar that they had to pass."""
    return CORRECTED if any(f.estimate is not None for f in confirmed) else NOT_CORRECTED


def describe_sensitivity(finding: Finding) -> str:
    """Describe the verdicts under the two extreme scorings of unscored observations."""
    verdicts = {
        key: words.VERDICTS[Verdict(verdict)]
        for key, verdict in (finding.sensitivity or {}).items()
    }
    if set(verdicts.values()) == {words.VERDICTS[finding.verdict]}:
        return "the same verdict if all unscored answers had failed, or all had passed"
    return "; ".join(
        f"{verdict}, had all {key.removeprefix('all_')}" for key, verdict in verdicts.items()
    )
