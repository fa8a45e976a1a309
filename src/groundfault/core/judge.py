"""What a judge is, and what its two steps give back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from groundfault.base.arrays import Bools, Floats, Ints, Places
from groundfault.base.machine import enough_threads
from groundfault.core.plan import Plan
from groundfault.core.units import Units
from groundfault.stats.decoys import Floor

Confirmation = Literal["gate", "exact", "none"]
ErrorRate = Literal["family-wise", "false discovery", "none"]


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
    too_small : bool array, optional
        Of a judge without a holdout: what would be confirmed but for the least effect that the plan
        asks for.
    """

    survives: Bools
    p: Floats | None = None
    p_adjusted: Floats | None = None
    floor: Floor | None = None
    decoys: Floats | None = None
    too_small: Bools | None = None


@dataclass(frozen=True)
class ConfirmationBar:
    """What one true hypothesis among null ones has to pass on the units that a judge screens.

    Attributes
    ----------
    level : callable, optional
        Of a judge that holds nothing out: the largest two-sided p-value that it confirms, as a
        function of a hypothesis' support and of how many others are confirmed beside it.
    floors : float64 array, shape (R,)
        The least size of effect that passes, on the scale of
        `groundfault.stats.contingency.ContingencyTables.score`, in R equally likely null worlds.
    rivals : int64 array, shape (R,)
        How many null hypotheses pass the screen of a judge with a holdout, in each.
    """

    level: Callable[[int, int], float] | None = None
    floors: Floats = field(default_factory=lambda: np.zeros(1))
    rivals: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64))


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

    Notes
    -----
    A judge that can compare two models says so by an attribute ``compares`` that is true: its
    `screen` then gets `groundfault.core.pairs.Pairs`, and tests their changes.

    A judge says by an attribute ``bounds``, an `ErrorRate`, which rate of false confirmations it
    bounds: the family-wise one at the plan's alpha, the false discovery rate at its q, or none.
    Nothing is guaranteed in the name of a judge without it.

    A judge that can say what a true hypothesis has to pass has a method ``find_bar`` of the
    arguments of `screen`. It gives a `ConfirmationBar` and reads nothing of the losses but what
    stays the same in another order. From it come the least lift that an audit detects and, where
    nothing is held out, estimates that account for the bar; of a judge without it, neither is said.
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


def bounded_rate(judge: Judge) -> ErrorRate | None:
    """Return the error rate that a judge says it bounds; None if it does not say."""
    rate: ErrorRate | None = getattr(judge, "bounds", None)
    return rate


def find_bar(
    judge: Judge, units: Units, hypotheses: Places, plan: Plan, rng: np.random.Generator
) -> ConfirmationBar | None:
    """Return what a judge asks of one true hypothesis among null ones; None if it does not say."""
    method = getattr(judge, "find_bar", None)
    if method is None or not len(hypotheses):
        return None
    with enough_threads(units.marks.size * len(hypotheses)):
        bar: ConfirmationBar = method(units, hypotheses, plan, rng)
    return bar
