"""Other regimes: conversations of growing depth, and attacks that are graded and also executed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from groundfault.core.evidence import Evidence
from groundfault.core.status import Status
from groundfault.errors import InputError, PlanError
from groundfault.stats.intervals import wilson
from groundfault.stats.multiple import holm
from groundfault_lab.stats.paired import mcnemar
from groundfault_lab.stats.partitions import newcombe_pairs
from groundfault_lab.taxonomy.fitting.matrix import SLACK, check_thresholds


def depth_profile(
    evidence: Evidence, depth: str, *, score: float = 0.7, rate: float = 0.5, level: float = 0.95
) -> pl.DataFrame:
    """Tabulate failure rates of each model at each depth, with Wilson's intervals.

    Parameters
    ----------
    evidence : Evidence
        A row may be a whole conversation or a try; an example may be met at several depths. What
        was not scored is not counted.
    depth : str
        Column that says it: turns, budget, or another order.
    score, rate : float
        A try passes from this score on, and a model passes an example at a depth from this share of
        its tries on; both in (0, 1].
    level : float
        Coverage of each interval, in (0, 1); they are not simultaneous, and assume independent
        examples.

    Returns
    -------
    polars.DataFrame
        Columns ``model``, ``depth``, ``examples``, ``failed``, ``rate``, ``low``, ``high``, ordered
        by model and depth.

    Raises
    ------
    InputError
        If there is no such column, or nothing was scored at a known depth.
    PlanError
        If a share is out of range.
    """
    check_thresholds(score, rate)
    _check_level(level)
    roles, columns = evidence.roles, evidence.frame.columns
    if depth not in columns:
        raise InputError(
            f"there is no column {depth!r} to tell the depth by; the columns are "
            f"{', '.join(columns)}"
        )
    tries = pl.DataFrame(
        {
            "model": evidence.frame[roles.model].cast(pl.String)
            if roles.model
            else [""] * len(evidence),
            "depth": evidence.frame[depth],
            "example": evidence.frame[roles.id or ""],
            # the slack is for scores such as 1 - 0.3, which is below 0.7 in floating point
            "passed": 1.0 - evidence.loss >= score - SLACK,
        }
    ).filter(evidence.status == Status.SCORED, pl.col("depth").is_not_null())
    if tries.is_empty():
        raise InputError(f"nothing was scored at a known {depth}, so there is no profile")
    is_failure = pl.col("passed").mean() < rate - SLACK
    cells = (
        tries.group_by("model", "depth", "example")
        # tries are reduced to one answer an example first, so that intervals count examples
        .agg(failed=is_failure)
        .group_by("model", "depth")
    )
    table = cells.agg(
        examples=pl.len().cast(pl.Int64), failed=pl.col("failed").sum().cast(pl.Int64)
    )
    table = table.sort("model", "depth")
    # Wilson 1927; at small n and rates near 0 the normal interval leaves [0, 1]
    low, high = wilson(table["failed"].to_numpy(), table["examples"].to_numpy(), level)
    return table.with_columns(
        rate=pl.col("failed") / pl.col("examples"), low=pl.Series(low), high=pl.Series(high)
    )


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise PlanError(f"level must be between 0 and 1, not {level:g}")


@dataclass(frozen=True)
class Gap:
    """A grader's verdicts beside results of execution, on the same traces.

    Attributes
    ----------
    cell : tuple of str
        What the traces have in common, such as attack and model.
    both, grader_only, execution_only, neither : int
        Traces by which of the two says that it succeeded.
    grader_rate, execution_rate : tuple of float
        Rate of success by the grader and by execution, each with the ends of Wilson's interval.
    gap : float
        Grader's rate minus execution's: above 0 the grader sees successes that were none, below 0
        it misses some.
    low, high : float
        Newcombe's paired interval of the gap.
    p : float
        McNemar's exact two-sided p-value; ``adjusted`` is Holm's over the cells.
    """

    cell: tuple[str, ...]
    both: int
    grader_only: int
    execution_only: int
    neither: int
    grader_rate: tuple[float, float, float]
    execution_rate: tuple[float, float, float]
    gap: float
    low: float
    high: float
    p: float
    adjusted: float

    @property
    def at_fault(self) -> bool:
        """Tell whether the interval excludes 0: then the grader is at fault and not the model."""
        return self.low > 0 or self.high < 0


def grader_gaps(
    table: pl.DataFrame, *, grader: str, execution: str, by: Sequence[str] = (), level: float = 0.95
) -> tuple[Gap, ...]:
    """Return the gap between a grader and execution in each cell, ordered by cell.

    Parameters
    ----------
    table : polars.DataFrame
        One row a trace.
    grader, execution : str
        Columns of 0/1 or true/false: whether the grader says, and whether execution shows, that
        the trace succeeded.
    by : sequence of str
        Columns that make the cells; all traces are one cell without.
    level : float
        Coverage of each interval, in (0, 1); they assume independent traces.

    Raises
    ------
    PlanError
        If the level is out of range.
    InputError
        If a column is missing, holds something else, or is empty somewhere: a trace that was not
        graded, or not executed, has no pair.
    """
    _check_level(level)
    for column in (grader, execution, *by):
        if column not in table.columns:
            raise InputError(
                f"the traces have no column {column!r}; their columns are "
                f"{', '.join(table.columns)}"
            )
    for column in (grader, execution):
        values = table[column]
        if not (values.dtype == pl.Boolean or values.dtype.is_numeric()) or values.null_count():
            raise InputError(f"column {column!r} must be 0 or 1, or true or false, for every trace")
        if not values.cast(pl.Float64).is_in([0.0, 1.0]).all():
            raise InputError(f"column {column!r} holds other numbers than 0 and 1")
    if not table.height:
        raise InputError("there are no traces")
    grader_says, execution_shows = (pl.col(c).cast(pl.Int64) for c in (grader, execution))
    counts = {
        "both": (grader_says * execution_shows).sum(),
        "grader_only": (grader_says * (1 - execution_shows)).sum(),
        "execution_only": ((1 - grader_says) * execution_shows).sum(),
        "neither": ((1 - grader_says) * (1 - execution_shows)).sum(),
    }
    cells = table.group_by(*by).agg(**counts).sort(*by) if by else table.select(**counts)
    names = [tuple(str(row[c]) for c in by) for row in cells.iter_rows(named=True)]
    squares = cells.select(*counts).rows()
    # McNemar's test reads only traces on which the two disagree
    p = np.array([mcnemar(b, c) for _, b, c, _ in squares])
    return tuple(
        _make_gap(name, square, level, float(raw), float(adjusted))
        for name, square, raw, adjusted in zip(names, squares, p, holm(p), strict=True)
    )


def _make_gap(
    cell: tuple[str, ...],
    square: tuple[int, int, int, int],
    level: float,
    p: float,
    adjusted: float,
) -> Gap:
    both, grader_only, execution_only, _ = square
    traces = sum(square)

    def rate(succeeded: int) -> tuple[float, float, float]:
        low, high = wilson(succeeded, traces, level)
        return succeeded / traces, float(low), float(high)

    # Newcombe 1998, method 10, for paired proportions: the traces are the same
    ends = newcombe_pairs(*square, level)
    gap = (grader_only - execution_only) / traces
    rates = rate(both + grader_only), rate(both + execution_only)
    return Gap(cell, *square, *rates, gap, *ends, p, adjusted)
