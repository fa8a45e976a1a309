"""Near misses of a rule: examples that match all of its conditions but one."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import polars as pl

from groundfault.base.arrays import Bools, Floats, Places
from groundfault.core.rules import Rule
from groundfault.modes.examples import split_conditions

# a condition about a number, in normal form: a parser would take .1 s to load
_NUMBER = r"(-?\d[\d.]*)"
_ENDS = rf"(?s)(?!NOT )(?:(.+) (?:[<>]=?|BETWEEN {_NUMBER} AND) {_NUMBER}|{_NUMBER} [<>]=? (.+))"


@dataclass(frozen=True, eq=False)
class NearMiss:
    """The rows that only one condition keeps outside a rule.

    Attributes
    ----------
    condition : str
        One of the conditions that AND joins, in SQL.
    mask : bool array, shape (rows,)
        Rows that match every other condition but not this one; a missing value does not match.
    distance : float64 array, shape (rows,), or None
        Distance of a row from the condition's threshold, NaN outside the mask and for a missing
        value; None for a condition without a number.
    """

    condition: str
    mask: Bools
    distance: Floats | None

    @property
    def places(self) -> Places:
        """Return the rows by their distance from the threshold; equal ones in their order."""
        places = np.flatnonzero(self.mask)
        if self.distance is None:
            return places
        # NaN sorts last
        return places[np.argsort(self.distance[places], kind="stable")]


def find_near_misses(rule: str, table: pl.DataFrame) -> tuple[NearMiss, ...]:
    """Return the near misses of a rule, by the condition that they do not match.

    Parameters
    ----------
    rule : str
        In SQL.
    table : polars.DataFrame

    Returns
    -------
    tuple of NearMiss
        One for each condition, in their order, without common rows. Together they are the rows that
        `groundfault.modes.examples.find_near` marks.

    Raises
    ------
    RuleError
        If the rule cannot be read, or evaluated on the table.

    Examples
    --------
    >>> table = pl.DataFrame({"n": [1, 5, 9, 4], "lang": ["de", "de", "en", "de"]})
    >>> for miss in find_near_misses("n > 6 AND lang = 'de'", table):
    ...     print(miss.condition, miss.places)
    "n" > 6 [1 3 0]
    "lang" = 'de' [2]
    """
    conditions = split_conditions(rule)
    parts = [Rule.parse(condition).holds(table).to_numpy() for condition in conditions]
    near = np.sum(parts, axis=0, dtype=np.int32) == len(parts) - 1
    misses = []
    for condition, holds in zip(conditions, parts, strict=True):
        mask = near & ~holds
        misses.append(NearMiss(condition, mask, _measure_distance(condition, table, mask)))
    return tuple(misses)


def _measure_distance(condition: str, table: pl.DataFrame, mask: Bools) -> Floats | None:
    """Return the distance of a mask's rows from the nearest number in a condition."""
    ends = re.fullmatch(_ENDS, condition)
    if ends is None or " OR " in condition:
        return None
    measured = pl.sql_expr(ends[1] or ends[5]).cast(pl.Float64)
    values = table.filter(pl.Series(mask)).select(measured).to_series().to_numpy()
    distance = np.full(table.height, np.nan)
    limits = [float(end) for end in ends.group(2, 3, 4) if end]
    steps = [np.abs(values - limit) for limit in limits]
    distance[mask] = np.min(steps, axis=0)
    return distance
