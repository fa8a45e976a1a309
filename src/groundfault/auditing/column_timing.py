"""Decide when a column was known, by its name and by its prediction of the outcome (a leak)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.core.candidate import Candidate, Library
from groundfault.core.column_meaning import (
    describes_answer,
    happens_during,
    holds_question,
    list_conversations,
    names_other_score,
    names_outcome,
)
from groundfault.core.columns import LEVELS, take_sample
from groundfault.core.evidence import Evidence
from groundfault.core.rules import Rule
from groundfault.core.units import Marks
from groundfault.modes.examples import split_conditions
from groundfault.stats import bits

LEAK = 0.95
"""Share of the rarer outcome that a column or a rule may predict before it counts as a consequence
of it. A slice that fails nine times of ten reaches 0.89, and only if all other units pass."""
SUSPECT = 0.75
"""Share from which the report asks whether the column was known before the answer."""
MIN_FAILURES = 10
"""Observations of each outcome that the test needs."""


class Timing(StrEnum):
    """Time at which the value of a column became known."""

    KNOWN = "known before the answer"
    DURING = "known while it ran"
    MEASURED = "measured with it"
    FOLLOWS = "follows from it"


OPTIONS = {
    Timing.KNOWN: ("allow_leakage", "--allow-leakage"),
    Timing.DURING: ("during", "--during"),
    Timing.MEASURED: ("instrument", "--instrument"),
    Timing.FOLLOWS: ("post_outcome", "--post-outcome"),
}
"""Argument and option that assign a column to each stage."""


@dataclass(frozen=True)
class ColumnStage:
    """The part that a column plays in an audit, and the reason.

    Attributes
    ----------
    column : str
    stage : Timing
    reason : str
        "declared", "by its name", or how well it predicts the outcome; empty for a column without
        signs against being known before the answer.
    suspect : bool
        Whether the column predicts much of the outcome, or decides it, and its name does not tell
        its timing: only a person can say whether it was known before the answer.
    """

    column: str
    stage: Timing
    reason: str = ""
    suspect: bool = False


def find_stages(evidence: Evidence, shares: Mapping[str, float]) -> tuple[ColumnStage, ...]:
    """Return the part of each column, in the order of the table.

    Declarations come first, then the format of a log, then data, then names. A column that predicts
    the outcome almost perfectly counts as a consequence of the outcome, unless it is trusted.
    Columns with a role (id, model, ...) and ignored columns have no stage.

    Parameters
    ----------
    evidence : Evidence
    shares : mapping of str to float
        How well columns predict the outcome, from `measure_columns`.
    """
    roles = evidence.roles
    told = list_conversations(evidence.frame)
    declared = {*roles.instrument, *roles.post_outcome, *roles.during}
    columns = {*evidence.attributes, *declared, *told}
    return tuple(
        ColumnStage(name, Timing.DURING, "holds what was said and done")
        if name in told
        else _find_stage(name, evidence, shares.get(name, 0.0))
        for name in evidence.frame.columns
        if name in columns and name not in roles.columns and name not in roles.ignore
    )


def _find_stage(name: str, evidence: Evidence, share: float) -> ColumnStage:
    roles = evidence.roles
    if name in roles.post_outcome:
        return ColumnStage(name, Timing.FOLLOWS, "declared")
    if name in roles.during:
        return ColumnStage(name, Timing.DURING, "declared")
    if name in roles.allow_leakage:
        return ColumnStage(name, Timing.KNOWN, "declared")
    if name in roles.known:
        return ColumnStage(name, Timing.KNOWN, "by the format of the log")
    if happens_during(name):
        return ColumnStage(name, Timing.DURING, "by its name")
    of_answer = describes_answer(name) or names_other_score(name, roles.outcome)
    if share >= LEAK:
        is_told = of_answer or name in roles.instrument or names_outcome(name)
        return ColumnStage(name, Timing.FOLLOWS, describe_share(share), not is_told)
    suspect = share >= SUSPECT
    if name in roles.instrument:
        return ColumnStage(name, Timing.MEASURED, "declared", suspect)
    if names_outcome(name):
        return ColumnStage(name, Timing.FOLLOWS, "by its name")
    if of_answer:
        return ColumnStage(name, Timing.MEASURED, "by its name", suspect)
    return ColumnStage(name, Timing.KNOWN, describe_share(share) if suspect else "", suspect)


def describe_share(share: float) -> str:
    """Return how well a column or a rule predicts the outcome, in words."""
    return f"predicts {share:.0%} of the rarer outcome"


def measure_columns(
    evidence: Evidence, columns: Iterable[str], rows: NDArray[np.bool_] | None = None
) -> dict[str, float]:
    """Return how well each column predicts the outcome.

    The measure is Goodman and Kruskal's lambda, with each observation predicted from the others.
    Words and flags predict by the majority of their level, numbers by the best single cut and, with
    few values, by their levels, texts by the best single word. A column named like the question was
    there before the answer, so its words are no leak. Graded losses count as failures above one
    half. A fixed sample of 20,000 observations is read.

    Parameters
    ----------
    evidence : Evidence
    columns : iterable of str
    rows : bool array, shape (len(evidence),), optional
        The rows to read, such as the discovery part; by default all rows.

    Returns
    -------
    dict of str to float
        The lambda of each column, in [0, 1]; empty if an outcome has fewer observations than
        `MIN_FAILURES`.
    """
    is_scored = evidence.loss.is_not_null().to_numpy()
    sample_rows = take_sample(
        pl.DataFrame({"row": np.flatnonzero(is_scored if rows is None else is_scored & rows)})
    )["row"]
    failures = evidence.loss[sample_rows].to_numpy() > 0.5
    rarer = min(int(failures.sum()), int((~failures).sum()))
    if rarer < MIN_FAILURES:
        return {}
    return {
        name: max(0.0, 1 - _count_mistakes(evidence.frame[name][sample_rows], failures) / rarer)
        for name in columns
    }


def measure_marks(
    evidence: Evidence, marks: Marks, rows: NDArray[np.bool_] | None = None
) -> NDArray[np.float64]:
    """Measure how well each rule predicts the outcome: float64, shape (candidates,).

    Parameters
    ----------
    evidence : Evidence
    marks : Marks
        Marks of its units.
    rows : bool array, shape (len(evidence),), optional
        The rows to read; by default all.

    Returns
    -------
    float64 array, shape (candidates,)
        Lambda, in [0, 1]; all 0 if an outcome has fewer observations than `MIN_FAILURES`.
    """
    is_scored = evidence.loss.is_not_null().to_numpy()
    kept_rows = is_scored if rows is None else is_scored & rows
    failures = evidence.loss.fill_null(0.0).to_numpy() > 0.5
    units = evidence.unit_index
    # failed and passed observations of each unit
    table = np.stack(
        [
            np.bincount(units[kept_rows & side], minlength=marks.size)
            for side in (failures, ~failures)
        ]
    ).astype(np.int64)
    total = table.sum(axis=1)
    rarer = int(total.min())
    if rarer < MIN_FAILURES:
        return np.zeros(len(marks.on))
    on = bits.sums(marks.on, table)
    defined = total[None] if marks.valid is None else bits.sums(marks.valid, table)
    # a rule predicts the majority on it, off it, and where it is not defined
    mistakes = on.min(axis=1) + (defined - on).min(axis=1) + (total - defined).min(axis=1)
    return np.asarray(np.maximum(0.0, 1 - mistakes / rarer), dtype=np.float64)


def measure_rules(
    evidence: Evidence, rules: Sequence[str], rows: NDArray[np.bool_] | None = None
) -> dict[str, float]:
    """Return how well some rules in SQL predict the outcome, like `measure_marks`."""
    library = Library.of([Candidate(sql, sql, missing="drop") for sql in dict.fromkeys(rules)])
    if not len(library):
        return {}
    shares = measure_marks(evidence, Marks.of(evidence, library), rows)
    return {one.name: float(share) for one, share in zip(library, shares, strict=True)}


def find_leaking_rules(
    evidence: Evidence,
    library: Library,
    shares: NDArray[np.float64],
    rows: NDArray[np.bool_] | None = None,
) -> dict[int, float]:
    """Return candidates that predict the outcome almost perfectly, by place in the library.

    A candidate also counts if it reads the columns of a condition that does: further conditions, or
    another cut, only make a leak weaker. Candidates whose columns are all trusted
    (`groundfault.core.roles.Roles`) do not count, and neither do other rules over the question.

    Parameters
    ----------
    evidence, rows
        As in `measure_marks`.
    library : Library
    shares : float64 array, shape (candidates,)
        Result of `measure_marks` for its marks.

    Returns
    -------
    dict of int to float
        Lambda of the candidate, or of the condition, at least `LEAK`.
    """
    by_rule = {one.parsed.sql: float(s) for one, s in zip(library, shares, strict=True)}
    named = [one for one in library if one.source == "declared" and one.fitted_column is None]
    conditions = [sql for one in named for sql in _list_conditions(one)]
    by_rule |= measure_rules(evidence, conditions, rows)
    leaking = {rule: share for rule, share in by_rule.items() if share >= LEAK}
    # conditions over the same columns share their prediction of the outcome
    of_columns = {
        frozenset(Rule.parse(rule).columns): share
        for rule, share in leaking.items()
        if " AND " not in rule
    }
    allowed = evidence.roles.trusted
    of_columns = {
        names: share
        for names, share in of_columns.items()
        if not names <= allowed and not all(map(holds_question, names))
    }
    leaks = {}
    for place, candidate in enumerate(library):
        names = set(candidate.columns)
        shares_of = [share for each, share in of_columns.items() if each <= names]
        share = max([leaking.get(candidate.parsed.sql, 0.0), *shares_of])
        if share >= LEAK and not names <= allowed:
            leaks[place] = share
    return leaks


def _list_conditions(candidate: Candidate) -> tuple[str, ...]:
    """Return the parts of a rule that AND joins; empty if it has a single part."""
    sql = candidate.parsed.sql
    parts = split_conditions(sql) if " AND " in sql else ()
    return parts if len(parts) > 1 else ()


def _count_mistakes(values: pl.Series, failures: NDArray[np.bool_]) -> int:
    """Count the fewest observations that a prediction from the column gets wrong."""
    levels = 0 if values.dtype.is_nested() else values.n_unique()
    best = len(failures)
    if levels < 2:
        return best
    if levels <= LEVELS:
        best = _mistakes_by_level(values, failures)
    elif values.dtype == pl.String and not holds_question(values.name):
        best = count_word_mistakes(values, failures)
    if values.dtype.is_numeric():
        best = min(best, _mistakes_by_cut(values, failures))
    return best


def _mistakes_by_level(values: pl.Series, failures: NDArray[np.bool_]) -> int:
    if values.dtype != pl.Boolean or values.has_nulls():  # flags are ranked slowly
        values = values.cast(pl.String).fill_null("\0").rank("dense")
    codes = values.to_numpy().astype(np.intp)
    size = np.bincount(codes)
    fails = np.bincount(codes, weights=failures)
    rarer = np.minimum(fails, size - fails)
    # leave-one-out: without itself, the majority of a tied level is the other outcome, so a column
    # of ids, with one row a level, predicts no outcome
    is_tied = np.abs(2 * fails - size) <= 1
    return int(np.where(is_tied, size, rarer).sum())


def _mistakes_by_cut(values: pl.Series, failures: NDArray[np.bool_]) -> int:
    defined = values.is_not_null().to_numpy()
    if defined.sum() < 2 or not defined.any():
        return len(failures)
    missing = failures[~defined]
    aside = min(int(missing.sum()), int((~missing).sum()))
    numbers = values.filter(pl.Series(defined)).to_numpy().astype(float)
    order = np.argsort(numbers, kind="stable")
    numbers, fails = numbers[order], failures[defined][order]
    below = np.cumsum(fails)[:-1]  # failures up to each cut
    count = np.arange(1, len(fails))
    # correct predictions of "fails below the cut"; its opposite is correct on the others
    right = below + ((len(fails) - count) - (fails.sum() - below))
    cuts = numbers[1:] > numbers[:-1]
    if not cuts.any():
        return len(failures)
    best = np.maximum(right, len(fails) - right)[cuts].max()
    return aside + len(fails) - int(best)


_WORD = re.compile(r"\w+")
_TEXTS = 4000  # texts that are read: of so many a share of 95 % is known to .7 points
_READ = 5000  # characters of a text: a remark that tells the outcome begins with it


def count_word_mistakes(texts: pl.Series, failures: NDArray[np.bool_]) -> int:
    """Count the fewest observations that a prediction from one word's presence gets wrong.

    Parameters
    ----------
    texts : polars.Series
        Strings; a missing one has no word.
    failures : bool array, shape (len(texts),)

    Returns
    -------
    int
        Number over all texts, scaled up if only a sample of 4,000 was read.

    Examples
    --------
    >>> remarks = pl.Series(["is incorrect", "all fine", "incorrect again", "fine, no error"])
    >>> count_word_mistakes(remarks, np.array([True, False, True, False]))
    0
    """
    step = -(-len(texts) // _TEXTS)
    sample, fails = texts.gather_every(step), failures[::step]
    counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for text, failed in zip(sample.str.slice(0, _READ).fill_null("").to_list(), fails, strict=True):
        counts[bool(failed)].update(set(_WORD.findall(text.lower())))
    totals = len(fails) - int(fails.sum()), int(fails.sum())
    best = min(totals)
    for word in counts[0].keys() | counts[1].keys():
        inside = counts[0][word], counts[1][word]
        outside = totals[0] - inside[0], totals[1] - inside[1]
        best = min(best, min(inside) + min(outside))
    return round(best * len(texts) / max(len(fails), 1))
