"""Assembling: the verdicts and numbers of a judged audit become a report."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from groundfault.auditing import detectable, grouping, messages
from groundfault.auditing.cells import Cells, make_cells, number_or_none
from groundfault.auditing.changes import (
    conclude,
    contrast_changes,
    measure_change,
    tell_change,
)
from groundfault.auditing.detectable_change import ChangeDesign
from groundfault.auditing.estimates import make_estimates
from groundfault.auditing.grader import find_grader_evidence, write_grader_hint
from groundfault.auditing.guarantee import describe_guarantee
from groundfault.auditing.hints import describe_parts, write_hints
from groundfault.auditing.opposites import describe_opposite
from groundfault.auditing.prepared import PreparedAudit
from groundfault.auditing.report import Report
from groundfault.auditing.report_schema import (
    Baselines,
    CandidateCounts,
    ColumnRoles,
    DecoyFloor,
    FloorPoint,
    LogReading,
    Manifest,
    PlanSettings,
    PowerSummary,
    RecordedOpening,
    ReportData,
    ReportHashes,
    Robustness,
    SurvivorLifts,
)
from groundfault.auditing.results import AuditResults
from groundfault.auditing.unit_record import make_record
from groundfault.core.finding import Estimate, Finding, Verdict
from groundfault.core.pairs import Pairs
from groundfault.core.plan import to_fraction
from groundfault.judges.rule import Ruling
from groundfault.stats import bits, multiple

if TYPE_CHECKING:
    from groundfault.base.holdout_events import Opening

_TOP_K = 5
_MAX_EXAMPLES = 5
_MAX_CORRELATED = 1000
"""Candidates whose correlation is computed; the time grows with the cube."""
_MAX_CORRELATED_UNITS = 20_000
_ORDER = {verdict: place for place, verdict in enumerate(Verdict)}


def assemble(results: AuditResults) -> Report:
    """Make the report of an audit."""
    findings = make_findings(results)
    return Report.of(_make_data(results, findings), results.audit.library, results.witness)


def make_findings(results: AuditResults) -> tuple[Finding, ...]:
    """All findings: by verdict, then by size of discovery lift."""
    confirming = results.discovery if results.holdout is None else results.holdout
    representatives = grouping.find_representatives(results.ruling, results.audit.marks, confirming)
    cells = make_cells(results)
    estimates = make_estimates(results, cells["holdout"] or cells["full"] or [])
    findings = [
        _make_finding(results, h, cells, representatives, estimates.get(h))
        for h in range(len(results.ruling.verdicts))
    ]
    if results.audit.compare:
        contrasts = contrast_changes(results)
        findings = [
            tell_change(finding, contrasts.get(h), results) for h, finding in enumerate(findings)
        ]
    findings.sort(key=lambda f: (_ORDER[f.verdict], -abs(f.discovery.lift or 0.0)))
    return tuple(findings)


def _make_finding(
    results: AuditResults,
    h: int,
    cells: Cells,
    representatives: dict[int, int],
    estimate: Estimate | None,
) -> Finding:
    audit, ruling = results.audit, results.ruling
    j, o = divmod(h, len(audit.outcomes))
    candidate, verdict = audit.library[j], ruling.verdicts[h]
    discovery, holdout, full = (column[h] if column else None for column in cells.values())
    assert discovery is not None
    assert full is not None
    guarantee = describe_guarantee(audit.judge, audit.plan, len(ruling.hypotheses), results.opening)
    representative = representatives.get(h)
    # where the other side is a candidate too, that one says it
    is_told = any(alias.startswith("not ") for alias in results.aliases[j])
    is_told = is_told or audit.compare is not None
    turns = verdict is Verdict.CONFIRMED and ((holdout or full).lift or 0.0) < 0 and not is_told
    opposite = describe_opposite(candidate, full.on, full.off) if turns else None
    return Finding(
        candidate.name,
        candidate.rule,
        candidate.meaning,
        candidate.source,
        audit.outcomes[o],
        verdict,
        messages.write_reason(verdict, ruling.reasons[h], audit.judge),
        messages.write_sentence(
            verdict,
            candidate.meaning,
            audit.describe_outcome(o),
            discovery,
            holdout,
            audit.plan,
            guarantee,
            opposite,
            estimate,
        ),
        discovery,
        holdout,
        full,
        aliases=results.aliases[j],
        representative=None
        if representative is None
        else audit.library[representative // len(audit.outcomes)].name,
        decoys=_count_decoys(results, h, j),
        sensitivity={name: str(r.verdicts[h]) for name, r in results.sensitivity.items()},
        frequency=None if results.frequency is None else float(results.frequency.confirmed[h]),
        opposite=opposite,
        estimate=estimate,
    )


def _count_decoys(results: AuditResults, h: int, j: int) -> float | None:
    """Decoys expected at or above a hypothesis' effect; None for candidates mined here."""
    screening, position = results.ruling.screening, results.positions.get(h)
    if screening is None or position is None or screening.decoys is None:
        return None
    if results.audit.is_mined_here(results.audit.library[j]):
        return None
    return float(screening.decoys[position])


