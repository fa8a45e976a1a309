"""How good rules are, by a population whose truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

FIRST = 5
"""Rules that a reader looks at."""
AS_GOOD_AS_NONE = 0.01
"""A rule whose failure rate is not above the others' by more than this is false."""


def jaccard(a: Bools, b: Bools) -> float:
    """Rows that are in both, over rows that are in either; 0 for two empty ones."""
    return float((a & b).sum() / max(1, (a | b).sum()))


def score_rules(
    holds: Sequence[Bools], losses: Floats, fresh: Bools, hole: Bools | None
) -> dict[str, Any]:
    """Scores of a list of rules.

    Parameters
    ----------
    holds : sequence of bool array, shape (rows,)
        Where each rule holds in the population, in the order of the list.
    losses : float64 array, shape (rows,)
        Outcomes, or their expectations where these are known.
    fresh : bool array, shape (rows,)
        Rows that the method did not see: all but the hole's overlap is scored on these alone.
    hole : bool array, shape (rows,), or None
        The region whose failures have a known cause.

    Returns
    -------
    dict
        ``modes``; ``top``, ``first`` and ``all``, the largest Jaccard index with the hole of the
        first rule, among the first five, and among all, None without a hole; ``marginal`` and
        ``conditional``, how many rules are false; ``covered``, share of the failures that the rules
        cover, and ``inside``, the failure rate where any holds, None where nothing is.
    """
    overlaps = [0.0] if hole is None else [0.0, *(jaccard(rule, hole) for rule in holds)]
    on = [rule[fresh] for rule in holds]
    loss = losses[fresh]
    anywhere = np.logical_or.reduce([np.zeros(len(loss), dtype=np.bool_), *on])
    marginal, conditional = count_false(on, loss)
    return {
        "modes": len(holds),
        "top": None if hole is None else max(overlaps[:2]),
        "first": None if hole is None else max(overlaps[: FIRST + 1]),
        "all": None if hole is None else max(overlaps),
        "marginal": marginal,
        "conditional": conditional,
        "covered": float(loss[anywhere].sum() / loss.sum()) if loss.sum() else None,
        "inside": float(loss[anywhere].mean()) if anywhere.any() else None,
    }


def count_false(
    on: Sequence[Bools], losses: Floats, margin: float = AS_GOOD_AS_NONE
) -> tuple[int, int]:
    """How many rules of a list are false: by themselves, and given those before them.

    A rule is false where its failure rate exceeds that of the other rows by ``margin`` at most, or
    where it holds for all rows or none. Given the rules before it, rows are compared with others of
    the same stratum: those for which the same rule is the first that holds, or none.

    Parameters
    ----------
    on : sequence of bool array, shape (rows,)
    losses : float64 array, shape (rows,)
    margin : float
    """
    one = np.zeros(len(losses), dtype=np.intp)
    stratum = one.copy()
    marginal = conditional = 0
    for number, rule in enumerate(on, 1):
        marginal += not weigh_excess(rule, losses, one) > margin
        conditional += not weigh_excess(rule, losses, stratum) > margin
        stratum[rule & (stratum == 0)] = number
    return marginal, conditional


def weigh_excess(rule: Bools, losses: Floats, stratum: NDArray[np.intp]) -> float:
    """Mean loss where a rule holds minus elsewhere, over strata; NaN where none has both sides.

    A stratum of a rows inside and b outside weighs ab / (a + b), as in a Mantel-Haenszel estimate.
    """
    size = int(stratum.max(initial=0)) + 1

    def count(rows: Bools) -> tuple[Floats, Floats]:
        strata, weights = stratum[rows], losses[rows].astype(np.float64)
        sizes = np.bincount(strata, minlength=size).astype(np.float64)
        return sizes, np.bincount(strata, weights, size).astype(np.float64)

    (a, a_loss), (b, b_loss) = count(rule), count(~rule)
    both = (a > 0) & (b > 0)
    weight = (a * b / np.maximum(a + b, 1))[both]
    if not both.any():
        return float("nan")
    difference = a_loss[both] / a[both] - b_loss[both] / b[both]
    return float((weight * difference).sum() / weight.sum())
