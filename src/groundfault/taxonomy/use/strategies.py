"""Strategies: which examples to ask a new model next, given what other models did on them."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from groundfault.errors import InputError, PlanError
from groundfault.stats import irt
from groundfault.taxonomy.use.basis import Basis

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Labels = NDArray[np.int64]

Strategy = Literal["random", "benchmark", "difficulty", "irt", "uncertainty", "taxonomy"]
Allocation = Literal["proportional", "uniform"]

STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
MIN_OF_EACH_CLUSTER = 3
"""Examples of each cluster that the taxonomy strategy asks first: ``k_min`` of the paper."""

_DIFFICULTIES = 5  # strata of the strategy by difficulty: fifths


def check(strategy: str, allocation: str = "proportional", budget: int = 1) -> None:
    """Refuse unknown words and a budget below 1.

    Raises
    ------
    PlanError
        Always, where there is anything to refuse.
    """
    if strategy not in STRATEGIES:
        raise PlanError(f"strategy must be one of {', '.join(STRATEGIES)}, not {strategy!r}")
    if allocation not in get_args(Allocation):
        raise PlanError(
            f"allocation must be one of {', '.join(get_args(Allocation))}, not {allocation!r}"
        )
    if budget < 1:
        raise PlanError(f"a budget is at least 1 example, not {budget}")


def divide_budget(
    size: Labels, budget: int, *, min_each: int = 0, how: Allocation = "proportional"
) -> Labels:
    """Divide a budget: how many examples of each group to ask.

    Parameters
    ----------
    size : int64 array, shape (k,)
        Examples there are of each group.
    budget : int
    min_each : int
        Asked of each group first, the largest group first; with too small a budget the smallest
        groups get none.
    how : {"proportional", "uniform"}
        What is left of the budget goes by size, largest remainders first; or one example of each
        group in turn, in which case ``min_each`` plays no part.

    Returns
    -------
    int64 array, shape (k,)
        At most ``size``; sums to the budget, or to all there is.

    Examples
    --------
    >>> quotas(np.array([60, 30, 10]), 19, least=3).tolist()
    [9, 6, 4]
    >>> quotas(np.array([60, 30, 2]), 11, how="uniform").tolist()
    [5, 4, 2]
    """
    counts = np.zeros(len(size), dtype=np.int64)
    remainder = min(budget, int(size.sum()))
    # the largest first, so that a small budget is not spent on tiny groups
    order = np.argsort(-size, kind="stable")
    if how == "uniform":
        while remainder:
            for group in order[counts[order] < size[order]][:remainder]:
                counts[group] += 1
                remainder -= 1
        return counts
    for group in order:
        counts[group] = min(min_each, int(size[group]), remainder)
        remainder -= int(counts[group])
    while remainder:
        room = counts < size
        share = np.where(room, size, 0) / size[room].sum() * remainder
        # largest remainders; a full group gives its part back, hence the loop
        more = np.minimum(np.floor(share).astype(np.int64), size - counts)
        by_rest = np.lexsort((-size, -(share - more) * room))
        for group in by_rest[: remainder - int(more.sum())]:
            more[group] += int(counts[group] + more[group] < size[group] and room[group])
        counts += more
        remainder -= int(more.sum())
    return counts


def assign_groups(strategy: Strategy, basis: Basis) -> Labels:
    """Assign each example to a group, by strategy; -1 is asked last.

    Raises
    ------
    InputError
        If benchmarks are asked for and not known.
    """
    if strategy == "taxonomy":
        return basis.labels
    if strategy == "difficulty":
        # ranks, not values: many examples have the same difficulty, and fifths must be even
        rank = np.argsort(np.argsort(basis.difficulty, kind="stable"), kind="stable")
        return (rank * _DIFFICULTIES // max(len(rank), 1)).astype(np.int64)
    if strategy == "benchmark":
        if basis.benchmark is None:
            raise InputError(
                "stratifying by benchmark needs to know where each example comes from: name its "
                "column (benchmark=, or --benchmark)"
            )
        return basis.benchmark
    return np.zeros(len(basis), dtype=np.int64)


def draw_by_group(
    groups: Labels,
    open_: Bools,
    priority: Floats,
    budget: int,
    *,
    min_each: int = 0,
    how: Allocation = "proportional",
    has_answer: Bools | None = None,
) -> NDArray[np.intp]:
    """Draw examples to ask, at random within groups, in the order of the draw.

    Parameters
    ----------
    groups : int64 array, shape (n,)
        Negative is asked only when nothing else is left.
    open_ : bool array, shape (n,)
        What may be asked.
    priority : float64 array, shape (n,)
        Uniform draws; the smallest of a group go first, so that strategies with the same draws are
        comparable.
    budget, min_each, how : optional
        As for `quotas`.
    has_answer : bool array, shape (n,), optional
        What was answered before and counts towards the quotas of its group.
    """
    # what was answered already counts towards a group's quota
    before = np.zeros(len(groups), dtype=bool) if has_answer is None else has_answer & ~open_
    count = int(groups.max(initial=-1)) + 1
    inside = groups >= 0
    free = np.bincount(groups[open_ & inside], minlength=count)
    counts = np.bincount(groups[before & inside], minlength=count)
    targets = divide_budget(
        free + counts, min(budget, int(free.sum())) + int(counts.sum()), min_each=min_each, how=how
    )
    # groups asked too often before have taken from the others what cannot be given back
    short = np.clip(targets - counts, 0, free)
    if short.sum() > budget:
        short = divide_budget(short, budget)
    at = np.flatnonzero(open_ & inside)
    # by group, and within it by the draws
    at = at[np.lexsort((priority[at], groups[at]))]
    rows = at
    if len(at):
        start = np.r_[0, np.cumsum(np.bincount(groups[at], minlength=count))[:-1]]
        rows = at[np.arange(len(at)) - start[groups[at]] < short[groups[at]]]
    rows = rows[np.argsort(priority[rows], kind="stable")]
    # groups are exhausted: fill up from anything that is open, noise last
    if len(rows) < budget:
        rest = np.setdiff1d(np.flatnonzero(open_), rows)
        rest = rest[np.lexsort((priority[rest], ~inside[rest]))]
        rows = np.r_[rows, rest[: budget - len(rows)]]
    return rows


def measure_information(strategy: Strategy, basis: Basis) -> Floats:
    """Measure the worth of an answer at each ability of `irt.GRID`: shape (len(GRID), n).

    Fisher's information for ``irt``; nearness of the chance of a pass to one half for
    ``uncertainty``."""
    if strategy == "uncertainty":
        return np.ascontiguousarray(-np.abs(basis.curve - 0.5).T)
    return np.ascontiguousarray(basis.items.information(irt.GRID).T)
