"""Gates: does a report hold a new finding that should stop a release?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from groundfault import judges
from groundfault.auditing.detectable import USUAL_PREVALENCE
from groundfault.auditing.evidence_again import Places, read_evidence_again
from groundfault.auditing.gate_rows import (
    COLUMNS,
    GateRow,
    GateRows,
    list_true_modes,
    make_mode_row,
    make_overall_row,
    parse_condition,
    read_gated,
)
from groundfault.auditing.messages import describe_missed, describe_unused, was_tested
from groundfault.auditing.prepared_audit import PreparedAudit
from groundfault.auditing.report import hash_file, report_path
from groundfault.auditing.report_examples import match_evidence
from groundfault.auditing.report_schema import ReportData
from groundfault.auditing.results import read_names
from groundfault.auditing.since_baseline import OutcomeChange, ReportPair, SinceBaseline
from groundfault.base.files import spell_path
from groundfault.base.long_work import version
from groundfault.core.evidence import Evidence
from groundfault.core.finding import Finding
from groundfault.core.rules import Rule
from groundfault.errors import InputError, PlanError
from groundfault.modes.mode import Mode, ModeSearch

__all__ = ["COLUMNS", "FAIL_ON", "LEVEL", "Gate", "GateMatch", "gate"]

FAIL_ON = "confirmed and lift > 0"
LEVEL = 0.1
"""Level of the test for changes since the baseline."""
STORED_ONLY = "only rules that a report stores were tested"
"""Note of a gate that could not read the table of its report."""


# fields at their defaults are left out of the JSON, as before there were modes and changes
class GateMatch(Struct, frozen=True, omit_defaults=True):
    """A finding, a failure mode or an overall change for which the expression is true.

    Attributes
    ----------
    kind : {"finding", "mode", "overall"}
    name, outcome, source, verdict, sentence : str
        As in the report; a finding is described on the side with more failures.
    lift, low, high : float or None
        On the holdout if there is one, else on all units, with the interval of the report.
    before : str or None
        Its verdict in the baseline; None without a baseline, for a candidate that was not judged
        there, and for failure modes.
    since : SinceBaseline or None
        How much more often it fails than in the baseline; None without one, and in comparisons.
    rule : str
        The rule in SQL; the ``name`` of a failure mode is the same in English.
    """

    name: str
    outcome: str
    source: str
    verdict: str
    sentence: str
    lift: float | None
    low: float | None
    high: float | None
    before: str | None
    kind: str = "finding"
    since: SinceBaseline | None = None
    rule: str = ""


class GateInputs(Struct, frozen=True, omit_defaults=True):
    """The question that a gate answered.

    Attributes
    ----------
    files : tuple of (str, str)
        Path and SHA-256 of the report, and of the baseline if there is one.
    groundfault_version : str
    must_detect : float or None
    level : float
    """

    files: tuple[tuple[str, str], ...]
    groundfault_version: str
    must_detect: float | None = None
    level: float = LEVEL


class Gate(Struct, frozen=True, omit_defaults=True):
    """The verdict of a gate on a report, and the reasons if it fails.

    Attributes
    ----------
    passed : bool
    fail_on : str
        The expression.
    new : tuple of GateMatch
        Rows on which it is true, and which got worse since the baseline; without a baseline, all
        rows on which it is true.
    known : tuple of GateMatch
        In a comparison, changes that the baseline had confirmed. They do not fail the gate.
    gone : tuple of str
        In a comparison, names of findings on which it was true in the baseline and is no longer.
    compared : bool
        Whether there was a baseline.
    detectable : float or None
        The least lift that the audit could have found; with a baseline the least change for the
        worse, if that is larger.
    blind : bool
        Whether the audit could not find enough, so that the gate fails: ``detectable`` is larger
        than ``must_detect`` allows, all units failed, or no unit was scored.
    notes : tuple of str
        Reasons why report and baseline are hard to compare.
    uncompared : tuple of GateMatch
        Rows on which it is true, and which cannot be compared with the baseline. They do not fail
        the gate.
    uniform : str
        A sentence if all outcomes of the report are equal; else empty.
    modes : tuple of Mode
        Modes of the change since the baseline, or of a comparison: the rules that got worse, and
        the rules that got better.
    missed : tuple of str
        For each compared outcome, a sentence on the changes that could have been missed.
    asked : GateInputs or None
        Files and settings for `groundfault.verify` to ask again; None if a report was not a file.
    """

    passed: bool
    fail_on: str
    new: tuple[GateMatch, ...]
    known: tuple[GateMatch, ...]
    gone: tuple[str, ...]
    compared: bool
    detectable: float | None
    blind: bool
    notes: tuple[str, ...]
    uncompared: tuple[GateMatch, ...] = ()
    uniform: str = ""
    modes: tuple[Mode, ...] = ()
    missed: tuple[str, ...] = ()
    asked: GateInputs | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain words and numbers, without fields that do not apply to a match."""
        content: dict[str, object] = msgspec.to_builtins(self)
        return content


