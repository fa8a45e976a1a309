"""Rows: all that may be looked at, filtered and searched, sixty a page; and each by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.routing import Route

from groundfault.auditing.gating import FAIL_ON, gate
from groundfault.core.rules import Rule
from groundfault.errors import InputError, RuleError, require_name
from groundfault.render import gate as gate_words
from groundfault.render.audit_groups import describe_overall
from groundfault.render.audit_words import Outline
from groundfault.workbench.holdout_state import join_rule
from groundfault.workbench.pages import Screen, bench_of, make_trial_routes, read_number, show_page
from groundfault.workbench.row_index import PAGE, RowQuery, summarise_column
from groundfault.workbench.rows import SHORT, WHOLE, show_rows
from groundfault.workbench.subjects import list_modes, make_address

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from starlette.datastructures import QueryParams
    from starlette.requests import Request
    from starlette.responses import Response

    from groundfault.auditing.report import Report
    from groundfault.workbench.opened_report import OpenedReport
    from groundfault.workbench.row_index import RowIndex
    from groundfault.workbench.rows import Rows, RowView

_MAX_COLUMNS = 9
"""Of a table: as many as fit on a large screen; the rest are filters beside it."""
_MAX_VALUES = 200
"""Of a page of one row: wide tables of embeddings have thousands."""
_MAX_SIBLINGS = 100
"""Rows of one example that are linked: one a model, and repeats."""


def list_rows(request: Request) -> Response:
    """Show a page of rows."""
    bench, query = bench_of(request), RowQuery.of(request.query_params)
    index = bench.index
    try:
        places, counts = index.select(query), index.count_views(query)
    except (RuleError, InputError) as error:
        # what was typed stays in its box
        return show_page(request, "rows.html.j2", status=400, query=query, trouble=error)
    start = min(query.start, max(0, (len(places) - 1) // PAGE * PAGE))
    columns = _choose_columns(index, query)
    shown = places[start : start + PAGE]
    name = request.query_params.get("column", "")
    return show_page(
        request,
        "rows.html.j2",
        query=query,
        trouble="",
        rule=join_rule(query),
        counts=counts,
        rows=show_rows(index.rows, shown, columns, rule=query.rule, text=query.text, length=SHORT),
        columns=columns,
        column=summarise_column(index, query, name) if name else None,
        start=start,
        size=len(places),
        page=PAGE,
    )


def show_row(request: Request) -> Response:
    """Show one row whole, its example under other models, and its neighbours in the list."""
    bench, query = bench_of(request), RowQuery.of(request.query_params)
    index = bench.index
    name, at = request.query_params.get("id", ""), request.query_params.get("at", "")
    places = index.select(query) if at else np.zeros(0, dtype=int)
    number = read_number(at, -1, len(places))
    place = int(places[number]) if number >= 0 else _find_row(index, name, query.model)
    columns = index.rows.columns[:_MAX_VALUES]
    rows = index.rows
    (row,) = show_rows(
        rows, np.array([place]), columns, rule=query.rule, text=query.text, length=WHOLE
    )
    texts = [field for field in row.fields if field.name in rows.texts]
    return show_page(
        request,
        "row.html.j2",
        query=query,
        row=row,
        texts=sorted(texts, key=lambda field: rows.texts.index(field.name)),
        others=[field for field in row.fields if field.name not in rows.texts],
        siblings=_find_siblings(index, row.id, place),
        number=number,
        size=len(places),
    )


def _find_row(index: RowIndex, name: str, model: str) -> int:
    matches = (index.rows.ids == name).fill_null(False).to_numpy()
    places = np.flatnonzero(matches & index.rows.select_model(model))
    if not len(places):
        raise InputError(f"there is no example {name!r} among the rows that may be looked at")
    return int(places[0])


def _find_siblings(index: RowIndex, name: str, place: int) -> list[RowView]:
    """Return other rows of the same example, without their values."""
    rows = index.rows
    if not rows.evidence.roles.model:
        return []
    matches = (rows.ids == name).fill_null(False).to_numpy()
    views = show_rows(rows, np.flatnonzero(matches)[:_MAX_SIBLINGS], ())
    return [view for view in views if view.place != place]


def _choose_columns(index: RowIndex, query: RowQuery) -> tuple[str, ...]:
    """Choose columns: texts, those of rules and filters, and others while there is room."""
    roles, rows = index.rows.evidence.roles, index.rows
    rules = [query.rule] if query.rule else []
    read = [name for rule in (*rules, *query.where) for name in Rule.parse(rule).columns]
    read += [query.sort.removeprefix("-")] if query.sort else []
    first = dict.fromkeys(name for name in (*rows.texts, *read) if name in rows.columns)
    names = {roles.id, roles.model, roles.outcome}
    rest = [name for name in rows.columns if name not in first and name not in names]
    return (*first, *rest[: max(0, _MAX_COLUMNS - len(first))])


ROWS = Screen(
    "Rows",
    "/rows",
    (*make_trial_routes("/rows", list_rows), *make_trial_routes("/row", show_row)),
    keys=(
        ("g", "The box of the rule"),
        ("1 2 3 4 5", "Failing, passing, near misses, inside, all"),
        ("m", "Choose a model"),
    ),
    key="R",
)


_PAIRS = 20
"""Examples of a page, each with two answers: as much to read as the sides of a rule."""
CELLS = 4
"""Both fail, only the second, only the first, neither."""
_ONLY_SECOND = 1


_MAX_RULES = 60
"""Rules that are contrasted: each takes a pass over all units."""
_HALF = 0.5
"""Mean loss from which on a unit counts as failed, as the page says."""


@dataclass(frozen=True)
class RuleContrast:
    """On one rule: how many units are of one kind, such as that the second model alone fails.

    Attributes
    ----------
    name : str
    params : dict
        How an address names it.
    inside, outside : int
        Units of that kind.
    n_inside, n_outside : int
        Units that both were scored on.
    """

    name: str
    params: dict[str, Any]
    inside: int
    n_inside: int
    outside: int
    n_outside: int

    @property
    def lift(self) -> float:
        """Return the share of such units inside, minus that outside."""
        return self.inside / self.n_inside - self.outside / self.n_outside


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """Two models on the units that both were scored on.

    Attributes
    ----------
    first, second : str
    cells : tuple of four intp arrays
        Places of the units that both fail, only the second, only the first, and neither. A unit
        fails where half or more of it is wrong.
    rules : tuple of RuleContrast
        Those with units inside and outside, the largest lift first.
    """

    first: str
    second: str
    cells: tuple[NDArray[np.intp], ...]
    rules: tuple[RuleContrast, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the cells."""
        return (
            "both fail",
            f"only {self.second} fails",
            f"only {self.first} fails",
            "neither fails",
        )

    @property
    def size(self) -> int:
        """Return the number of units that both were scored on."""
        return sum(map(len, self.cells))


