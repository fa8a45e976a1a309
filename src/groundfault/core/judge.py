"""What a judge is, and what its two steps give back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from groundfault.core.plan import Plan
from groundfault.core.units import Units
from groundfault.stats.decoys import Floor

Confirmation = Literal["gate", "exact", "none"]


@dataclass(frozen=True)
class Screening:
    """A judge's answer on the units it has seen; arrays of shape (H,), a hypothesis each.

    Attributes
    ----------
    survives : bool array
        For a judge with a holdout, what goes on to it; for one without, what is confirmed.
    p, p_adjusted : float64 arrays, optional
        Two-sided permutation p-values, and their adjustment for multiplicity where the judge makes
        one.
    floor : Floor, optional
    decoys : float64 array, optional
        Decoys expected at or above each hypothesis' own effect.
    """

    survives: NDArray[np.bool_]
    p: NDArray[np.float64] | None = None
    p_adjusted: NDArray[np.float64] | None = None
    floor: Floor | None = None
    decoys: NDArray[np.float64] | None = None


@runtime_checkable
class Judge(Protocol):
    """A rule that says which hypotheses stand.

    Attributes
    ----------
    name : str
    confirmation : {"gate", "exact", "none"}
        What a survivor has to pass on the holdout: the paper's gate (support, same sign, least
        effect); the gate and an exact one-sided p-value under Holm; or nothing, because the judge
        uses all units at once.
    lift_ranked : bool
        Whether rare candidates compete with common ones by size of lift, which calls for a
        prevalence window.
    distinct : bool
        Whether duplicates and complements count once.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def confirmation(self) -> Confirmation: ...  # noqa: D102
    @property
    def lift_ranked(self) -> bool: ...  # noqa: D102
    @property
    def distinct(self) -> bool: ...  # noqa: D102

    def screen(
        self, units: Units, hypotheses: NDArray[np.intp], plan: Plan, rng: np.random.Generator
    ) -> Screening:
        """Judge the hypotheses on these units: one answer each, in their order.

        The same generator gives the same answers.
        """
        ...