def gate(
    report: ReportData | str | Path | Mapping[str, object],
    fail_on: str = FAIL_ON,
    *,
    baseline: ReportData | str | Path | Mapping[str, object] | None = None,
    evidence: Evidence | Places | None = None,
    must_detect: float | None = None,
    level: float = LEVEL,
) -> Gate:
    """Test a report's findings and failure modes by a rule, or changes since a baseline.

    Parameters
    ----------
    report : Report, path, or the report as a dict
        A JSON report, or the folder of a report.
    fail_on : str
        A SQL expression over `COLUMNS`, such as ``confirmed and lift > 0 and source !=
        'instrument'``. A comparison also has a row of kind ``overall``.
    baseline : as report, optional
        An earlier report. On shared examples, the expression tests the modes of the change and the
        overall change, as in a comparison. Without shared examples, similar examples of both tables
        are compared; without the table of the baseline, the counts of the same rule in both. The
        baseline of a comparison is another comparison: changes that it had not confirmed in the
        same direction are new.
    evidence : Evidence, path or sequence of path, optional
        The table of the report, whose columns the rules of the change name. By default it is read
        from its place in the report, if it is still there.
    must_detect : float, optional
        The gate also fails if the audit could not have found a lift of this size, since a small
        test set confirms no findings.
    level : float
        Level of the test for changes since the baseline.

    Returns
    -------
    Gate

    Raises
    ------
    InputError
        If a report cannot be read, only one of the two compares two models, report and baseline
        share no examples and candidates, or the evidence does not belong to the report.
    RuleError
        If the expression is malformed, reads an unknown column, or is NULL on a confirmed finding.
    PlanError
        If ``must_detect`` is not in (0, 1], or ``level`` not in (0, 1).

    Notes
    -----
    P(the gate fails | no change since the baseline) is at most ``level``, and for a comparison at
    most the plan's alpha, for independent units: a single test covers all rules, see
    `groundfault.modes.changes.find_changes`.
    """
    if must_detect is not None and not 0 < must_detect <= 1:
        raise PlanError(f"must_detect is {must_detect}; a lift lies in (0, 1]")
    if not 0 < level < 1:
        raise PlanError(f"level is {level}; it lies in (0, 1)")
    rule, now = parse_condition(fail_on), read_gated(report)
    if baseline is None:
        verdict = _judge_alone(now, rule)
    else:
        then = read_gated(baseline)
        _require_alike_kinds(now, then)
        if now.manifest.compare:
            verdict = _compare_comparisons(now, then, rule)
        else:
            audit, note = find_table(now, report, evidence)
            pair = ReportPair(now, then, audit, level)
            if audit is not None and any(pair.explain_counts()):
                # examples of the baseline can still be compared with similar ones
                pair = replace(pair, earlier=find_table(then, baseline, None)[0])
            verdict = _compare(pair, rule, note)
    least = _find_detectable(now, verdict.searches)
    # a run that failed throughout, or of one sample, shows no rules; a perfect one needs no test
    # if the search for failure modes failed, no mode can be new
    lacking = now.left_out if now.mode_search is None else ()
    blind = bool(lacking or (now.uniform and now.error_rate != 0))
    if must_detect is not None:
        blind = blind or least is None or least > must_detect
    return Gate(
        passed=not verdict.new and not blind,
        fail_on=fail_on,
        new=_order(verdict.new),
        known=_order(verdict.known),
        gone=verdict.gone,
        compared=baseline is not None,
        detectable=least,
        blind=blind,
        notes=(*verdict.notes, *_list_notes(now)),
        uncompared=_order(verdict.uncompared),
        uniform=now.uniform,
        modes=verdict.modes,
        missed=tuple(
            describe_missed(search, f"{now.unit}s", outcome, is_graded=now.is_graded)
            for outcome, search in verdict.searches.items()
        ),
        asked=_name_inputs((report, baseline), must_detect, level),
    )


