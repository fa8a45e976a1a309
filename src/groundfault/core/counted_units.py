"""Counted units: numbers of units of each kind, for data whose rows are not in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from groundfault.base.arrays import Bools, Floats, Ints, Places
from groundfault.core.units import Marks, Units
from groundfault.stats.contingency import ContingencyTables
from groundfault.stats.loss_counts import LossCounts, deal_errors


@dataclass(frozen=True)
class CountedMarks(Marks):
    """How many units each candidate is true for, and which candidates are the same.

    Attributes
    ----------
    n, n_on : int64 arrays, shape (L,)
        Units where each candidate is defined, and where it is true.
    first : intp array, shape (L,)
        The earliest candidate that is true for the same units, or for exactly the other units.
    is_mirrored : bool array, shape (L,)
        Whether ``first`` is true for the other units.
    """

    n: Ints = field(kw_only=True)
    n_on: Ints = field(kw_only=True)
    first: Places = field(kw_only=True)
    is_mirrored: Bools = field(kw_only=True)

    def counts(self) -> tuple[Ints, Ints]:
        """See `Marks.counts`."""
        return self.n, self.n_on

    def are_same(self, one: int, other: int) -> bool:
        """See `Marks.are_same`."""
        return bool(self.is_mirrored[one] == self.is_mirrored[other])


@dataclass(frozen=True)
class JointCells:
    """Rows counted by which of J candidates match them, to show how these candidates overlap.

    Attributes
    ----------
    candidates : intp array, shape (J,)
        Places of the candidates in the library.
    on, defined : bool arrays, shape (J, C)
        Whether each candidate is true, and whether it is true or false, in each cell.
    rows : int64 array, shape (C,)
        All rows.
    deciding, scored, errors : int64 arrays, shape (C,)
        Rows of the part that decides; the scored rows among these; the failures among the scored.
    """

    candidates: Places
    on: Bools
    defined: Bools
    rows: Ints
    deciding: Ints
    scored: Ints
    errors: Ints

    def with_unscored_as(self, loss: int) -> JointCells:
        """Return the cells had all rows failed that were not scored (1), or passed (0)."""
        unscored = self.deciding - self.scored
        return replace(self, scored=self.deciding, errors=self.errors + loss * unscored)

    def tabulate(self, errors: Ints) -> ContingencyTables:
        """Return tables of the J candidates, given the failures in each cell."""
        here = self.on & self.defined
        n, on = self.defined @ self.scored, here @ self.scored
        return ContingencyTables(n, on, self.defined @ errors, here @ errors)


@dataclass(frozen=True)
class CountedUnits(Units):
    """Units of one outcome, known only by how many have each loss.

    Methods that read single units or how candidates overlap do not work here. See
    `groundfault.auditing.counted_audit` for the judges that need neither.

    Attributes
    ----------
    counts : LossCounts
        Counts of the units with an outcome, and of the units that each of L candidates matches.
    empty : int64 array, shape (V, L), or None
        Units of each loss on which a candidate's rule is NULL; None if no rule is NULL anywhere.
    joint : JointCells, optional
        Joint counts of some candidates, if they were counted.
    """

    counts: LossCounts = field(kw_only=True)
    empty: Ints | None = field(default=None, kw_only=True)
    joint: JointCells | None = field(default=None, kw_only=True)

    @classmethod
    def of_counts(
        cls, marks: CountedMarks, counts: LossCounts, empty: Ints | None = None
    ) -> CountedUnits:
        """Return units of these counts."""
        no_units = np.zeros((1, 0), dtype=np.int64)
        grid = counts.denominator
        return cls(marks, no_units, None, grid, counts.strata, counts=counts, empty=empty)

    @property
    def shape(self) -> tuple[int, int]:
        """Return candidates, and one outcome."""
        return self.counts.on.shape[1], 1

    @cached_property
    def tables(self) -> ContingencyTables:
        """See `Units.tables`."""
        return self.counts.tables

    @cached_property
    def support(self) -> tuple[Ints, Ints]:
        """See `Units.support`."""
        return self.tables.n, self.tables.on

    def squares(self) -> tuple[Floats, Floats]:
        """See `Units.squares`."""
        return self.counts.squares()

    def describe_losses(self) -> tuple[float, float | None]:
        """See `Units.describe_losses`."""
        mean, variance = self.counts.describe()
        return mean, None if self.denominator == 1 else variance

    def shuffle(self, rng: np.random.Generator) -> CountedUnits:
        """See `Units.shuffle`; each candidate by itself where not all were counted jointly."""
        joint, counts = self.joint, self.counts
        if self.strata is not None or joint is None or len(joint.candidates) < self.shape[0]:
            return replace(self, counts=counts.shuffle(rng))
        dealt = next(deal_errors(joint.scored, int(joint.errors.sum()), 1, rng))[0]
        on = joint.tabulate(dealt).on_sum
        failed = counts.losses == 1
        sizes = counts.on.sum(axis=0)
        return replace(self, counts=replace(counts, on=np.where(failed[:, None], on, sizes - on)))

    def redraw(
        self, hypotheses: Places, draws: int, rng: np.random.Generator
    ) -> Iterator[tuple[Places, Floats, Floats]]:
        """See `Units.redraw`, of each hypothesis by itself."""
        expected = self.counts.expect_sums()[hypotheses]
        for place, h in enumerate(hypotheses):
            for sums in self.counts.redraw_sums(int(h), draws, rng):
                yield np.array([place], dtype=np.intp), expected[[place]], sums

    @property
    def gaps(self) -> CountedUnits | None:
        """Return the same units, with candidates replaced by "has no value" for each."""
        if self.empty is None:
            return None
        everyone = np.broadcast_to(self.counts.units[:, None], self.empty.shape)
        return replace(self, counts=replace(self.counts, defined=everyone, on=self.empty))
