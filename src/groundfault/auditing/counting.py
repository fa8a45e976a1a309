"""Counting: one scan of all rows by an engine, and what the outcomes of its cells come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.auditing.counted_audit import CountedAudit, require_countable_losses, spell_value
from groundfault.auditing.counted_outcomes import (
    MAX_LOSSES,
    MAX_MEANS,
    key_outcomes,
    read_keys,
    require_few_outcomes,
)
from groundfault.core.counted_units import JointCells
from groundfault.core.rules import quote
from groundfault.core.units import classify_sizes
from groundfault.engines.cells import CellCounts
from groundfault.engines.groups import ROWS, SCORED
from groundfault.errors import InputError

_PART = "part"
_SUMS = ("rows", "deciding", "scored", "errors")


@dataclass(frozen=True)
class Scan:
    """Cells of part, outcome and status; arrays of shape (C,).

    Attributes
    ----------
    cells : CellCounts
    loss : float64 array
        In [0, 1]; NaN where not scored.
    status : polars.Series of String
    is_discovery : bool array
        True everywhere where nothing is held out.
    scored, rows : int64 arrays
        How many rows each unit of the cell has that were scored, and how many in all: of groups
        several, else 0 or 1, and 1.
    """

    cells: CellCounts
    loss: NDArray[np.float64]
    status: pl.Series
    is_discovery: NDArray[np.bool_]
    scored: NDArray[np.int64]
    rows: NDArray[np.int64]

    @property
    def strata(self) -> NDArray[np.int64] | None:
        """Size classes of groups; None where all are means of about as many rows."""
        return classify_sizes(self.scored)

    def fill(self, loss: int) -> NDArray[np.float64]:
        """The losses had all rows failed that were not scored (1), or passed (0)."""
        return (
            np.nan_to_num(self.loss) * self.scored + loss * (self.rows - self.scored)
        ) / self.rows


def scan_cells(
    audit: CountedAudit, rules: Sequence[str], by: Mapping[str, str], *, parts: bool = True
) -> Scan:
    """Count rules in the cells of part, outcome and status.

    Parameters
    ----------
    audit : CountedAudit
    rules : sequence of str
    by : mapping of str to str
        Further expressions that the rows of a cell agree in.
    parts : bool
        Whether to tell discovery from what is held out; else all is taken for discovery.

    Raises
    ------
    InputError
        If an outcome is graded and the judge takes none, or is the same in all rows; if a part has
        no rows.
    """
    lazy, roles = audit.lazy, audit.lazy.roles
    by = {**key_outcomes(roles), **by}
    if audit.has_holdout and parts:
        by[_PART] = lazy.find_part(audit.plan)
    is_grouped = audit.groups is not None
    if is_grouped:
        by |= {name: quote(name) for name in (SCORED, ROWS)}
    most = MAX_MEANS if is_grouped else MAX_LOSSES
    require_few_outcomes(audit.evidence.frame, roles, most)
    cells = lazy.counter.counts(rules, by)
    where = lazy.provenance[0]
    loss, status = read_keys(cells.keys, roles, where)
    distinct = np.unique(loss[~np.isnan(loss)])
    require_countable_losses(audit, distinct)
    if len(distinct) < 2:
        raise InputError(
            f"{where}: outcome {roles.outcome!r} is the same in every "
            f"{'group' if is_grouped else 'row'} that was scored; there is no difference to explain"
        )
    scored = (~np.isnan(loss)).astype(np.int64)
    sizes = (scored, np.ones_like(scored))
    if is_grouped:
        scored, rows = (cells.keys[name].to_numpy().astype(np.int64) for name in (SCORED, ROWS))
        sizes = scored, rows
    return Scan(cells, loss, status, _find_discovery(cells, audit), *sizes)


def count_jointly(audit: CountedAudit, candidates: Sequence[int], *, holdout: bool) -> JointCells:
    """Count the rows of every combination of some candidates.

    Parameters
    ----------
    audit : CountedAudit
    candidates : sequence of int
        Their places in the library.
    holdout : bool
        Whether outcomes are those of the holdout; else of discovery, or of all rows.
    """
    by = {
        # what the engine takes for something else it need not even be able to evaluate
        f"candidate {j}": "FALSE"
        if audit.is_uncounted(audit.library[j])
        else spell_value(audit.library[j])
        for j in candidates
    }
    scan = scan_cells(audit, [], by)
    patterns = scan.cells.keys.select(*by)
    part = ~scan.is_discovery if holdout else scan.is_discovery
    scored = part & ~np.isnan(scan.loss)
    rows = scan.cells.rows
    sums = patterns.with_columns(
        rows=pl.Series(rows),
        deciding=pl.Series(np.where(part, rows, 0)),
        scored=pl.Series(np.where(scored, rows, 0)),
        errors=pl.Series(np.where(scored & (scan.loss == 1), rows, 0)),
    )
    table = sums.group_by(list(by)).agg(pl.col(_SUMS).sum()).sort(list(by))
    values = table.select(*by)
    return JointCells(
        np.array(candidates, dtype=np.intp),
        values.fill_null(value=False).to_numpy().T.astype(np.bool_),
        values.select(pl.all().is_not_null()).to_numpy().T.astype(np.bool_),
        *(table[name].to_numpy().astype(np.int64) for name in _SUMS),
    )


def _find_discovery(cells: CellCounts, audit: CountedAudit) -> NDArray[np.bool_]:
    if _PART not in cells.keys.columns:
        return np.ones(len(cells), dtype=np.bool_)
    parts = cells.keys[_PART]
    words = {"discovery": True, "holdout": False} if audit.lazy.roles.split else {}
    if words:
        unknown = [part for part in parts.unique() if part not in words]
        if unknown:
            raise InputError(
                f"split column {audit.lazy.roles.split!r} holds {unknown[0]!r}; its words must be "
                "'discovery' and 'holdout'"
            )
        parts = parts == "discovery"
    is_discovery = parts.cast(pl.Boolean).to_numpy().astype(np.bool_)
    if is_discovery.all() or not is_discovery.any():
        raise InputError("one part has no rows; both discovery and holdout are needed")
    return is_discovery
