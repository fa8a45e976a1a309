"""Leaks: columns that predict the outcome almost perfectly, so likely consequences of it.

A column such as ``terminate_reason`` explains failures by failing. Such columns can be declared
(`Roles.post_outcome`); this test catches those that were forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.core.columns import LEVELS, take_sample
from groundfault.core.evidence import Evidence

LEAK = 0.95
"""Share of the rarer outcome that a column may predict before it counts as a consequence of it."""

MIN_FAILURES = 10
"""Observations of each outcome that the test needs."""


def find_leaks(
    evidence: Evidence, columns: Iterable[str], rows: NDArray[np.bool_] | None = None
) -> dict[str, float]:
    """Columns that predict the outcome almost perfectly, and how well.

    The measure is Goodman and Kruskal's lambda, each observation predicted from the others: for
    words and flags the level's own majority, for numbers the best single cut and, where they have
    few values, their levels. Graded losses are called failed above one half. A fixed sample of
    20,000 observations is looked at.

    Parameters
    ----------
    evidence : Evidence
    columns : iterable of str
    rows : bool array, shape (len(evidence),), optional
        The rows to look at, such as those of the discovery part; all, where left out.

    Returns
    -------
    dict of str to float
        Those of at least `LEAK`, each with its lambda in (0, 1].
    """
    is_scored = evidence.loss.is_not_null().to_numpy()
    sample_rows = take_sample(
        pl.DataFrame({"row": np.flatnonzero(is_scored if rows is None else is_scored & rows)})
    )["row"]
    failures = evidence.loss[sample_rows].to_numpy() > 0.5
    rarer = min(int(failures.sum()), int((~failures).sum()))
    if rarer < MIN_FAILURES:
        return {}
    leaks = {}
    for name in columns:
        share = 1 - _count_mistakes(evidence.frame[name][sample_rows], failures) / rarer
        if share >= LEAK:
            leaks[name] = share
    return leaks


def _count_mistakes(values: pl.Series, failures: NDArray[np.bool_]) -> int:
    """Fewest observations that a prediction from the column gets wrong."""
    levels = 0 if values.dtype.is_nested() else values.n_unique()
    best = len(failures)
    if levels < 2:
        return best
    if levels <= LEVELS:
        best = _mistakes_by_level(values, failures)
    if values.dtype.is_numeric():
        best = min(best, _mistakes_by_cut(values, failures))
    return best


def _mistakes_by_level(values: pl.Series, failures: NDArray[np.bool_]) -> int:
    codes = values.cast(pl.String).fill_null("\0").rank("dense").to_numpy().astype(np.intp)
    size = np.bincount(codes)
    fails = np.bincount(codes, weights=failures)
    rarer = np.minimum(fails, size - fails)
    # leave-one-out: without itself, the majority of a tied level is the other outcome. So a column
    # of ids, all levels of one, predicts nothing
    is_tied = np.abs(2 * fails - size) <= 1
    return int(np.where(is_tied, size, rarer).sum())


def _mistakes_by_cut(values: pl.Series, failures: NDArray[np.bool_]) -> int:
    defined = values.is_not_null().to_numpy()
    if defined.sum() < 2 or not defined.any():
        return len(failures)
    missing = failures[~defined]
    aside = min(int(missing.sum()), int((~missing).sum()))
    numbers = values.filter(pl.Series(defined)).to_numpy().astype(float)
    order = np.argsort(numbers, kind="stable")
    numbers, fails = numbers[order], failures[defined][order]
    below = np.cumsum(fails)[:-1]  # failures up to each cut
    count = np.arange(1, len(fails))
    # correct predictions of "fails below the cut"; its opposite is correct on the others
    right = below + ((len(fails) - count) - (fails.sum() - below))
    cuts = numbers[1:] > numbers[:-1]
    if not cuts.any():
        return len(failures)
    best = np.maximum(right, len(fails) - right)[cuts].max()
    return aside + len(fails) - int(best)
