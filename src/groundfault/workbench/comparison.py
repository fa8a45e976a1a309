"""Two models on the same examples: who fails where, and on which rules one alone does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from groundfault.errors import InputError
from groundfault.render.audit_words import Outline
from groundfault.workbench.subjects import list_modes, make_address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from groundfault.auditing.report import Report
    from groundfault.workbench.row_index import RowIndex
    from groundfault.workbench.rows import Rows

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
    kind = np.zeros_like(both)
    kind[cells[cell]] = True
    rules = _contrast_rules(index, report, both, kind)
    return ModelComparison(first, second, cells, tuple(rules))


def select_pair(index: RowIndex, pair: tuple[str, str]) -> NDArray[np.float64]:
    """Return the losses of two models, unit by unit: shape (2, units), NaN where not scored."""
    rows = index.rows
    return rows.unit_losses[[rows.outcomes.index(name) for name in pair]]


def measure_change(
    index: RowIndex, rule: str, pair: tuple[str, str]
) -> tuple[float | None, float | None]:
    """Return the mean change from the first model to the second inside a rule, and elsewhere.

    Parameters
    ----------
    index : RowIndex
    rule : str
        In SQL.
    pair : two of str
        Models.

    Returns
    -------
    two of float or None
        In [-1, 1], over units that both were scored on; None where there is none.
    """
    first, second = select_pair(index, pair)
    changes, inside = second - first, index.mark(rule)
    both = ~np.isnan(changes)
    sides = (changes[both & inside], changes[both & ~inside])
    return sides[0].mean() if len(sides[0]) else None, sides[1].mean() if len(sides[1]) else None


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
    return np.array(list(_pick_rows(rows, units, model)), dtype=np.intp)


def _pick_rows(rows: Rows, units: NDArray[np.intp], model: str) -> Iterator[int]:
    of_units = np.flatnonzero(np.isin(rows.evidence.unit_index, units))
    of_model = rows.select_model(model)[of_units]
    best: dict[int, int] = {}
    for row in of_units[of_model]:
        unit = int(rows.evidence.unit_index[row])
        if unit not in best or rows.loss[row] > rows.loss[best[unit]]:
            best[unit] = int(row)
    for unit in units:
        yield best[int(unit)]
