"""Gaps: whether a rule has a value must not go with the outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from groundfault.core.counted_units import CountedUnits
from groundfault.core.plan import Plan
from groundfault.core.units import Marks, Units
from groundfault.judges.confirm import compute_p_values

LEVEL = 0.1
"""Lenient: a true candidate is refused this often by chance, where its gaps are harmless."""


def find_gaps_by_outcome(
    parts: Sequence[Units], plan: Plan, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Hypotheses whose rule lacks a value more often, or less, where losses are high.

    Such a rule is associated with the outcome by what is missing, and not by what it says: if
    values are lost where a model fails, "off" collects failures, and leaving gaps out does too
    where they are lost from one side of the slice.

    Parameters
    ----------
    parts : sequence of Units
        Discovery, and the holdout where there is one. Each is tested at its share of `LEVEL`, two
        sided: discovery alone misses what the holdout then shows.
    plan : Plan
    rng : numpy.random.Generator
        Used only where p-values are sampled.

    Returns
    -------
    bool array, shape (L * M,)

    Notes
    -----
    This can only take confirmations away, so no error rate grows. What it cannot see: values lost
    from failures on the slice and as often from passes off it, which leaves the rate of gaps alike.
    """
    candidates, outcomes = parts[0].shape
    gaps = np.zeros((candidates, outcomes), dtype=np.bool_)
    for units in parts:
        if isinstance(units, CountedUnits):
            if units.gaps is not None:
                everyone = np.arange(candidates, dtype=np.intp)
                p = compute_p_values(units.gaps, everyone, plan, rng)
                gaps |= (p <= LEVEL / len(parts))[:, None]
            continue
        empty = units.marks.empty
        if empty is None:
            continue
        # all candidates of one column lack the same values
        distinct, which = np.unique(empty, axis=0, return_inverse=True)
        marks = Marks(len(units), distinct, None, ("",) * len(distinct))
        hypotheses = np.arange(len(distinct) * outcomes, dtype=np.intp)
        p = compute_p_values(replace(units, marks=marks), hypotheses, plan, rng)
        gaps |= (p <= LEVEL / len(parts)).reshape(-1, outcomes)[which.reshape(-1)]
    return gaps.reshape(-1)
