"""Assembling: the verdicts and numbers of a judged audit become a report.

Its section on the grader decides whether properties of answers are evidence for a fault of the
grader: directly, or among units of like difficulty.
"""

from __future__ import annotations

import platform
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import msgspec
import numpy as np
import polars as pl

from groundfault.auditing import detectable, messages
from groundfault.auditing.changes import conclude, measure_change
from groundfault.auditing.column_timing import Timing
from groundfault.auditing.counted_audit import CountedAudit
from groundfault.auditing.detectable import ChangeDesign
from groundfault.auditing.failure_modes import choose_columns
from groundfault.auditing.findings import make_findings, number_or_none
from groundfault.auditing.hints import describe_parts, write_hints
from groundfault.auditing.lazy_evidence import LazyEvidence
from groundfault.auditing.messages import describe_guarantee
from groundfault.auditing.prepared_audit import PreparedAudit, tabulate_units
from groundfault.auditing.report import Report
from groundfault.auditing.report_schema import (
    Baselines,
    CandidateCounts,
    ColumnRoles,
    DecoyFloor,
    Derivation,
    FloorPoint,
    GraderEvidence,
    LogReading,
    Manifest,
    PlanSettings,
    PowerSummary,
    RecordedOpening,
    ReportData,
    Robustness,
    SurvivorLifts,
)
from groundfault.auditing.results import AuditResults, make_record
from groundfault.base.arrays import Floats, Ints, Places
from groundfault.base.long_work import enough_openmp_threads, version
from groundfault.core.candidate import Candidate
from groundfault.core.column_meaning import holds_answer, split_words
from groundfault.core.columns import Kind, list_examples, profile
from groundfault.core.counted_units import CountedMarks
from groundfault.core.evidence import Evidence
from groundfault.core.finding import Finding, Verdict
from groundfault.core.pairs import Pairs
from groundfault.core.plan import to_fraction
from groundfault.errors import InputError, attempt, list_some
from groundfault.judges.rule import Ruling
from groundfault.stats import bits, contingency, multiple

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
SOURCE = "instrument"
SHARE_LEFT = 0.5
"""Share of the lift that has to be left among examples of like difficulty."""
EXPLAINED = 0.05
"""Share of the variance of losses that known difficulty has to explain, to be held fixed at all."""
EXPLAINABLE = 0.5
"""Share that difficulty as a whole explains: as much as the failures of forty other models on the
same questions did on real tables (0.46 to 0.56)."""
_ONE_ANSWER = 0.5
"""Share of failures with the same answer from which its value, not its form, is wrong."""
_CUT = re.compile(r"length|max_?tokens|truncat|limit|cut", re.IGNORECASE)
_CUT_OFF = "answers that were cut off or not parsed"
_LIKE = "answers of some form or length, also where examples are equally hard"
_FORM = "differs from the target in form alone"
STRATA = 10
"""Strata of like difficulty, at most."""
_FOLDS = 5  # the usual number: four fifths of the units predict the others
_FEWEST = 20
"""Units that a stratum has on average, at least."""
_DIMENSIONS = 16
"""Of the words of a text."""
_LARGEST = 1e300
"""In place of infinity, of which trees cannot take the mean with another value."""


def assemble(results: AuditResults) -> Report:
    """Make the report of an audit."""
    audit = results.audit
    named = audit.named if isinstance(audit, CountedAudit) else audit.evidence
    data = _make_data(results, make_findings(results, named.roles.unit), named)
    return Report.of(data, results.audit.library, results.witness)


