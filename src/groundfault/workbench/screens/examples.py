"""Examples of a mode: what fails inside its rule, what passes inside, and what it nearly covers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from starlette.routing import Route

from groundfault.auditing.report_examples import clip_changes
from groundfault.modes.examples import choose_examples, select_losses
from groundfault.modes.near_misses import is_single
from groundfault.workbench.comparison import measure_change, select_pair
from groundfault.workbench.excerpts import LONG, RowView, show_rows
from groundfault.workbench.pages import bench_of, show_page
from groundfault.workbench.screen import Screen
from groundfault.workbench.subjects import Subject, read_subject
from groundfault.workbench.tried_rules import needs_fresh_data, try_rule

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from starlette.requests import Request
    from starlette.responses import Response

    from groundfault.modes.near_misses import NearMiss
    from groundfault.workbench.row_index import RowIndex

COUNT = 8
"""Examples of a side."""


@dataclass(frozen=True)
class NearExample:
    """A near miss.

    Attributes
    ----------
    row : RowView
    condition : str
        What does not hold, in words or in SQL.
    distance : float or None
        How far it is from the threshold.
    """

    row: RowView
    condition: str
    distance: float | None


def show_examples(request: Request) -> Response:
    """Three columns: failing, passing, near."""
    bench = bench_of(request)
    assert bench.report is not None
    subject = read_subject(bench.report, request.query_params)
    cells = try_rule(bench, subject.rule)
    index = bench.index
    failing, passing = _choose_inside(index, subject)
    return show_page(
        request,
        "examples.html.j2",
        subject=subject,
        cells=cells,
        late=needs_fresh_data(bench, subject.rule),
        failing=failing,
        passing=passing,
        near=_choose_near(index, subject),
        model=_model_of(index, subject),
        change=measure_change(index, subject.rule, subject.pair) if subject.pair else None,
        is_single=is_single(index.find_near_misses(subject.rule)),
        total=index.rows.total,
        size=index.rows.evidence.unit_count,
        unit=bench.report.unit,
    )


def _model_of(index: RowIndex, subject: Subject) -> str:
    # of a comparison the second model's answers are shown
    outcome = subject.pair[1] if subject.pair else subject.outcome
    return outcome if outcome in index.rows.outcomes else ""


def _choose_inside(
    index: RowIndex, subject: Subject
) -> tuple[tuple[RowView, ...], tuple[RowView, ...]]:
    """Typical and different rows inside the rule: failing ones, and passing ones."""
    rows, outcome = index.rows, subject.outcome
    losses = select_losses(outcome, rows.unit_losses, rows.outcomes)
    if subject.pair:
        losses = clip_changes(select_pair(index, subject.pair), less=subject.is_better)
    inside = index.mark(subject.rule)
    nowhere = np.zeros_like(inside)
    examples = choose_examples(
        rows.evidence, outcome, inside, nowhere, losses, count=COUNT, columns=rows.texts
    )
    sides = []
    for side, mask in (("failing", rows.fails), ("passing", rows.passes)):
        ids = [example.id for example in examples if example.side == side]
        places = _find_places(index, ids, mask, _model_of(index, subject))
        sides.append(_show(index, subject, places))
    return sides[0], sides[1]


def _find_places(
    index: RowIndex, ids: list[str], mask: NDArray[np.bool_], model: str
) -> NDArray[np.intp]:
    """A row for each id, in their order: one of the mask where there is one."""
    roles, frame = index.rows.evidence.roles, index.rows.frame
    names = frame[roles.id or ""].cast(pl.String)
    places = np.flatnonzero(names.is_in(ids).to_numpy())
    if model and roles.model:
        places = places[(frame[roles.model][places].cast(pl.String) == model).to_numpy()]
    best: dict[str, int] = {}
    for place in sorted(places, key=lambda place: not mask[place]):
        best.setdefault(str(names[int(place)]), int(place))
    return np.array([best[name] for name in ids if name in best], dtype=np.intp)


def _choose_near(index: RowIndex, subject: Subject) -> tuple[NearExample, ...]:
    """Rows next to the rule, a few of each condition that keeps them out."""
    misses = {
        name: miss
        for name, miss in zip(*_name_conditions(index, subject), strict=True)
        if miss.mask.any()
    }
    examples: list[NearExample] = []
    model, roles = _model_of(index, subject), index.rows.evidence.roles
    for name, miss in misses.items():
        places = miss.places
        if model and roles.model:
            models = index.rows.frame[roles.model][places].cast(pl.String)
            places = places[(models == model).to_numpy()]
        places = places[: max(2, COUNT // len(misses))]
        for row in _show(index, subject, places):
            distance = None if miss.distance is None else float(miss.distance[row.place])
            known = distance is not None and not np.isnan(distance)
            examples.append(NearExample(row, name, distance if known else None))
    return tuple(examples)


def _name_conditions(
    index: RowIndex, subject: Subject
) -> tuple[tuple[str, ...], tuple[NearMiss, ...]]:
    """The conditions of a rule, as its mode says them or in SQL, and who misses each alone."""
    misses = index.find_near_misses(subject.rule)
    names = subject.mode.mode.conditions if subject.mode else ()
    if len(names) != len(misses):
        names = tuple(miss.condition for miss in misses)
    return names, misses


def _show(index: RowIndex, subject: Subject, places: NDArray[np.intp]) -> tuple[RowView, ...]:
    rows = index.rows
    read = [name for name in index.find_candidate(subject.rule).columns if name in rows.columns]
    columns = list(dict.fromkeys([*rows.texts, *read]))
    return show_rows(rows, places, columns, rule=subject.rule, length=LONG)


SCREEN = Screen(
    "",
    "/examples",
    (Route("/examples", show_examples),),
    keys=(
        ("f", "All that fail inside"),
        ("a", "All that pass inside"),
        ("e", "Edit the rule"),
    ),
    shown=lambda bench: bench.report is not None,
)
