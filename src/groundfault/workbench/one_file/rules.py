"""The rules of a report on the rows of one file: who fails inside, who passes, who nearly is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

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
    """A rule on the rows of a file.

    Attributes
    ----------
    subject : Mode, Finding or None
        What the rule is of; a finding faces its failures. None for all rows, whatever the rule.
    number : int
        Of a mode in the report, from 1; 0 for a finding.
    failing, passing : bool array, shape (rows,)
        Inside the rule and wrong, inside it and right. Rows that were not scored, and those of
        other models than the rule is of, are in none of the masks.
    near : dict of str to bool array, shape (rows,)
        By the condition that alone keeps them outside, in words where the rule has some.
    unscored : int
        Rows inside that were not scored.
    units : bool array, shape (units,)
        Units of the whole evidence inside the rule.
    first : tuple of int
        Rows to be shown first, in this order: the report's examples, and of near ones those next
        across a threshold.
    """

    subject: Mode | Finding | None
    number: int
    failing: Bools
    passing: Bools
    near: dict[str, Bools]
    unscored: int
    units: Bools = field(repr=False)
    first: tuple[int, ...]


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
    yield _sort_everything(case, rows)


def _sort_rows(
    report: Report,
    case: PreparedAudit,
    subject: Mode | Finding,
    number: int,
    rows: NDArray[np.intp],
    places: dict[str, list[int]],
) -> FileRule:
    inside_units, _ = mark_rule(report, case, subject)
    units = case.evidence.unit_index[rows]
    losses = case.evidence.loss.to_numpy()[rows]
    if case.compare:
        # what changed as the finding says, shown on the second model's answers
        losses = select_subject_losses(subject, case)[units]
    here = _select_model(case, subject.outcome, rows)
    scored = here & ~np.isnan(losses)
    inside = inside_units[units] & scored
    wrong = find_failures(losses, inside) & scored
    misses = _find_misses(case, subject)
    near = {text: miss.mask[units] & scored for text, miss in misses.items()}
    distances = [miss.distance[units] for miss in misses.values() if miss.distance is not None]
    sample = subject.sample if isinstance(subject, Mode) else ()
    typical = [row for e in sample for row in places.get(e.id, ()) if here[row]]
    return FileRule(
        subject,
        number,
        inside & wrong,
        inside & ~wrong,
        near,
        int((inside_units[units] & here & ~scored).sum()),
        inside_units,
        tuple(dict.fromkeys([*typical, *_order_near(distances, scored)])),
    )


def _find_misses(case: PreparedAudit, subject: Mode | Finding) -> dict[str, NearMiss]:
    """Near misses by condition; none of a rule that reads what units do not share."""
    columns = Rule.parse(subject.rule).columns
    frame = case.evidence.frame
    table, _ = tabulate_units(case.evidence, [name for name in columns if name in frame.columns])
    if not set(columns) <= set(table.columns):
        return {}
    misses = find_near_misses(subject.rule, table)
    texts = subject.conditions if isinstance(subject, Mode) else ()
    names = texts if len(texts) == len(misses) else tuple(miss.condition for miss in misses)
    return dict(zip(names, misses, strict=True))


def _order_near(distances: list[NDArray[np.float64]], scored: Bools) -> list[int]:
    """The rows nearest to a threshold, the nearest first."""
    if not distances:
        return []
    nearest = np.fmin.reduce([np.where(scored, one, np.nan) for one in distances])
    order = np.argsort(nearest, kind="stable")[:_MAX_ORDER]
    return [int(row) for row in order if not np.isnan(nearest[row])]


def _sort_everything(case: PreparedAudit, rows: NDArray[np.intp]) -> FileRule:
    losses = case.evidence.loss.to_numpy()[rows]
    scored = ~np.isnan(losses)
    wrong = find_failures(losses, scored) & scored
    units = np.ones(case.evidence.unit_count, dtype=np.bool_)
    return FileRule(None, 0, wrong, scored & ~wrong, {}, int((~scored).sum()), units, ())


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