def _make_data(results: AuditResults, findings: tuple[Finding, ...]) -> ReportData:
    audit, full, opening = results.audit, results.full, results.opening
    n_scored = full.scored.sum() if full.scored is not None else full.losses.size
    detectable_lifts = _detectable_lifts(results)
    usual_lift = detectable_lifts.get(detectable.USUAL_PREVALENCE)
    grader = find_grader_evidence(results, findings)
    named = sum(f.confirmed for f in findings) + len(results.modes)
    return ReportData(
        groundfault_version=version("groundfault"),
        n=audit.evidence.unit_count,
        n_discovery=int(audit.discovery_mask.sum()),
        n_holdout=int((~audit.discovery_mask).sum()),
        rows=len(audit.evidence),
        unit="group" if audit.evidence.roles.group else "example",
        outcomes=tuple(audit.outcomes),
        error_rate=float(full.losses.sum() / (full.denominator or 1) / n_scored),
        statuses={str(status): n for status, n in audit.evidence.status_counts.items()},
        counted_as_failed=audit.evidence.counted_as_failed,
        judge=audit.judge.name,
        judge_reason=audit.judge_reason,
        guarantee=describe_guarantee(
            audit.judge, audit.plan, len(results.ruling.hypotheses), opening
        ),
        plan=msgspec.convert(audit.plan.settings, PlanSettings),
        candidates=_candidate_counts(results),
        ineligible=count_obstacles(results.ruling),
        floor=make_floor(results.ruling),
        minimum_detectable_lift=usual_lift,
        power=PowerSummary(
            power=detectable.POWER,
            prevalence=detectable.USUAL_PREVALENCE,
            minimum_detectable_lift={str(k): lift for k, lift in detectable_lifts.items()},
        ),
        conclusion=conclude(usual_lift, detectable.USUAL_PREVALENCE)
        if audit.compare
        else messages.write_conclusion(
            usual_lift,
            detectable.USUAL_PREVALENCE,
            named,
            "" if detectable_lifts else say_why_unknown(results),
        ),
        baselines=make_baselines(results),
        robustness=None
        if results.frequency is None
        else Robustness(splits=results.frequency.splits, nonempty=results.frequency.nonempty),
        ledger=None if opening is None else make_opening(opening),
        parts=describe_parts(results),
        hints=(*write_hints(results), *write_grader_hint(findings, grader)),
        examples=_examples(results, findings),
        hashes=make_hashes(audit, audit.evidence.hash, audit.evidence.outcome_hash),
        manifest=_manifest(audit),
        grader=grader,
        modes=results.modes,
        mode_search=results.mode_search,
        change=measure_change(results),
        units=make_record(results, findings),
        findings=findings,
    )


def make_hashes(audit: PreparedAudit, evidence: str, outcome: str) -> ReportHashes:
    """The hashes of a report, given those of its evidence."""
    return ReportHashes(
        evidence=evidence,
        outcome=outcome,
        library=audit.library.hash,
        plan=audit.plan.seal(),
        split=audit.split_hash,
    )


def make_opening(opening: Opening) -> RecordedOpening:
    """What the ledger says of the opening, as a report states it."""
    return RecordedOpening(**msgspec.structs.asdict(opening), sentence=opening.sentence)


def _manifest(audit: PreparedAudit) -> Manifest:
    evidence, compare = audit.evidence, audit.compare
    reading = evidence.reading
    return Manifest(
        sources=tuple(evidence.provenance),
        roles=msgspec.convert(asdict(evidence.roles), ColumnRoles),
        reading=None if reading is None else msgspec.convert(reading, LogReading),
        account=evidence.account,
        models=tuple(evidence.models) if evidence.roles.model else None,
        compare=compare and (compare[0], compare[1]),
        derivation=None,
        where=evidence.selection,
        own_rules=audit.own_rules,
        python=platform.python_version(),
        numpy=version("numpy"),
        polars=version("polars"),
    )


