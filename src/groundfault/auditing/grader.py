"""The grader: whether measured properties of answers are evidence that it is at fault."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from groundfault.auditing.difficulty import Difficulty, estimate_difficulty, tabulate_features
from groundfault.auditing.report_schema import GraderEvidence
from groundfault.auditing.results import AuditResults
from groundfault.core.candidate import Candidate
from groundfault.core.column_names import split_words
from groundfault.core.finding import Finding
from groundfault.stats import bits, lifts

SOURCE = "instrument"
SHARE_LEFT = 0.5
"""Share of the lift that has to be left among examples of like difficulty."""
EXPLAINED = 0.05
"""Share of the variance of losses that known difficulty has to explain, to be held fixed at all."""
EXPLAINABLE = 0.5
"""Share that difficulty as a whole explains: as much as the failures of forty other models on the
same questions did on real tables (0.46 to 0.56)."""

_CUT = re.compile(r"length|max_?tokens|truncat|limit|cut", re.IGNORECASE)
_CUT_OFF = "answers that were cut off or not parsed"
_LIKE = "answers of a form or length that matters among examples of like difficulty"
_FORM = "differs from the target in form alone"


def find_grader_evidence(
    results: AuditResults, findings: Sequence[Finding]
) -> tuple[GraderEvidence, ...]:
    """What speaks for a fault of the grader, among confirmed findings about answers.

    Unparsed and cut-off answers speak for themselves, and so do those that differ from the target
    in form alone. Any other property, such as a length, counts if it matters among examples of
    like difficulty: long answers go with hard questions.

    Parameters
    ----------
    results : AuditResults
    findings : sequence of Finding
        Of the audit.

    Notes
    -----
    Within strata of predicted difficulty (`estimate_difficulty`) the lift must be beyond chance
    (one-sided Mantel-Haenszel test, Bonferroni over all properties asked about, at the plan's
    alpha) and at least half of the lift over all, and some of it must be left had all of difficulty
    been held fixed. That is computed as if
    what is not known of difficulty had as much to do with the property as what is known, each
    for its share of the variance of losses (Oster 2019,
    https://doi.org/10.1080/07350015.2016.1227711, with difficulty explaining half of it). Where
    known columns explain less than 5 %, difficulty is not known, and there is no evidence. So
    a fault of the grader may go unnoticed, rather than a hard question be taken for one.
    """
    suspects = [f for f in findings if is_suspect(f)]
    if not suspects or results.audit.compare:
        return ()
    direct = tuple(_list_direct(results, suspects))
    told = {(one.name, one.outcome) for one in direct}
    rest = [f for f in suspects if (f.name, f.outcome) not in told]
    return (*direct, *_list_within_strata(results, rest))


def is_suspect(finding: Finding) -> bool:
    """Whether a finding is a confirmed one of more failures that is about answers."""
    return finding.source == SOURCE and finding.confirmed and not finding.is_strength


def write_grader_hint(
    findings: Sequence[Finding], evidence: Sequence[GraderEvidence]
) -> Iterator[str]:
    """A hint where findings about answers are no evidence of a fault of the grader."""
    names = [f.name for f in findings if is_suspect(f)]
    if names and not evidence:
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        yield (
            f"these findings describe the answers and not the examples: {', '.join(names[:3])}"
            f"{more}; long answers go with hard questions, and among examples of like difficulty "
            "nothing here speaks for a fault of the grader, or difficulty is not known"
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
    """Why a finding speaks for itself; empty where it does not."""
    if candidate.name.endswith(_FORM):
        return "answers that differ from the target in form alone"
    words = [set(split_words(column)) for column in candidate.columns]
    if all(one & {"parsed", "unparsed", "truncated"} for one in words):
        return _CUT_OFF
    is_reason = all("reason" in one for one in words)
    # where "stop" goes with fewer failures, the others were not finished
    cut = bool(_CUT.search(candidate.rule)) == ((finding.full.lift or 0.0) > 0)
    return _CUT_OFF if is_reason and cut else ""


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
        # what known difficulty took from the lift, over again for what is not known of it
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
    results: AuditResults, outcome: int, candidates: NDArray[np.intp], difficulty: Difficulty
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Lift over all and within strata towards more failures, and its z: shape (candidates,)."""
    marks = results.audit.marks.select(candidates)
    losses = results.losses[outcome]
    on = bits.unpack(marks.on, marks.size)
    scored = np.broadcast_to(~np.isnan(losses), on.shape)
    if marks.valid is not None:
        scored = scored & bits.unpack(marks.valid, marks.size)
    values = np.nan_to_num(losses)
    base = results.audit.strata
    base = np.zeros(len(losses), dtype=np.int64) if base is None else base
    plain, _ = lifts.lift(on & scored, values, base, scored)
    within, z = lifts.lift(on & scored, values, difficulty.strata, scored)
    side = np.sign(plain)
    return np.abs(plain), side * within, side * z
