"""Assembling: the verdicts and numbers of a judged audit become a report."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import msgspec
import numpy as np
import polars as pl

from groundfault.auditing import detectable, messages
from groundfault.auditing.changes import conclude, make_record, measure_change
from groundfault.auditing.counted_audit import CountedAudit
from groundfault.auditing.detectable import ChangeDesign
from groundfault.auditing.failure_modes import choose_columns
from groundfault.auditing.findings import make_findings, number_or_none
from groundfault.auditing.grader import find_grader_evidence, write_grader_hint
from groundfault.auditing.hints import describe_parts, is_pass_or_fail, write_hints
from groundfault.auditing.lazy_evidence import LazyEvidence
from groundfault.auditing.messages import describe_guarantee
from groundfault.auditing.prepared_audit import PreparedAudit
from groundfault.auditing.report import Report
from groundfault.auditing.report_schema import (
    Baselines,
    CandidateCounts,
    ColumnRoles,
    DecoyFloor,
    Derivation,
    FloorPoint,
    LogReading,
    Manifest,
    PlanSettings,
    PowerSummary,
    RecordedOpening,
    ReportData,
    Robustness,
    SurvivorLifts,
)
from groundfault.auditing.results import AuditResults
from groundfault.base.machine import version
from groundfault.core.columns import Kind, list_examples, profile
from groundfault.core.counted_units import CountedMarks
from groundfault.core.evidence import Evidence
from groundfault.core.finding import Finding, Verdict
from groundfault.core.pairs import Pairs
from groundfault.core.plan import to_fraction
from groundfault.errors import attempt
from groundfault.judges.rule import Ruling
from groundfault.stats import bits, multiple

COUNTS = "counts"
"""Kind of the derivation in the manifest, if an engine counted."""
_ONE_VALUE = "they have at most one value"
_FEW_EXAMPLES = "each condition on them holds for too few or nearly all examples"
_TOP_K = 5
"""Findings of the baseline that reports the largest effects: as in the Janus paper."""
_MAX_EXAMPLES = 5
"""Failed units of a finding in a report: enough to look at, and few enough to read."""
_MAX_CORRELATED = 1000
"""Candidates whose correlation is computed; the time grows with the cube."""
_MAX_CORRELATED_UNITS = 20_000
"""Units that tell a correlation to 0.007."""


def assemble(results: AuditResults) -> Report:
    """Make the report of an audit."""
    data = _make_data(results, make_findings(results))
    return Report.of(data, results.audit.library, results.witness)


def _make_data(results: AuditResults, findings: tuple[Finding, ...]) -> ReportData:
    audit, full, opening = results.audit, results.full, results.opening
    failed, no_lifts = audit.failures, dict[float, float | None]()
    lifts = attempt(failed, "the power", no_lifts, _detectable_lifts, results)
    usual_lift = lifts.get(detectable.USUAL_PREVALENCE)
    by_rows, uniform = _describe_rows(results, findings), _describe_uniform(results)
    named = audit.named if isinstance(audit, CountedAudit) else audit.evidence
    doubts, hints = write_hints(results)
    return ReportData(
        groundfault_version=version("groundfault"),
        n=len(full),
        n_discovery=len(results.discovery),
        n_holdout=len(results.holdout) if results.holdout else 0,
        rows=sum(results.statuses.values()),
        unit="group" if named.roles.group else "example",
        outcomes=tuple(audit.outcomes),
        error_rate=number_or_none(full.describe_losses()[0]),
        statuses=dict(results.statuses),
        counted_as_failed=audit.evidence.counted_as_failed,
        uniform=uniform,
        averaged=full.denominator != 1 and is_pass_or_fail(audit.evidence),
        judge=audit.judge.name,
        judge_reason=audit.judge_reason,
        guarantee=describe_guarantee(
            audit.judge, audit.plan, len(results.ruling.hypotheses), opening
        ),
        plan=msgspec.convert(audit.plan.settings, PlanSettings),
        candidates=_candidate_counts(results),
        ineligible=_count_obstacles(results.ruling),
        floor=_make_floor(results.ruling),
        minimum_detectable_lift=usual_lift,
        power=PowerSummary(
            power=detectable.POWER,
            prevalence=detectable.USUAL_PREVALENCE,
            minimum_detectable_lift={str(k): lift for k, lift in lifts.items()},
        ),
        conclusion=conclude(usual_lift, detectable.USUAL_PREVALENCE)
        if audit.compare
        else messages.write_conclusion(
            usual_lift,
            detectable.USUAL_PREVALENCE,
            sum(f.confirmed for f in findings) + len(results.named.modes),
            "" if lifts else _say_why_unknown(results),
            [one.column for one in results.named.deciding],
            uniform,
        ),
        baselines=attempt(failed, "the weaker rules", None, _make_baselines, results),
        robustness=None
        if results.frequency is None
        else Robustness(splits=results.frequency.splits, nonempty=results.frequency.nonempty),
        ledger=None
        if opening is None
        else RecordedOpening(**msgspec.structs.asdict(opening), sentence=opening.sentence),
        hints=(*doubts, *hints, *write_grader_hint(findings, by_rows.get("grader"))),
        doubts=len(doubts),
        examples=attempt(failed, "the examples of findings", {}, _pick_examples, results, findings),
        hashes=results.hashes,
        manifest=_make_manifest(audit, named),
        deciding=None if audit.compare else results.named.deciding,
        modes=results.named.modes,
        mode_search=results.named.search,
        **msgspec.structs.asdict(results.told),
        findings=findings,
        **by_rows,
        unused=attempt(failed, "unused columns", {}, _list_unused, results, findings),
        left_out=tuple(failed),
        sample=results.sample,
    )


def _list_unused(results: AuditResults, findings: Sequence[Finding]) -> dict[str, tuple[str, ...]]:
    """Return the columns that no rule and no candidate reads, by reason.

    Where no rule could be tested these are all columns.
    """
    audit, search, unused = results.audit, results.named.search, dict(results.named.unused)
    if search is None:
        read = {name for candidate in audit.library for name in candidate.columns}
        by_reason = choose_columns(audit)[1].items()
        unused = {why: tuple(c for c in of if c not in read) for why, of in by_reason}
        unused = {why: names for why, names in unused.items() if names}
    if not messages.was_tested(search, findings):
        known = {*audit.plan.within, *(name for names in unused.values() for name in names)}
        rest = pl.col(audit.evidence.attributes).exclude(known)
        for column in profile(list_examples(audit.evidence).select(rest)):
            reason = _ONE_VALUE if column.kind is Kind.CONSTANT else _FEW_EXAMPLES
            unused[reason] = (*unused.get(reason, ()), column.name)
    return unused


def _describe_rows(results: AuditResults, findings: tuple[Finding, ...]) -> dict[str, Any]:
    """Return parts of a report that need single rows; empty if an engine counted the rows."""
    if isinstance(results.audit, CountedAudit):
        return {}
    failed, of = results.audit.failures, (results, findings)
    return {
        "parts": attempt(failed, "the comparison of parts", "", describe_parts, results),
        "grader": attempt(failed, "the check of the grader", None, find_grader_evidence, *of),
        "change": measure_change(results),
        "units": attempt(failed, "the record of units", None, make_record, *of),
    }


def _describe_uniform(results: AuditResults) -> str:
    """Return the one outcome of all units in words; empty if outcomes differ."""
    losses, audit = results.losses, results.audit
    is_scored = ~np.isnan(losses)
    units = audit.scan.cells.rows if isinstance(audit, CountedAudit) else np.ones(losses.shape[1])
    ends = [losses[is_scored].min(), losses[is_scored].max()] if is_scored.any() else []
    scored = int(units[is_scored.any(axis=0)].sum())
    return messages.write_uniform(ends, scored, results.statuses)


def _make_manifest(audit: PreparedAudit, named: Evidence | LazyEvidence) -> Manifest:
    evidence, compare = audit.evidence, audit.compare
    reading, derivation = evidence.reading, None
    if isinstance(audit, CountedAudit):
        counter = audit.named.counter
        table = {"table": counter.table} if counter.table else {}
        derivation = Derivation(kind=COUNTS, settings={"engine": counter.name, **table})
    return Manifest(
        sources=named.provenance,
        roles=msgspec.convert(asdict(named.roles), ColumnRoles),
        reading=None if reading is None else msgspec.convert(reading, LogReading),
        account=evidence.account,
        models=tuple(evidence.models) if evidence.roles.model else None,
        compare=compare and (compare[0], compare[1]),
        derivation=derivation,
        where=evidence.selection,
        own_rules=audit.own_rules,
        grading=evidence.grading,
        python=platform.python_version(),
        numpy=version("numpy"),
        polars=version("polars"),
    )


def _count_obstacles(ruling: Ruling) -> dict[str, int]:
    """Return how many untestable hypotheses each reason code applies to."""
    pairs = zip(ruling.reasons, ruling.verdicts, strict=True)
    return dict(Counter(code for codes, v in pairs if v is Verdict.UNTESTABLE for code in codes))


def _candidate_counts(results: AuditResults) -> CandidateCounts:
    library, ruling = results.audit.library, results.ruling
    return CandidateCounts(
        size=len(library),
        hypotheses=len(ruling.verdicts),
        tested=sum(v is not Verdict.UNTESTABLE for v in ruling.verdicts),
        distinct=len(ruling.hypotheses),
        effective=_effective_tests(results),
        sources=dict(library.sources),
    )


def _effective_tests(results: AuditResults) -> float | None:
    """Return the effective number of independent candidates; None for large libraries."""
    candidates = np.unique(results.ruling.hypotheses // len(results.audit.outcomes))
    marks = results.audit.marks
    # counts of single candidates do not show their dependence
    if len(candidates) > _MAX_CORRELATED or isinstance(marks, CountedMarks):
        return None
    words = bits.words(min(marks.size, _MAX_CORRELATED_UNITS))
    on = np.ascontiguousarray(marks.on[candidates, :words])
    rows = bits.unpack(on, min(marks.size, 64 * words))
    return round(multiple.count_effective_tests(rows), 1)


def _make_floor(ruling: Ruling) -> DecoyFloor:
    """Return the floor and its curve; empty for judges without a floor, and without a test."""
    floor = ruling.screening.floor if ruling.screening else None
    if floor is None:
        return DecoyFloor(threshold=None, fdp=None, inclusive=True, curve=())
    return DecoyFloor(
        threshold=floor.threshold,
        fdp=floor.fdp,
        inclusive=floor.inclusive,
        curve=msgspec.convert(floor.curve, tuple[FloorPoint, ...]),
    )


def _make_baselines(results: AuditResults) -> Baselines | None:
    """Return the findings of weaker rules, and the winner's curse of the survivors.

    They are the ablations of the Janus paper.
    """
    audit, ruling = results.audit, results.ruling
    if ruling.screening is None or results.holdout is None:
        return None
    testable = [h for h, v in enumerate(ruling.verdicts) if v is not Verdict.UNTESTABLE]
    survivors = [h for h in testable if ruling.verdicts[h] is not Verdict.BELOW_FLOOR]
    tables, min_lift = results.discovery.tables, to_fraction(audit.plan.min_lift or 0)
    size, reaches = np.abs(tables.lift), tables.reaches(min_lift)
    holdout_size = np.abs(results.holdout.tables.lift)

    def names(hypotheses: Sequence[int]) -> tuple[str, ...]:
        return tuple(audit.library[h // len(audit.outcomes)].name for h in hypotheses)

    return Baselines(
        fixed_lift=names([h for h in testable if reaches[h]]),
        top_k=names(sorted(testable, key=lambda h: -size[h])[:_TOP_K]),
        decoy_only=names(survivors),
        full=names([h for h in testable if ruling.verdicts[h] is Verdict.CONFIRMED]),
        survivor_mean_abs_lift=None
        if not survivors
        else SurvivorLifts(
            discovery=float(size[survivors].mean()),
            holdout=number_or_none(holdout_size[survivors].mean()),
        ),
    )


def _pick_examples(
    results: AuditResults, findings: Sequence[Finding]
) -> dict[str, tuple[str, ...]]:
    """Return a few failed units of each confirmed slice, or units that changed in its direction."""
    return {f.key: _pick_units(results, f) for f in findings if f.confirmed}


def _pick_units(results: AuditResults, finding: Finding) -> tuple[str, ...]:
    audit, more = results.audit, (finding.full.lift or 0) > 0
    place = audit.library.find(finding.name)
    if isinstance(audit, CountedAudit):
        failures = audit.evidence.frame.filter(audit.evidence.loss.fill_null(0) > 0)
        holds = audit.library[place].parsed.holds(failures)
        # an example without a value is no example of the opposite rule
        names = failures.filter(holds if more else ~holds)[audit.evidence.roles.id or ""]
        return tuple(map(str, names.head(_MAX_EXAMPLES)))
    on = bits.unpack(audit.marks.on[[place]], audit.marks.size)[0]
    if isinstance(results.full, Pairs):
        changes = results.full.changes
        chosen = on & (changes > 0 if more else changes < 0)
    else:
        losses = np.nan_to_num(results.losses[audit.outcomes.index(finding.outcome)])
        chosen = (on if more else ~on) & (losses > 0)
    units = np.flatnonzero(chosen)[:_MAX_EXAMPLES]
    return tuple(str(audit.evidence.unit_names[int(i)]) for i in units)


def _say_why_unknown(results: AuditResults) -> str:
    """Return the reason that an audit does not state detectable lifts."""
    if not len(results.ruling.hypotheses):
        codes = Counter(codes[0] for codes in results.ruling.reasons if codes)
        why = "".join(
            f" ({n} of {codes.total()}: {messages.REASONS.get(code, code)})"
            for code, n in codes.most_common(1)
        )
        return f"no candidate could be tested{why}"
    if results.bar is not None:
        return "all outcomes are alike"
    return f"the judge {results.audit.judge.name} does not state its bar"


def _detectable_lifts(results: AuditResults) -> dict[float, float | None]:
    audit, holdout_size = results.audit, len(results.holdout) if results.holdout else 0
    search = results.named.search
    if search is not None and search.like_for_like:
        return {float(share): rise for share, rise in search.detectable.items()}
    if isinstance(results.discovery, Pairs):
        size = len(results.ruling.hypotheses)
        change_design = ChangeDesign.of(audit.plan, results.discovery, holdout_size, size)
        return change_design.by_prevalence(len(results.full))
    design_of = detectable.make_designs(
        audit.judge, audit.plan, results.discovery, holdout_size, results.bar
    )
    return detectable.minimum_detectable_lifts(design_of, len(results.full))
