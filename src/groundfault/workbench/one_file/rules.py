"""The rules of a report on the rows of one file: who fails inside, who passes, who nearly is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.auditing.prepared_audit import PreparedAudit
from groundfault.auditing.report import Report
from groundfault.auditing.report_examples import mark_rule, select_subject_losses
from groundfault.auditing.unit_table import tabulate_units
from groundfault.core.finding import Finding
from groundfault.core.rules import Rule
from groundfault.modes.examples import find_failures
from groundfault.modes.mode import Mode
from groundfault.modes.near_misses import NearMiss, find_near_misses
from groundfault.render.highlights import find_patterns, find_spans
from groundfault.workbench.subjects import Subject, list_subjects

Bools = NDArray[np.bool_]

_MAX_ORDER = 300
"""Near misses that are put in order of distance: six pages of the file."""


@dataclass(frozen=True)
class FileRule:
    """A rule on the rows of a file: where each of its conditions holds, and what counts as wrong.

    A row is inside where all conditions hold, and a near miss where all do but one.

    Attributes
    ----------
    subject : Subject
        A mode, a finding that faces its failures, or all rows.
    conditions : tuple of (str, bool array of shape (rows,))
        What AND joins, in words where the rule has some.
    here : bool array, shape (rows,)
        Rows that were scored, of the model that the rule is of.
    wrong : bool array, shape (rows,)
        Those of them that count as failing.
    unscored : int
        Rows inside that were not scored.
    first : tuple of int
        Rows to be shown first, in this order: the report's examples, and of near ones those next
        across a threshold.
    is_single : bool
        Whether there is one condition without a threshold: whatever is outside then misses it.
    """

    subject: Subject
    conditions: tuple[tuple[str, Bools], ...]
    here: Bools
    wrong: Bools
    unscored: int
    first: tuple[int, ...]
    is_single: bool = False


def list_rules(
    report: Report, case: PreparedAudit, names: tuple[str, ...], rows: NDArray[np.intp]
) -> Iterator[FileRule]:
    """Yield the failure modes, the findings of some names, and last all rows.

    Parameters
    ----------
    report : Report
    case : PreparedAudit
        Its evidence, as it was judged.
    names : tuple of str
        Candidates whose findings are listed, for every outcome.
    rows : intp array, shape (rows,)
        Places in the evidence.
    """
    places = _index_ids(case, rows)
    for subject in list_subjects(report, names):
        yield _sort_rows(report, case, subject, rows, places)
    losses = case.evidence.loss.to_numpy()[rows]
    scored = ~np.isnan(losses)
    wrong = find_failures(losses, scored) & scored
    yield FileRule(Subject(""), (), scored, wrong, int((~scored).sum()), ())


def _sort_rows(
    report: Report,
    case: PreparedAudit,
    subject: Subject,
    rows: NDArray[np.intp],
    places: dict[str, list[int]],
) -> FileRule:
    of, units = subject.mode.mode if subject.mode else subject.of, case.evidence.unit_index[rows]
    assert isinstance(of, Mode | Finding)
    inside = mark_rule(report, case, of)[0][units]
    losses = case.evidence.loss.to_numpy()[rows]
    if case.compare:
        # what changed as the finding says, shown on the second model's answers
        losses = select_subject_losses(of, case)[units]
    of_model = _select_model(case, subject.outcome, rows)
    here = of_model & ~np.isnan(losses)
    misses = _find_misses(case, subject)
    conditions = tuple((text, holds[units]) for text, (holds, _) in misses.items())
    if not conditions or not np.array_equal(np.all([c for _, c in conditions], axis=0), inside):
        # its judge took missing values otherwise, or it reads what a finder fitted
        conditions = ((subject.rule, inside),)
    distances = [miss.distance[units] for _, miss in misses.values() if miss.distance is not None]
    sample = of.sample if isinstance(of, Mode) else ()
    typical = [row for e in sample for row in places.get(e.id, ()) if of_model[row]]
    return FileRule(
        subject,
        conditions,
        here,
        find_failures(losses, inside & here) & here,
        int((inside & of_model & ~here).sum()),
        tuple(dict.fromkeys([*typical, *_order_near(distances, here)])),
        len(conditions) == 1 and not distances,
    )


def _find_misses(case: PreparedAudit, subject: Subject) -> dict[str, tuple[Bools, NearMiss]]:
    """Return by condition the units that match it, and the near misses that lack it alone.

    Empty for a rule that reads what units do not share."""
    frame, columns = case.evidence.frame, subject.columns
    table, _ = tabulate_units(case.evidence, [name for name in columns if name in frame.columns])
    if not set(columns) <= set(table.columns):
        return {}
    misses = find_near_misses(subject.rule, table)
    texts = subject.mode.mode.conditions if subject.mode else ()
    names = texts if len(texts) == len(misses) else tuple(miss.condition for miss in misses)
    holds = [Rule.parse(miss.condition).holds(table).to_numpy() for miss in misses]
    return dict(zip(names, zip(holds, misses, strict=True), strict=True))


def _order_near(distances: list[NDArray[np.float64]], here: Bools) -> list[int]:
    """Return the rows nearest to a threshold, the nearest first."""
    if not distances:
        return []
    nearest = np.fmin.reduce([np.where(here, one, np.nan) for one in distances])
    order = np.argsort(nearest, kind="stable")[:_MAX_ORDER]
    return [int(row) for row in order if not np.isnan(nearest[row])]


def _select_model(case: PreparedAudit, outcome: str, rows: NDArray[np.intp]) -> Bools:
    """Return the rows of the model that an outcome is of; all of them where it is of none alone."""
    evidence, name = case.evidence, case.compare[1] if case.compare else outcome
    column = evidence.roles.model
    if column is None or name not in evidence.models:
        return np.ones(len(rows), dtype=np.bool_)
    return (evidence.frame[column].cast(pl.String) == name).to_numpy()[rows]


def _index_ids(case: PreparedAudit, rows: NDArray[np.intp]) -> dict[str, list[int]]:
    """Return rows of each example that the report shows."""
    column = case.evidence.frame[case.evidence.roles.id or ""].cast(pl.String).to_list()
    places: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault(column[row], []).append(place)
    return places


Spans = dict[int, list[int]]
"""By place of a text: start and length of each mark, in UTF-16 units, one after another."""

# as `groundfault.render.highlights.highlight`: a pattern that matches most of a text marks nothing
_MAX_SHARE = 0.5
_SHORT = 40  # characters: a short text may be marked whole
_MAX_WORDS = 50
"""Words of a pattern that a page searches for itself; of more it is told the places."""


def find_rule_marks(texts: Mapping[str, pl.Series], rule: str) -> dict[str, list[str] | Spans]:
    """Return by column the words that a rule marks everywhere, or else the places of its marks.

    Parameters
    ----------
    texts : mapping of str to polars.Series of String
        By column, as they are written: those that repeat once.
    rule : str
        In SQL.

    Examples
    --------
    >>> texts = {"q": pl.Series(["nothing is not", "so"])}
    >>> find_rule_marks(texts, r"q ~ '\\bnot\\b'"), find_rule_marks(texts, "q ~ 'not'")
    ({'q': ['not']}, {'q': {0: [0, 3, 11, 3]}})
    """
    marks: dict[str, list[str] | Spans] = {}
    for column, patterns in find_patterns(rule).items():
        if column in texts:
            some = texts[column].fill_null("")
            marks[column] = _find_words(some, patterns) or _find_places(some, patterns)
    return marks


def _find_words(texts: pl.Series, patterns: Sequence[str]) -> list[str]:
    """Return the words that patterns match; none if they match parts, or not all of these."""
    words: set[str] = set()
    for pattern in patterns:
        try:
            some = texts.str.extract_all(pattern).explode().drop_nulls().unique()
            if len(some) > _MAX_WORDS or not some.str.contains(r"^\w+$").all():
                return []
            whole = rf"\b({'|'.join(some)})\b"
            if not (_sign(texts, pattern) == _sign(texts, whole)).all():
                return []
        except pl.exceptions.PolarsError:  # it cannot be read, or the words are too long for one
            return []
        words.update(some)
    return sorted(words)


def _sign(texts: pl.Series, pattern: str) -> pl.Series:
    """Return texts with their matches between characters that `encode_column` leaves in none."""
    return texts.str.replace_all(pattern, "\0${0}\0")


def _find_places(texts: pl.Series, patterns: Sequence[str]) -> Spans:
    spans: Spans = {}
    # in the order of the text, whichever pattern finds them
    for row, *ends in sorted(chain.from_iterable(_list_places(texts, p) for p in patterns)):
        spans.setdefault(row, []).extend(ends)
    return spans


def _list_places(texts: pl.Series, pattern: str) -> Iterator[tuple[int, int, int]]:
    try:
        rows = texts.str.contains(pattern).arg_true()
    except pl.exceptions.PolarsError:
        return
    some = texts[rows]
    for row, text, places in zip(rows, some, find_spans(some, pattern), strict=True):
        if len(text) > _SHORT and sum(b - a for a, b in places) > _MAX_SHARE * len(text):
            continue
        for start, end in places:
            yield row, count_units(text[:start]), count_units(text[start:end])


def count_units(text: str) -> int:
    """Return the length of a text in UTF-16: what lies beyond the first plane counts twice.

    Examples
    --------
    >>> count_units("a😀")
    3
    """
    return len(text) if text.isascii() else len(text) + sum(c > "\uffff" for c in text)