def _list_notes(now: ReportData) -> Iterator[str]:
    """Yield notes on failed steps, and on why no rule could be tested if so."""
    yield from (f"left out, since it failed: {step}" for step in now.left_out)
    if not was_tested(now.mode_search, now.findings):
        yield "no rule could be tested"
        yield from now.hints[: now.doubts]
        yield from describe_unused(now.unused)


def _name_inputs(
    reports: Sequence[object], must_detect: float | None, level: float
) -> GateInputs | None:
    places = [place for place in reports if place is not None]
    if not all(isinstance(place, str | Path) for place in places):
        return None
    files = [(spell_path(str(place)), hash_file(report_path(str(place)))) for place in places]
    return GateInputs(tuple(files), version("groundfault"), must_detect, level)


_Matches = tuple[GateMatch, ...]
_KINDS = ("overall", "mode", "finding")


@dataclass
class _Verdict:
    """The findings of a gate, before its expression is applied."""

    new: _Matches
    known: _Matches = ()
    uncompared: _Matches = ()
    gone: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    modes: tuple[Mode, ...] = ()
    searches: dict[str, ModeSearch] = field(default_factory=dict)


def _order(matches: _Matches) -> _Matches:
    """Sort as in a report, with failure modes first, so that short lists show them."""
    return tuple(sorted(matches, key=lambda match: _KINDS.index(match.kind)))


def _take_searches(report: ReportData) -> dict[str, ModeSearch]:
    """Return the searches for modes of a change, if a report has one."""
    search = report.mode_search
    return {"": search} if search is not None and search.overall is not None else {}


def _judge_alone(now: ReportData, rule: Rule) -> _Verdict:
    rows, searches = GateRows(now, rule), _take_searches(now)
    return _Verdict(
        tuple(_match(row) for row in rows.rows.values()),
        notes=rows.notes,
        modes=now.modes if searches else (),
        searches=searches,
    )


def _compare_comparisons(now: ReportData, then: ReportData, rule: Rule) -> _Verdict:
    """Return changes of a comparison that an earlier comparison had not confirmed."""
    modes = all(each.mode_search is not None for each in (now, then))
    rows, earlier = (GateRows(each, rule, modes=modes) for each in (now, then))
    matches = {key: _match(row, earlier.verdicts.get(key[:2])) for key, row in rows.rows.items()}
    known = {key: match for key, match in matches.items() if earlier.knows(rows.aliases[key])}
    searches = _take_searches(now)
    return _Verdict(
        tuple(match for key, match in matches.items() if key not in known),
        tuple(known.values()),
        gone=tuple(
            row.name for key, row in earlier.rows.items() if not rows.knows(earlier.aliases[key])
        ),
        notes=(*rows.notes, *_note_judges(now, then)),
        modes=now.modes if searches else (),
        searches=searches,
    )


def _compare(pair: ReportPair, rule: Rule, note: str) -> _Verdict:
    """Return the rules that got worse since the baseline."""
    if not pair.has_anything_alike():
        about = [", ".join(filter(None, r.outcomes)) or "one model" for r in (pair.then, pair.now)]
        raise InputError(
            f"report (about {about[1]}) and baseline (about {about[0]}) share no example and no "
            "candidate; audit with the same ids or the same --library"
        )
    verdict = _Verdict(())
    for change in pair.list_changes():
        _add_change(verdict, change, pair, rule)
    if verdict.searches and note:
        verdict.notes += (note,)
    rows = GateRows(pair.now, rule, modes=False)
    for row in rows.rows.values():
        if not isinstance(row.subject, Finding) or row.outcome in verdict.searches:
            continue
        since = pair.measure_counts(row.subject)
        match = structs.replace(_match(row), since=since)
        if since is None:
            verdict.uncompared += (match,)
        elif since.p <= pair.level:
            verdict.new += (match,)
    if len(verdict.searches) < len(pair.now.outcomes):
        counts = "candidates were compared by their counts, and no other rule was searched"
        reasons = (f"{counts}: {why}" for why in pair.explain_counts())
        verdict.notes += (*_note_judges(pair.now, pair.then), *reasons)
    elif any(search.like_for_like for search in verdict.searches.values()):
        verdict.notes += tuple(f"runs are not paired: {why}" for why in pair.explain_counts())
    return verdict


