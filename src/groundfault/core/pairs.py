"""Pairs: units with the losses of two models, to be compared unit by unit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from groundfault.base.arrays import Bools, Floats, Ints, Places
from groundfault.core.units import Marks, Units
from groundfault.stats import bits
from groundfault.stats.contingency import ContingencyTables


@dataclass(frozen=True)
class Pairs(Units):
    """Marks with the losses of two models on the same units.

    `losses` holds the losses of the second model. The null hypothesis is that the two losses of
    each unit are exchangeable. Judges of single models permute units instead, which is not valid
    here: how much two models differ by chance depends on how hard a unit is.

    Attributes
    ----------
    first : int64 or float64 array, shape (1, m)
        The first model's losses, in units of 1/``denominator``; 0 where either was not scored.
    """

    first: Ints | Floats = field(kw_only=True)

    @classmethod
    def of_models(cls, marks: Marks, losses: Floats) -> Pairs:
        """Join marks with the losses of two models, shape (2, m), NaN where not scored.

        A unit without a score for one of the models is left out for both.
        """
        both = ~np.isnan(losses).any(axis=0)
        units = Units.of(marks, np.where(both, losses, np.nan))
        scored = None if units.scored is None else units.scored[1:]
        return cls(marks, units.losses[1:], scored, units.denominator, first=units.losses[:1])

    def take(self, units: Places) -> Self:
        """Return some units, in that order."""
        return replace(super().take(units), first=self.first[:, units])

    def select_units(self, units: Bools) -> Self:
        """Return the same units with losses only where a mask is true; marks are not copied."""
        return replace(super().select_units(units), first=np.where(units[None], self.first, 0))

    @cached_property
    def tables(self) -> ContingencyTables:
        """Return two models on each slice: "on" is the second, "off" the first; shape (L,).

        A lift is then the change from the first model to the second.
        """
        on = self.support[1]
        second, first = (bits.sums(self.marks.on, each)[:, 0] for each in (self.losses, self.first))
        return ContingencyTables(2 * on, on, first + second, second, self.denominator)

    @property
    def present(self) -> Bools:
        """Return units that both models were scored on: shape (m,)."""
        return np.ones(len(self), dtype=np.bool_) if self.scored is None else self.scored[0]

    @property
    def changes(self) -> Floats:
        """Return the second model's loss minus the first's, 0 where not scored: shape (m,), in [-1,
        1]."""
        return np.asarray((self.losses[0] - self.first[0]) / (self.denominator or 1))

    def change_sums(self) -> tuple[Floats, Floats]:
        """Return sums of changes on each slice, and of their squares: shape (L,)."""
        changes = self.changes
        sums = bits.sums(self.marks.on, np.stack([changes, changes**2]))
        return sums[:, 0], sums[:, 1]

    def shuffle(self, rng: np.random.Generator) -> Pairs:
        """Return a null world: the two models swapped within units at random."""
        swap = rng.random(len(self)) < 0.5
        losses = np.where(swap, self.first, self.losses)
        return replace(self, losses=losses, first=np.where(swap, self.losses, self.first))


def clip_changes(losses: Floats, *, less: bool) -> Floats:
    """Return how much worse each unit is with the second model, or better if ``less``; else 0.

    Parameters
    ----------
    losses : float64 array, shape (2, units)
        NaN where not scored.
    less : bool

    Notes
    -----
    Of runs over different examples, failures of the run that has more of them.

    Returns
    -------
    float64 array, shape (units,)
        In [0, 1]; NaN where one was not scored.
    """
    changes = losses[1] - losses[0]
    if np.isnan(changes).all():
        return np.asarray(losses[0 if less else 1])
    return np.asarray(np.clip(-changes if less else changes, 0.0, None))
