"""Modes by counts: rules in a fixed order, tested on units that did not help to propose them.

If other units fixed the rules and their order, no correction for the number of possible rules is
needed: each rule is tested given the rules before it, and the list ends at the first that fails.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from groundfault.base.arrays import Bools, Floats, Ints
from groundfault.modes.strata import discount_spread
from groundfault.stats.contingency import common_grid, log_tail, log_tail_of_losses

_ATOMS = 30_000  # atoms of all strata up to which tails are convolved: a tenth of a second


@dataclass(frozen=True)
class PatternCells:
    """Counts of units in C cells with equal losses and equal matches of M rules.

    Attributes
    ----------
    on, tested : bool arrays, shape (C, M)
        Whether each rule matches a cell, and whether it is tested there; never on where not tested.
    losses : float64 array, shape (C,)
        Losses in [0, 1].
    units : int64 array, shape (C,)
        Number of units; negative in a cell that removes units from another, equal cell.
    strata : int64 array, shape (C,)
        Strata: units are compared only within their stratum.
    """

    on: Bools
    tested: Bools
    losses: Floats
    units: Ints
    strata: Ints

    def take(self, where: Bools) -> PatternCells:
        """Return some of the cells."""
        return PatternCells(
            self.on[where],
            self.tested[where],
            self.losses[where],
            self.units[where],
            self.strata[where],
        )

    def count(self, where: Bools) -> tuple[int, float]:
        """Return units of some cells, and their losses."""
        units = self.units[where]
        return int(units.sum()), float((units * self.losses[where]).sum())


@dataclass(frozen=True)
class OrderedTest:
    """One rule of a list, tested given the rules before it.

    Attributes
    ----------
    inside, outside, new : pair of int and float
        Units inside, outside, and inside but in no earlier rule; with their losses.
    log_marginal, log_conditional : float
        Log p-values: alone, and given the rules before it; never below an earlier rule's.
    """

    inside: tuple[int, float]
    outside: tuple[int, float]
    new: tuple[int, float]
    log_marginal: float
    log_conditional: float


def judge_in_order(cells: PatternCells, level: float) -> Iterator[OrderedTest]:
    """Yield the rules in their order, up to the first that fails one of its two tests.

    Parameters
    ----------
    cells : PatternCells
    level : float
        Family-wise error level of the marginal claims, and of the conditional ones, in (0, 1).

    Notes
    -----
    The guarantee is for independent units and rules whose choice and order do not depend on their
    losses. With probability at least ``1 - level``, no listed rule has equal losses inside and
    outside; with the same probability, every listed rule adds to the rules before it. Testing in a
    fixed order spends no level on a rule that passes (Westfall and Krishen 2001,
    doi:10.1016/S0378-3758(01)00077-5). Tails are exact for losses of 0 and 1, and a double
    saddlepoint for graded losses and for very many units in several strata.
    """
    first, base = np.zeros(len(cells.units), dtype=np.int64), cells.strata
    worst = [-math.inf, -math.inf]
    for i in range(cells.on.shape[1]):
        on, tested = cells.on[:, i], cells.tested[:, i]
        given_first = first * (base.max(initial=0) + 1) + base
        logs = [_compute_log_p(cells, i, strata) for strata in (base, given_first)]
        worst = [max(pair) for pair in zip(worst, logs, strict=True)]
        if max(worst) > math.log(level):
            return
        new = on & (first == 0)
        yield OrderedTest(
            cells.count(on), cells.count(tested & ~on), cells.count(new), worst[0], worst[1]
        )
        first[new] = i + 1


def _compute_log_p(cells: PatternCells, rule: int, strata: Ints) -> float:
    """Return one-sided log p that a rule's losses do not exceed the expectation of the strata."""
    part = cells.tested[:, rule]
    on, losses, units = cells.on[part, rule], cells.losses[part], cells.units[part]
    home = np.unique(strata[part], return_inverse=True)[1].reshape(-1)
    size = np.bincount(home, units).astype(np.int64)
    on_size = np.bincount(home[on], units[on], minlength=len(size)).astype(np.int64)
    if not on_size.any():
        return 0.0
    binary = bool(np.isin(losses, (0.0, 1.0)).all())
    total = float((units * losses)[on].sum())
    busy = on_size > 0
    if binary:
        errors = np.bincount(home, units * losses).astype(np.int64)
        margins = on_size[busy], errors[busy], size[busy]
        if _count_atoms(*margins) <= _ATOMS:
            return log_tail(round(total), *margins)
    else:
        total -= discount_spread(on, home, losses, units.astype(np.float64))
    levels, place = np.unique(losses, return_inverse=True)
    counts = np.bincount(home * len(levels) + place, units).astype(np.int64)
    cell = np.flatnonzero(counts)
    cell = cell[busy[cell // len(levels)]]
    kept = np.unique(cell // len(levels), return_inverse=True)[1].reshape(-1)
    grid = common_grid(levels)
    step = 1 / grid if grid else 0.0
    values = levels[cell % len(levels)]
    return log_tail_of_losses(total, step, on_size[busy], kept, values, counts[cell])


def _count_atoms(on: Ints, errors: Ints, size: Ints) -> float:
    """Return the approximate number of atoms of the hypergeometric counts of all strata."""
    n, k, m = (x.astype(np.float64) for x in (on, errors, size))
    deviations = np.sqrt(n * k * (m - n) * (m - k) / m**3)
    return float((24 * deviations + 96).sum())
