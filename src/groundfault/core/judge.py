"""The protocol of a judge, and the results of its two steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from groundfault.base.arrays import Bools, Floats, Ints, Places
from groundfault.core.plan import Plan
from groundfault.core.units import Units
from groundfault.stats.decoys import Floor

Confirmation = Literal["gate", "exact", "none"]
ErrorRate = Literal["family-wise", "false discovery", "none"]


@dataclass(frozen=True)
class Screening:
    """A judge's result on the units it screens; arrays have shape (H,), one value a hypothesis.

    Attributes
    ----------
    survives : bool array
        With a holdout, whether the hypothesis is tested on it; without one, whether it is
        confirmed.
    p, p_adjusted : float64 arrays, optional
        Two-sided permutation p-values, and their adjustment for multiplicity where the judge makes
        one.
    floor : Floor, optional
    decoys : float64 array, optional
        Expected number of decoys with at least the effect of each hypothesis.
    too_small : bool array, optional
        For a judge without a holdout: hypotheses that only the plan's least effect keeps from being
        confirmed.
    """

    survives: Bools
    p: Floats | None = None
    p_adjusted: Floats | None = None
    floor: Floor | None = None
    decoys: Floats | None = None
    too_small: Bools | None = None


@dataclass(frozen=True)
class ConfirmationBar:
    """The bar that one true hypothesis among null ones has to pass on the units a judge screens.

    Attributes
    ----------
    level : callable, optional
        For a judge without a holdout: the largest two-sided p-value that it confirms, as a function
        of a hypothesis' support and of the number of other confirmed hypotheses.
    floors : float64 array, shape (R,)
        The least size of effect that passes, on the scale of
        `groundfault.stats.contingency.ContingencyTables.score`, in R equally likely null worlds.
    rivals : int64 array, shape (R,)
        For a judge with a holdout: the number of null hypotheses that pass its screen in each of
        these worlds.
    """

    level: Callable[[int, int], float] | None = None
    floors: Floats = field(default_factory=partial(np.zeros, 1))
    rivals: Ints = field(default_factory=partial(np.zeros, 1, dtype=np.int64))  # type: ignore[arg-type]


@runtime_checkable
class Judge(Protocol):
    """A rule that decides which hypotheses are confirmed.

    Attributes
    ----------
    name : str
    confirmation : {"gate", "exact", "none"}
        The test of a survivor on the holdout: the paper's gate (support, same sign, least effect);
        the gate and an exact one-sided p-value under Holm; or no test, because the judge uses all
        units at once.
    lift_ranked : bool
        Whether rare candidates compete with common ones by size of lift, which needs a prevalence
        window.
    distinct : bool
        Whether duplicates and complements count once.

    Notes
    -----
    A judge that can compare two models has an attribute ``compares`` that is true. Its `screen`
    then gets `groundfault.core.pairs.Pairs` and tests the changes between the models.

    A judge states the rate of false confirmations that it bounds in an attribute ``bounds``, an
    `ErrorRate`: the family-wise error rate at the plan's alpha, or the false discovery rate at its
    q. For a judge without the attribute, the report guarantees no error rate.

    A judge that knows its bar has a method ``find_bar`` with the arguments of `screen`. The method
    returns a `ConfirmationBar` and may read only statistics of the losses that do not depend on
    their order. An audit uses the bar for the least lift that it detects and, without a holdout,
    for estimates corrected for selection. For a judge without the method, it reports neither.
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
        self, units: Units, hypotheses: Places, plan: Plan, rng: np.random.Generator
    ) -> Screening:
        """Judge the hypotheses on these units: one answer each, in their order.

        The same generator gives the same answers.
        """
        ...
