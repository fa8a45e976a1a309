"""Prepare an audit: freeze candidates, resolve the plan, and refuse inputs that cannot be judged.

Only counts are known of evidence in an engine. `require_counts_enough` is the single place that
refuses requests that need rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from groundfault import judges
from groundfault.auditing.copies import join_copies
from groundfault.auditing.counted_audit import JOINT_JUDGE, MAX_JOINT, CountedAudit
from groundfault.auditing.counting import GRADED_JUDGES, MAX_DEALT, is_graded
from groundfault.auditing.lazy_evidence import LazyEvidence
from groundfault.auditing.prepared_audit import PreparedAudit
from groundfault.base.progress import Progress
from groundfault.core.candidate import Candidate, Library
from groundfault.core.evidence import Evidence
from groundfault.core.judge import Judge
from groundfault.core.plan import Plan
from groundfault.core.roles import Roles
from groundfault.core.units import average_losses
from groundfault.errors import InputError, PlanError, RuleError, attempt
from groundfault.judges import choose_judge

JUDGES = ("holm", "bh", "by", "split-holm", "janus", "janus-a", "janus-lite")
"""Judges that read only contingency tables."""

_MAX_PATTERNS = 1000
"""Combinations of candidates among the rows of the sample, beyond which all rows have too many."""


def prepare(
    evidence: Evidence | LazyEvidence,
    plan: Plan | None = None,
    candidates: Iterable[Candidate] | None = None,
    *,
    finders: Sequence[Any] | None = None,
    compare: tuple[str, str] | None = None,
    progress: Progress | None = None,
) -> PreparedAudit:
    """Freeze everything that is decided before the holdout is read, and check it.

    Parameters
    ----------
    evidence : Evidence or LazyEvidence
        In lazy evidence each row is a unit. Finders and leak checks see a sample of about 20,000
        discovery rows, drawn by the plan's seed and the rows' ids. The engine and polars both
        evaluate every candidate on this sample.
    plan : Plan, optional
    candidates : iterable of Candidate, optional
        Candidates to judge. Without candidates and finders, the default finders propose.
    finders : sequence of finder or str, optional
        Finders that propose further candidates from the discovery units. With a judge without a
        holdout they see all units, but no outcomes.
    compare : pair of str, optional
        Two models to compare on the examples both answered.
    progress : callable, optional
        Called with a message before each finder.

    Raises
    ------
    InputError
        If all models are held out, or two compared models share no example.
    PlanError
        If a judge or finder is unknown, or needs rows that an engine does not give.
    """
    by_default = candidates is None and finders is None
    finders, declarations = list_finders(candidates, finders), list(candidates or ())
    start: PreparedAudit
    if isinstance(evidence, LazyEvidence):
        needs = evidence, plan, declarations, finders
        start = _start_counting(evidence, *require_counts_enough(*needs, compare=compare))
    else:
        mining = any(map(looks_at_outcomes, finders))
        start = start_audit(evidence, plan, compare=compare, candidates=declarations, mining=mining)
    if finders and start.plan.holdout_axis == "models" and start.discovery_evidence is None:
        raise InputError(
            "all models are held out, so no model is left to find candidates in: name "
            "candidates, or leave some models for discovery"
        )
    proposals = start.propose(finders, declarations, progress=progress, leave_out=True)
    library = Library.of([*declarations, *proposals])
    for candidate in library:
        require_cause(start, candidate)
    own_rules = () if by_default else tuple(c.name for c in library)
    audit = start.with_library(library, own_rules)
    if isinstance(audit, CountedAudit):
        return _settle_counting(audit)
    _require_fresh_holdout(start, library)
    return audit


def start_audit(
    evidence: Evidence,
    plan: Plan | None = None,
    *,
    compare: tuple[str, str] | None = None,
    candidates: Sequence[Candidate] = (),
    mining: bool = True,
) -> PreparedAudit:
    """Prepare everything but the candidates.

    Parameters
    ----------
    evidence, plan, compare
        As in `prepare`.
    candidates : sequence of Candidate
        Named candidates.
    mining : bool
        Whether a finder will look at outcomes; the judge ``auto`` then has a holdout.

    Raises
    ------
    InputError, PlanError
        As `prepare`.
    """
    plan, failures, discovery = plan or Plan(), list[str](), None
    evidence = attempt(failures, "the search for copies", evidence, join_copies, evidence)
    if plan.holdout_axis == "models":
        if compare:
            raise PlanError("a comparison needs both of its models: hold out another axis")
        names, holdout = plan.split_models(evidence)
        plan = replace(plan, holdout_models=holdout)  # so that the seal covers the drawn models
        discovery = evidence.select_model(*names) if names else None
        evidence = evidence.select_model(*holdout)
    if compare:
        evidence = evidence.select_model(*compare)
        if len(set(compare)) < 2:
            raise PlanError("compare needs two different models")
        if plan.effect != "risk_difference":
            raise PlanError("a comparison is of differences: leave the effect (--effect) out")
        if plan.within:
            raise PlanError(
                "a comparison holds every column fixed, since it compares each example with "
                "itself: leave within (--within) out"
            )
        unscored = np.isnan(average_losses(evidence)).all(axis=1)
        if unscored.any():
            name = evidence.models[int(unscored.argmax())]
            raise InputError(
                f"no example of model {name!r} was scored: a comparison needs two runs"
            )
    # the hash is of all rows: few audits need it here
    mined = mining or any(c.mined and c.is_mined_from(evidence.outcome_hash) for c in candidates)
    plan, judge, reason = _resolve_judge(plan, evidence.roles, mined=mined)
    if compare and not getattr(judge, "compares", False):
        raise PlanError(
            f"judge {judge.name} cannot compare two models: it permutes units, which does not test "
            "changes within units; judge by max-t, holm or split-holm, or name no judge"
        )
    audit = PreparedAudit(
        evidence,
        Library(()),
        plan,
        judge,
        compare,
        discovery,
        judge_reason=reason,
        failures=failures,
    )
    if judge.name == "multisplit-e" and audit.strata is not None:
        raise PlanError(
            "multisplit-e needs groups of like size and holds no column fixed; judge by max-t, "
            "holm or janus"
        )
    return audit


def require_counts_enough(
    lazy: LazyEvidence,
    plan: Plan | None,
    candidates: Iterable[Candidate],
    finders: Sequence[Any],
    *,
    compare: tuple[str, str] | None = None,
    robustness: int = 0,
) -> tuple[Plan, Judge, str]:
    """Refuse requests that need single rows before any row is read: an engine gives only counts.

    Parameters
    ----------
    lazy : LazyEvidence
    plan, candidates, finders, compare
        As in `prepare`.
    robustness : int
        Splits to repeat the rule over.

    Returns
    -------
    plan : Plan
        Resolved for its judge.
    judge : Judge
    reason : str
        Reason for the judge if the plan left it open; else empty.

    Raises
    ------
    PlanError
        If the judge or another setting needs rows, or does not take means of groups.
    """
    if compare or robustness:
        raise PlanError(
            "a comparison (--compare) and repeats (--robustness) need single rows, and an "
            "engine gives counts: leave them out, or audit a sample in memory"
        )
    mined = any(map(looks_at_outcomes, finders)) or any(one.mined for one in candidates)
    named, judge, reason = _resolve_judge(plan or Plan(), lazy.roles, mined=mined)
    axis = named.holdout_axis
    needs = {
        f"judge {judge.name} needs": judge.name not in (*JUDGES, JOINT_JUDGE),
        "within (--within) needs": bool(named.within),
        "decoys that are drawn (--decoys) need": named.decoys is not None,
        f"to hold out {axis} (--holdout-axis) needs": axis != "examples",
    }
    for words, is_asked in needs.items():
        if is_asked:
            raise PlanError(
                f"{words} single rows, and an engine gives counts: judge by "
                f"{', '.join(JUDGES)}, or {JOINT_JUDGE} up to {MAX_JOINT} candidates, hold out "
                "examples, or audit a sample in memory"
            )
    if lazy.is_grouped and not reason and judge.name not in GRADED_JUDGES:
        raise PlanError(
            f"means of groups are graded, and {judge.name} counts failures: judge by "
            f"{', '.join(GRADED_JUDGES)}, or audit a sample in memory"
        )
    return named, judge, reason


def list_finders(
    candidates: Iterable[Candidate] | None, finders: Sequence[Any] | None
) -> Sequence[Any]:
    """Return the named finders; the default ones without named finders and candidates."""
    from groundfault.finders import DEFAULT

    if finders is not None:
        return finders
    return DEFAULT if candidates is None else ()


def looks_at_outcomes(finder: Any) -> bool:
    """Return whether a finder, given itself or by name, looks at outcomes."""
    from groundfault.finders import get

    maker = get(finder.partition(":")[0]) if isinstance(finder, str) else finder
    return bool(getattr(maker, "uses_outcomes", False))


def require_cause(audit: PreparedAudit, candidate: Candidate) -> None:
    """Raise if a candidate explains failures by a consequence of failing."""
    roles, start = audit.evidence.roles, f"candidate {candidate.name!r} reads"
    for column in candidate.columns:
        if column in (roles.outcome, roles.status):
            raise RuleError(f"{start} the outcome: {candidate.rule!r} explains failures by failing")
        if column in roles.post_outcome:
            raise RuleError(f"{start} {column!r}, which was declared to follow from the outcome")
        if column in roles.during:
            raise RuleError(f"{start} {column!r}, which says how runs fail, and not where")
        if column in audit.leaks:
            raise RuleError(
                f"{start} {column!r}, which predicts {audit.leaks[column]:.0%} of the rarer "
                "outcome, so it is likely to follow from the outcome; allow_leakage "
                "(--allow-leakage) lets it be judged all the same"
            )


def _require_fresh_holdout(audit: PreparedAudit, library: Library) -> None:
    """Raise unless a mined candidate has units that its finder did not see, or other outcomes."""
    for candidate in library:
        is_mined = candidate.mined and not audit.is_mined_here(candidate)
        if is_mined and candidate.is_mined_from(audit.evidence.outcome_hash):
            raise PlanError(
                f"candidate {candidate.name!r} was mined from other units of this evidence than "
                f"judge {audit.judge.name} now has for discovery, so the holdout is not fresh: take"
                " a judge with a holdout and split as then (--seed, --holdout, --split), or other "
                "evidence"
            )


def _resolve_judge(plan: Plan, roles: Roles, *, mined: bool) -> tuple[Plan, Judge, str]:
    """Return the plan with its judge and the judge's defaults, the judge, and the reason for it."""
    plan, reason = choose_judge(plan, roles, mined=mined)
    judge = judges.get(plan.judge, plan.judge_settings)
    gated = judge.confirmation != "none"
    return plan.resolve(lift_ranked=judge.lift_ranked, gated=gated), judge, reason