def compare_models(
    index: RowIndex, report: Report, first: str, second: str, cell: int = 1
) -> ModelComparison:
    """Compare two models on the discovery units, by counts; nothing is tested.

    Parameters
    ----------
    index : RowIndex
    report : Report
        Its modes and confirmed findings are the rules.
    first, second : str
    cell : int
        Of which of the four cells the rules count the units.

    Raises
    ------
    InputError
        If there is no such model.
    """
    for name in (first, second):
        require_name("model", name, index.rows.outcomes, InputError)
    losses = index.rows.unit_losses
    one, other = (losses[index.rows.outcomes.index(name)] for name in (first, second))
    both = ~np.isnan(one) & ~np.isnan(other)
    a, b = one >= _HALF, other >= _HALF
    cells = tuple(np.flatnonzero(both & cell) for cell in (a & b, ~a & b, a & ~b, ~a & ~b))
    kind = np.zeros_like(both)
    kind[cells[cell]] = True
    rules = _contrast_rules(index, report, both, kind)
    return ModelComparison(first, second, cells, tuple(rules))


def _contrast_rules(
    index: RowIndex, report: Report, both: NDArray[np.bool_], kind: NDArray[np.bool_]
) -> list[RuleContrast]:
    rows = []
    for rule, (name, params) in _list_rules(report).items():
        inside = index.mark(rule)
        sides = (both & inside, both & ~inside)
        sizes = [int(side.sum()) for side in sides]
        if all(sizes):
            hits = [int((kind & side).sum()) for side in sides]
            rows.append(RuleContrast(name, params, hits[0], sizes[0], hits[1], sizes[1]))
    return sorted(rows, key=lambda row: -row.lift)