def count_obstacles(ruling: Ruling) -> dict[str, int]:
    """How many untestable hypotheses each reason code applies to."""
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
    """Independent tests that the tested candidates amount to; None for large libraries."""
    candidates = np.unique(results.ruling.hypotheses // len(results.audit.outcomes))
    if len(candidates) > _MAX_CORRELATED:
        return None
    marks = results.audit.marks
    words = bits.words(min(marks.size, _MAX_CORRELATED_UNITS))
    on = np.ascontiguousarray(marks.on[candidates, :words])
    rows = bits.unpack(on, min(marks.size, 64 * words))
    return round(multiple.count_effective_tests(rows), 1)


def make_floor(ruling: Ruling) -> DecoyFloor:
    """The floor and its curve; empty for judges that set none, and where nothing was tested."""
    floor = ruling.screening.floor if ruling.screening else None
    if floor is None:
        return DecoyFloor(threshold=None, fdp=None, inclusive=True, curve=())
    return DecoyFloor(
        threshold=floor.threshold,
        fdp=floor.fdp,
        inclusive=floor.inclusive,
        curve=msgspec.convert(floor.curve, tuple[FloorPoint, ...]),
    )


def make_baselines(results: AuditResults) -> Baselines | None:
    """What weaker rules would have reported, and the winner's curse of the survivors.

    They are the ablations of the Janus paper.
    """
    audit, ruling = results.audit, results.ruling
    if ruling.screening is None or results.holdout is None:
        return None
    testable = [h for h, v in enumerate(ruling.verdicts) if v is not Verdict.UNTESTABLE]
    survivors = [
        h
        for h in testable
        if ruling.verdicts[h] in (Verdict.CONFIRMED, Verdict.TOO_SMALL, Verdict.NOT_REPLICATED)
    ]
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


def _examples(results: AuditResults, findings: Sequence[Finding]) -> dict[str, tuple[str, ...]]:
    """A few failed units of each confirmed slice, by name."""
    audit = results.audit
    units = audit.evidence.unit_names
    places = {c.name: j for j, c in enumerate(audit.library)}
    is_worse, is_better = _find_failures(results)
    examples = {}
    for finding in findings:
        if finding.confirmed:
            on = bits.unpack(audit.marks.on[[places[finding.name]]], audit.marks.size)[0]
            more, outcome = (finding.full.lift or 0) > 0, audit.outcomes.index(finding.outcome)
            if audit.compare:
                on_side = np.flatnonzero(on & (is_worse if more else is_better)[outcome])
            else:
                on_side = np.flatnonzero((on if more else ~on) & is_worse[outcome])
            examples[finding.key] = tuple(str(units[int(i)]) for i in on_side[:_MAX_EXAMPLES])
    return examples


def _find_failures(results: AuditResults) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Units that failed, and those that did not; of a comparison, that got worse and better.

    Two arrays of shape (outcomes, units).
    """
    losses = np.nan_to_num(results.losses)
    if isinstance(results.full, Pairs):
        changes = results.full.changes[None]
        return changes > 0, changes < 0
    return losses > 0, losses == 0


def say_why_unknown(results: AuditResults) -> str:
    """Why an audit does not say which lifts it could have found."""
    if not len(results.ruling.hypotheses):
        codes = Counter(codes[0] for codes in results.ruling.reasons if codes)
        why = [
            f"{n} of {codes.total()}: {messages.REASONS.get(code, code)}"
            for code, n in codes.most_common(1)
        ]
        return " ".join(["no candidate could be tested", *(f"({each})" for each in why)])
    return f"the judge {results.audit.judge.name} does not say what it asks for"


def _detectable_lifts(results: AuditResults) -> dict[float, float | None]:
    audit, holdout_size = results.audit, len(results.holdout) if results.holdout else 0
    if isinstance(results.discovery, Pairs):
        size = len(results.ruling.hypotheses)
        change_design = ChangeDesign.of(audit.plan, results.discovery, holdout_size, size)
        return change_design.by_prevalence(audit.evidence.unit_count)
    design_of = detectable.make_designs(
        audit.judge, audit.plan, results.discovery, holdout_size, results.bar
    )
    return detectable.minimum_detectable_lifts(design_of, audit.evidence.unit_count)
