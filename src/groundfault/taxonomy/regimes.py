"""Other regimes: conversations of growing depth, and attacks whose success is judged and also executed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from groundfault.errors import InputError
from groundfault.stats.multiple import holm
from groundfault.stats.proportions import mcnemar, paired_difference, wilson
from groundfault.stats.silhouette import silhouette
from groundfault.taxonomy.matrix import Matrix

Floats = NDArray[np.float64]


def depth_profile(matrix: Matrix, depth: str, level: float = 0.95) -> pl.DataFrame:
    """Failure rates of each model at each depth, with Wilson's intervals.

    Parameters
    ----------
    matrix : Matrix
        One row an example such as a conversation of a kind and depth; a model with repeats passes it by the matrix's
        rate.
    depth : str
        Attribute of the examples: turns, budget, or another order.
    level : float
        Coverage of each interval, in (0, 1); they are not simultaneous.

    Returns
    -------
    polars.DataFrame
        Columns ``model``, ``depth``, ``examples``, ``failed``, ``rate``, ``low``, ``high``, ordered by model and
        depth; cells without an answer are left out.

    Raises
    ------
    InputError
        If the attribute is not there.
    """
    if depth not in matrix.attributes.columns:
        known = ", ".join(matrix.attributes.columns) or "none"
        raise InputError(f"no attribute {depth!r} describes the examples; there are {known}")
    at = matrix.attributes[depth]
    failed, asked = matrix.values == 0, matrix.trials > 0
    rows = []
    for value in at.drop_nulls().unique().sort():
        inside = (at == value).fill_null(False).to_numpy()
        rows += [
            {"model": model, "depth": value, "examples": int(asked[inside, j].sum()), "failed": int(f)}
            for j, (model, f) in enumerate(zip(matrix.models, failed[inside].sum(axis=0), strict=True))
        ]
    table = pl.DataFrame(rows).filter(pl.col("examples") > 0).sort("model", "depth")
    low, high = wilson(table["failed"].to_numpy(), table["examples"].to_numpy(), level)
    return table.with_columns(rate=pl.col("failed") / pl.col("examples"), low=pl.Series(low), high=pl.Series(high))


@dataclass(frozen=True)
class Gap:
    """A judge's word beside what execution showed, on the same traces.

    Attributes
    ----------
    cell : tuple of str
        What the traces have in common, such as attack and model.
    both, judge_only, execution_only, neither : int
        Traces by who says that it succeeded.
    gap : float
        Judged rate minus executed rate: above 0 the judge sees successes that were none, below 0 it misses some.
    low, high : float
        Newcombe's paired interval of the gap.
    p : float
        McNemar's exact two-sided p-value; ``adjusted`` is Holm's over the cells.
    """

    cell: tuple[str, ...]
    both: int
    judge_only: int
    execution_only: int
    neither: int
    gap: float
    low: float
    high: float
    p: float
    adjusted: float

    @property
    def at_fault(self) -> bool:
        """Whether the interval excludes 0: what was measured says more of the instrument than of the model."""
        return self.low > 0 or self.high < 0


def judge_gaps(
    table: pl.DataFrame, *, judge: str, execution: str, by: Sequence[str] = (), level: float = 0.95
) -> tuple[Gap, ...]:
    """The gap between a judge and execution in each cell, ordered by cell.

    Parameters
    ----------
    table : polars.DataFrame
        One row a trace.
    judge, execution : str
        Columns of 0/1 or true/false: whether the judge says, and whether execution shows, that it succeeded.
    by : sequence of str
        Columns that make the cells; all traces are one cell without.
    level : float

    Raises
    ------
    InputError
        If a column is missing, holds something else, or is empty somewhere: a trace that was not judged, or not
        executed, has no pair.
    """
    for column in (judge, execution, *by):
        if column not in table.columns:
            raise InputError(f"the traces have no column {column!r}; their columns are {', '.join(table.columns)}")
    for column in (judge, execution):
        values = table[column]
        if not (values.dtype == pl.Boolean or values.dtype.is_numeric()) or values.null_count():
            raise InputError(f"column {column!r} must be 0 or 1, or true or false, for every trace")
        if not values.cast(pl.Float64).is_in([0.0, 1.0]).all():
            raise InputError(f"column {column!r} holds other numbers than 0 and 1")
    if not table.height:
        raise InputError("there are no traces")
    said, shown = (pl.col(c).cast(pl.Int64) for c in (judge, execution))
    counts = [
        (said * shown).sum().alias("both"),
        (said * (1 - shown)).sum().alias("judge_only"),
        ((1 - said) * shown).sum().alias("execution_only"),
        ((1 - said) * (1 - shown)).sum().alias("neither"),
    ]
    cells = table.group_by(*by).agg(counts).sort(*by) if by else table.select(counts)
    names = [tuple(str(row[c]) for c in by) for row in cells.iter_rows(named=True)]
    squares = cells.select("both", "judge_only", "execution_only", "neither").rows()
    p = np.array([mcnemar(b, c) for _, b, c, _ in squares])
    return tuple(
        _gap(name, square, level, float(raw), float(adjusted))
        for name, square, raw, adjusted in zip(names, squares, p, holm(p), strict=True)
    )


def _gap(cell: tuple[str, ...], square: tuple[Any, ...], level: float, p: float, adjusted: float) -> Gap:
    both, judge_only, execution_only, neither = square
    low, high = paired_difference(both, judge_only, execution_only, neither, level)
    gap = (judge_only - execution_only) / sum(square)
    return Gap(cell, both, judge_only, execution_only, neither, gap, low, high, p, adjusted)


def profile_silhouettes(profiles: ArrayLike, clusters: Sequence[int] = (2, 3, 4), seed: int = 0) -> dict[int, float]:
    """Silhouettes of k-means on a few profiles, such as the judged and executed rates of nine cells.

    Kept for comparison with the paper. It is a weak ground for "three kinds of behaviour": of nine points thrown at
    random, the best of these silhouettes is about .49 on average, and .71 or more in some 6 of 1,000 throws. The gaps
    of `judge_gaps` say more.

    Parameters
    ----------
    profiles : float array, shape (n, d)
    clusters : sequence of int
    seed : int
        Of the starts of k-means.
    """
    from sklearn.cluster import KMeans

    points = np.asarray(profiles, dtype=np.float64)
    if points.ndim != 2 or len(points) <= max(clusters):
        raise InputError(f"{len(points)} profiles cannot make {max(clusters)} clusters")
    return {
        k: silhouette(points, KMeans(k, n_init=20, random_state=seed).fit_predict(points).astype(np.int64))
        for k in clusters
    }
