"""The rules of a report on the rows of one file: who fails inside, who passes, who nearly is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.auditing.prepared import PreparedAudit
from groundfault.auditing.report import Report
from groundfault.auditing.report_examples import mark_rule, select_subject_losses
from groundfault.auditing.unit_table import tabulate_units
from groundfault.core.finding import Finding
from groundfault.core.rules import Rule
from groundfault.modes.examples import find_failures
from groundfault.modes.mode import Mode
from groundfault.modes.near_misses import NearMiss, find_near_misses

Bools = NDArray[np.bool_]

_MAX_ORDER = 300


@dataclass(frozen=True)
class FileRule:
    """A rule on the rows of a file: where each of its conditions holds, and what counts as wrong.

    A row is inside where all conditions hold, and a near miss where all do but one.

    Attributes
    ----------
    subject : Mode, Finding or None
        What the rule is of; a finding faces its failures. None for all rows, whatever the rule.
    number : int
        Of a mode in the report, from 1; 0 for a finding.
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

    subject: Mode | Finding | None
    number: int
    conditions: tuple[tuple[str, Bools], ...]
    here: Bools
    wrong: Bools
    unscored: int
    first: tuple[int, ...]
    is_single: bool = False


def list_rules(
    report: Report, case: PreparedAudit, names: tuple[str, ...], rows: NDArray[np.intp]
) -> Iterator[FileRule]:
    """The failure modes, the findings of some names, and last all rows, whatever the rule.

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
    for number, mode in enumerate(report.modes, 1):
        yield _sort_rows(report, case, mode, number, rows, places)
    for finding in report.findings:
        if finding.name in names:
            face = finding.face_failures(report.plan.effect)
            yield _sort_rows(report, case, face, 0, rows, places)
    losses = case.evidence.loss.to_numpy()[rows]
    scored = ~np.isnan(losses)
    wrong = find_failures(losses, scored) & scored
    yield FileRule(None, 0, (), scored, wrong, int((~scored).sum()), ())


def _sort_rows(
    report: Report,
    case: PreparedAudit,
    subject: Mode | Finding,
    number: int,
    rows: NDArray[np.intp],
    places: dict[str, list[int]],
) -> FileRule:
    units = case.evidence.unit_index[rows]
    inside = mark_rule(report, case, subject)[0][units]
    losses = case.evidence.loss.to_numpy()[rows]
    if case.compare:
        # what changed as the finding says, shown on the second model's answers
        losses = select_subject_losses(subject, case)[units]
    of_model = _select_model(case, subject.outcome, rows)
    here = of_model & ~np.isnan(losses)
    misses = _find_misses(case, subject)
    conditions = tuple((text, holds[units]) for text, (holds, _) in misses.items())
    if not conditions or not np.array_equal(np.all([c for _, c in conditions], axis=0), inside):
        # its judge took missing values otherwise, or it reads what a finder fitted
        conditions = ((subject.rule, inside),)
    distances = [miss.distance[units] for _, miss in misses.values() if miss.distance is not None]
    sample = subject.sample if isinstance(subject, Mode) else ()
    typical = [row for e in sample for row in places.get(e.id, ()) if of_model[row]]
    return FileRule(
        subject,
        number,
        conditions,
        here,
        find_failures(losses, inside & here) & here,
        int((inside & of_model & ~here).sum()),
        tuple(dict.fromkeys([*typical, *_order_near(distances, here)])),
        len(conditions) == 1 and not distances,
    )


def _find_misses(case: PreparedAudit, subject: Mode | Finding) -> dict[str, tuple[Bools, NearMiss]]:
    """By condition: the units it holds for, and the near misses that lack it alone.

    Empty for a rule that reads what units do not share."""
    columns = Rule.parse(subject.rule).columns
    frame = case.evidence.frame
    table, _ = tabulate_units(case.evidence, [name for name in columns if name in frame.columns])
    if not set(columns) <= set(table.columns):
        return {}
    misses = find_near_misses(subject.rule, table)
    texts = subject.conditions if isinstance(subject, Mode) else ()
    names = texts if len(texts) == len(misses) else tuple(miss.condition for miss in misses)
    holds = [Rule.parse(miss.condition).holds(table).to_numpy() for miss in misses]
    return dict(zip(names, zip(holds, misses, strict=True), strict=True))


def _order_near(distances: list[NDArray[np.float64]], here: Bools) -> list[int]:
    """The rows nearest to a threshold, the nearest first."""
    if not distances:
        return []
    nearest = np.fmin.reduce([np.where(here, one, np.nan) for one in distances])
    order = np.argsort(nearest, kind="stable")[:_MAX_ORDER]
    return [int(row) for row in order if not np.isnan(nearest[row])]


def _select_model(case: PreparedAudit, outcome: str, rows: NDArray[np.intp]) -> Bools:
    """The rows of the model that an outcome is of; all of them where it is of none alone."""
    evidence, name = case.evidence, case.compare[1] if case.compare else outcome
    column = evidence.roles.model
    if column is None or name not in evidence.models:
        return np.ones(len(rows), dtype=np.bool_)
    return (evidence.frame[column].cast(pl.String) == name).to_numpy()[rows]


def _index_ids(case: PreparedAudit, rows: NDArray[np.intp]) -> dict[str, list[int]]:
    """Rows of each example that the report shows."""
    column = case.evidence.frame[case.evidence.roles.id or ""].cast(pl.String).to_list()
    places: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault(column[row], []).append(place)
    return places
