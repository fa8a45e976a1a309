"""Finding failure modes: from a table of units and their losses to a short list of rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.core.candidate import Candidate
from groundfault.modes.mode import Mode, ModeSearch


@dataclass(frozen=True)
class OwnRule:
    """A candidate that was named, or mined from outcomes, as a rule that may become a mode.

    Attributes
    ----------
    candidate : Candidate
    on : bool array, shape (units,)
    tested : bool array, shape (units,), or None
        Units it is tested on: those that no finder saw the outcomes of; None for all.
    """

    candidate: Candidate
    on: NDArray[np.bool_]
    tested: NDArray[np.bool_] | None = None


def find_modes(
    table: pl.DataFrame,
    losses: NDArray[np.float64],
    *,
    outcomes: Sequence[str] = ("",),
    level: float = 0.10,
    depth: int = 3,
    within: Sequence[str] = (),
    strata: NDArray[np.int64] | None = None,
    own_rules: Sequence[OwnRule] = (),
) -> tuple[tuple[Mode, ...], ModeSearch]:
    """Name the rules under which failures are more frequent, few and in order.

    Parameters
    ----------
    table : polars.DataFrame
        One row a unit; the columns that rules may name, fixed before outcomes were seen.
    losses : float64 array, shape (outcomes, units)
        In [0, 1]; NaN where not scored.
    outcomes : sequence of str
        Models; one empty name where there is one alone.
    level : float
        Family-wise error level over all modes.
    depth : {1, 2, 3}
        Conditions that a rule joins at most.
    within : sequence of str
        Columns of the table that are held fixed: no rule names them, and units are compared only
        with those that have the same values.
    strata : int64 array, shape (units,), optional
        Units are exchangeable only within these (size classes of groups).
    own_rules : sequence of OwnRule
        Rules beyond the search's own language.
    """
    raise NotImplementedError
