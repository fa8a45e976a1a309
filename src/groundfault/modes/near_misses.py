"""Near misses of a rule: examples that match all of its conditions but one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from groundfault.base.arrays import Bools, Floats, Places
from groundfault.core.rules import Rule
from groundfault.errors import RuleError, first_line
from groundfault.modes.examples import split_conditions

if TYPE_CHECKING:
    from sqlglot import exp


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
    from sqlglot import exp, parse_one

    tree = parse_one(condition, read="postgres")
    if isinstance(tree, exp.Between):
        measured, bounds = tree.this, [tree.args["low"], tree.args["high"]]
    elif isinstance(tree, exp.GT | exp.GTE | exp.LT | exp.LTE):
        sides = [tree.this, tree.expression]
        numbers = [side for side in sides if _read_number(side) is not None]
        if len(numbers) != 1:
            return None
        measured, bounds = sides[numbers[0] is sides[0]], numbers
    else:
        return None
    limits = [_read_number(bound) for bound in bounds]
    if None in limits:
        return None
    distance = np.full(table.height, np.nan)
    try:
        values = table.filter(pl.Series(mask)).select(
            pl.sql_expr(measured.sql(dialect="postgres")).cast(pl.Float64).alias("value")
        )
    except pl.exceptions.PolarsError as error:
        raise RuleError(f"cannot evaluate {condition!r}: {first_line(error)}") from None
    steps = [np.abs(values["value"].to_numpy() - limit) for limit in limits]
    distance[mask] = np.min(steps, axis=0)
    return distance


def _read_number(node: exp.Expression) -> float | None:
    from sqlglot import exp

    sign, inner = 1.0, node.unnest()
    if isinstance(inner, exp.Neg):
        sign, inner = -1.0, inner.this.unnest()
    is_number = isinstance(inner, exp.Literal) and not inner.is_string
    return sign * float(inner.this) if is_number else None