def _make_data(
    results: AuditResults, findings: tuple[Finding, ...], named: Evidence | LazyEvidence
) -> ReportData:
    audit, full, opening = results.audit, results.full, results.opening
    failed, no_lifts = audit.failures, dict[float, float | None]()
    lifts = attempt(failed, "the power", no_lifts, _detectable_lifts, results)
    usual_lift = lifts.get(detectable.USUAL_PREVALENCE)
    by_rows, uniform = _describe_rows(results, findings), _describe_uniform(results)
    doubts, hints = write_hints(results)
    return ReportData(
        groundfault_version=version("groundfault"),
        n=len(full),
        n_discovery=len(results.discovery),
        n_holdout=len(results.holdout) if results.holdout else 0,
        rows=sum(results.statuses.values()),
        unit=named.roles.unit,
        outcomes=tuple(audit.outcomes),
        error_rate=number_or_none(full.describe_losses()[0]),
        statuses=dict(results.statuses),
        counted_as_failed=audit.evidence.counted_as_failed,
        uniform=uniform,
        averaged=full.denominator != 1 and not results.is_graded,
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
            "" if lifts else _say_why_unknown(results, named.roles.unit),
            [one.column for one in results.named.deciding],
            uniform,
            is_graded=results.is_graded,
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
        "change": measure_change(results) if results.audit.compare else None,
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


def _say_why_unknown(results: AuditResults, unit: str) -> str:
    """Return the reason that an audit does not state detectable lifts."""
    if not len(results.ruling.hypotheses):
        codes = Counter(codes[0] for codes in results.ruling.reasons if codes)
        why = "".join(
            f" ({n} of {codes.total()}: {messages.explain_code(code, unit)})"
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


def find_grader_evidence(
    results: AuditResults, findings: Sequence[Finding]
) -> tuple[GraderEvidence, ...]:
    """Find evidence for a fault of the grader among confirmed findings about answers.

    Unparsed and cut-off answers count as evidence, and so do answers that differ from the target
    only in form. Any other property, such as a length, counts if it matters among examples of
    similar difficulty, because long answers go with hard questions. It does not count if one answer
    makes most of the failures: a model that repeats "8" or "I don't know" is wrong by itself.

    Parameters
    ----------
    results : AuditResults
    findings : sequence of Finding
        Findings of the audit.

    Notes
    -----
    Within strata of predicted difficulty (`estimate_difficulty`) the lift must be beyond chance
    (one-sided Mantel-Haenszel test, Bonferroni over all tested properties, at the plan's alpha) and
    at least half of the lift over all. Some lift must also be left if all of difficulty were held
    fixed. This assumes that unknown difficulty is as strongly related to the property as known
    difficulty, each for its share of the variance of losses (Oster 2019,
    https://doi.org/10.1080/07350015.2016.1227711, with difficulty explaining half of it). If known
    columns explain less than 5 %, difficulty counts as unknown, and there is no evidence. So the
    method may miss a fault of the grader rather than blame it for hard questions.
    """
    suspects = [f for f in findings if is_suspect(f)]
    if not suspects or results.audit.compare:
        return ()
    direct = tuple(_list_direct(results, suspects))
    told = {(one.name, one.outcome) for one in direct}
    rest = [
        f
        for f in suspects
        if (f.name, f.outcome) not in told and not _is_one_answer(results.audit, f)
    ]
    return (*direct, *_list_within_strata(results, rest))


def is_suspect(finding: Finding) -> bool:
    """Return whether a finding is confirmed, means more failures, and is about answers."""
    return finding.source == SOURCE and finding.confirmed and not finding.is_strength


def write_grader_hint(
    findings: Sequence[Finding], evidence: Sequence[GraderEvidence] | None
) -> Iterator[str]:
    """Return a hint if findings about answers are no evidence for a fault of the grader.

    Evidence of None means that the check was not made.
    """
    names = [f.name for f in findings if is_suspect(f)]
    if names and evidence is not None and not evidence:
        yield (
            f"these findings describe answers, not examples: {list_some(names, 3)}; they may only "
            "show which examples are hard, since a test among equally hard ones found no fault of "
            "the grader, or was not possible"
        )


def _list_direct(results: AuditResults, suspects: Sequence[Finding]) -> Iterator[GraderEvidence]:
    candidates = {one.name: one for one in results.audit.library}
    for finding in suspects:
        basis = _find_basis(candidates[finding.name], finding)
        if basis:
            yield GraderEvidence(
                name=finding.name, outcome=finding.outcome, basis=basis, lift=finding.full.lift
            )


def _find_basis(candidate: Candidate, finding: Finding) -> str:
    """Return why a finding is evidence by itself; empty if it is not."""
    if candidate.name.endswith(_FORM):
        return "answers that differ from the target in form alone"
    words = [set(split_words(column)) for column in candidate.columns]
    if all(one & {"parsed", "unparsed", "truncated"} for one in words):
        return _CUT_OFF
    is_reason = all("reason" in one for one in words)
    # where "stop" goes with fewer failures, the others were not finished
    cut = bool(_CUT.search(candidate.rule)) == ((finding.full.lift or 0.0) > 0)
    return _CUT_OFF if is_reason and cut else ""


def _is_one_answer(audit: PreparedAudit, finding: Finding) -> bool:
    """Return whether one answer makes more than half of the failures with a property."""
    evidence, place = audit.evidence, [one.name for one in audit.library].index(finding.name)
    answers = [c for c in evidence.frame.columns if holds_answer(c)]
    read = [c for c in answers if c in audit.library[place].columns]
    if not answers:
        return False
    # whole outputs tell more than the letters that were read from them
    column = read[0] if read else max(answers, key=lambda c: evidence.frame[c].n_unique())
    on = bits.unpack(audit.marks.on[[place]], audit.marks.size)[0][evidence.unit_index]
    fails = evidence.loss.fill_null(0.0).to_numpy() > 0.5
    rows = fails & (on if (finding.full.lift or 0.0) > 0 else ~on)
    if finding.outcome and evidence.roles.model:
        rows &= (evidence.frame[evidence.roles.model].cast(pl.String) == finding.outcome).to_numpy()
    words = evidence.frame[column].cast(pl.String).filter(pl.Series(rows)).str.strip_chars()
    most = words.str.to_lowercase().value_counts().drop_nulls()["count"].max()
    return bool(int(most or 0) > _ONE_ANSWER * rows.sum())  # type: ignore[arg-type]


def _list_within_strata(
    results: AuditResults, suspects: Sequence[Finding]
) -> Iterator[GraderEvidence]:
    from scipy.special import ndtr

    audit = results.audit
    if not suspects:
        return
    features = tabulate_features(audit)
    places = {one.name: place for place, one in enumerate(audit.library)}
    for number, outcome in enumerate(audit.outcomes):
        of_outcome = [f for f in suspects if f.outcome == outcome]
        if not of_outcome:
            continue
        difficulty = estimate_difficulty(audit, results.losses, number, features)
        if difficulty.explained < EXPLAINED:
            continue
        rows = np.array([places[f.name] for f in of_outcome], dtype=np.intp)
        plain, within, z = _measure(results, number, rows, difficulty)
        # the part of the lift that known difficulty explains, extended to unknown difficulty
        factor = max(0.0, EXPLAINABLE / difficulty.explained - 1)
        left = within - factor * (plain - within)
        for i, finding in enumerate(of_outcome):
            p = min(1.0, float(ndtr(-z[i])) * len(suspects))
            lasts = left[i] > 0 and within[i] >= SHARE_LEFT * plain[i]
            if lasts and p <= float(audit.plan.alpha):
                yield GraderEvidence(
                    name=finding.name,
                    outcome=outcome,
                    basis=_LIKE,
                    lift=finding.full.lift,
                    lift_within=float(within[i]),
                    p=p,
                )


def _measure(
    results: AuditResults, outcome: int, candidates: Places, difficulty: Difficulty
) -> tuple[Floats, Floats, Floats]:
    """Compute lift over all and within strata towards more failures, and its z: (candidates,)."""
    marks = results.audit.marks.select(candidates)
    losses = results.losses[outcome]
    on = bits.unpack(marks.on, marks.size)
    scored = np.broadcast_to(~np.isnan(losses), on.shape)
    if marks.valid is not None:
        scored = scored & bits.unpack(marks.valid, marks.size)
    values = np.nan_to_num(losses)
    base = results.audit.strata
    base = np.zeros(len(losses), dtype=np.int64) if base is None else base
    plain, _ = contingency.lift(on & scored, values, base, scored)
    within, z = contingency.lift(on & scored, values, difficulty.strata, scored)
    side = np.sign(plain)
    return np.abs(plain), side * within, side * z


@dataclass(frozen=True)
class Difficulty:
    """Units in strata of similar difficulty, for one outcome.

    Attributes
    ----------
    strata : int64 array, shape (units,)
        Codes: more is harder, and never joined over the strata of the audit.
    explained : float
        Share of the variance of losses that the predicted difficulty explains, on units outside the
        fit; at most 1, and below 0 if it is worse than the mean.
    """

    strata: Ints
    explained: float


def estimate_difficulty(
    audit: PreparedAudit, losses: Floats, outcome: int, features: Floats
) -> Difficulty:
    """Divide units into strata by their predicted failure rate, before the answer is known.

    Losses are predicted by boosted trees, each fifth of the units by trees fitted to the others, so
    that no unit's own outcome decides on its stratum.

    Parameters
    ----------
    audit : PreparedAudit
    losses : float64 array, shape (outcomes, units)
        NaN where not scored.
    outcome : int
    features : float64 array, shape (units, columns)
        From `tabulate_features`; losses of the other outcomes on the same units are added.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    others = np.delete(losses, outcome, axis=0).T
    table = _drop_constants(np.column_stack([features, others]))
    target = losses[outcome]
    units = np.flatnonzero(~np.isnan(target))
    base = audit.strata if audit.strata is not None else np.zeros(len(target), dtype=np.int64)
    if not table.shape[1] or len(units) < 2 * _FEWEST:
        return Difficulty(base, 0.0)
    fold = audit.plan.rng("difficulty").permutation(np.arange(len(units)) % _FOLDS)
    risk = np.full(len(target), np.nan)
    with enough_openmp_threads(table.size):
        for part in range(_FOLDS):
            trees = HistGradientBoostingRegressor(
                max_iter=60,
                max_depth=3,
                min_samples_leaf=_FEWEST,
                early_stopping=False,
                random_state=0,
            )
            fit, rest = units[fold != part], units[fold == part]
            # a model that answered another part may have no value of a column at all
            there = ~np.isnan(table[fit]).all(axis=0)
            if not there.any():
                return Difficulty(base, 0.0)
            trees.fit(table[fit][:, there], target[fit])
            risk[rest] = trees.predict(table[rest][:, there])
    error = target[units] - risk[units]
    explained = 1 - float((error**2).mean() / max(float(target[units].var()), 1e-12))
    count = max(1, min(STRATA, len(units) // _FEWEST))
    cuts = np.quantile(risk[units], np.arange(1, count) / count)
    # NaN goes to the last: unscored units do not count
    level = np.searchsorted(np.unique(cuts), risk, side="right")
    return Difficulty(np.asarray(base * (count + 1) + level, dtype=np.int64), explained)


def tabulate_features(audit: PreparedAudit) -> Floats:
    """Return features of each unit known before the answer: float64, shape (units, columns).

    Numbers and flags are used directly, words of few values by the rank of the value, and texts by
    their length and their words; NaN where missing.
    """
    evidence = audit.evidence
    known = set(audit.list_columns(Timing.KNOWN))
    names = [name for name in evidence.attributes if name in known]
    table, _ = tabulate_units(evidence, names)
    columns: list[Floats] = []
    for column in profile(table) if table.width else ():
        values = table[column.name]
        if column.kind is Kind.TEXT:
            columns += _describe_text(values)
        elif values.dtype.is_numeric() or values.dtype == pl.Boolean:
            columns.append(_to_numbers(values))
        elif not values.dtype.is_nested() and column.kind is not Kind.CONSTANT:
            columns.append(_to_numbers(values.cast(pl.String).rank("dense")))
    shape = (evidence.unit_count, 0)
    return np.column_stack(columns) if columns else np.zeros(shape)


def _drop_constants(table: Floats) -> Floats:
    """Return the columns that are not constant."""
    varies = [len(np.unique(column[~np.isnan(column)])) > 1 for column in table.T]
    return table[:, np.array(varies, dtype=np.bool_)]


def _to_numbers(values: pl.Series) -> Floats:
    numbers = values.cast(pl.Float64).fill_null(float("nan"))
    return numbers.clip(-_LARGEST, _LARGEST).to_numpy()


def _describe_text(values: pl.Series) -> list[Floats]:
    from groundfault.slicing.embedding import embed

    texts = values.cast(pl.String).fill_null("")
    counts = [
        _to_numbers(texts.str.len_chars()),
        _to_numbers(texts.str.count_matches(r"\d+")),
        _to_numbers(texts.str.count_matches(r"\n")),
    ]
    try:
        words = embed(texts.to_list(), dimensions=_DIMENSIONS)
    except InputError:
        # no word stands in two texts: codes, say, or single characters
        return counts
    return [*counts, *words.T]
