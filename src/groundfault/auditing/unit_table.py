"""One row a unit: columns that are the same in all of a unit's rows, and strata made of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.core.evidence import Evidence
from groundfault.core.row_names import find_cluster_leaders
from groundfault.errors import InputError


def tabulate_units(
    evidence: Evidence, columns: Sequence[str]
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Return the columns as a table with one row a unit, in the order of ``unit_names``.

    Parameters
    ----------
    evidence : Evidence
    columns : sequence of str

    Returns
    -------
    table : polars.DataFrame
        Of those that are constant within every unit.
    varying : tuple of str
        The others.
    """
    if not columns:
        return pl.DataFrame(), ()
    if evidence.clusters is not None:
        table, others = tabulate_units(evidence.without_clusters(), columns)
        return table[find_cluster_leaders(evidence)], others
    _, first = np.unique(evidence.unit_index, return_index=True)
    frame = evidence.frame.select(columns)
    varying: tuple[str, ...] = ()
    if len(evidence) > evidence.unit_count:
        ranges = (
            frame.with_columns(pl.Series("\0unit", evidence.unit_index))
            .group_by("\0unit")
            .agg(pl.col(columns).n_unique())
        )
        varying = tuple(name for name in columns if ranges[name].max() != 1)
    return frame[first].drop(varying), varying


def number_strata(
    evidence: Evidence, within: Sequence[str], sizes: NDArray[np.int64] | None
) -> NDArray[np.int64] | None:
    """Strata of the units: int64, shape (units,); None where all are in one.

    Parameters
    ----------
    evidence : Evidence
    within : sequence of str
        Columns that are held fixed; a missing value is a value.
    sizes : int64 array, shape (units,), optional
        Size classes.

    Raises
    ------
    InputError
        If a column is missing, says how an answer was scored, differs between rows of one unit, or
        leaves every unit alone in its stratum.
    """
    if not within:
        return sizes
    roles = evidence.roles
    for name in within:
        if name not in evidence.frame.columns:
            names = ", ".join(evidence.attributes[:20])
            raise InputError(
                f"there is no column {name!r} to hold fixed (within); columns are {names}"
            )
        if evidence.frame.schema[name].is_nested():
            raise InputError(f"column {name!r} cannot be held fixed (within): it holds lists")
        if name in (roles.outcome, roles.status, roles.split, *roles.post_outcome):
            raise InputError(
                f"column {name!r} cannot be held fixed (within): it says how an example was scored "
                "or split, not what it is like"
            )
    table, varying = tabulate_units(evidence, list(dict.fromkeys(within)))
    if varying:
        raise InputError(
            f"column {varying[0]!r} cannot be held fixed (within): it differs between rows of one "
            f"{'group' if roles.group else 'example'}"
        )
    codes = table.select(pl.all().cast(pl.String).rank("dense").fill_null(0)).to_numpy()
    if sizes is not None:
        codes = np.column_stack([codes, sizes])
    strata = np.unique(codes, axis=0, return_inverse=True)[1].reshape(-1)
    if strata.max() + 1 == len(strata):
        raise InputError(
            f"nothing is left to compare within {', '.join(map(repr, within))}: every unit has "
            "values of its own"
        )
    return np.asarray(strata, dtype=np.int64)