def _start_counting(lazy: LazyEvidence, plan: Plan, judge: Judge, reason: str) -> CountedAudit:
    """Prepare everything but the candidates, on a sample of the discovery rows."""
    rows = int(lazy.counter.counts([], {}).rows.sum())
    if not rows:
        raise InputError(f"{lazy.provenance[0]} has no rows")
    sample = lazy.take(lazy.find_sample(plan, rows, holdout=judge.confirmation != "none"))
    return CountedAudit(sample, Library(()), plan, judge, judge_reason=reason, lazy=lazy, rows=rows)


def _settle_counting(audit: CountedAudit) -> CountedAudit:
    """Check the library, and find candidates whose values in the engine differ."""
    library = audit.library
    library.require_columns(audit.evidence.frame.columns, where="the evidence")
    if audit.judge_reason and audit.judge.name == JOINT_JUDGE:
        audit = _replace_judge(audit)
    if audit.judge.name == JOINT_JUDGE and len(library) > MAX_JOINT:
        raise PlanError(
            f"there are {len(library)} candidates, and {JOINT_JUDGE} on counts takes at most "
            f"{MAX_JOINT}, since it counts all their combinations: name fewer, or judge by holm"
        )
    fitted = next((c.name for c in library if c.fitted_column is not None), None)
    if fitted is not None:
        raise InputError(
            f"candidate {fitted!r} reads a column that a finder fitted in Python, which no engine "
            "can evaluate; leave that finder out"
        )
    audit.require_countable(audit.sample_losses)
    rules = {candidate.name: candidate.parsed for candidate in library}
    return replace(audit, disagreements=audit.find_disagreements(rules))


def _replace_judge(audit: CountedAudit) -> CountedAudit:
    """Replace max-t by holm if candidates cannot be counted jointly."""
    rules = [candidate.parsed.to_polars() for candidate in audit.library]
    graded = audit.groups is not None or is_graded(audit.sample_losses)
    too_many = graded or len(rules) > MAX_JOINT
    if not too_many:
        named = (rule.alias(str(i)) for i, rule in enumerate(rules))
        too_many = audit.evidence.frame.select(named).n_unique() > _MAX_PATTERNS
    if not too_many and audit.rows < MAX_DEALT:
        return audit
    before, _, _ = audit.judge_reason.rpartition(": ")
    why = (
        f"{'losses' if audit.groups is None else 'means of groups'} are graded, and max-t counts "
        "failures"
        if graded
        else f"the combinations of {len(rules)} candidates in {audit.rows:,} rows, which max-t "
        "counts, are too many"
    )
    plan, judge = replace(audit.plan, judge="holm"), judges.get("holm")
    reason = f"{before}: judged by holm, since {why}"
    return replace(audit, plan=plan, judge=judge, judge_reason=reason)