def _list_rules(report: Report) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return rules of the report, each once, whatever models it was listed for."""
    rules: dict[str, tuple[str, dict[str, Any]]] = {}
    for mode in list_modes(report):
        rules.setdefault(mode.mode.rule, (mode.name, make_address(mode)))
    for finding in map(Outline(report).face, report.confirmed):
        rules.setdefault(finding.rule, (finding.name, make_address(finding)))
    return dict(list(rules.items())[:_MAX_RULES])


def find_unit_rows(rows: Rows, units: NDArray[np.intp], model: str) -> NDArray[np.intp]:
    """Return a row of a model for each unit: of several, the one with the highest loss.

    Parameters
    ----------
    rows : Rows
    units : intp array, shape (m,)
        That the model was scored on.
    model : str

    Returns
    -------
    intp array, shape (m,)
    """
    places = np.flatnonzero(np.isin(rows.evidence.unit_index, units) & rows.select_model(model))
    # the worst first; of a dict the last one stays
    worst = places[np.lexsort((places, -rows.loss[places]))][::-1]
    best = dict(zip(rows.evidence.unit_index[worst], worst, strict=True))
    return np.array([best[unit] for unit in units], dtype=np.intp)


def show_comparison(request: Request) -> Response:
    """Compare two models of the report, or the report with its baseline."""
    bench, params = bench_of(request), request.query_params
    if bench.baseline is not None and ("since" in params or len(bench.audited.outcomes) < 2):
        # rows that are held out stay in the process that reads them: then stored rules are tested
        apart = bench.audited.n_holdout > 0
        verdict = gate(
            bench.audited if apart else bench.place,
            FAIL_ON,
            baseline=bench.baseline,
            evidence=None if apart else bench.evidence,
        )
        return show_page(
            request,
            "since.html.j2",
            lines=list(gate_words.lines(verdict)),
            headline=gate_words.headline(verdict).partition(": ")[2],
            groups=(
                ("Got worse", verdict.new),
                ("Known from the earlier report", verdict.known),
                ("Cannot be compared", verdict.uncompared),
            ),
            describe=gate_words.describe_match,
            models=len(bench.audited.outcomes) > 1,
            then=bench.baseline,
        )
    return _show_models(request, bench, params)


def _show_models(request: Request, bench: OpenedReport, params: QueryParams) -> Response:
    index = bench.index
    rows, names = index.rows, index.rows.outcomes
    pair = bench.audited.manifest.compare or names[:2]
    first, second = params.get("a", pair[0]), params.get("b", pair[-1])
    cell = read_number(params.get("cell", ""), _ONLY_SECOND, CELLS)
    comparison = compare_models(index, bench.audited, first, second, cell)
    places = comparison.cells[cell]
    start = read_number(params.get("start", ""), 0, max(1, len(places)))
    units = places[start : start + _PAIRS]
    sides = [
        show_rows(rows, find_unit_rows(rows, units, model), rows.texts) for model in (first, second)
    ]
    return show_page(
        request,
        "compare.html.j2",
        comparison=comparison,
        cell=cell,
        start=start,
        end=start + len(units),
        pairs=list(zip(*sides, strict=True)),
        page=_PAIRS,
        overall=describe_overall(bench.audited),
    )


COMPARISON = Screen(
    "Comparison",
    "/compare",
    (Route("/compare", show_comparison),),
    keys=(
        ("1", "Both fail"),
        ("2", "Only the second fails"),
        ("3", "Only the first fails"),
        ("4", "Neither fails"),
    ),
    key="C",
    needs="rivals",
)
