"""Pairs of fresh tasks, one inside a mode and one like it outside, that are asked in other words.

A task may be asked only if nobody has seen its outcome: neither the audit, which named the mode,
nor whoever labelled. What is then seen is no repetition of what the mode was selected for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from groundfault.base.streams import stream
from groundfault.case.parts import list_units

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from groundfault.core.evidence import Evidence

Pair = tuple[str, str]
"""Names of two units: one inside the mode, one outside every mode."""


def draw_pairs(
    fresh: Evidence,
    on: Mapping[int, NDArray[np.bool_]],
    rule_columns: Mapping[int, Collection[str]],
    modes: Sequence[int],
    *,
    free: NDArray[np.bool_],
    most: int,
    seed: int,
) -> dict[int, list[Pair]]:
    """Draw tasks inside each mode, and the most alike that is left outside all modes for each.

    Parameters
    ----------
    fresh : Evidence
        The fresh rows, copies joined.
    on : mapping of int to bool array, shape (units,)
        For every mode of the audit, by its number, which fresh units it holds for.
    rule_columns : mapping of int to collection of str
        The columns that each mode's rule reads: a pair may differ in them, and is to agree in the
        other attributes.
    modes : sequence of int
        The modes to draw pairs for; a unit serves one of them.
    free : bool array, shape (units,)
        Units that nobody has labelled.
    most : int
        The largest number of pairs of a mode.
    seed : int

    Returns
    -------
    dict of int to list of pair
        Fewer pairs where units inside or outside run out.
    """
    names, frame = fresh.unit_names, list_units(fresh)
    free, outside = free.copy(), ~np.any(list(on.values()), axis=0)
    pairs: dict[int, list[Pair]] = {}
    for number in modes:
        columns = [c for c in fresh.attributes if c not in rule_columns[number]]
        codes = _code_attributes(frame, columns)
        rng = stream(seed, "probe pairs", number)
        pairs[number] = []
        for unit in rng.permutation(np.flatnonzero(on[number] & free))[:most]:
            others = rng.permutation(np.flatnonzero(outside & free))
            if not len(others):
                break
            twin = others[np.abs(codes[others] - codes[unit]).sum(axis=1).argmin()]
            free[[unit, twin]] = False
            pairs[number].append((names[int(unit)], names[int(twin)]))
    return pairs


def _code_attributes(frame: pl.DataFrame, names: Sequence[str]) -> NDArray[np.float64]:
    """Attributes as numbers whose differences add up: shape (units, codes), each in [0, 1].

    A number counts by its rank; two different words or truth values differ by one. Columns with a
    value of its own for nearly every unit, such as texts, tell nothing of likeness.
    """
    codes = [np.zeros((len(frame), 1))]
    for column in map(frame.get_column, names):
        if column.dtype.is_numeric():
            ranks = column.rank("average").fill_null(strategy="mean").fill_null(0.0)
            codes.append(ranks.to_numpy()[:, None] / max(1, len(frame)))
        elif column.n_unique() <= len(frame) / 2:
            dummies = column.cast(pl.String).fill_null("").to_dummies()
            codes.append(dummies.to_numpy().astype(np.float64) / 2)
    return np.hstack(codes)