def _add_change(verdict: _Verdict, change: OutcomeChange, pair: ReportPair, rule: Rule) -> None:
    """Add the modes of a change and the overall change, if a rule is true on them."""
    modes = [structs.replace(mode, outcome=change.outcome) for mode in change.modes]
    rows = [make_mode_row(pair.now, mode) for mode in modes]
    rows.append(make_overall_row(pair.now, change.overall, change.outcome))
    places, notes = list_true_modes(rule, rows)
    for place in places:
        row = rows[place]
        if (row.lift or 0) <= 0 or not row.confirmed:
            continue
        moved, mode = change.overall, None if place == len(modes) else modes[place]
        before = moved.error_rates[0]
        if mode is not None:
            before = mode.rate_before
        since = SinceBaseline(
            before=before,
            now=moved.error_rates[1] if mode is None else mode.rate,
            units=row.n_on,
            shared=True,
            p=row.p or 0.0,
        )
        verdict.new += (structs.replace(_match(row), since=since),)
    verdict.notes += notes
    verdict.modes += tuple(modes)
    verdict.searches[change.outcome] = change.search


def _note_judges(now: ReportData, then: ReportData) -> tuple[str, ...]:
    if now.judge == then.judge:
        return ()
    return (f"the baseline was judged by {then.judge}, this report by {now.judge}",)


def find_table(
    now: ReportData, place: object, evidence: Evidence | Places | None
) -> tuple[PreparedAudit | None, str]:
    """Return the evidence of a report as it was audited, or None and the reason."""
    folder = report_path(place).parent if isinstance(place, str | Path) else Path.cwd()
    try:
        if now.manifest.derivation is not None or now.units is None:
            raise InputError(
                "the report was made of counts or of other reports, or keeps no record of examples"
            )
        whole = evidence
        if not isinstance(whole, Evidence):
            whole = read_evidence_again(now, folder, whole)
        audit = match_evidence(now, whole, judge=judges.get("max-t"))
        if len(audit.evidence.unit_names) != len(read_names(now.units)):
            raise InputError("the report was made by an earlier version; audit again")
        return audit, ""
    except InputError as error:
        if evidence is not None:
            raise
        why = f"{STORED_ONLY}, not all over its columns: {error}"
        return None, why


def _require_alike_kinds(now: ReportData, then: ReportData) -> None:
    """Raise unless both reports compare two models by the same rule, or both audit one model."""
    if bool(now.manifest.compare) != bool(then.manifest.compare):
        raise InputError(
            "one of report and baseline compares two models, the other does not; make both alike"
        )
    if now.manifest.compare and (now.change is None) != (then.change is None):
        raise InputError(
            "one of report and baseline was compared by the rule of before, which counted each "
            "direction by itself; make the older one again"
        )


def _find_detectable(now: ReportData, searches: Mapping[str, ModeSearch]) -> float | None:
    """Return the least lift that the report, and the test against the baseline, could find."""
    least = now.minimum_detectable_lift
    rises = [search.detectable.get(f"{USUAL_PREVALENCE:g}") for search in searches.values()]
    if now.manifest.compare and rises:
        return rises[0]
    known = [rise for rise in (least, *rises) if rise is not None]
    return max(known) if len(known) == 1 + len(rises) else None


def _match(row: GateRow, before: str | None = None) -> GateMatch:
    names = "name outcome source verdict sentence lift low high kind rule".split()
    # a rule's earlier verdict as a finding does not apply to it as a mode
    before = None if row.kind == "mode" else before
    return GateMatch(**{name: getattr(row, name) for name in names}, before=before)
