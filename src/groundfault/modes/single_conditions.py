"""Single conditions are tested together: how much less their number costs than a sum of chances."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from groundfault.base.streams import stream
from groundfault.modes.language import RuleLanguage
from groundfault.modes.strata import Losses

Floats = NDArray[np.float64]

_PERMUTATIONS = 999
_TIE = 1e-6
_WORK = 3e9
"""Additions that a bar may take: about a second."""


def compute_discount(language: RuleLanguage, losses: Losses, level: float) -> float:
    """Log of what the count of single conditions may be divided by, their dependence considered.

    Conditions overlap (cuts of one column, columns that follow each other) and tests of counts
    seldom reach their level exactly, so that the smallest of their p-values is larger than that of
    as many independent ones. How large it is by chance is read off permuted losses: min-p.

    Parameters
    ----------
    language : RuleLanguage
    losses : Losses
    level : float
        Family-wise error level of all marginal claims, in (0, 1).

    Returns
    -------
    float
        At least 0; 0 where nothing is gained: graded losses, several strata, or too large a table.

    Notes
    -----
    Westfall and Young 1993, single step: at this level the family-wise error of the exact tests is
    kept for exchangeable units, strongly under subset pivotality.
    """
    count = language.counts["single"]
    units = len(losses.values)
    several = len(language.layout.runs) > 2
    if not count or several or not losses.binary or count * units * _PERMUTATIONS > _WORK:
        return 0.0
    least = _permute_least(language, losses)
    # the observed losses are one more permutation: so many others may be as surprising
    others = math.floor(level * language.weights["single"] * (_PERMUTATIONS + 1) + 1e-9) - 1
    if others < 0:
        return 0.0
    # below it, not at it: ties count against, also where they differ in the last digits
    log_bar = float(np.sort(least)[others]) - _TIE
    return max(0.0, log_bar - (math.log(level) - language.log_cost("single")))


def _permute_least(language: RuleLanguage, losses: Losses) -> Floats:
    """The smallest log p of all single conditions, for each permutation: shape (permutations,)."""
    values = losses.values.astype(np.float32)
    rows = language.layout.unpack(language.bits[language.single])
    table = _tabulate(language.support[language.single], len(values), int(values.sum()))
    permuted = stream(0, "modes: single conditions").permuted(
        np.tile(values, (_PERMUTATIONS, 1)), axis=1
    )
    inside = np.rint(rows.astype(np.float32) @ permuted.T).astype(np.intp)
    return np.asarray(np.take_along_axis(table, inside, axis=1).min(axis=0))


def _tabulate(support: NDArray[np.int64], units: int, errors: int) -> Floats:
    """Log of the chance of at least so many errors inside: shape (conditions, errors + 1)."""
    from scipy.special import gammaln

    def choose(n: Floats, k: Floats) -> Floats:
        with np.errstate(invalid="ignore"):
            log = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
        return np.asarray(np.where((k >= 0) & (k <= n), log, -np.inf))

    inside, size = np.arange(errors + 1.0), support[:, None].astype(np.float64)
    log_p = choose(size, inside) + choose(units - size, errors - inside)
    tails = np.logaddexp.accumulate(log_p[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(tails - tails[:, :1])
