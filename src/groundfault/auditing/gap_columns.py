"""Columns whose gaps go with the outcome: what they say is asked where they say something."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.auditing.prepared import PreparedAudit
from groundfault.core.units import Marks, Units
from groundfault.judges.confirm import GAP_LEVEL, compute_p_values
from groundfault.stats import bits


def find_gap_columns(
    audit: PreparedAudit, table: pl.DataFrame, losses: NDArray[np.float64]
) -> list[str]:
    """Columns of a table whose gaps go with the outcome.

    If values are lost where a model passes, what is left of the column goes with failing, whatever
    it says: its values have to be compared among the units that have one.

    Parameters
    ----------
    audit : PreparedAudit
    table : polars.DataFrame
        One row a unit.
    losses : float64 array, shape (outcomes, units)
        NaN where not scored.

    Notes
    -----
    Tested for each column on all units, two sided at `groundfault.judges.confirm.GAP_LEVEL`,
    for each outcome. The tests of values hold what it saw fixed: the outcomes of units without a
    value.
    """
    names = [
        name
        for name in table.columns
        if 0 < table[name].null_count() < len(table) and name not in audit.plan.within
    ]
    if not names:
        return []
    gaps = np.stack([table[name].is_null().to_numpy() for name in names])
    marks = Marks(len(table), bits.pack(gaps), None, ("",) * len(names))
    units = Units.of(marks, losses, audit.strata)
    hypotheses = np.arange(len(names) * len(losses), dtype=np.intp)
    p = compute_p_values(units, hypotheses, audit.plan, audit.plan.rng("modes/gaps"))
    lowest = p.reshape(len(names), -1).min(axis=1)
    return [name for name, low in zip(names, lowest, strict=True) if low <= GAP_LEVEL]
