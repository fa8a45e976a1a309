"""Counting: one scan of all rows by an engine, and what the outcomes of its cells come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.auditing.counted_audit import CountedAudit, require_countable_losses, spell_value
from groundfault.core.counted_units import JointCells
from groundfault.core.roles import read_outcomes
from groundfault.core.rules import quote
from groundfault.engines.cells import CellCounts
from groundfault.errors import InputError

_PART, _OUTCOME, _STATUS = "part", "outcome", "status"
_SUMS = ("rows", "deciding", "scored", "errors")
_FEW = 20
"""Words of a status or a split in the sample."""
_MAX_LOSSES = 101
"""Values of an outcome in the sample: a grade in per cent has as many."""


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
    """

    cells: CellCounts
    loss: NDArray[np.float64]
    status: pl.Series
    is_discovery: NDArray[np.bool_]


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
    by = {_OUTCOME: quote(roles.outcome), **by}
    if audit.has_holdout and parts:
        by[_PART] = lazy.find_part(audit.plan)
    if roles.status is not None:
        by[_STATUS] = quote(roles.status)
    _require_few_outcomes(audit)
    cells = lazy.counter.counts(rules, by)
    where = lazy.provenance[0]
    names = [name for name in (_OUTCOME, _STATUS) if name in by]
    columns = {_OUTCOME: roles.outcome, _STATUS: roles.status or ""}
    frame = cells.keys.select(pl.col(name).alias(columns[name]) for name in names).with_columns(
        pl.lit("one of the rows").alias(roles.id or "")
    )
    loss, status = read_outcomes(frame, roles, where)
    values = loss.fill_null(float("nan")).to_numpy()
    distinct = np.unique(values[~np.isnan(values)])
    require_countable_losses(audit, distinct)
    if len(distinct) < 2:
        raise InputError(
            f"{where}: outcome {roles.outcome!r} is the same in every row that was scored; there "
            "is no difference to explain"
        )
    return Scan(cells, values, status, _find_discovery(cells, audit))


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
        if audit.library[j].name in audit.disagreements
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


def _require_few_outcomes(audit: CountedAudit) -> None:
    """Raise before a scan groups by a column of many values."""
    roles = audit.lazy.roles
    for column in (roles.outcome, roles.status, roles.split):
        most = _MAX_LOSSES if column == roles.outcome else _FEW
        if column is not None and audit.evidence.frame[column].n_unique() > most:
            raise InputError(
                f"column {column!r} has over {most} values in a sample of the rows: an outcome has "
                f"to have at most {_MAX_LOSSES} grades to be counted, and a status and a split few "
                "words"
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
