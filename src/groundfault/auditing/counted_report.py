"""The report of an audit by counts: the same findings, and what counts do not tell left empty."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import version

import msgspec

from groundfault.auditing import detectable, messages
from groundfault.auditing.assemble import (
    count_obstacles,
    make_baselines,
    make_findings,
    make_floor,
    make_hashes,
    make_opening,
    say_why_unknown,
)
from groundfault.auditing.counted_audit import MAX_JOINT, CountedAudit
from groundfault.auditing.counted_flow import CountedResults
from groundfault.auditing.grouped_evidence import GroupedEvidence
from groundfault.auditing.guarantee import describe_guarantee
from groundfault.auditing.report import Report
from groundfault.auditing.report_schema import (
    CandidateCounts,
    ColumnRoles,
    Derivation,
    Manifest,
    PlanSettings,
    PowerSummary,
    ReportData,
)
from groundfault.core.finding import Finding, Verdict
from groundfault.core.plan import to_fraction
from groundfault.core.status import Status

COUNTS = "counts"
"""Kind of the derivation in the manifest."""
_EXAMPLES = 5
_NAMES = 12


def assemble_counted(results: CountedResults) -> Report:
    """Make the report of an audit by counts."""
    audit, findings = results.audit, make_findings(results)
    assert isinstance(audit, CountedAudit)
    return Report.of(_make_data(results, audit, findings), audit.library, results.witness)


def _make_data(
    results: CountedResults, audit: CountedAudit, findings: tuple[Finding, ...]
) -> ReportData:
    ruling, opening = results.ruling, results.opening
    holdout_size = len(results.holdout) if results.holdout else 0
    design_of = detectable.make_designs(
        audit.judge, audit.plan, results.discovery, holdout_size, results.bar
    )
    lifts = detectable.minimum_detectable_lifts(design_of, audit.rows)
    usual_lift = lifts.get(detectable.USUAL_PREVALENCE)
    return ReportData(
        groundfault_version=version("groundfault"),
        n=audit.rows,
        n_discovery=len(results.discovery),
        n_holdout=holdout_size,
        rows=sum(results.statuses.values()),
        unit="group" if audit.rows_evidence.roles.group else "example",
        outcomes=tuple(audit.outcomes),
        error_rate=results.whole.describe_losses()[0],
        statuses={str(status): results.statuses.get(str(status), 0) for status in Status},
        judge=audit.judge.name,
        judge_reason=audit.judge_reason,
        guarantee=describe_guarantee(audit.judge, audit.plan, len(ruling.hypotheses), opening),
        plan=msgspec.convert(audit.plan.settings, PlanSettings),
        candidates=CandidateCounts(
            size=len(audit.library),
            hypotheses=len(ruling.verdicts),
            tested=sum(v is not Verdict.UNTESTABLE for v in ruling.verdicts),
            distinct=len(ruling.hypotheses),
            # how candidates go together, counts of each do not tell
            effective=None,
            sources=dict(audit.library.sources),
        ),
        ineligible=count_obstacles(ruling),
        floor=make_floor(ruling),
        minimum_detectable_lift=usual_lift,
        power=PowerSummary(
            power=detectable.POWER,
            prevalence=detectable.USUAL_PREVALENCE,
            minimum_detectable_lift={str(k): lift for k, lift in lifts.items()},
        ),
        conclusion=messages.write_conclusion(
            usual_lift,
            detectable.USUAL_PREVALENCE,
            sum(finding.confirmed for finding in findings) + len(results.modes),
            "" if lifts else say_why_unknown(results),
        ),
        baselines=make_baselines(results),
        robustness=None,
        ledger=None if opening is None else make_opening(opening),
        hints=tuple(_write_hints(results, audit)),
        examples=_pick_examples(audit, findings),
        hashes=make_hashes(audit, audit.lazy.hash, audit.lazy.outcome_hash),
        manifest=_make_manifest(audit),
        modes=results.modes,
        mode_search=results.mode_search,
        findings=findings,
    )


def _make_manifest(audit: CountedAudit) -> Manifest:
    return Manifest(
        sources=audit.lazy.provenance,
        roles=msgspec.convert(asdict(audit.rows_evidence.roles), ColumnRoles),
        reading=None,
        account=None,
        models=None,
        compare=None,
        derivation=Derivation(kind=COUNTS, settings=_name_engine(audit)),
        own_rules=audit.own_rules,
        python=platform.python_version(),
        numpy=version("numpy"),
        polars=version("polars"),
    )


def _name_engine(audit: CountedAudit) -> dict[str, str]:
    counter = audit.rows_evidence.counter
    table = {"table": counter.table} if counter.table else {}
    return {"engine": counter.name, **table}


def _write_hints(results: CountedResults, audit: CountedAudit) -> Iterator[str]:
    """What was done otherwise than in memory, and what to check before believing the verdicts."""
    engine, groups = audit.rows_evidence.counter.name, audit.groups
    units = "rows" if groups is None else "groups"
    part = f"discovery {units}" if audit.has_holdout else units
    yield (
        f"counted by {engine}, no row but a sample was read: values, cut points, "
        f"leaks and examples are of {len(audit.evidence):,} {part} drawn by their ids "
        f"({audit.sample_rule}), the numbers of findings of all {units}"
    )
    if groups is None:
        yield "each row is taken for an example of its own, and copies were not looked for"
    else:
        yield from _describe_groups(results, groups)
    if sum(verdict is Verdict.CONFIRMED for verdict in results.ruling.verdicts) > MAX_JOINT:
        yield f"more than {MAX_JOINT} findings are confirmed: those that overlap are not grouped"
    if results.whole.denominator != 1 or results.whole.strata is not None:
        yield "of graded losses, findings that overlap are not grouped"
    if audit.disagreements:
        names = ", ".join(f"{name} ({how})" for name, how in audit.disagreements.items())
        yield f"{engine} disagrees with groundfault: {names}"
    unscored = {name: n for name, n in results.statuses.items() if name != Status.SCORED and n}
    if unscored:
        rows = ", ".join(f"{n} {status}" for status, n in unscored.items())
        yield (
            f"{rows}: not scored, in no error rate; the findings say whether their verdict "
            "depends on it"
        )
    rate, min_lift = (
        results.whole.describe_losses()[0],
        float(to_fraction(audit.plan.min_lift or 0)),
    )
    if audit.plan.effect == "risk_difference" and rate < 2 * min_lift:
        yield (
            f"errors are rare ({rate:.1%}): a lift of {min_lift:g} may be out of reach; "
            "effect='risk_ratio' (--effect risk_ratio) asks for a ratio instead"
        )


def _describe_groups(results: CountedResults, groups: GroupedEvidence) -> Iterator[str]:
    yield (
        f"{groups.source.counter.name} made one row of each group, in temporary files that polars "
        "counted in; copies were not looked for"
    )
    hidden = {groups.source.roles.id, *groups.source.roles.ignore}
    names = [name for name in groups.varying if name not in hidden]
    if names:
        more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
        yield (
            "columns that differ within a group are in no rule, and candidates that read one are "
            f"untestable: {', '.join(names[:_NAMES])}{more}"
        )
    if results.whole.strata is not None:
        yield (
            "groups differ in size: only those of like size are permuted, at random, and p-values "
            "are sampled"
        )


def _pick_examples(
    audit: CountedAudit, findings: tuple[Finding, ...]
) -> dict[str, tuple[str, ...]]:
    """A few failed rows of each confirmed slice, of those in the sample."""
    evidence = audit.evidence
    failures = evidence.frame.filter(evidence.loss.fill_null(0) > 0)
    examples = {}
    for finding in findings:
        if finding.confirmed:
            candidate = next(c for c in audit.library if c.name == finding.name)
            on = candidate.parsed.holds(failures)
            # where there is no value, an example of the other side is none of the rule
            side = on if (finding.full.lift or 0) > 0 else ~on
            names = failures.filter(side)[evidence.roles.id or ""].head(_EXAMPLES)
            examples[finding.key] = tuple(str(name) for name in names)
    return examples
