"""Conditional randomisation: a candidate against outcomes, given several or numeric columns."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.random import Generator

from groundfault.base.arrays import Bools, Floats
from groundfault.errors import InputError

_LEVELS = 20  # values of a column of texts that get a column each; the rest are one
_PENALTY = 1.0  # inverse strength of the ridge of both regressions: scikit-learn's usual
_EDGE = 1e-3  # chances are kept this far from 0 and 1: a draw must be able to differ


def describe_columns(table: pl.DataFrame, columns: list[str]) -> Floats:
    """Return numbers that describe columns: shape (n, d).

    A numeric column gives itself, its square and its three hinges at the quartiles, standardised,
    so that a bend in its effect is followed; another one a column of 0 and 1 for each value. What
    is missing is marked.

    Raises
    ------
    InputError
        If a column is not there.
    """
    parts: list[Floats] = []
    for name in columns:
        if name not in table.columns:
            raise InputError(f"there is no column {name!r}; name columns of the table with --given")
        column = table[name]
        gone = column.is_null().to_numpy()
        if column.dtype.is_numeric():
            values = column.cast(pl.Float64).fill_nan(None)
            gone = values.is_null().to_numpy()
            filled = values.fill_null(values.median()).to_numpy()
            hinges = [np.maximum(filled - np.quantile(filled, q), 0) for q in (0.25, 0.5, 0.75)]
            parts += [filled, filled**2, *hinges]
        else:
            texts = column.cast(pl.String)
            counts = texts.value_counts(sort=True).drop_nulls()[name].to_list()
            parts += [(texts == value).fill_null(False).to_numpy() for value in counts[:_LEVELS]]
        if gone.any():
            parts.append(gone)
    out = np.column_stack(parts).astype(np.float64)
    spread = out.std(axis=0)
    return np.asarray((out - out.mean(axis=0))[:, spread > 0] / spread[spread > 0])


def judge_given(on: Bools, losses: Floats, given: Floats, draws: int, rng: Generator) -> float:
    """Return the two-sided p-value of a candidate given columns.

    Parameters
    ----------
    on : bool array, shape (n,)
        Where the candidate holds.
    losses : float64 array, shape (n,)
    given : float64 array, shape (n, d)
        From `describe_columns`.
    draws : int
    rng : numpy.random.Generator

    Notes
    -----
    Candès et al. 2018, distilled as by Liu et al. 2022: the candidate is drawn again and again with
    its chance given the columns, from a logistic regression, and each draw is compared by its
    covariance with what a ridge regression on the columns leaves of the losses. P(p <= a) <= a if
    that chance is right; whatever the regression of the losses is worth, it costs power alone."""
    from sklearn.linear_model import LogisticRegression, Ridge

    if not 0 < on.sum() < len(on):
        return 1.0
    model = LogisticRegression(C=_PENALTY, max_iter=1_000).fit(given, on)
    chance = model.predict_proba(given)[:, 1].clip(_EDGE, 1 - _EDGE)
    rest = losses - Ridge(alpha=_PENALTY).fit(given, losses).predict(given)
    drawn = rng.random((draws, len(on))) < chance
    observed = abs(float(rest @ (on - chance)))
    sizes = np.abs((drawn - chance) @ rest)
    # the data count as one draw, and rounding must not make them the largest
    return float((1 + (sizes >= observed * (1 - 1e-12)).sum()) / (draws + 1))
