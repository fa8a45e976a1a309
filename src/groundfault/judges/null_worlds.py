"""Null worlds: the same candidates and losses, in random orders that nothing explains."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from groundfault.base.arrays import Floats, Places
from groundfault.core.pairs import Pairs
from groundfault.core.units import Units

# as many as an audit of usual size has time for: beyond 120 the power that follows from them
# changes by less than 0.02, and 16 are enough for 0.05
_DRAWS = (16, 120)
_WORK = 100_000_000  # units times hypotheses of all worlds together: some seconds


def draw_null_worlds(units: Units, hypotheses: Places, rng: np.random.Generator) -> Iterator[Units]:
    """Yield units with their losses in another order; of pairs, with models swapped at random.

    As many worlds as there is time for: 16 to 120, by units times hypotheses.

    Parameters
    ----------
    units : Units
    hypotheses : intp array, shape (H,)
    rng : numpy.random.Generator

    Notes
    -----
    All losses of a unit move together, within its stratum, so that candidates and outcomes keep
    their dependence.
    """
    least, most = _DRAWS
    draws = int(np.clip(_WORK / max(1, len(units) * len(hypotheses)), least, most))
    for _ in range(draws):
        yield units.shuffle(rng)


def standardise(units: Units, hypotheses: Places) -> Floats:
    """Return sizes of lifts over what they vary by in null worlds; 0 where they cannot vary."""
    if isinstance(units, Pairs):
        sums, squares = (each[hypotheses] for each in units.change_sums())
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(np.abs(sums) / np.sqrt(squares))
    tables = units.tables[hypotheses]
    if units.denominator == 1:
        squares = np.asarray(tables.total, dtype=np.float64)
    else:
        squares = units.squares()[1][hypotheses]
    n, on = tables.n.astype(np.float64), tables.on.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = (squares - (tables.total / tables.unit) ** 2 / n) / (n - 1)
        size = np.abs(tables.lift) / np.sqrt(variance * n / (on * (n - on)))
    return np.asarray(np.nan_to_num(size, nan=0.0, posinf=0.0))
