"""Two models on the same examples: who fails where, and on which rules one alone does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from groundfault.errors import InputError
from groundfault.render.audit_words import Outline
from groundfault.workbench.subjects import list_modes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from groundfault.auditing.report import Report
    from groundfault.workbench.row_index import RowIndex
    from groundfault.workbench.rows import Rows

_MAX_RULES = 60
_HALF = 0.5


@dataclass(frozen=True)
class RuleContrast:
    """On one rule: how often the second model fails where the first passes.

    Attributes
    ----------
    name : str
    params : dict
        How an address names it.
    inside, outside : int
        Units that only the second model fails.
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
        """Share of such units inside, minus that outside."""
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
        Those with units of both kinds, the largest lift first.
    """

    first: str
    second: str
    cells: tuple[NDArray[np.intp], ...]
    rules: tuple[RuleContrast, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """What the cells are called."""
        return (
            "both fail",
            f"only {self.second} fails",
            f"only {self.first} fails",
            "neither fails",
        )

    @property
    def size(self) -> int:
        """Units that both were scored on."""
        return sum(map(len, self.cells))


def compare_models(index: RowIndex, report: Report, first: str, second: str) -> ModelComparison:
    """Compare two models on the discovery units, by counts; nothing is tested.

    Parameters
    ----------
    index : RowIndex
    report : Report
        Its modes and confirmed findings are the rules.
    first, second : str

    Raises
    ------
    InputError
        If there is no such model.
    """
    for name in (first, second):
        if name not in index.rows.outcomes:
            raise InputError(
                f"there are no rows of model {name!r}; the models are "
                f"{', '.join(index.rows.outcomes[:20])}"
            )
    losses = index.rows.unit_losses
    one, other = (losses[index.rows.outcomes.index(name)] for name in (first, second))
    both = ~np.isnan(one) & ~np.isnan(other)
    a, b = one >= _HALF, other >= _HALF
    cells = tuple(np.flatnonzero(both & cell) for cell in (a & b, ~a & b, a & ~b, ~a & ~b))
    rules = _contrast_rules(index, report, both, both & ~a & b)
    return ModelComparison(first, second, cells, tuple(rules))


def _contrast_rules(
    index: RowIndex, report: Report, both: NDArray[np.bool_], only: NDArray[np.bool_]
) -> list[RuleContrast]:
    rows = []
    for rule, (name, params) in _list_rules(report).items():
        inside = index.mark(rule)
        sides = (both & inside, both & ~inside)
        sizes = [int(side.sum()) for side in sides]
        if all(sizes):
            hits = [int((only & side).sum()) for side in sides]
            rows.append(RuleContrast(name, params, hits[0], sizes[0], hits[1], sizes[1]))
    return sorted(rows, key=lambda row: -row.lift)


def _list_rules(report: Report) -> dict[str, tuple[str, dict[str, Any]]]:
    """Rules of the report, each once, whatever models it was listed for."""
    rules: dict[str, tuple[str, dict[str, Any]]] = {}
    for mode in list_modes(report):
        rules.setdefault(mode.mode.rule, (mode.name, {"mode": mode.number}))
    for finding in map(Outline(report).face, report.confirmed):
        rules.setdefault(finding.rule, (finding.name, {"finding": finding.key}))
    return dict(list(rules.items())[:_MAX_RULES])


def find_unit_rows(rows: Rows, units: NDArray[np.intp], model: str) -> NDArray[np.intp]:
    """A row of a model for each unit: of several, the one with the highest loss.

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
    return np.array(list(_pick_rows(rows, units, model)), dtype=np.intp)


def _pick_rows(rows: Rows, units: NDArray[np.intp], model: str) -> Iterator[int]:
    column = rows.evidence.roles.model or ""
    of_units = np.flatnonzero(np.isin(rows.evidence.unit_index, units))
    of_model = (rows.frame[column][of_units].cast(pl.String) == model).to_numpy()
    best: dict[int, int] = {}
    for row in of_units[of_model]:
        unit = int(rows.evidence.unit_index[row])
        if unit not in best or rows.loss[row] > rows.loss[best[unit]]:
            best[unit] = int(row)
    for unit in units:
        yield best[int(unit)]
