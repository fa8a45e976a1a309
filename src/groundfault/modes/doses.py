"""Dose and response: failures along a column of numbers that a rule cuts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.modes.language import ModeRule, RuleLanguage
from groundfault.modes.mode import DosePoint

Floats = NDArray[np.float64]
_MAX_POINTS = 12


def list_doses(
    table: pl.DataFrame, language: RuleLanguage, rule: ModeRule, losses: Floats
) -> tuple[DosePoint, ...]:
    """Failures at each value, or in ranges, of the numbers in a rule where the rest of it holds.

    Parameters
    ----------
    table : polars.DataFrame
        The units of the language.
    language : RuleLanguage
    rule : ModeRule
    losses : float64 array, shape (units,)
    """
    return tuple(
        point
        for place, part in enumerate(rule.parts)
        if len(part) == 1 and language.literals[part[0]].bounds is not None
        for point in _list_points(
            table[language.literals[part[0]].column],
            language.literals[part[0]].bounds or (-np.inf, np.inf),
            _hold_others(language, rule, place),
            losses,
        )
    )


def _hold_others(language: RuleLanguage, rule: ModeRule, place: int) -> NDArray[np.bool_]:
    """Units for which all parts of a rule but one hold."""
    parts = rule.parts[:place] + rule.parts[place + 1 :]
    if not parts:
        return np.ones(len(language.layout.strata), dtype=np.bool_)
    row = language.mask(ModeRule(parts, rule.kind))
    return np.asarray(language.layout.unpack(row[None])[0])


def _list_points(
    column: pl.Series, bounds: tuple[float, float], inside: NDArray[np.bool_], losses: Floats
) -> Iterator[DosePoint]:
    x = column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    there = inside & np.isfinite(x)
    levels = np.unique(x[there])
    if len(levels) > _MAX_POINTS:
        shares = np.linspace(0, 1, _MAX_POINTS // 2 + 1)[:-1]
        starts = np.quantile(x[there], shares, method="nearest")
        # no range is inside the rule in part
        edges = [levels[levels >= bounds[0]][:1], levels[levels > bounds[1]][:1]]
        starts = np.unique(np.concatenate([starts, *edges]))
    else:
        starts = levels
    bins = np.searchsorted(starts, x[there], side="right") - 1
    values, errors = x[there], losses[there]
    for b in range(len(starts)):
        rows = bins == b
        yield DosePoint(
            column=column.name,
            low=float(values[rows].min()),
            high=float(values[rows].max()),
            n=int(rows.sum()),
            errors=float(errors[rows].sum()),
        )
