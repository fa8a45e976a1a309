"""Counted outcomes: what cells of outcome and status come to, before and after rows are grouped."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.core.roles import Roles, read_outcomes
from groundfault.core.rules import quote
from groundfault.errors import InputError

OUTCOME, STATUS = "outcome", "status"
"""Names of keys of a cell."""

MAX_LOSSES = 101
"""Values of an outcome in the sample: a grade in per cent has as many."""

MAX_MEANS = 500
"""Means of groups in the sample: as many as there are of up to 40 rows that pass or fail."""

_FEW = 20
"""Words of a status or a split in the sample."""


def key_outcomes(roles: Roles) -> dict[str, str]:
    """Expressions that the rows of one cell agree in: the outcome, and the status if there is."""
    by = {OUTCOME: quote(roles.outcome)}
    return by if roles.status is None else {**by, STATUS: quote(roles.status)}


def read_keys(
    keys: pl.DataFrame, roles: Roles, where: str
) -> tuple[NDArray[np.float64], pl.Series]:
    """Loss, NaN where not scored, and status of each cell.

    Parameters
    ----------
    keys : polars.DataFrame
        Of cells that were counted by `key_outcomes`.
    roles : Roles
    where : str
        What a message names.

    Raises
    ------
    InputError
        If an outcome or a status cannot be read.
    """
    columns = {OUTCOME: roles.outcome, STATUS: roles.status or ""}
    names = [name for name in columns if name in keys.columns]
    frame = keys.select(pl.col(name).alias(columns[name]) for name in names).with_columns(
        pl.lit("one of the rows").alias(roles.id or "")
    )
    loss, status = read_outcomes(frame, roles, where)
    return loss.fill_null(float("nan")).to_numpy(), status


def sum_statuses(status: pl.Series, rows: NDArray[np.int64]) -> dict[str, int]:
    """Rows of each status, over cells."""
    cells = pl.DataFrame({"status": status, "rows": rows})
    sums = cells.group_by("status").agg(pl.col("rows").sum())
    return {name: int(count) for name, count in sums.iter_rows()}


def require_few_outcomes(sample: pl.DataFrame, roles: Roles, most: int = MAX_LOSSES) -> None:
    """Raise before a scan groups by a column of many values.

    Parameters
    ----------
    sample : polars.DataFrame
        Of the table.
    roles : Roles
    most : int
        Values that an outcome may have there.
    """
    for column in (roles.outcome, roles.status, roles.split):
        limit = most if column == roles.outcome else _FEW
        if column is not None and sample[column].n_unique() > limit:
            raise InputError(
                f"column {column!r} has over {limit} values in a sample of the rows: an outcome has"
                f" to have at most {most} grades to be counted, and a status and a split few words"
            )
