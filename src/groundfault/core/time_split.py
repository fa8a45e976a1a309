"""A split by time: the latest examples are held out."""

from __future__ import annotations

import numpy as np
import polars as pl

from groundfault.base.arrays import Bools, Floats
from groundfault.core.evidence import Evidence
from groundfault.errors import InputError


def earlier_units(evidence: Evidence, column: str, share: float) -> Bools:
    """Return the units before the point in time that holds out about this share of all units.

    All units of one time stay together, so the share is exact only up to ties.
    """
    times = _order_times(evidence, column)
    first, last = np.full((2, evidence.unit_count), np.nan)
    np.fmin.at(first, evidence.unit_index, times)
    np.fmax.at(last, evidence.unit_index, times)
    several = np.flatnonzero(first < last)
    if len(several):
        raise InputError(
            f"unit {evidence.unit_names[int(several[0])]!r} has several times in column "
            f"{column!r}; only units of one time each can be split by it"
        )
    starts = np.unique(first)[1:]  # a holdout may begin with any time but the first
    if not len(starts):
        raise InputError(f"column {column!r} holds one time only, so it has no latest examples")
    shares = np.array([(first >= start).mean() for start in starts])
    start = starts[np.abs(shares - share).argmin()]
    return np.asarray(first < start)


def _order_times(evidence: Evidence, column: str) -> Floats:
    """Return times of the rows as numbers in the same order."""
    if column not in evidence.frame.columns:
        raise InputError(
            f"there is no column {column!r} of times; the columns are "
            f"{', '.join(evidence.frame.columns)}"
        )
    column_values = evidence.frame[column]
    # dates of CSV and JSON files are text; other words have no order in time
    is_text = column_values.dtype == pl.String
    values = _parse_times(column_values) if is_text else column_values
    if values is None or not (values.dtype.is_numeric() or values.dtype.is_temporal()):
        raise InputError(
            f"column {column!r} must hold numbers, dates or times, such as 2025-03-31 or "
            "2025-03-31T12:00"
        )
    # ranks keep the order where a float would round nanoseconds since 1970
    ranks = values.rank("dense").cast(pl.Float64).to_numpy()
    if values.null_count() or (values.dtype.is_float() and values.is_nan().any()):
        raise InputError(f"column {column!r} lacks a time in some rows; every row needs one")
    return np.asarray(ranks, dtype=np.float64)


def _parse_times(words: pl.Series) -> pl.Series | None:
    """Return dates or times from ISO 8601 words; None if a word is not a date or time."""
    for form in ("%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f%#z"):
        plain = words.str.replace(" ", "T", literal=True)
        times = plain.str.to_datetime(form, strict=False)
        if times.null_count() == words.null_count():
            return times
    return None
