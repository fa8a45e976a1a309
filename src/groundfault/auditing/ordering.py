"""Order: whether failures come in runs, as they do where neighbours depend on each other."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.auditing.unit_table import tabulate_units
from groundfault.core.columns import Kind, profile
from groundfault.core.evidence import Evidence
from groundfault.stats.orders import RunsTest, count_runs

LEVEL = 0.001
"""P-value below which runs are too few to be chance."""

_SORTED = 0.5  # changes of a column's value, to those of a random order: fewer, and it is sorted


def find_runs(evidence: Evidence, losses: NDArray[np.float64]) -> RunsTest | None:
    """The runs test of the units in the order of their ids, where they are no random order.

    Parameters
    ----------
    evidence : Evidence
        Where a group column is named, there is nothing to say.
    losses : float64 array, shape (outcomes, units)
        NaN where not scored.

    Returns
    -------
    RunsTest or None
        None too where the table is sorted by a column of labels, and failures come in no runs
        inside of its levels: the column then says what neighbours have in common.
    """
    if evidence.roles.group is not None:
        return None
    order = np.array(sorted(range(losses.shape[1]), key=_list_keys(evidence).__getitem__))
    scored = ~np.isnan(losses)
    counts = scored.sum(axis=0)
    means = np.where(scored, losses, 0.0).sum(axis=0) / np.maximum(counts, 1)
    order = order[counts[order] > 0]
    high = means[order] > means[order].mean()
    result = count_runs([high])
    if result.p >= LEVEL:
        return None
    for levels in _list_levels(evidence, order):
        if count_runs(high[levels == level] for level in np.unique(levels)).p >= LEVEL:
            return None
    return result


def _list_keys(evidence: Evidence) -> list[list[str | int]]:
    """Names of the units such that numbers in them sort as numbers."""
    parts = (re.split(r"(\d+)", name) for name in evidence.unit_names)
    # every second part is digits, so that like is compared with like
    return [[int(p) if i % 2 else p for i, p in enumerate(name)] for name in parts]


def _list_levels(evidence: Evidence, order: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    """Columns of labels and flags that the units are sorted by, at least in part, as codes."""
    table, _ = tabulate_units(evidence, list(evidence.attributes))
    for column in profile(table):
        if column.kind in (Kind.LABEL, Kind.FLAG):
            values = table[column.name].cast(pl.String).fill_null("\0").rank("dense").to_numpy()
            levels = values[order].astype(np.intp)
            shares = np.bincount(levels) / len(levels)
            if (levels[1:] != levels[:-1]).mean() <= _SORTED * (1 - (shares**2).sum()):
                yield levels
