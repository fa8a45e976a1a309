"""Single conditions are tested together: by permutation, beside the test that sums their chances.

Conditions overlap (cuts of one column, columns that follow each other), so that the most
surprising of them is less so by chance than that of as many independent ones would be. How
surprising it is, permuted losses show.
"""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

from groundfault.base.streams import stream
from groundfault.modes.rule_space import RuleLanguage
from groundfault.modes.strata import Losses
from groundfault.stats.bits import Bits
from groundfault.stats.stratified_tail import log_tail

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_PERMUTATIONS = 999
_TIE = 1e-6
_WORK = 3e9
"""Additions that the permutations may take: about a second."""


class JointTest:
    """The test of all single conditions together, in addition to one that sums their chances.

    A single condition is surprising at the level if its exact p-value passes the Bonferroni bar of
    its class, or if its standardised number of errors passes a bar such that *either* happens to
    any of them in no more than the level of the permutations. Both bars are higher for what is
    longer to read, by its handicap: a negation, a range.

    Parameters
    ----------
    language : RuleLanguage
    losses : Losses
    level : float
        Family-wise error level of all marginal claims, in (0, 1).

    Notes
    -----
    Only where losses are 0 or 1 and units are exchangeable in one stratum, and the table is not so
    large that power is no question; elsewhere no p-value is below 1. Westfall and Young 1993,
    single step: exact under the complete null, strong under subset pivotality.
    """

    def __init__(self, language: RuleLanguage, losses: Losses, level: float) -> None:
        self.layout, self.losses = language.layout, losses
        self.share = language.weights.get("single", 0.0)
        work = len(language.single) * len(losses.values) * _PERMUTATIONS
        one_stratum = len(language.layout.runs) == 2
        self.used = losses.binary and one_stratum and 0 < work <= _WORK
        if self.used:
            log_bar = math.log(level) - language.log_cost("single")
            self.largest = np.sort(_permute(language, losses, log_bar))

    def log_p(self, mask: Bits, handicap: float = 0.0) -> float:
        """Return log of the adjusted p-value of a single condition."""
        inside = self.layout.unpack(mask[None])[0]
        values = self.losses.values
        return self.log_p_of(int(inside.sum()), values[inside].sum(), values.sum(), handicap)

    def log_p_of(self, inside: int, errors: float, total: float, handicap: float = 0.0) -> float:
        """Return the same of so many errors of all among so many units inside."""
        if not self.used:
            return 0.0
        units = len(self.losses.values)
        z = _standardise(errors, np.array(inside), units, total)
        observed = float(_surprise(z, handicap))
        # ties count against, also where they differ in the last digits
        reached = len(self.largest) - int(np.searchsorted(self.largest, observed - _TIE))
        return min(0.0, math.log((1 + reached) / (1 + len(self.largest)) / self.share))


def _standardise(errors: Floats | Ints | float, inside: Ints, units: int, total: float) -> Floats:
    """Return errors inside, less what is expected, over the standard deviation of permutations."""
    rate = total / units
    variance = rate * (1 - rate) * inside * (units - inside) / (units - 1)
    return np.asarray((errors - inside * rate) / np.sqrt(variance))


def _surprise(z: Floats, handicap: Floats | float) -> Floats:
    """Return minus the log of the normal tail of standardised counts, less the handicap."""
    # scipy.stats has it, and takes half a second to import
    from scipy.special import log_ndtr

    return np.asarray(-log_ndtr(-z) - handicap)


def _permute(language: RuleLanguage, losses: Losses, log_bar: float) -> Floats:
    """Return the most surprising count of each permutation, infinite where any p is at its bar."""
    values = losses.values.astype(np.float32)
    units, total = len(values), int(values.sum())
    rows = language.layout.unpack(language.bits[language.single])
    permuted = stream(0, "modes: single conditions").permuted(
        np.tile(values, (_PERMUTATIONS, 1)), axis=1
    )
    errors = np.rint(rows.astype(np.float32) @ permuted.T).astype(np.int64)
    inside = language.support[language.single]
    z = _standardise(errors, inside[:, None], units, total)
    kinds = np.unique(np.stack([inside, language.handicaps]), axis=1, return_inverse=True)
    sizes, which = kinds[0].T.tolist(), kinds[1].reshape(-1)
    least = [_find_least(int(size), units, total, log_bar - more) for size, more in sizes]
    passes = (errors >= np.array(least)[which][:, None]).any(axis=0)
    # of those with one handicap, the largest count is the most surprising
    handicaps = np.unique(language.handicaps)
    tops = np.stack([z[language.handicaps == one].max(axis=0) for one in handicaps])
    largest = _surprise(tops, handicaps[:, None]).max(axis=0)
    return np.asarray(np.where(passes, np.inf, largest))


def _find_least(inside: int, units: int, total: int, log_bar: float) -> int:
    """Return the least number of errors inside whose exact log p is at the bar, or more than there
    are."""
    margins = np.array([[inside], [total], [units]], dtype=np.int64)
    return bisect_left(
        range(total + 1), True, key=lambda errors: log_tail(errors, *margins) <= log_bar
    )
