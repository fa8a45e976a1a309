"""The grader: decide whether properties of answers are evidence for a fault of the grader."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.auditing.column_timing import Timing
from groundfault.auditing.prepared_audit import PreparedAudit, tabulate_units
from groundfault.auditing.report_schema import GraderEvidence
from groundfault.auditing.results import AuditResults
from groundfault.base.machine import enough_openmp_threads
from groundfault.core.candidate import Candidate
from groundfault.core.column_names import holds_answer, split_words
from groundfault.core.columns import Kind, profile
from groundfault.core.finding import Finding
from groundfault.errors import InputError, list_some
from groundfault.stats import bits, contingency

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
            f"these findings describe the answers and not the examples: {list_some(names, 3)}; "
            "hard questions get long answers, and equally hard examples show no fault of the "
            "grader, or difficulty is unknown"
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
    results: AuditResults, outcome: int, candidates: NDArray[np.intp], difficulty: Difficulty
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
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


Floats = NDArray[np.float64]

STRATA = 10
"""Strata of like difficulty, at most."""
_FOLDS = 5  # the usual number: four fifths of the units predict the others
_FEWEST = 20
"""Units that a stratum has on average, at least."""
_DIMENSIONS = 16
"""Of the words of a text."""
_LARGEST = 1e300
"""In place of infinity, of which trees cannot take the mean with another value."""


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

    strata: NDArray[np.int64]
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
