"""P-values of graded losses: the studentised lift is permuted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from groundfault.core.counted_units import CountedUnits
from groundfault.core.units import Units
from groundfault.stats import bits, permutation
from groundfault.stats.lifts import centre_losses


def compute_graded_p_values(
    units: Units,
    hypotheses: NDArray[np.intp],
    draws: int,
    rng: np.random.Generator,
    direction: NDArray[np.int64] | None = None,
) -> NDArray[np.float64]:
    """(1 + exceedances) / (1 + draws) of studentised lifts, within strata if there are any.

    A slice whose losses vary more than the rest, or less, has no small p where the means are equal;
    see `groundfault.stats.lifts`.

    Parameters
    ----------
    units : Units
    hypotheses : intp array, shape (H,)
    draws : int
        Random permutations, shared by the hypotheses of one population.
    rng : numpy.random.Generator
    direction : int64 array, shape (H,), optional
        One-sided where given, in these directions; else two-sided.
    """
    exceed = np.zeros(len(hypotheses), dtype=np.int64)
    for at, lifts in _redraw(units, hypotheses, draws, rng):
        side = None if direction is None else np.where(direction[at] > 0, 1.0, -1.0)
        sizes = (np.abs(batch) if side is None else side * batch for batch in lifts)
        observed = next(sizes)[0]
        # sums of reals depend on the order of addition
        bar = observed - 1e-9 * np.maximum(np.abs(observed), 1e-3)
        for batch in sizes:
            exceed[at] += (batch >= bar).sum(axis=0)
    # the data count as one draw: unbiased tests need it (Phipson and Smyth 2010,
    # doi:10.2202/1544-6115.1585)
    return np.asarray((1 + exceed) / (draws + 1))


def _redraw(
    units: Units, hypotheses: NDArray[np.intp], draws: int, rng: np.random.Generator
) -> Iterator[tuple[NDArray[np.intp], Iterator[NDArray[np.float64]]]]:
    """Hypotheses of one population, and their lifts: first of the data, then of permutations."""
    if isinstance(units, CountedUnits):
        for place, h in enumerate(hypotheses):
            lifts = units.counts.redraw_robust_lifts(int(h), draws, rng)
            yield np.array([place], dtype=np.intp), lifts
        return
    for inside, outcome, at in units.populations(hypotheses):
        members = np.flatnonzero(inside)
        strata = None if units.strata is None else units.strata[members]
        rows = bits.take(units.marks.on[hypotheses[at] // len(units.losses)], len(units), members)
        residuals = centre_losses(units.losses[outcome][members][None], strata=strata)[0]
        yield at, permutation.redraw_robust_lifts(rows, residuals, draws, rng, strata)
