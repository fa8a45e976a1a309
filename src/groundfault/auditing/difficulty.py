"""Difficulty: how likely each example is to fail, told from what was known before the answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.auditing.column_timing import Timing, list_columns
from groundfault.auditing.prepared_audit import PreparedAudit
from groundfault.auditing.unit_table import tabulate_units
from groundfault.base.machine import enough_openmp_threads
from groundfault.core.columns import Kind, profile
from groundfault.errors import InputError

Floats = NDArray[np.float64]

STRATA = 10
"""Strata of like difficulty, at most."""
_FOLDS = 5
_FEWEST = 20
"""Units that a stratum has on average, at least."""
_DIMENSIONS = 16
"""Of the words of a text."""


@dataclass(frozen=True)
class Difficulty:
    """Units in strata of like difficulty, for one outcome.

    Attributes
    ----------
    strata : int64 array, shape (units,)
        Codes: more is harder, and never joined over the strata of the audit.
    explained : float
        Share of the variance of losses that the predicted difficulty explains, on units that the
        prediction was not fitted to; at most 1, and below 0 where it is worse than the mean.
    """

    strata: NDArray[np.int64]
    explained: float


def estimate_difficulty(
    audit: PreparedAudit, losses: Floats, outcome: int, features: Floats
) -> Difficulty:
    """Strata of units by how likely they are to fail, before the answer is known.

    Losses are predicted by boosted trees, each fifth of the units by trees fitted to the others, so
    that no unit's own outcome decides on its stratum.

    Parameters
    ----------
    audit : PreparedAudit
    losses : float64 array, shape (outcomes, units)
        NaN where not scored.
    outcome : int
    features : float64 array, shape (units, columns)
        Of `tabulate_features`; losses of the other outcomes on the same units are added.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    others = np.delete(losses, outcome, axis=0).T
    table = _drop_constants(np.column_stack([features, others]))
    target = losses[outcome]
    units = np.flatnonzero(~np.isnan(target))
    base = audit.strata if audit.strata is not None else np.zeros(len(target), dtype=np.int64)
    if not table.shape[1] or len(units) < 2 * _FEWEST:
        return Difficulty(base, 0.0)
    fold = audit.plan.rng("difficulty").permutation(np.arange(len(units)) % _FOLDS)
    risk = np.full(len(target), np.nan)
    with enough_openmp_threads(table.size):
        for part in range(_FOLDS):
            trees = HistGradientBoostingRegressor(
                max_iter=60,
                max_depth=3,
                min_samples_leaf=_FEWEST,
                early_stopping=False,
                random_state=0,
            )
            fit, rest = units[fold != part], units[fold == part]
            risk[rest] = trees.fit(table[fit], target[fit]).predict(table[rest])
    error = target[units] - risk[units]
    explained = 1 - float((error**2).mean() / max(float(target[units].var()), 1e-12))
    count = max(1, min(STRATA, len(units) // _FEWEST))
    cuts = np.quantile(risk[units], np.arange(1, count) / count)
    # NaN goes to the last: what was not scored counts nowhere
    level = np.searchsorted(np.unique(cuts), risk, side="right")
    return Difficulty(np.asarray(base * (count + 1) + level, dtype=np.int64), explained)


def tabulate_features(audit: PreparedAudit) -> Floats:
    """What was known of each unit before the answer, as numbers: float64, shape (units, columns).

    Numbers and flags are themselves, words of few values the rank of the value, and texts their
    length and what their words say; NaN where missing.
    """
    evidence = audit.evidence
    known = set(list_columns(audit.stages, Timing.KNOWN))
    names = [name for name in evidence.attributes if name in known]
    table, _ = tabulate_units(evidence, names)
    columns: list[Floats] = []
    for column in profile(table) if table.width else ():
        values = table[column.name]
        if column.kind is Kind.TEXT:
            columns += _describe_text(values)
        elif values.dtype.is_numeric() or values.dtype == pl.Boolean:
            columns.append(_to_numbers(values))
        elif not values.dtype.is_nested() and column.kind is not Kind.CONSTANT:
            columns.append(_to_numbers(values.cast(pl.String).rank("dense")))
    shape = (evidence.unit_count, 0)
    return np.column_stack(columns) if columns else np.zeros(shape)


def _drop_constants(table: Floats) -> Floats:
    """The columns that tell some units from others."""
    varies = [len(np.unique(column[~np.isnan(column)])) > 1 for column in table.T]
    return table[:, np.array(varies, dtype=np.bool_)]


def _to_numbers(values: pl.Series) -> Floats:
    return values.cast(pl.Float64).fill_null(float("nan")).to_numpy()


def _describe_text(values: pl.Series) -> list[Floats]:
    from groundfault.slicing.embedding import embed

    texts = values.cast(pl.String).fill_null("")
    counts = [
        _to_numbers(texts.str.len_chars()),
        _to_numbers(texts.str.count_matches(r"\d+")),
        _to_numbers(texts.str.count_matches(r"\n")),
    ]
    try:
        words = embed(texts.to_list(), dimensions=_DIMENSIONS)
    except InputError:
        # no word stands in two texts: codes, say, or single characters
        return counts
    return [*counts, *words.T]
